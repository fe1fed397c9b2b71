"""The txns shard: the one place where a transaction becomes durable.

    commit_at(ts, token, {shard: batch}, registrations, catalog) ── one stash transaction ──▶ ack
         commits/<ts>: token, batches      if there are any: shards/<shard>   catalog records

    commit_at ──Indeterminate──▶ find(token) ── there ──▶ it happened: as after commit_at
                                     └── not there ──▶ the mark moves: it cannot arrive any more

INVARIANTS
  T1  a commit leaves only after the logs of all its tables have reached it: at or below the applied
      cut, or the cut that `flushed` has for the shard. Both are durable before it is removed. A
      batch that its table's log has reached is not read any more.
  T2  a commit is one stash transaction for any number of shards, and one record. Its timestamp and
      all before it are closed: `upper` is above each record, the mark, `closed` and every cut.
  T3  a commit at ts < upper writes nothing and raises TimestampPassed.
  T4  a token is found if and only if its commit happened (until tidied, after it was answered).
      Once `find` has said no, the answer stays no, whatever may still be on its way to the stash:
      each commit requires the mark as it was, and the seal moves it unless the commit is there.
  T5  a commit whose outcome is unknown is looked up before the next one: reads between the two
      would miss it. A commit that was cancelled while under way is unknown, too.
  T6  a shard is written only between its registration and its being forgotten.
  T7  nobody else moves the mark: if it is not where this process left it, another one took over.
  T8  `flushed` says which cut each table's log has reached: a log that ends before that cut has
      lost acknowledged data.
  T9  a shard is forgotten before its files go, and `forgotten` says so until they are gone.
  T10 a removal whose outcome is unknown is repeated, as it was, before another one.

Collections: `txns` (the mark `upper`, `closed`, applied cut), `commits`, `shards`, `flushed`,
`forgotten`. Commits of before lie in `batches` and `tokens` (`former_commits.py`). Cost is in
proportion to the data and the shards touched, never to the number of tables.
"""

import asyncio
import struct
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Mapping,
    Sequence,
)
from collections.abc import (
    Set as AbstractSet,
)
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from storage.batch import WriteBatch
from storage.codec import decode_batch, encode_batch
from storage.commit import Commit
from storage.errors import Corrupt, Determinate, Fenced, RequireFailed, StorageError
from storage.former_commits import BATCHES, TOKENS, former_records
from storage.outstanding import (
    COMMITS,
    Leaving,
    Outstanding,
    StoredCommit,
    commit_key,
    decode_stored_commit,
    decode_stored_commits,
    pieces,
    plan_removals,
    put_commit,
)
from storage.stash import Delete, Ended, PromptStash, Put, Require, Stash, Write
from storage.types import FIRST_TIMESTAMP, Epoch, ShardId, Timestamp, Token

MARKS: Final = "txns"
_SHARDS = "shards"
_FLUSHED, _FORGOTTEN = "flushed", "forgotten"
COLLECTIONS = (COMMITS, BATCHES, TOKENS, MARKS, _FLUSHED, _SHARDS, _FORGOTTEN)
SHARDS_OF_FILES = (_SHARDS, _FORGOTTEN)
UPPER: Final = "upper"
_CLOSED, _APPLIED = "closed", "applied"
_TIMESTAMP = struct.Struct(">q")

ENCODED_AT_ONCE_BYTES_MAX: Final = 256 << 10
"""Larger: longer stalls of the loop. Smaller: more hand-overs to a thread."""

Encoded: TypeAlias = Mapping[ShardId, bytes]
RunBlocking: TypeAlias = Callable[[Callable[[], Encoded]], Awaitable[Encoded]]
"""Runs a function that takes a while, off the loop."""


class TimestampPassed(Determinate):
    """The txns shard is past the timestamp; nothing was written. `upper`: the least possible."""

    def __init__(self, upper: Timestamp) -> None:
        super().__init__(f"timestamp passed, upper is {upper}")
        self.upper = upper


