"""Validate commits optimistically by precision locking.

    commits since the snapshot ─┬─ rows that came or went ◀─ match? ─ predicates of its scans
    members ahead in the group ─┘  rows that are gone     ◀─ among them? ─ rows it deletes

INVARIANTS
  A1  a transaction that writes at a serializable level commits only if no row that a predicate of
      its read set matches came or went after its read timestamp, by earlier commits or by earlier
      members of the same group. What cannot be decided row by row is a conflict if the table was
      written at all.
  A2  a transaction commits only if every table it touched is still defined as it was bound
      (`stale_definitions.py`); below the serializable levels, every table that it wrote or locked,
      or looked up keys in. What its definitions are made over: `definition_conflicts.py`.
  A3  blind writes have an empty read set and delete nothing: they never conflict.
  A4  a shard whose Delta table has a foreign writer's version, or is damaged, takes no commit and
      answers no read: nobody knows what it holds.
  A5  at every level a row is deleted or replaced once: of two who do it the first committer wins.
  A6  at every level a transaction that writes commits only if every name that it rests on still
      means what it meant, in the version that was read. It rests on the definitions that its
      statements use: views, types, domains, sequences, and tables of which they take columns only.
      Below the serializable levels only statements that write count, for they made its rows. Names
      that were merely looked up and system catalogs are no part of the read set, as in
      PostgreSQL's SSI, unless the session has set `validate_catalog_reads`. Use and look-up: Q3 of
      `sql/binder/resolve/catalog_lookup.py`. Two who create one name: K2 of `core/catalog.py`.
  A7  a transaction that reads at several timestamps (read committed) meets nobody else's version of
      a row that it has changed, nor another row with its key: it fails at the statement.
  A8  at every level a key that the transaction gives to a row, and that it found free, is still
      free. At a serializable level so is a key that it found free and did not take, and one that it
      found taken is as it was: it has seen it. Read committed takes no notice of these.
  A9  at every level a row that FOR UPDATE or its kin has shown, and that is still locked, is there
      unchanged (`group_commit.py`). What LOCK TABLE and TRUNCATE rely on is validated like the
      reads of A1.
  A10 at every level a row that a foreign key of the transaction's rows rests on is still there, and
      no row has come that refers to one that the transaction took away.
  A11 at every level a table gets other columns or rules only if nobody has written to it since the
      transaction saw its rows, after it had locked the table.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyroaring import BitMap64

from coordinator.core.fences import fence_refusal
from coordinator.core.messages.identities import Isolation
from coordinator.core.messages.replies import Refused, RefusedReason
from coordinator.core.own_writes import deletes_of_others, final_batch
from coordinator.core.predicates import KeyLookUp, KeyLookUps, ReadPredicate
from coordinator.core.recent_writes import (
    TESTED_ROWS_MAX,
    CommittedWrites,
    RecentWrites,
    RowTestBudget,
    ShardCommitLog,
    Verdict,
)
from coordinator.core.stale_definitions import RETRY_HINT, stale_refusal
from coordinator.core.transactions import VALIDATING, Transaction
from coordinator.core.views.exactness import fallen_behind
from sql.catalog.catalog import Catalog, Table
from storage.batch import WriteBatch
from storage.fast_dataclass import fast_dataclass
from storage.known_rows import KnownRows
from storage.shard import ShardState
from storage.types import ShardId, Source, Timestamp

_CONFLICT = "could not serialize access due to concurrent update"


@dataclass(slots=True)
class ValidationCounts:
    """How commits and conflicts were decided, since the start; for metrics and benchmarks."""

    validated: int = 0
    """Transactions that had read something, were asked to commit, and were looked at."""
    by_predicate: int = 0
    """Conflicts: a row matched."""
    by_table: int = 0
    """Conflicts: not decidable by rows, or the whole table had been read."""
    by_key: int = 0
    """Conflicts: somebody else has given the same key to a row."""
    by_row: int = 0
    """Conflicts: a row to delete or replace was gone."""
    avoided: int = 0
    """Transactions that validation by table would have refused, and that committed."""
    committed: int = 0
    """Members of groups that were committed, those that have written nothing too."""
    groups: int = 0
    """These groups."""


@fast_dataclass(frozen=True, slots=True)
class RecentHistory:
    """What validation looks at: the shards, their recent commits, members ahead in the group."""

    shards: Mapping[ShardId, ShardState]
    writes: RecentWrites
    counts: ValidationCounts
    ahead: "WritesAhead"
    budget: RowTestBudget | None = None
    """What all looks together may cost; None: each kind of look has a budget of its own."""

    def new_budget(self) -> RowTestBudget:
        """For one kind of look."""
        return RowTestBudget() if self.budget is None else self.budget

    def wrote(self, shard: ShardId, after: Timestamp) -> bool:
        """Whether a commit with ts > after, or a member ahead, has written to the shard."""
        state = self.shards.get(shard)
        return shard in self.ahead.entries or (state is not None and state.last_write > after)

    def look(
        self,
        shard: ShardId,
        predicates: Iterable[ReadPredicate] | None,
        after: Timestamp,
        budget: RowTestBudget,
    ) -> Verdict:
        """What these predicates (None: all rows) say about what was written after `after`."""
        state = self.shards.get(shard)
        changed = state is not None and state.last_write > after
        log = self.writes.log(shard) if changed else None
        if predicates is None or (changed and log is None):
            return Verdict.UNSURE
        return _look(predicates, after, log, self.ahead.log(shard), budget)

    def entries(self, shard: ShardId, after: Timestamp) -> Sequence[CommittedWrites]:
        """What was written after `after`, in order, as far as it is known."""
        log = self.writes.log(shard)
        since = () if log is None else log.since(after)
        return [*since, *self.ahead.entries.get(shard, ())]

    def refused(
        self, txn: Transaction, shard: ShardId, verdict: Verdict, after: Timestamp
    ) -> Refused:
        """40001 for what was found written after `after`, and count it."""
        if verdict is Verdict.MATCH:
            self.counts.by_predicate += 1
        else:
            self.counts.by_table += 1
        state = self.shards.get(shard)
        return _refused(txn, shard, _BEFORE if state is None else state.last_write, after)


@dataclass(slots=True)
class WritesAhead:
    """What the members admitted to a group so far write."""

    entries: dict[ShardId, list[CommittedWrites]] = field(
        default_factory=dict[ShardId, list[CommittedWrites]]
    )
    _logs: dict[ShardId, ShardCommitLog] = field(default_factory=dict[ShardId, ShardCommitLog])
    _deleted: dict[ShardId, dict[Source, BitMap64]] = field(
        default_factory=dict[ShardId, dict[Source, BitMap64]]
    )

    def add(
        self, shard: ShardId, state: ShardState | None, batch: WriteBatch, entry: CommittedWrites
    ) -> None:
        """A member is admitted."""
        self.entries.setdefault(shard, []).append(entry)
        log = self._logs.get(shard)
        if log is not None:
            log.append(_AHEAD, entry)
        if batch.deletes and state is not None:
            deleted = self._deleted.setdefault(shard, {})
            for source, rows in state.surviving(batch.deletes).items():
                deleted.setdefault(source, BitMap64()).update(rows)

    def log(self, shard: ShardId) -> ShardCommitLog | None:
        """The members' entries, to look at; made for the first who looks, for most never do."""
        entries = self.entries.get(shard)
        if entries is None:
            return None
        log = self._logs.get(shard)
        if log is None:
            log = self._logs[shard] = ShardCommitLog(_BEFORE)
            for entry in entries:
                log.append(_AHEAD, entry)
        return log

    def deletes_any(self, state: ShardState, deletes: Mapping[Source, BitMap64]) -> bool:
        """True if one of these rows is deleted by a member."""
        deleted = self._deleted.get(state.shard)
        if deleted is None:
            return False
        present = state.surviving(deletes)
        return any(
            source in deleted and not deleted[source].isdisjoint(rows)
            for source, rows in present.items()
        )


