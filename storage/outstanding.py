"""Commits whose batches are still in the txns shard, and the writes that remove them (tidy).

    tokens, batches ── outstanding ──▶ Outstanding ── Removal, pieces, plan_removals ──▶ Leaving

The keys and values of tokens and batches are known here; what leaves, and when, is `txns.py`'s.
"""

import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from storage.errors import Corrupt
from storage.stash import Delete, Put, Write
from storage.types import ShardId, Timestamp, Token

BATCHES: Final = "batches"
TOKENS: Final = "tokens"

# A token's value: the commit's timestamp, and how many of its batches are left.
_OUTCOME = struct.Struct(">qI")

# One tidy transaction holds up the commits behind it: smaller pieces let them through sooner,
# larger ones need fewer fsyncs. One commit is never split, however large.
_PIECE_KEYS_MAX = 128
_PIECE_BYTES_MAX = 1 << 20


@dataclass(frozen=True, slots=True)
class Outstanding:
    """What tidy has to remove for one commit."""

    ts: Timestamp
    token: Token
    sizes: Mapping[ShardId, int]
    """Bytes of each batch that is left."""

    def without(self, shards: Collection[ShardId]) -> "Outstanding":
        """What is left after the batches of these shards have gone."""
        left = {shard: size for shard, size in self.sizes.items() if shard not in shards}
        return replace(self, sizes=left)


@dataclass(frozen=True, slots=True)
class Removal:
    """Batches of a commit that tidy removes, and what is left of it."""

    before: Outstanding
    shards: tuple[ShardId, ...]

    @property
    def after(self) -> Outstanding:
        """The commit without them."""
        return self.before.without(self.shards)

    @property
    def keys(self) -> int:
        """How many writes it takes."""
        return len(self.shards) + 1

    @property
    def size_bytes(self) -> int:
        """What a stash may have to move."""
        return sum(self.before.sizes[shard] for shard in self.shards)


@dataclass(frozen=True, slots=True)
class Leaving:
    """A stash transaction that removes batches and may forget shards. Twice is as good as once."""

    writes: Sequence[Write]
    removals: Sequence[Removal]
    forgets: Collection[ShardId] = ()


def pieces(removals: Sequence[Removal]) -> Iterator[list[Removal]]:
    """Removals that fit one tidy transaction each."""
    piece: list[Removal] = []
    keys, size_bytes = 0, 0
    for removal in removals:
        keys += removal.keys
        size_bytes += removal.size_bytes
        if piece and (keys > _PIECE_KEYS_MAX or size_bytes > _PIECE_BYTES_MAX):
            yield piece
            piece, keys, size_bytes = [], removal.keys, removal.size_bytes
        piece.append(removal)
    if piece:
        yield piece


def plan_removals(piece: Sequence[Removal]) -> list[Write]:
    """The writes that take these batches away, and tokens without a batch left."""
    writes: list[Write] = []
    for removal in piece:
        commit, left = removal.before, len(removal.after.sizes)
        writes += [Delete(BATCHES, batch_key(commit.ts, shard)) for shard in removal.shards]
        writes.append(
            put_outcome(commit.token, commit.ts, left) if left else Delete(TOKENS, commit.token)
        )
    return writes


def outstanding(
    outcomes: Mapping[str, bytes], values: Mapping[str, bytes], upper: Timestamp | None
) -> list[Outstanding]:
    """The commits not tidied, oldest first. Raises Corrupt if batches and tokens disagree."""
    batches: dict[Timestamp, list[tuple[ShardId, int]]] = {}
    for key, value in values.items():
        ts, shard = parse_batch_key(key)
        batches.setdefault(ts, []).append((shard, len(value)))
    commits: list[Outstanding] = []
    for token, value in outcomes.items():
        ts, count = decode_outcome(token, value)
        found = batches.pop(ts, [])
        if len(found) != count:
            raise Corrupt(f"commit {token} at {ts} has {len(found)} batches instead of {count}")
        if upper is None or ts >= upper:
            raise Corrupt(f"commit {token} at {ts} is not below upper {upper}")
        commits.append(Outstanding(ts, Token(token), dict(found)))
    if batches:
        raise Corrupt(f"batches at {min(batches)} belong to no commit")
    return sorted(commits, key=lambda commit: commit.ts)


def batch_key(ts: Timestamp, shard: ShardId) -> str:
    """Where the batch of a shard lies."""
    # Twenty digits: the keys of all int64 timestamps sort as the timestamps do.
    return f"{ts:020d}/{shard}"


def parse_batch_key(key: str) -> tuple[Timestamp, ShardId]:
    """The other way round. Raises Corrupt."""
    ts, slash, shard = key.partition("/")
    if not slash or not ts.isdecimal():
        raise Corrupt(f"batches/{key} is not a batch")
    return Timestamp(int(ts)), ShardId(shard)


def put_outcome(token: Token, ts: Timestamp, batches: int) -> Put:
    """The write of a token."""
    return Put(TOKENS, token, _OUTCOME.pack(ts, batches))


def decode_outcome(token: str, value: bytes) -> tuple[Timestamp, int]:
    """Of a token: the commit's timestamp, and how many of its batches are left. Raises Corrupt."""
    if len(value) != _OUTCOME.size:
        raise Corrupt(f"tokens/{token} is not an outcome: {value.hex()}")
    ts, count = _OUTCOME.unpack(value)
    return Timestamp(ts), count
