"""Run one data-modifying part of a statement: its source plan, the claimed rows, the new rows.

    source plan ─▶ batches ─┬─ identities ─▶ ClaimedRows
                            ├─ new rows ───▶ RowSink (checked, inline or staged)
                            └─ new, old, columns of others ─▶ RETURNING, over relation `new`

INVARIANTS
  W2  rows for RETURNING are held until the commit is acknowledged (Q1 of `context.py`); bounded.
  W3  every scan is at the transaction's timestamp, so the commit is refused if it went stale.
"""

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import pyarrow as pa

from compute.arrow import batch_schema
from coordinator.execution.context import Execution, Services, stream_table
from coordinator.execution.dml.changed_rows import ChangedRows
from coordinator.execution.dml.check_option import ViewCheckOptions
from coordinator.execution.dml.claimed_rows import ClaimedRows
from coordinator.execution.dml.old_rows import OldRowsCollector
from coordinator.execution.dml.on_conflict import Upserter
from coordinator.execution.dml.row_sink import stored_schema
from coordinator.execution.dml.statement_work import PlanRead, StatementEffects
from coordinator.execution.dml.transient_relations import (
    run_over_transient,
    transient_batch,
    transient_view,
)
from coordinator.execution.dml.updated_keys import UpdatedKeysCollector
from coordinator.execution.engine_choice import is_answered_at_once
from coordinator.execution.keyed_access import plan_keyed_access
from coordinator.execution.run_plan import run_plan
from coordinator.execution.sequence_calls import evaluate_row_calls
from coordinator.large_work import aside_if
from coordinator.memory_account import MemoryOwner
from coordinator.statistics.relation_accesses import is_counted_by_tag
from coordinator.streams import closing_batches
from ingest.copy_text.kernels import Column
from sql.errors import SqlError
from sql.plan.nodes import Plan, RelationId, output_columns
from sql.statements.bound import MergeAction, Modify, ModifyingWith, ModifyKind

NEW: Final = RelationId("new")

_ACTIONS: Final = {
    ModifyKind.INSERT: MergeAction.INSERT,
    ModifyKind.UPDATE: MergeAction.UPDATE,
    ModifyKind.DELETE: MergeAction.DELETE,
}


@dataclass(frozen=True, slots=True)
class ModifyResult:
    """The result of a part. `returned`: the rows of RETURNING, if it has one. `taken`: with ON
    CONFLICT, the numbers of the proposed rows that were inserted, or have updated one.
    """

    affected: int
    returned: pa.Table | None
    taken: Sequence[int] | None = None


def reads_of(modify: Modify) -> Sequence[PlanRead]:
    """The plans of a part that scan tables."""
    found = [PlanRead(modify.source, modify.tables)]
    if modify.returning is not None:
        found.append(PlanRead(modify.returning, modify.returning_tables))
    if modify.conflict is not None and modify.conflict.update is not None:
        found.append(PlanRead(modify.conflict.update, modify.conflict.tables))
    if modify.view_checks is not None:
        found.append(PlanRead(modify.view_checks.plan, modify.view_checks.tables))
    return found


async def run_modify(execution: Execution, modify: Modify, work: StatementEffects) -> ModifyResult:
    """Run a part; its writes are then in `work`, and not yet in the transaction."""
    return await take_source_rows(execution, modify, work, await _source(execution, modify, work))


async def take_source_rows(
    execution: Execution,
    modify: Modify,
    work: StatementEffects,
    rows: AsyncIterator[pa.RecordBatch],
) -> ModifyResult:
    """The same for rows that its source plan has given."""
    part = _Part(execution, modify, work)
    async with closing_batches(evaluate_row_calls(execution, rows, modify.calls)) as called:
        async for batch in called:
            await part.take(batch)
    return await part.finish()


async def _source(
    execution: Execution, modify: Modify, work: StatementEffects
) -> AsyncIterator[pa.RecordBatch]:
    inputs = work.inputs(modify.tables)
    access = await plan_keyed_access(execution, modify.source, modify.tables, inputs)
    if access is not None:
        return stream_table(pa.Table.from_batches([await access.answer(execution, inputs)]))
    at_once = partial(is_answered_at_once, execution, modify.source)
    if not inputs and await aside_if(execution.is_large, at_once):
        in_process = execution.services.in_process
        is_new = modify.kind is ModifyKind.INSERT and modify.calls is None
        schema = stored_schema(modify.table) if is_new else None
        return stream_table(await in_process.answer(execution.run(modify.source, {}), schema))
    run = run_over_transient if work.made else run_plan
    return run(execution, modify.source, inputs)