# Members of one group have no timestamp yet: all of them come after whatever was read.
_BEFORE = Timestamp(0)
_AHEAD = Timestamp(1)


def conflict_refusal(
    txn: Transaction, writes: Mapping[ShardId, WriteBatch], recent: RecentHistory
) -> Refused | None:
    """The verdict on what was read (A1), rows to delete (A5) and keys (A8)."""
    return (
        _alter_conflict(txn, recent)
        or _reference_conflict(txn, recent)
        or _row_conflict(txn, writes, recent)
        or key_conflict_refusal(txn, writes, recent)
        or _read_conflict(txn, recent)
        or _lock_conflict(txn, recent)
    )


def behind_refusal(txn: Transaction, now: Catalog, *, every: bool = False) -> Refused | None:
    """V7 of `views`: the verdict on stored rows of views. `every`: at every level."""
    if not txn.base.exact_views or not (every or txn.isolation in VALIDATING):
        return None
    read = (oid for oid, table in txn.tables.items() if ShardId(table.shard) in txn.reads)
    oid = fallen_behind(txn.base, read, now)
    if oid is None:
        return None
    detail = f'Materialized view "{txn.tables[oid].name}" has changed since it was read.'
    return Refused(RefusedReason.CONFLICT, "40001", _CONFLICT, detail, RETRY_HINT)


