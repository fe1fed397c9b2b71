"""Commits that are still in the txns shard, a record each, and the writes that remove them (tidy).

    token, batches ── encode_stored_commit ──▶ commits/<ts> ── decode_stored_commits ──▶ commits
    Outstanding ── Removal, pieces, plan_removals ──▶ Leaving

    "MCR1" │ token length │ batches │ token │ (shard length │ batch length │ shard) .. │ batch ..

INVARIANTS
  O1  a commit is one record under its timestamp: it is there with its token and all its batches,
      or not at all.
  O2  any other bytes, and any other key, raise Corrupt.

What leaves, and when, is said by `txns.py`.
"""

import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from storage.errors import Corrupt
from storage.fast_dataclass import fast_dataclass
from storage.stash import Delete, Put, Write
from storage.types import ShardId, Timestamp, Token

COMMITS: Final = "commits"

_MAGIC: Final = b"MCR1"
_PREFIX: Final = struct.Struct("<4sII")
_LENGTHS: Final = struct.Struct("<II")

# One tidy transaction holds up the commits behind it: smaller pieces let them through sooner,
# larger ones need fewer fsyncs. One commit is never split, however large.
_PIECE_KEYS_MAX = 128
_PIECE_BYTES_MAX = 1 << 20


@fast_dataclass(frozen=True, slots=True)
class StoredCommit:
    """A commit as its record tells; the batches are encoded (`codec.py`)."""

    ts: Timestamp
    token: Token
    batches: Mapping[ShardId, bytes]


@fast_dataclass(frozen=True, slots=True)
class Outstanding:
    """What tidy has to wait for before the record of a commit leaves."""

    ts: Timestamp
    token: Token
    sizes: Mapping[ShardId, int]
    """Bytes of each batch whose shard is not forgotten."""

    def without(self, shards: Collection[ShardId]) -> "Outstanding":
        """What is left to wait for after these shards have been forgotten."""
        left = {shard: size for shard, size in self.sizes.items() if shard not in shards}
        return replace(self, sizes=left)

    @property
    def size_bytes(self) -> int:
        """What a stash may have to move."""
        return sum(self.sizes.values())


@fast_dataclass(frozen=True, slots=True)
class Leaving:
    """A stash transaction that removes commits and may forget shards. Twice is as good as once."""

    writes: Sequence[Write]
    removals: Sequence[Outstanding]
    forgets: Collection[ShardId] = ()


def pieces(removals: Sequence[Outstanding]) -> Iterator[list[Outstanding]]:
    """Removals that fit one tidy transaction each."""
    piece: list[Outstanding] = []
    size_bytes = 0
    for removal in removals:
        size_bytes += removal.size_bytes
        if piece and (len(piece) == _PIECE_KEYS_MAX or size_bytes > _PIECE_BYTES_MAX):
            yield piece
            piece, size_bytes = [], removal.size_bytes
        piece.append(removal)
    if piece:
        yield piece


def plan_removals(piece: Sequence[Outstanding]) -> list[Write]:
    """The writes that take these commits away."""
    return [Delete(COMMITS, commit_key(commit.ts)) for commit in piece]


def put_commit(ts: Timestamp, token: Token, batches: Mapping[ShardId, bytes]) -> Put:
    """The write of a commit (O1)."""
    return Put(COMMITS, commit_key(ts), encode_stored_commit(token, batches))


def encode_stored_commit(token: Token, batches: Mapping[ShardId, bytes]) -> bytes:
    """The value of a commit."""
    name = token.encode()
    parts = [_PREFIX.pack(_MAGIC, len(name), len(batches)), name]
    for shard, batch in batches.items():
        owner = shard.encode()
        parts += (_LENGTHS.pack(len(owner), len(batch)), owner)
    parts += batches.values()
    return b"".join(parts)


def decode_stored_commits(records: Mapping[str, bytes]) -> list[StoredCommit]:
    """All commits, oldest first (O2)."""
    commits = [decode_stored_commit(key, value) for key, value in records.items()]
    return sorted(commits, key=lambda commit: commit.ts)


def decode_stored_commit(key: str, value: bytes) -> StoredCommit:
    """The commit of a key and its value (O2)."""
    if not key.isdecimal():
        raise Corrupt(f"commits/{key} is not a commit")
    try:
        token, batches = _decode_value(value)
    except (struct.error, UnicodeDecodeError) as error:
        raise Corrupt(f"commits/{key}: not a commit") from error
    return StoredCommit(Timestamp(int(key)), token, batches)


def _decode_value(value: bytes) -> tuple[Token, dict[ShardId, bytes]]:
    magic, token_length, count = _PREFIX.unpack_from(value)
    at = _PREFIX.size + token_length
    token = Token(value[_PREFIX.size : at].decode())
    lengths: dict[ShardId, int] = {}
    for _ in range(count):
        owner_length, batch_length = _LENGTHS.unpack_from(value, at)
        at += _LENGTHS.size + owner_length
        lengths[ShardId(value[at - owner_length : at].decode())] = batch_length
    if magic != _MAGIC or len(lengths) != count or at + sum(lengths.values()) != len(value):
        raise struct.error("lengths do not fit")
    batches: dict[ShardId, bytes] = {}
    for shard, length in lengths.items():
        batches[shard] = value[at : at + length]
        at += length
    return token, batches


def commit_key(ts: Timestamp) -> str:
    """Where the record of a commit lies."""
    # Twenty digits: the keys of all int64 timestamps sort as the timestamps do.
    return f"{ts:020d}"