@dataclass(frozen=True, slots=True)
class Recovered:
    """What the txns shard holds at start: batches not applied, in (ts, shard) order.

    A batch may be of a shard that a later commit has forgotten: `shards` are those that are left.
    """

    upper: Timestamp
    applied: Timestamp
    shards: Mapping[ShardId, Timestamp]
    batches: Sequence[tuple[Timestamp, ShardId, WriteBatch]] = field(default_factory=tuple)
    flushed: Mapping[ShardId, Timestamp] = field(default_factory=dict[ShardId, Timestamp])
    forgotten: frozenset[ShardId] = frozenset()
    """Forgotten shards of which something may be left in the warehouse (T9)."""


class TxnsShard:
    """See the module. `load` first; then commits one at a time, tidies at any time."""

    def __init__(
        self, stash: Stash, epoch: Epoch, *, run_blocking: RunBlocking | None = None
    ) -> None:
        self._stash = stash
        self._prompt = stash if isinstance(stash, PromptStash) else None
        self._run_blocking = run_blocking
        self._epoch = epoch
        # What the stash holds; `_upper` may be further, by a commit or a cut (T2).
        self._mark: Timestamp | None = None
        self._upper = FIRST_TIMESTAMP
        self._applied = Timestamp(FIRST_TIMESTAMP - 1)
        self._shards: dict[ShardId, Timestamp] = {}
        # What the log of each shard has reached, as the stash knows.
        self._flushed: dict[ShardId, Timestamp] = {}
        # In the order of the commits.
        self._outstanding: dict[Token, Outstanding] = {}
        self._unknown: tuple[Commit, Mapping[ShardId, int]] | None = None
        self._tidying = asyncio.Lock()
        # A removal that may have happened (T10).
        self._leaving: Leaving | None = None

    async def load(self) -> Recovered:
        """Read everything that start-up needs. Raises Corrupt if a committed batch is missing."""
        marks = await self._stash.scan(MARKS)
        shards = await self._stash.scan(_SHARDS)
        flushed = await self._stash.scan(_FLUSHED)
        forgotten = frozenset(ShardId(key) for key in await self._stash.scan(_FORGOTTEN))
        self._mark = decode_timestamp(marks[UPPER]) if UPPER in marks else None
        if _APPLIED in marks:
            self._applied = decode_timestamp(marks[_APPLIED])
        closed = decode_timestamp(marks[_CLOSED]) if _CLOSED in marks else FIRST_TIMESTAMP
        self._flushed = {ShardId(key): decode_timestamp(cut) for key, cut in flushed.items()}
        self._shards = {ShardId(key): decode_timestamp(ts) for key, ts in shards.items()}
        commits = await self._stored_commits()
        self._outstanding = {commit.token: self._waits_for(commit) for commit in commits}
        last = max((commit.ts for commit in commits), default=self._applied)
        reached = max([last, self._applied, *self._flushed.values()])
        self._upper = max(self._mark or FIRST_TIMESTAMP, closed, Timestamp(reached + 1))
        self._unknown = None
        batches = [
            (commit.ts, shard, _decode_batch(commit.ts, shard, value))
            for commit in commits
            for shard, value in sorted(commit.batches.items())
            if shard in self._shards and not self._reached(commit.ts, shard)
        ]
        cuts = dict(self._flushed)
        shards_left = dict(self._shards)
        return Recovered(self._upper, self._applied, shards_left, batches, cuts, forgotten)

    async def _stored_commits(self) -> Sequence[StoredCommit]:
        """All commits that are left, oldest first; also of a stash that is not upgraded yet."""
        tokens, batches = await self._stash.scan(TOKENS), await self._stash.scan(BATCHES)
        former = former_records(tokens, batches, self._mark)
        return decode_stored_commits({**former, **await self._stash.scan(COMMITS)})

    def _waits_for(self, commit: StoredCommit) -> Outstanding:
        """A batch whose shard is forgotten waits for nothing."""
        sizes = {s: len(value) for s, value in commit.batches.items() if s in self._shards}
        return Outstanding(commit.ts, commit.token, sizes)

    async def with_log(self) -> AbstractSet[ShardId]:
        """The shards that have a log in the warehouse; needs no `load`, and no leadership."""
        return {ShardId(key) for key in await self._stash.scan(_FLUSHED)}

    async def advance(self, upper: Timestamp) -> None:
        """Close every timestamp below `upper`, durably; start-up does it with the new ceiling.

        Raises Fenced, Determinate, Indeterminate; after the last one only `load` helps.
        """
        assert self._unknown is None, "T5: an unknown commit is looked up first"
        if upper > self._upper and not await self._move_mark(upper):
            raise _deposed()

    async def commit_at(self, commit: Commit) -> None:
        """Make the commit durable (T2). Raises TimestampPassed, Fenced, Determinate, Indeterminate.

        After Indeterminate, or if the call is cancelled, `find` the token next (T5).
        """
        self._check(commit)
        if commit.ts < self._upper:
            raise TimestampPassed(self._upper)
        encoded = await self._encoded(commit)
        if commit.ts < self._upper:
            raise TimestampPassed(self._upper)
        sizes = {shard: len(value) for shard, value in encoded.items()}
        self._unknown = commit, sizes
        writes = self._plan_writes(commit, encoded)
        try:
            await self._stash.transact(self._epoch, writes, requires=[self._require_mark()])
        except StorageError as error:
            raise self._failed(error) from error.__cause__
        self._happened(commit, sizes)

    def hand_over(self, commit: Commit, ended: Ended) -> bool:
        """As `commit_at`, without a task: `ended` is told what that would raise. False: nothing has
        happened, and it has to be called, as somebody must wait for more than the stash.
        """
        stash = self._prompt
        if stash is None or commit.ts < self._upper or self._is_large(commit):
            return False
        self._check(commit)
        encoded = _encode(commit)
        sizes = {shard: len(value) for shard, value in encoded.items()}
        self._unknown = commit, sizes

        def transacted(error: Exception | None) -> None:
            if error is None:
                self._happened(commit, sizes)
            ended(self._failed(error) if isinstance(error, StorageError) else error)

        writes = self._plan_writes(commit, encoded)
        stash.hand_over(self._epoch, writes, (self._require_mark(),), transacted)
        return True

    def _failed(self, error: StorageError) -> StorageError:
        """What has become of the commit under way."""
        if isinstance(error, RequireFailed):
            self._unknown = None
            deposed = _deposed()
            deposed.__cause__ = error
            return deposed
        if isinstance(error, Determinate | Fenced):
            self._unknown = None
        return error

    async def find(self, token: Token) -> Timestamp | None:
        """The timestamp of the commit with this token, or None if it did not happen (T4).

        Raises like `commit_at`; an unknown commit stays unknown then, and `find` may be repeated.
        """
        if self._unknown is None or self._unknown[0].token != token:
            known = self._outstanding.get(token)
            return None if known is None else known.ts
        commit, sizes = self._unknown
        happened = await self._is_there(commit) or await self._seal(commit)
        self._unknown = None
        if not happened:
            return None
        self._happened(commit, sizes)
        return commit.ts

    async def tidy(
        self, cut: Timestamp, flushed: Mapping[ShardId, Timestamp] | None = None
    ) -> None:
        """Drop the batches that Delta has, and tokens without a batch left (T1).

        `cut`: all shards have everything up to it. `flushed`: shards whose log has reached a new
        cut, durably (T8); theirs leave also while another shard lags behind.

        In small transactions, so that commits pass between them. The cuts are noted before
        anything is removed: a crash between leaves batches that are known to be applied, never half
        of a commit that is not. Raises Fenced, Determinate, Indeterminate; may be repeated.
        """
        reached = flushed or {}
        latest = max([cut, *reached.values()])
        assert self._unknown is None or latest < self._unknown[0].ts, (
            f"T1: cut {latest} passes a commit under way at {self._unknown[0].ts}"
        )
        # A commit that comes later must not lie below a cut that calls it applied.
        self._upper = max(self._upper, Timestamp(latest + 1))
        async with self._tidying:
            await self._repeat_removal()
            if cut > self._applied or reached:
                notes = [Put(_FLUSHED, shard, _TIMESTAMP.pack(at)) for shard, at in reached.items()]
                applied = max(cut, self._applied)
                mark = Put(MARKS, _APPLIED, _TIMESTAMP.pack(applied))
                await self._stash.transact(self._epoch, [*notes, mark])
                self._applied = applied
                self._flushed.update(reached)
            for piece in pieces(self._applied_commits()):
                await self._remove(Leaving(plan_removals(piece), piece))

    async def settle(self) -> None:
        """Make sure that no earlier removal is still to come (T10). Raises like `forget`."""
        async with self._tidying:
            await self._repeat_removal()

    async def _repeat_removal(self) -> None:
        if self._leaving is not None:
            await self._remove(self._leaving)

    async def _remove(self, leaving: Leaving) -> None:
        """Remove durably; until that is known, nothing else is removed (T10)."""
        self._leaving = leaving
        try:
            await self._stash.transact(self._epoch, leaving.writes)
        except (Determinate, Fenced):
            self._leaving = None
            raise
        self._leaving = None
        for removal in leaving.removals:
            del self._outstanding[removal.token]
        if leaving.forgets:
            for token, commit in self._outstanding.items():
                self._outstanding[token] = commit.without(leaving.forgets)
        for shard in leaving.forgets:
            self._shards.pop(shard, None)
            self._flushed.pop(shard, None)

    def _applied_commits(self) -> list[Outstanding]:
        """What Delta has by now, oldest first (T1)."""
        # A commit without rows has nothing to wait for once a cut has passed it.
        latest = max([self._applied, *self._flushed.values()])
        return [
            commit
            for commit in self._outstanding.values()
            if commit.ts <= latest
            and all(self._reached(commit.ts, shard) for shard in commit.sizes)
        ]

    def _reached(self, ts: Timestamp, shard: ShardId) -> bool:
        """True if Delta has what this shard was given at `ts` (T1)."""
        return ts <= self._applied or ts <= self._flushed.get(shard, ts - 1)

    async def forget(self, shards: Collection[ShardId], catalog: Sequence[Write] = ()) -> None:
        """Forget shards with everything that is outstanding for them (T6, T9).

        `catalog`: writes of the same transaction, opaque here, made from what was read after
        `settle`. Raises Fenced, Determinate, Indeterminate; may be repeated.
        """
        async with self._tidying:
            await self._repeat_removal()
            removals = [
                commit
                for commit in self._outstanding.values()
                if commit.sizes and all(shard in shards for shard in commit.sizes)
            ]
            writes = [*catalog, *plan_removals(removals)]
            # The cuts and commits that go with the shards have closed their timestamps (T2).
            writes.append(Put(MARKS, _CLOSED, _TIMESTAMP.pack(self._upper)))
            for shard in sorted(shards):
                writes += [Delete(_SHARDS, shard), Delete(_FLUSHED, shard)]
                writes.append(Put(_FORGOTTEN, shard, b""))
            await self._remove(Leaving(writes, removals, shards))

    async def cleared(self, shards: Collection[ShardId]) -> None:
        """Nothing is left of these forgotten shards (T9). Raises like `forget`."""
        writes = [Delete(_FORGOTTEN, shard) for shard in sorted(shards)]
        await self._stash.transact(self._epoch, writes)

    def _check(self, commit: Commit) -> None:
        assert self._unknown is None, f"T5: the outcome of {self._unknown[0].token} is unknown"
        for shard in commit.batches:
            assert shard in self._shards or shard in commit.registers, f"T6: {shard} unregistered"
        for write in commit.records:
            assert write.collection not in COLLECTIONS, (
                f"{write.collection} belongs to the txns shard"
            )

    async def _encoded(self, commit: Commit) -> Encoded:
        """The batches as bytes; large ones are encoded off the loop, if there is another place."""
        if self._run_blocking is None or not self._is_large(commit):
            return _encode(commit)
        return await self._run_blocking(lambda: _encode(commit))

    def _is_large(self, commit: Commit) -> bool:
        size = sum([batch.nbytes for batch in commit.batches.values()])
        return size > ENCODED_AT_ONCE_BYTES_MAX

    def _plan_writes(self, commit: Commit, encoded: Encoded) -> Sequence[Write]:
        """The writes of a commit: usually one."""
        writes: list[Write] = [put_commit(commit.ts, commit.token, encoded)]
        writes += [
            Put(_SHARDS, shard, _TIMESTAMP.pack(commit.ts))
            for shard in commit.registers
            if shard not in self._shards
        ]
        writes += commit.records
        return writes

    def _happened(self, commit: Commit, sizes: Mapping[ShardId, int]) -> None:
        self._unknown = None
        self._upper = max(self._upper, Timestamp(commit.ts + 1))
        for shard in commit.registers:
            self._shards.setdefault(shard, commit.ts)
        self._outstanding[commit.token] = Outstanding(commit.ts, commit.token, sizes)

    async def _is_there(self, commit: Commit) -> bool:
        """Whether the stash has the record of the commit."""
        key = commit_key(commit.ts)
        value = await self._stash.read(COMMITS, key)
        return value is not None and decode_stored_commit(key, value).token == commit.token

    async def _seal(self, commit: Commit) -> bool:
        """Make sure that a commit not found cannot arrive any more (T4), unless it just has.

        It requires the mark as it was, which moves unless the record is there. A seal whose own
        reply was lost is recognised: the mark is exactly there, and the record has not appeared.
        """
        sealed = Timestamp(commit.ts + 1)
        if await self._move_mark(sealed, [Require(COMMITS, commit_key(commit.ts), None)]):
            return False
        if await self._is_there(commit):
            return True
        if await self._stash.read(MARKS, UPPER) != _TIMESTAMP.pack(sealed):
            raise _deposed()
        self._mark_is(sealed)
        return False

    async def _move_mark(self, mark: Timestamp, requires: Sequence[Require] = ()) -> bool:
        """Raise the mark, durably; False if it is not where this process left it."""
        put = Put(MARKS, UPPER, _TIMESTAMP.pack(mark))
        try:
            await self._stash.transact(
                self._epoch, [put], requires=[self._require_mark(), *requires]
            )
        except RequireFailed:
            return False
        self._mark_is(mark)
        return True

    def _mark_is(self, mark: Timestamp) -> None:
        self._mark = mark
        self._upper = max(self._upper, mark)

    def _require_mark(self) -> Require:
        return Require(MARKS, UPPER, None if self._mark is None else _TIMESTAMP.pack(self._mark))


def _encode(commit: Commit) -> Encoded:
    return {shard: encode_batch(batch) for shard, batch in commit.batches.items()}


def _deposed() -> Fenced:
    return Fenced("T7: somebody else moved the mark")


def _decode_batch(ts: Timestamp, shard: ShardId, value: bytes) -> WriteBatch:
    try:
        return decode_batch(value)
    except Corrupt as error:
        raise Corrupt(f"commits/{commit_key(ts)}/{shard}: {error}") from error


def decode_timestamp(value: bytes) -> Timestamp:
    """A mark of the txns shard. Raises Corrupt."""
    if len(value) != _TIMESTAMP.size:
        raise Corrupt(f"not a timestamp: {value.hex()}")
    return Timestamp(_TIMESTAMP.unpack(value)[0])