class _Part:
    """What one run of a source plan adds up to."""

    def __init__(self, execution: Execution, modify: Modify, work: StatementEffects) -> None:
        self._execution = execution
        self._modify = modify
        self._work = work
        self._sink = work.sink(modify.table)
        self._claims = work.claims(modify.table)
        self._shown = _Shown(modify, execution.services)
        self._old = OldRowsCollector(execution.services.limits)
        self._changed = ChangedRows(execution, modify.table)
        self._affected = 0
        self._done = dict.fromkeys(MergeAction, 0)
        """Rows, by what was done to them, where the statement's tag does not tell."""
        self._proposed = 0
        self._taken: list[int] | None = None if modify.conflict is None else []
        self._deleted = ClaimedRows()
        assigned: Collection[int] = range(len(modify.table.columns))
        if modify.kind is ModifyKind.UPDATE:
            assigned = modify.old
        elif modify.conflict is not None:
            assigned = modify.conflict.assigned
        elif modify.kind is not ModifyKind.MERGE:
            assigned = ()
        self._moved = UpdatedKeysCollector(execution, modify.table, assigned)
        self._width = len(modify.table.columns)
        self._upserts: Upserter | None = None
        self._upserts_move_keys = False
        if modify.conflict is not None:
            self._upserts = Upserter(execution, modify.table, modify.conflict, work)
            keyed = {ordinal for key in modify.table.keys for ordinal in key.columns}
            self._upserts_move_keys = not keyed.isdisjoint(modify.conflict.assigned)
        self._views = ViewCheckOptions(execution, modify, work)

    async def take(self, batch: pa.RecordBatch) -> None:
        """Take a batch of the source plan's output, shaped as `sql/statements/bound.py` says."""
        match self._modify.kind:
            case ModifyKind.INSERT if self._upserts is not None:
                await self._upsert(self._upserts, await self._sink.fill(batch))
            case ModifyKind.INSERT:
                batch = await self._sink.fill(batch)
                same = batch.schema is self._sink.schema or batch.schema.equals(self._sink.schema)
                rows = await (self._sink.take(batch) if same else self._sink.add(batch.columns))
                await self._views.check(rows)
                self._affected += rows.num_rows
                self._shown.keep(rows.columns, rows.num_rows)
            case ModifyKind.UPDATE:
                await self._replace(self._claimed(batch))
            case ModifyKind.DELETE:
                self._remove(self._claimed(batch))
            case ModifyKind.MERGE:
                await self._merge(batch)

    async def _upsert(self, upserts: Upserter, batch: pa.RecordBatch) -> None:
        done = await upserts.take(batch, self._claims)
        if self._taken is not None:
            self._taken += [self._proposed + number for number in done.numbers]
        self._proposed += batch.num_rows
        if not done.rows.num_rows:
            return
        rows = await self._sink.add(done.rows.columns)
        await self._views.check(rows)
        self._old.keep(dict(enumerate(done.replaced.columns)), done.replaced.num_rows)
        self._moved.keep(dict(enumerate(done.old.columns)), rows.columns)
        self._sink.replaces(dict(enumerate(done.old.columns)), rows.columns)
        self._changed.keep(
            [source for source, _ in done.places],
            [index for _, index in done.places],
            dict(enumerate(done.replaced.columns)),
            None if self._upserts_move_keys else done.replaced.columns,
        )
        self._affected += rows.num_rows
        self._done[MergeAction.UPDATE] += len(done.places)
        self._done[MergeAction.INSERT] += rows.num_rows - len(done.places)
        versions = [*rows.columns, *(done.old.columns if self._modify.returning_old else ())]
        self._shown.keep(versions, rows.num_rows)

    def _claimed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of the batch that nobody has claimed; they are now (W1 of `claimed_rows.py`)."""
        fresh = self._claims.take(batch.column(0), batch.column(1))
        return batch if fresh.all() else batch.filter(pa.array(fresh))

    async def _replace(self, batch: pa.RecordBatch) -> None:
        width, modify = self._width, self._modify
        rows = await self._sink.add(batch.columns[2 : 2 + width])
        await self._views.check(rows)
        old = batch.columns[2 + width : 2 + width + len(modify.old)]
        # What was not assigned is as it was.
        before = dict(enumerate(rows.columns)) | dict(zip(modify.old, old, strict=True))
        self._old.keep(before, batch.num_rows)
        self._moved.keep(before, rows.columns)
        self._sink.replaces(before, rows.columns)
        self._changed.keep(batch.column(0), batch.column(1), before, rows.columns)
        self._affected += batch.num_rows
        versions = [*rows.columns, *(old if modify.returning_old else ())]
        self._shown.keep([*versions, *_extras(batch, modify)], batch.num_rows)

    def _remove(self, batch: pa.RecordBatch) -> None:
        old = batch.columns[2 : 2 + len(self._modify.old)]
        before = dict(zip(self._modify.old, old, strict=True))
        self._old.keep(before, batch.num_rows)
        self._changed.keep(batch.column(0), batch.column(1), before, None)
        self._affected += batch.num_rows
        self._shown.keep([*old, *_extras(batch, self._modify)], batch.num_rows)

    async def _merge(self, batch: pa.RecordBatch) -> None:
        width = self._width
        actions = batch.column(2).to_numpy(zero_copy_only=False)
        taken = batch.filter(pa.array(actions != MergeAction.INSERT))
        if taken.num_rows:
            if not self._claims.take(taken.column(0), taken.column(1)).all():
                raise SqlError(
                    "21000",
                    "MERGE command cannot affect row a second time",
                    hint="Ensure that not more than one source row matches any one target row.",
                )
            old = taken.columns[3 + width : 3 + 2 * width]
            self._old.keep(dict(enumerate(old)), taken.num_rows)
        # Rows of one action together: sequences give values to new rows alone.
        for action in MergeAction:
            part = batch.filter(pa.array(actions == action))
            if part.num_rows:
                await self._merged(part, action)
        self._affected += batch.num_rows

    async def _merged(self, part: pa.RecordBatch, action: MergeAction) -> None:
        width = self._width
        self._done[action] += part.num_rows
        now = pa.RecordBatch.from_arrays(part.columns[3 : 3 + width], schema=self._sink.schema)
        if action is MergeAction.INSERT:
            now = await self._sink.fill(now)
        if action is not MergeAction.DELETE:
            now = await self._sink.take(now)
            await self._views.check(now)
        old = part.columns[3 + width : 3 + 2 * width]
        before = dict(enumerate(old))
        if action is MergeAction.UPDATE:
            self._moved.keep(before, now.columns)
            self._sink.replaces(before, now.columns)
            self._changed.keep(part.column(0), part.column(1), before, now.columns)
        if action is MergeAction.DELETE:
            self._deleted.take(part.column(0), part.column(1))
            self._changed.keep(part.column(0), part.column(1), before, None)
        old = old if self._modify.returning_old else []
        self._shown.keep([*now.columns, *old, *_extras(part, self._modify)], part.num_rows)

    async def finish(self) -> ModifyResult:
        """Check keys, hand over what was written, run RETURNING."""
        modify, old = self._modify, self._old.rows(self._claims.rows)
        self._count()
        every = range(len(modify.table.columns))
        assigned = modify.old if modify.kind is ModifyKind.UPDATE else every
        gone = self._claims if modify.kind is ModifyKind.DELETE else self._deleted
        decided = () if self._upserts is None else self._upserts.decided
        await self._work.add(
            modify.table,
            self._sink,
            self._claims,
            old,
            assigned,
            gone.rows,
            self._moved.moved,
            decided,
            self._changed,
        )
        if modify.returning is None:
            return ModifyResult(self._affected, None, self._taken)
        return ModifyResult(self._affected, await self._returned(modify.returning))

    def _count(self) -> None:
        """Of what a command tag tells, its session counts."""
        planned, modify = self._execution.planned, self._modify
        if is_counted_by_tag(modify):
            if planned is None or not isinstance(planned[0].bound, ModifyingWith):
                return
            self._done[_ACTIONS[modify.kind]] = self._affected
        self._execution.services.statistics.changed(
            self._execution.context().database,
            modify.table.oid,
            inserted=self._done[MergeAction.INSERT],
            updated=self._done[MergeAction.UPDATE],
            deleted=self._done[MergeAction.DELETE],
        )

    async def _returned(self, plan: Plan) -> pa.Table:
        schema = batch_schema(output_columns(plan))
        if not self._shown.batches:
            return schema.empty_table()
        inputs = self._work.inputs(self._modify.returning_tables)
        inputs[NEW] = transient_view(NEW, pa.Table.from_batches(self._shown.batches))
        batches = [batch async for batch in run_over_transient(self._execution, plan, inputs)]
        return pa.Table.from_batches(batches) if batches else schema.empty_table()


def _extras(batch: pa.RecordBatch, modify: Modify) -> Sequence[Column]:
    """What RETURNING needs of other tables: the last columns."""
    return batch.columns[batch.num_columns - modify.extras :]


class _Shown:
    """The rows that RETURNING looks at (W2)."""

    def __init__(self, modify: Modify, services: Services) -> None:
        self._wanted = modify.returning is not None
        self._bytes_max = services.limits.returning_bytes_max
        self._memory = services.memory.holding(MemoryOwner.ROWS)
        self.batches: list[pa.RecordBatch] = []
        self._bytes = 0

    def keep(self, columns: Sequence[Column], rows: int) -> None:
        """More rows, in the order in which they were changed."""
        if not self._wanted or not rows:
            return
        batch = transient_batch(columns, rows)
        self.batches.append(batch)
        self._bytes += batch.nbytes
        self._memory.set(self._bytes)
        if self._bytes > self._bytes_max:
            raise SqlError(
                "54000",
                "the rows of RETURNING are too large",
                hint="Write the rows first and read them with a query.",
            )