def _alter_conflict(txn: Transaction, recent: RecentHistory) -> Refused | None:
    """A11."""
    for shard, since in txn.altered.items():
        if recent.wrote(shard, since):
            recent.counts.by_table += 1
            return stale_refusal("a table to be altered was written by a concurrent transaction")
    return None


def _reference_conflict(txn: Transaction, recent: RecentHistory) -> Refused | None:
    """A10."""
    budget = recent.new_budget()
    for (shard, since), reads in txn.required.items():
        if not recent.wrote(shard, since):
            continue
        verdict = recent.look(shard, reads.predicates, since, budget)
        if verdict is not Verdict.CLEAR:
            return recent.refused(txn, shard, verdict, since)
    return None


def _row_conflict(
    txn: Transaction, writes: Mapping[ShardId, WriteBatch], recent: RecentHistory
) -> Refused | None:
    for shard, batch in writes.items():
        state = recent.shards.get(shard)
        deletes = deletes_of_others(batch)
        if not deletes or state is None:
            continue
        if recent.writes.any_gone(state, deletes) or recent.ahead.deletes_any(state, deletes):
            recent.counts.by_row += 1
            if txn.isolation is Isolation.READ_COMMITTED:
                return _changed_twice(_table(txn, shard))
            assert txn.snapshot is not None, "X1: who deletes has a snapshot"
            return _refused(txn, shard, state.last_write, txn.snapshot.ts)
    return None


def lost_write_refusal(txn: Transaction, shard: ShardId, recent: RecentHistory) -> Refused | None:
    """The verdict of A5 and A8 on what a transaction has written so far, before it reads on (A7).

    It reads at a later timestamp than it wrote at, so it would meet what it has lost to.
    """
    own, state = txn.writes.get(shard), recent.shards.get(shard)
    if own is None or state is None or state.last_write <= txn.unharmed.get(shard, _BEFORE):
        return None
    writes = {shard: final_batch(own.merged())}
    verdict = _row_conflict(txn, writes, recent) or key_conflict_refusal(txn, writes, recent)
    if verdict is None:
        txn.unharmed[shard] = state.last_write
    return verdict


def _read_conflict(txn: Transaction, recent: RecentHistory) -> Refused | None:
    if not txn.reads or txn.isolation not in VALIDATING:
        return None
    recent.counts.validated += 1
    return changed_reads_refusal(txn, recent)


