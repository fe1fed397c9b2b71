"""Log the recent commits of a shard for validation: which rows were inserted and deleted.

    commit ─▶ Interim ─▶ InterimLog: entries with ts, and an index by key for point predicates
                                └─ pruned at the oldest open snapshot

INVARIANTS
  I1  every commit with ts > floor is in the log; of older ones nothing is known.
  I2  what a commit deleted is in its entry by value, or the entry says `unknown`.
  I3  an index holds, for every key in it, the newest commit that brought or took a row of that key;
      an index of presence, the newest one after which more or fewer rows had it. Entries that
      cannot be indexed are `coarse` and are looked at one by one.
  I4  bytes, rows looked at and indexes are bounded; beyond the bound the answer is UNSURE.

Cuts do not matter here: a log is kept apart from the tail.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from pyroaring import BitMap64

from coordinator.core.own_writes import deletes_of_others
from coordinator.core.predicates import ReadPredicate
from storage.batch import DataFile, WriteBatch
from storage.fast_dataclass import fast_dataclass
from storage.known_rows import KnownRows, OldRows, Points
from storage.shard import ShardState
from storage.types import ShardId, Source, Timestamp

LOG_BYTES_MAX: Final = 32 << 20
"""Of one shard. Larger: more memory while a transaction stays open. Smaller: it conflicts with the
whole table sooner."""

ENTRY_OVERHEAD_BYTES: Final = 1_024

TESTED_ROWS_MAX: Final = 10_000
"""Rows that the validation of one transaction tests one by one. Larger: a longer stall of the loop
(some microseconds a row). Smaller: more false conflicts with bulk writes."""

INDEXED_ROWS_MAX: Final = 1_000
"""Rows of a commit that go into indexes; larger commits are tested by their bounds."""

INDEXES_MAX: Final = 8
"""Different sets of key columns of one table that are indexed."""

STALE_KEYS_MAX: Final = 1_000
"""Keys of forgotten commits that an index may hold. Larger: more memory. Smaller: built anew more
often."""


class Verdict(Enum):
    """What a look at the log says about a predicate."""

    CLEAR = "clear"
    MATCH = "match"
    UNSURE = "unsure"


@fast_dataclass(frozen=True, slots=True)
class CommittedWrites:
    """What one commit did to one shard (I2)."""

    came: tuple[KnownRows, ...] = ()
    went: tuple[KnownRows, ...] = ()
    staged: tuple[DataFile, ...] = ()
    unknown: bool = False
    rows: tuple[KnownRows, ...] = field(init=False)
    count: int = field(init=False)
    nbytes: int = field(init=False)

    def __post_init__(self) -> None:
        count, size = 0, ENTRY_OVERHEAD_BYTES
        parts = self.came + self.went
        for rows in parts:
            count += rows.count
            size += rows.nbytes
        object.__setattr__(self, "rows", parts)
        object.__setattr__(self, "count", count)
        object.__setattr__(self, "nbytes", size)

    @property
    def coarse(self) -> bool:
        """True if the rows are not to be had one by one, or are too many (I3)."""
        return self.unknown or bool(self.staged) or self.count > INDEXED_ROWS_MAX


def committed_writes(batch: WriteBatch, old: Iterable[OldRows]) -> CommittedWrites:
    """The entry of a transaction's batch; `old`: what is known about rows it has deleted."""
    known: dict[Source, BitMap64] = {}
    came: tuple[KnownRows, ...] = ()
    went: list[KnownRows] = []
    if batch.rows is not None and batch.rows.num_rows:
        came = (KnownRows.of(batch.rows),)
    deletes = deletes_of_others(batch)
    if not deletes:
        return CommittedWrites(came, (), batch.staged)
    for part in old:
        went.append(part.rows)
        for source, indexes in part.identities.items():
            before = known.get(source)
            known[source] = indexes if before is None else before | indexes
    unknown = any(
        not indexes.issubset(known.get(source, _NONE)) for source, indexes in deletes.items()
    )
    return CommittedWrites(came, tuple(went), batch.staged, unknown)


_NONE: Final = BitMap64()


@dataclass(slots=True)
class RowTestBudget:
    """How many rows may still be tested (I4)."""

    rows: int = TESTED_ROWS_MAX


