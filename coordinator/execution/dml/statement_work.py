"""Collect the effects of one writing statement on tables until all of its parts have run.

    look_at ─▶ views of one moment ─▶ parts run ─▶ sinks, deletes ─▶ keys checked ─▶ write

A statement has several parts if WITH queries of it write, too. All of them see the tables as they
were when it began; only keys are checked across parts.

INVARIANTS
  U1  all views of a statement are of one moment, so that a row has one name in all of them.
  U2  nothing is written before every part has run; staged files are discarded if one fails.
  U3  a new key is compared with the rows that the statement leaves, and with the new rows of all
      parts, in the order in which these take effect.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa
from pyroaring import BitMap64

from compute.access.row_predicates import RowPredicate
from coordinator.core.locking.modes import LockMode
from coordinator.core.messages.locks import RowsToLock
from coordinator.core.own_writes import merge_deletes
from coordinator.execution.context import Execution
from coordinator.execution.dml.changed_rows import ChangedRows
from coordinator.execution.dml.claimed_rows import ClaimedRows
from coordinator.execution.dml.foreign_keys import DELETED, UPDATED, RowChange, check_foreign_keys
from coordinator.execution.dml.row_sink import RowSink
from coordinator.execution.dml.unique_keys import ReplacedRows, check_keys_free
from coordinator.execution.dml.updated_keys import UpdatedKeys
from coordinator.execution.read_predicates import read_predicates
from coordinator.execution.spill import buffer_rows, spill_if_large
from coordinator.large_work import aside_if
from sql.catalog.catalog import Key, Table
from sql.catalog.foreign_keys import referencing_keys
from sql.catalog.meridian_schema import is_server_state
from sql.plan.nodes import Plan, RelationId
from storage.batch import Deletes, ShardView, WriteBatch
from storage.known_rows import OldRows


@dataclass(frozen=True, slots=True)
class PlanRead:
    """A plan, and the tables that it scans."""

    plan: Plan
    tables: Sequence[Table]


@dataclass(slots=True)
class _Shard:
    """What happens to one table: what its parts claim, and the keys of their new rows."""

    claims: list[ClaimedRows] = field(default_factory=list[ClaimedRows])
    keyed: list[pa.Table] = field(default_factory=list[pa.Table])

    @property
    def gone(self) -> Deletes:
        """All rows that are claimed."""
        gone: Deletes = {}
        for claims in self.claims:
            gone = merge_deletes(gone, claims.rows)
        return gone


@dataclass(frozen=True, slots=True)
class _Written:
    table: Table
    batch: WriteBatch
    old: OldRows | None
    changes: Sequence[RowChange]
    keeps_keys: bool


def _changes(
    table: Table,
    sink: RowSink,
    rows: Deletes,
    view: ShardView | None,
    deleted: Deletes,
    moved: UpdatedKeys | None,
) -> list[RowChange]:
    """What happened to the table, for foreign keys: rows that went, and rows that were replaced."""
    nothing = BitMap64()
    replaced = {source: of - deleted.get(source, nothing) for source, of in rows.items()}
    changes = [RowChange(table, sink.keyed, replaced, view, UPDATED, moved, same=sink.same)]
    if any(deleted.values()):
        changes.append(RowChange(table, None, deleted, view, DELETED))
    return changes


class StatementEffects:
    """See the module."""

    def __init__(self, execution: Execution) -> None:
        self._execution = execution
        self._shards: dict[str, _Shard] = {}
        self._sinks: list[RowSink] = []
        self._written: list[_Written] = []
        self._to_lock: list[tuple[RowsToLock, LockMode]] = []
        self.views: dict[RelationId, ShardView] = {}
        self.made: dict[RelationId, ShardView] = {}
        """Rows that parts have returned, for those after them."""

    async def look_at(self, readings: Sequence[PlanRead]) -> None:
        """Pin views of all tables that these plans scan, of one moment (U1); they enter the read
        set.
        """
        execution = self._execution
        system = [
            table for reading in readings for table in reading.tables if is_server_state(table)
        ]
        if system:
            self.views.update(await execution.views(list(dict.fromkeys(system))))
        pairs: list[tuple[Table, RowPredicate | None]] = []
        for reading in readings:
            tables = [table for table in reading.tables if not is_server_state(table)]
            if tables:
                found = partial(read_predicates, reading.plan, tables, execution.parameters)
                predicates = await aside_if(execution.is_large, found)
                pairs.extend(zip(tables, predicates, strict=True))
        if pairs:
            await self._look_at(pairs)

    async def look_at_rows(self, table: Table, predicate: RowPredicate) -> None:
        """The same for rows of one table."""
        await self._look_at([(table, predicate)])

    async def _look_at(self, pairs: Sequence[tuple[Table, RowPredicate | None]]) -> None:
        execution = self._execution
        tables = [table for table, _ in pairs]
        ts = await execution.transaction.timestamp(tables)
        coordination = execution.services.coordination
        views = await coordination.scan(
            execution.transaction.id, ts, tables, [predicate for _, predicate in pairs]
        )
        for table, view in zip(tables, views, strict=True):
            self.views[RelationId(table.shard)] = view

    def inputs(self, tables: Sequence[Table]) -> dict[RelationId, ShardView]:
        """The views of these tables, and the rows that earlier parts have returned."""
        wanted = [RelationId(table.shard) for table in tables]
        return {name: self.views[name] for name in wanted} | self.made

    def view_of(self, table: Table) -> ShardView | None:
        """The view of a table that the statement reads."""
        return self.views.get(RelationId(table.shard))

    def claims(self, table: Table) -> ClaimedRows:
        """The claims of the next part, which respect those of the parts before it."""
        known = self._shard(table).claims
        known.append(ClaimedRows(known))
        return known[-1]

    def gone(self, table: Table) -> Deletes:
        """Rows of a table that the statement has deleted or replaced so far."""
        return self._shard(table).gone

    def _shard(self, table: Table) -> _Shard:
        return self._shards.setdefault(table.shard, _Shard())

    def sink(self, table: Table) -> RowSink:
        """A sink for one part's rows; discarded with the others if the statement fails (U2)."""
        made = RowSink.of(self._execution, table)
        self._sinks.append(made)
        return made

    async def add(
        self,
        table: Table,
        sink: RowSink,
        claims: ClaimedRows,
        old: OldRows | None,
        assigned: Sequence[int],
        deleted: Deletes | None = None,
        moved: UpdatedKeys | None = None,
        decided: Collection[Key] = (),
        changed: ChangedRows | None = None,
    ) -> None:
        """Record the effect of a part on its table. Raises 23505 (U3). `assigned`: columns with new
        values; `deleted`: the rows that are deleted and not replaced, and `moved` the keys of the
        replaced ones; `decided`: keys that ON CONFLICT has checked already.
        """
        shard = self._shard(table)
        batch = await sink.finish(claims.rows)
        others = bool(shard.keyed) or len(shard.claims) > 1
        if sink.keyed is not None:
            shard.keyed.append(sink.keyed)
        if shard.keyed:
            gone, view = shard.gone, self.view_of(table)
            going = None
            if any(gone.values()):
                assert view is not None, "U1: who deletes rows has looked at them"
                every = range(len(table.columns))
                going = ReplacedRows(view, gone, every if others else assigned)
            keyed = pa.concat_tables(shard.keyed)
            but = () if others else decided
            await check_keys_free(self._execution, table, keyed, going, but=but)
        if sink.rows or any(claims.rows.values()):
            changes = _changes(table, sink, claims.rows, self.view_of(table), deleted or {}, moved)
            keeps_keys = changed is not None and changed.keeps_keys
            self._written.append(_Written(table, batch, old, changes, keeps_keys))
        if changed is not None:
            self._to_lock += changed.to_lock()

    async def write(self) -> None:
        """Buffer everything into the transaction, once it holds the rows that change (W5 of
        `changed_rows.py`). Raises StatementRestart, 40001, 40P01, 55P03.
        """
        for rows, mode in self._to_lock:
            await self._execution.transaction.lock_rows(rows, mode, implicit=True)
        if self._may_act_on_children():
            self._execution.transaction.mark_statement()
        # Moving rows into files gives them other names: not before the last part is written.
        for done in self._written:
            buffer_rows(
                self._execution, done.table, done.batch, done.old, keeps_keys=done.keeps_keys
            )
        await check_foreign_keys(
            self._execution, [change for done in self._written for change in done.changes]
        )
        await spill_if_large(self._execution)

    def _may_act_on_children(self) -> bool:
        """Whether referential actions may lock rows when the statement has written."""
        if self._execution.alone:
            return False
        catalog = self._execution.catalog()
        lost = (done.table.oid for done in self._written if any(done.batch.deletes.values()))
        return any(
            not {foreign.on_delete, foreign.on_update} <= {"no action", "restrict"}
            for oid in lost
            for _, foreign in referencing_keys(catalog, oid)
        )

    async def discard(self) -> None:
        """Forget everything (U2)."""
        for sink in self._sinks:
            await sink.discard()
