"""May a transaction commit now? Optimistic validation by precision locking (DESIGN §6).

    commits since the snapshot ─┬─ rows that came or went ◀─ match? ─ predicates of its scans
    members ahead in the group ─┘  rows that are gone     ◀─ among them? ─ rows it deletes

INVARIANTS
  A1  a transaction that writes at a serializable level commits only if no row that a predicate of
      its read set matches came or went after its read timestamp, by earlier commits or by earlier
      members of the same group. What cannot be decided row by row is a conflict if the table was
      written at all.
  A2  a transaction commits only if every table it touched is still defined as it was bound.
  A3  blind writes have an empty read set and delete nothing: they never conflict.
  A4  a shard whose Delta table has a foreign writer's version takes no commit and answers no read:
      nobody knows what it holds.
  A5  at every level a row is deleted or replaced once: of two who do it the first committer wins.
  A6  a transaction that writes at a serializable level commits only if every name that it rests on
      still means what it meant: that of a table to be created, or one that was found missing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyroaring import BitMap64

from coordinator.core.catalog import is_current, resolve
from coordinator.core.interim import Budget, Interim, InterimLog, RecentWrites, Verdict
from coordinator.core.messages import Isolation, PutTable, Refused, RefusedReason, RemoveTable
from coordinator.core.own_writes import deletes_of_others
from coordinator.core.predicates import ReadSet
from coordinator.core.transactions import Transaction
from sql.catalog import Catalog, Table
from storage.batch import WriteBatch
from storage.shard import ShardState
from storage.types import ShardId, Source, Timestamp

RETRY_HINT = "The transaction might succeed if retried."
_CONFLICT = "could not serialize access due to concurrent update"

VALIDATING = frozenset({Isolation.STRICT_SERIALIZABLE, Isolation.SERIALIZABLE})
"""Levels at which what was read must still be true at the commit."""


@dataclass(slots=True)
class ValidationCounts:
    """How conflicts were decided, since the start; for metrics and benchmarks."""

    validated: int = 0
    """Transactions that had read something, were asked to commit, and were looked at."""
    by_predicate: int = 0
    """Conflicts: a row matched."""
    by_table: int = 0
    """Conflicts: not decidable by rows, or the whole table had been read."""
    by_row: int = 0
    """Conflicts: a row to delete or replace was gone."""
    avoided: int = 0
    """Transactions that validation by table would have refused, and that committed."""


@dataclass(frozen=True, slots=True)
class Recent:
    """What validation looks at: the shards, their recent commits, members ahead in the group."""

    shards: Mapping[ShardId, ShardState]
    writes: RecentWrites
    counts: ValidationCounts
    ahead: "Ahead"


@dataclass(slots=True)
class Ahead:
    """What the members admitted to a group so far write."""

    logs: dict[ShardId, InterimLog] = field(default_factory=dict[ShardId, InterimLog])
    entries: dict[ShardId, list[Interim]] = field(default_factory=dict[ShardId, list[Interim]])
    _deleted: dict[ShardId, dict[Source, BitMap64]] = field(
        default_factory=dict[ShardId, dict[Source, BitMap64]]
    )

    def add(
        self, shard: ShardId, state: ShardState | None, batch: WriteBatch, entry: Interim
    ) -> None:
        """A member is admitted."""
        self.entries.setdefault(shard, []).append(entry)
        log = self.logs.get(shard)
        if log is None:
            log = self.logs[shard] = InterimLog(_BEFORE)
        log.append(_AHEAD, entry)
        if batch.deletes and state is not None:
            deleted = self._deleted.setdefault(shard, {})
            for source, rows in state.surviving(batch.deletes).items():
                deleted.setdefault(source, BitMap64()).update(rows)

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


def conflict(
    txn: Transaction, writes: Mapping[ShardId, WriteBatch], recent: Recent
) -> Refused | None:
    """The verdict on what was read (A1) and on rows to delete (A5)."""
    return _row_conflict(txn, writes, recent) or _read_conflict(txn, recent)


def _row_conflict(
    txn: Transaction, writes: Mapping[ShardId, WriteBatch], recent: Recent
) -> Refused | None:
    for shard, batch in writes.items():
        state = recent.shards.get(shard)
        deletes = deletes_of_others(batch)
        if not deletes or state is None:
            continue
        if recent.writes.any_gone(state, deletes) or recent.ahead.deletes_any(state, deletes):
            recent.counts.by_row += 1
            return _refused(txn, shard, state.last_write)
    return None


def _read_conflict(txn: Transaction, recent: Recent) -> Refused | None:
    if not txn.reads or txn.isolation not in VALIDATING:
        return None
    assert txn.snapshot is not None, "X1: who has read has a snapshot"
    recent.counts.validated += 1
    budget = Budget()
    written = False
    for shard, read in txn.reads.items():
        state = recent.shards.get(shard)
        ahead = recent.ahead.logs.get(shard)
        changed = state is not None and state.last_write > txn.snapshot.ts
        if not changed and ahead is None:
            continue
        written = True
        log = recent.writes.log(shard) if changed else None
        known = not changed or log is not None
        verdict = _look(read, txn.snapshot.ts, log, ahead, budget) if known else Verdict.UNSURE
        if verdict is Verdict.CLEAR:
            continue
        if verdict is Verdict.MATCH:
            recent.counts.by_predicate += 1
        else:
            recent.counts.by_table += 1
        return _refused(txn, shard, _BEFORE if state is None else state.last_write)
    recent.counts.avoided += written
    return None


def _look(
    read: ReadSet,
    after: Timestamp,
    log: InterimLog | None,
    ahead: InterimLog | None,
    budget: Budget,
) -> Verdict:
    """The read set against commits after `after` and members ahead."""
    if read.predicates is None:
        return Verdict.UNSURE
    for predicate in read.predicates:
        if log is not None:
            verdict = log.look(predicate, after, budget)
            if verdict is not Verdict.CLEAR:
                return verdict
        if ahead is not None:
            verdict = ahead.look(predicate, _BEFORE, budget)
            if verdict is not Verdict.CLEAR:
                return verdict
    return Verdict.CLEAR


def _refused(txn: Transaction, shard: ShardId, last_write: Timestamp) -> Refused:
    """40001; names the table, what was read when, and when it was written."""
    assert txn.snapshot is not None, "X1: who reads or deletes has a snapshot"
    ts = txn.snapshot.ts
    table = _table(txn, shard)
    by = f"at {last_write}" if last_write > ts else "by a commit under way"
    return Refused(
        RefusedReason.CONFLICT,
        "40001",
        _CONFLICT,
        f'Table "{table.name}" was changed {by}, after this transaction read it at {ts}.',
        RETRY_HINT,
    )


def _table(txn: Transaction, shard: ShardId) -> Table:
    return next(table for table in txn.tables.values() if table.shard == shard)


def fenced(shard: ShardId, shards: Mapping[ShardId, ShardState]) -> Refused | None:
    """A4: the verdict on a shard that is to be read or written."""
    state = shards.get(shard)
    if state is None or not state.fenced:
        return None
    return Refused(
        RefusedReason.OTHER,
        "58030",
        "the table was changed by another writer",
        hint="Its Delta log was written by something other than this server.",
    )


def stale(txn: Transaction, catalog: Catalog) -> Refused | None:
    """A2: the verdict on definitions; `catalog` has the transaction's own DDL applied."""
    own = {change.table.oid for change in txn.changes if isinstance(change, PutTable | RemoveTable)}
    for table in txn.tables.values():
        # Its own DDL is applied to the very definition that it has bound, or not at all (K2).
        if not is_current(catalog, table) and table.oid not in own:
            return stale_refusal(f'table "{table.name}" was changed by a concurrent transaction')
    return None


def shadowed(txn: Transaction, catalog: Catalog) -> Refused | None:
    """A6: the verdict on names; `catalog` is without the transaction's own DDL."""
    if txn.isolation not in VALIDATING:
        return None
    for name in txn.look_ups:
        if resolve(catalog, name) != name.oid:
            shown = f'schema "{name.schema}"' if name.name is None else f'relation "{name.name}"'
            return stale_refusal(f"{shown} was created or dropped by a concurrent transaction")
    return None


def stale_refusal(detail: str) -> Refused:
    """40001 for a definition that changed; a statement nobody has seen is bound again."""
    return Refused(
        RefusedReason.STALE,
        "40001",
        "could not serialize access due to concurrent definition change",
        detail[0].upper() + detail[1:] + ".",
        RETRY_HINT,
    )