def changed_reads_refusal(txn: Transaction, recent: RecentHistory) -> Refused | None:
    """The verdict of A1 on what was read at the transaction's timestamp, at whatever level."""
    assert txn.snapshot is not None, "X1: who has read has a snapshot"
    budget = recent.new_budget()
    written = False
    for shard, read in txn.reads.items():
        if not recent.wrote(shard, txn.snapshot.ts):
            continue
        written = True
        verdict = recent.look(shard, read.predicates, txn.snapshot.ts, budget)
        if verdict is not Verdict.CLEAR:
            return recent.refused(txn, shard, verdict, txn.snapshot.ts)
    recent.counts.avoided += written
    return None


def _lock_conflict(txn: Transaction, recent: RecentHistory) -> Refused | None:
    """A9; levels that validate all reads have looked already."""
    if txn.isolation in VALIDATING:
        return None
    budget = recent.new_budget()
    for (shard, ts), locked in txn.locked.items():
        if recent.wrote(shard, ts):
            verdict = recent.look(shard, locked.predicates, ts, budget)
            if verdict is not Verdict.CLEAR:
                return recent.refused(txn, shard, verdict, ts)
    return None


def _look(
    predicates: Iterable[ReadPredicate],
    after: Timestamp,
    log: ShardCommitLog | None,
    ahead: ShardCommitLog | None,
    budget: RowTestBudget,
) -> Verdict:
    """Predicates against commits after `after` and members ahead."""
    for predicate in predicates:
        if log is not None:
            verdict = log.look(predicate, after, budget)
            if verdict is not Verdict.CLEAR:
                return verdict
        if ahead is not None:
            verdict = ahead.look(predicate, _BEFORE, budget)
            if verdict is not Verdict.CLEAR:
                return verdict
    return Verdict.CLEAR


def key_conflict_refusal(
    txn: Transaction, writes: Mapping[ShardId, WriteBatch], recent: RecentHistory
) -> Refused | None:
    """The verdict on keys (A8): 23505 if it is certain that one exists now, 40001 if it may."""
    budget = recent.new_budget()
    validating = txn.isolation in VALIDATING
    for (shard, since), look_ups in txn.key_look_ups.items():
        own = writes.get(shard)
        # A key that was seen free and not taken is a read like any other.
        if not recent.wrote(shard, since) or (own is None and not validating):
            continue
        verdict = recent.look(shard, look_ups.predicates, since, budget)
        if verdict is Verdict.CLEAR:
            continue
        if verdict is Verdict.MATCH and own is not None:
            for look_up in look_ups.predicates or ():
                if look_up.decides:
                    continue
                taken = _taken(look_up, shard, own, since, recent)
                if taken is not None:
                    recent.counts.by_key += 1
                    return duplicate_key_refusal(_table(txn, shard), look_up.constraint, taken)
            given = None if validating else _given(look_ups, own, recent.entries(shard, since))
            if given is not None:
                verdict = recent.look(shard, given, since, budget)
        if verdict is not Verdict.CLEAR:
            return recent.refused(txn, shard, verdict, since)
    return None


def _given(
    look_ups: KeyLookUps, own: WriteBatch, entries: Sequence[CommittedWrites]
) -> list[KeyLookUp] | None:
    """The look-ups of those keys only that the rows to commit have, and that were found free; None:
    that is not known. `entries`: what was committed since they were looked up.
    """
    if own.rows is None and not own.staged:
        return []
    if look_ups.predicates is None or own.staged or own.rows is None:
        return None
    rows = KnownRows.of(own.rows)
    given: list[KeyLookUp] = []
    for look_up in look_ups.predicates:
        if look_up.keys is None or rows.count > TESTED_ROWS_MAX:
            return None
        keys = set(look_up.present(rows))
        if () in keys:
            return None
        if not look_ups.moved_back:
            keys -= _taken_before(look_up, keys, entries)
        if keys:
            given.append(look_up.merged(keys))
    return given