class ShardCommitLog:
    """See the module."""

    def __init__(self, floor: Timestamp) -> None:
        self._floor = floor
        self._times: list[Timestamp] = []
        self._entries: list[CommittedWrites] = []
        self._coarse: list[tuple[Timestamp, CommittedWrites]] = []
        self._indexes: dict[_Indexed, _Index] = {}
        self._bytes = 0

    @property
    def floor(self) -> Timestamp:
        """Commits after it are known (I1)."""
        return self._floor

    @property
    def nbytes(self) -> int:
        """What the entries take in memory."""
        return self._bytes

    @property
    def is_indexed(self) -> bool:
        """Whether somebody has asked by key."""
        return bool(self._indexes)

    def __len__(self) -> int:
        return len(self._entries)

    def append(self, ts: Timestamp, entry: CommittedWrites) -> None:
        """A commit; several members of one group have one timestamp."""
        assert not self._times or ts >= self._times[-1], "I1: commits come in order"
        self._times.append(ts)
        self._entries.append(entry)
        self._bytes += entry.nbytes
        if entry.coarse:
            self._coarse.append((ts, entry))
        else:
            for index in self._indexes.values():
                index.add(ts, entry)
        if self._bytes > LOG_BYTES_MAX:
            self.prune(ts)

    def prune(self, upto: Timestamp) -> None:
        """Forget commits at or before `upto`: nobody asks about them, or they are too many."""
        count = bisect_right(self._times, upto)
        if not count:
            return
        self._floor = max(self._floor, self._times[count - 1])
        self._bytes -= sum(entry.nbytes for entry in self._entries[:count])
        del self._times[:count]
        del self._entries[:count]
        self._coarse = [(ts, entry) for ts, entry in self._coarse if ts > upto]
        # Stale keys do no harm (I3), but must not pile up. What was indexed once will be asked for
        # again, and is cheapest to index as it comes.
        rows = sum(entry.count for entry in self._entries)
        for what, index in self._indexes.items():
            if len(index) > 2 * rows + STALE_KEYS_MAX:
                self._indexes[what] = self._indexed(*what)

    def look(self, predicate: ReadPredicate, after: Timestamp, budget: RowTestBudget) -> Verdict:
        """Whether a commit with ts > after holds a row that the predicate matches."""
        if after < self._floor:
            return Verdict.UNSURE
        if not self._times or self._times[-1] <= after:
            return Verdict.CLEAR
        points = predicate.points
        index = None if points is None else self._index(points.ordinals, points.presence)
        if points is None or index is None:
            first = bisect_right(self._times, after)
            return _look(self._entries[first:], predicate, budget)
        if index.newest(points) > after:
            if points.only:
                return Verdict.MATCH
            first = bisect_right(self._times, after)
            return _look(self._entries[first:], predicate, budget)
        coarse = (entry for ts, entry in (*self._coarse, *index.missing) if ts > after)
        return _look(coarse, predicate, budget)

    def since(self, after: Timestamp) -> Sequence[CommittedWrites]:
        """The commits with ts > after, as far as they are known."""
        return self._entries[bisect_right(self._times, after) :]

    def _index(self, ordinals: tuple[int, ...], presence: bool) -> "_Index | None":
        index = self._indexes.get((ordinals, presence))
        if index is None and len(self._indexes) < INDEXES_MAX:
            index = self._indexes[ordinals, presence] = self._indexed(ordinals, presence)
        return index

    def _indexed(self, ordinals: tuple[int, ...], presence: bool) -> "_Index":
        index = _Index(ordinals, presence)
        for ts, entry in zip(self._times, self._entries, strict=True):
            if not entry.coarse:
                index.add(ts, entry)
        return index


def _look(
    entries: Iterable[CommittedWrites], predicate: ReadPredicate, budget: RowTestBudget
) -> Verdict:
    """The entries one by one."""
    for entry in entries:
        if entry.unknown:
            return Verdict.UNSURE
        if any(predicate.may_match_file(file) for file in entry.staged):
            return Verdict.UNSURE
        for rows in entry.rows:
            budget.rows -= min(rows.count, INDEXED_ROWS_MAX)
            if budget.rows < 0:
                return Verdict.UNSURE
            if predicate.matches(rows):
                return Verdict.MATCH
    return Verdict.CLEAR


_Indexed = tuple[tuple[int, ...], bool]
"""Ordinals, and whether it is an index of presence."""


class _Index:
    """The newest commit of each key (I3)."""

    def __init__(self, ordinals: tuple[int, ...], presence: bool) -> None:
        self._ordinals = ordinals
        self._presence = presence
        self._newest: dict[tuple[Hashable, ...], Timestamp] = {}
        self.missing: list[tuple[Timestamp, CommittedWrites]] = []
        """Commits with rows of which a key column is not known."""

    def __len__(self) -> int:
        return len(self._newest) + len(self.missing)

    def add(self, ts: Timestamp, entry: CommittedWrites) -> None:
        """A commit, newer than those before."""
        for rows in entry.rows:
            if not all(ordinal in rows.columns for ordinal in self._ordinals):
                self.missing.append((ts, entry))
                return
        for key in self._net(entry) if self._presence else self._keys(entry.rows):
            self._newest[key] = ts

    def _keys(self, parts: Iterable[KnownRows]) -> Iterator[tuple[Hashable, ...]]:
        for rows in parts:
            yield from zip(*(rows.values(at) for at in self._ordinals), strict=True)

    def _net(self, entry: CommittedWrites) -> Iterator[tuple[Hashable, ...]]:
        """Keys that more or fewer rows have now."""
        counts = Counter(self._keys(entry.came))
        counts.subtract(self._keys(entry.went))
        return (key for key, count in counts.items() if count)

    def newest(self, points: Points) -> Timestamp:
        """The newest commit that touched one of these keys; 0 if there is none."""
        newest = self._newest
        return max((newest.get(key, _NEVER) for key in points.keys), default=_NEVER)


_NEVER: Final = Timestamp(0)


# --- rows that are gone -------------------------------------------------------------------------


class DeletedRowIndex:
    """Which rows of a shard are deleted now, looked up by identity; follows the state by itself."""

    def __init__(self) -> None:
        self._versions: object = None
        self._seen = _NEVER
        self._deleted: dict[Source, BitMap64] = {}
        self._staged: set[Source] = set()

    def any_gone(self, state: ShardState, deletes: Mapping[Source, BitMap64]) -> bool:
        """True if one of these rows, which existed once, does not exist any more."""
        self._follow(state)
        present = state.surviving(deletes)
        if sum(map(len, present.values())) != sum(map(len, deletes.values())):
            return True
        return any(self._gone(state, source, rows) for source, rows in present.items())

    def _gone(self, state: ShardState, source: Source, rows: BitMap64) -> bool:
        recent = self._deleted.get(source)
        if recent is not None and not recent.isdisjoint(rows):
            return True
        if source.startswith("@") or source in self._staged:
            return False
        live = state.versions[-1].files.get(source) if state.versions else None
        return live is None or not live.deleted.isdisjoint(rows)

    def _follow(self, state: ShardState) -> None:
        """Take in what was committed since the last look; a flush renames rows: begin anew."""
        if self._versions is not state.versions:
            self._versions, self._seen = state.versions, _NEVER
            self._deleted, self._staged = {}, set()
        if state.last_write <= self._seen:
            return
        first = bisect_right(state.tail, self._seen, key=lambda commit: commit.ts)
        for commit in state.tail[first:]:
            self._staged.update(file.name for file in commit.batch.staged)
            for source, rows in commit.batch.deletes.items():
                self._deleted.setdefault(source, BitMap64()).update(rows)
        self._seen = state.last_write


# --- all shards ---------------------------------------------------------------------------------


class RecentWrites:
    """The logs of all shards that were written lately."""

    def __init__(self) -> None:
        self._logs: dict[ShardId, ShardCommitLog] = {}
        self._gone: dict[ShardId, DeletedRowIndex] = {}
        self._pruned_at = 0
        self._entries = 0

    def log(self, shard: ShardId) -> ShardCommitLog | None:
        """What is known about a shard's recent commits."""
        return self._logs.get(shard)

    def any_gone(self, state: ShardState, deletes: Mapping[Source, BitMap64]) -> bool:
        """See DeletedRowIndex."""
        gone = self._gone.get(state.shard)
        if gone is None:
            if len(self._gone) >= SHARDS_MAX:
                self._gone.clear()
            gone = self._gone[state.shard] = DeletedRowIndex()
        return gone.any_gone(state, deletes)

    def committed(
        self, before: ShardState, ts: Timestamp, entries: Iterable[CommittedWrites]
    ) -> None:
        """A group has committed; `before`: the shard without it."""
        log = self._logs.get(before.shard)
        if log is None:
            log = self._logs[before.shard] = ShardCommitLog(before.last_write)
        for entry in entries:
            log.append(ts, entry)
            self._entries += 1

    @property
    def wants_pruning(self) -> bool:
        """True if so many commits have come that it is worth asking who is the oldest reader."""
        return self._entries > 2 * self._pruned_at + PRUNE_ENTRIES

    def prune(self, oldest: Timestamp) -> None:
        """Forget what nobody asks about; `oldest`: the least snapshot that is open."""
        for shard, log in list(self._logs.items()):
            log.prune(oldest)
            if not len(log) and not log.is_indexed:
                del self._logs[shard]
        self._entries = self._pruned_at = sum(map(len, self._logs.values()))


SHARDS_MAX: Final = 10_000
"""Shards whose deleted rows are remembered, some of them dropped long ago; found again if need be.
"""

PRUNE_ENTRIES: Final = 256
"""Larger: memory of commits that nobody asks about. Smaller: more looks at all transactions."""