def _taken_before(
    look_up: KeyLookUp, keys: Collection[tuple[Hashable, ...]], entries: Iterable[CommittedWrites]
) -> set[tuple[Hashable, ...]]:
    """Those of the keys that were not free before these commits: the first of them that has to do
    with the key took a row with it away. An INSERT found such a key taken, and made no row of it.
    """
    taken: set[tuple[Hashable, ...]] = set()
    untouched = set(keys)
    for entry in entries:
        if entry.coarse or any(rows.count > TESTED_ROWS_MAX for rows in entry.rows):
            break  # What it has to do with the keys is not known.
        went = {key for rows in entry.went for key in look_up.present(rows)}
        came = {key for rows in entry.came for key in look_up.present(rows)}
        if () in went or () in came:
            break  # As above.
        taken |= untouched & went
        untouched -= went | came
    return taken


def _taken(
    look_up: KeyLookUp, shard: ShardId, own: WriteBatch, after: Timestamp, recent: RecentHistory
) -> str | None:
    """A key of the transaction's rows that commits have brought since, and not taken away."""
    log = recent.writes.log(shard)
    if log is None or look_up.keys is None or own.rows is None:
        return None
    # Members ahead are not durable yet: what they bring is no reason to say that a key exists.
    count: dict[tuple[Hashable, ...], int] = {}
    for entry in log.since(after):
        for sign, parts in ((1, entry.came), (-1, entry.went)):
            for rows in parts:
                found = _keys_among(look_up, rows)
                if sign < 0 and () in found:
                    return None
                for key in found:
                    count[key] = count.get(key, 0) + sign
    # A savepoint may have taken back what was looked up.
    given = {key for key in _keys_among(look_up, KnownRows.of(own.rows)) if key}
    taken = next((key for key, rows in count.items() if rows > 0 and key in given), None)
    return None if taken is None else look_up.key_text(taken)


def _keys_among(look_up: KeyLookUp, rows: KnownRows) -> Sequence[tuple[Hashable, ...]]:
    """The keys of these rows that are looked up; none of too many rows."""
    return look_up.present(rows) if rows.count <= TESTED_ROWS_MAX else ()


def duplicate_key_refusal(table: Table, constraint: str, key: str) -> Refused:
    """23505; a statement nobody has seen is run again, and finds the key by itself."""
    return Refused(
        RefusedReason.CONFLICT,
        "23505",
        f'duplicate key value violates unique constraint "{constraint}"',
        f"Key {key} already exists.",
        table=table,
        constraint=constraint,
    )


def _refused(txn: Transaction, shard: ShardId, last_write: Timestamp, ts: Timestamp) -> Refused:
    """40001; names the table, what was read at `ts`, and when it was written."""
    table = _table(txn, shard)
    by = f"at {last_write}" if last_write > ts else "by a commit under way"
    return Refused(
        RefusedReason.CONFLICT,
        "40001",
        _CONFLICT,
        f'Table "{table.name}" was changed {by}, after this transaction read it at {ts}.',
        RETRY_HINT,
    )


def concurrent_update_refusal() -> Refused:
    """40001 for who has waited for a row, or a table, that has changed."""
    return Refused(RefusedReason.CONFLICT, "40001", _CONFLICT, hint=RETRY_HINT)


def _changed_twice(table: Table) -> Refused:
    """40001 where every statement reads at a timestamp of its own."""
    return Refused(
        RefusedReason.CONFLICT,
        "40001",
        _CONFLICT,
        f'A row of table "{table.name}" that this transaction has changed was changed by another.',
        RETRY_HINT,
    )


def _table(txn: Transaction, shard: ShardId) -> Table:
    return next(table for table in txn.tables.values() if table.shard == shard)


def fenced_writes_refusal(
    txn: Transaction, shards: Mapping[ShardId, ShardState], written: Iterable[ShardId]
) -> Refused | None:
    """A4: the verdict on all that a transaction has written."""
    for shard in written:
        state = shards.get(shard)
        if state is not None and state.fence is not None:
            return fence_refusal(_table(txn, shard), state.fence)
    return None
