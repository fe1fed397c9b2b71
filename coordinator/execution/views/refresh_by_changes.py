"""Bring a view that is behind up to date by the changes of its inputs, where that costs less.

    exact until b ─▶ changes of the inputs in (b, T] ─▶ program ─▶ rows that go and come ─▶ commit
                     └ too many, no program, no history, an odd row ─▶ the query, as a whole

INVARIANTS
  R1  it does what REFRESH does: it reads the inputs at T and depends on them and on all rows of the
      view, so the commit attaches the view only if all of it is still so.
  R2  nothing is written before all rows are known. Until then the whole query may run instead.
  R3  stored rows of a view below are no input: at the time from which on changes are read they may
      have been those of an earlier one.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from compute.executor import EngineUnavailable
from compute.maintenance import (
    InputChange,
    StoredRowsDiffer,
    TooManyChanges,
    ViewChange,
    maintain_view,
)
from compute.read_size import read_size
from coordinator.core.change_streams.steps import ChangeStep, SubscriptionRequest
from coordinator.driver.coordination import RequestRefused
from coordinator.driver.server_changes import SERVER
from coordinator.execution.context import Execution
from coordinator.execution.dml.row_sink import RowSink
from coordinator.execution.dml.transient_relations import run_over_transient
from coordinator.execution.spill import write_rows
from coordinator.execution.views.attach import attach_view
from sql.binder.stored.view_reads import follows_inputs
from sql.catalog.catalog import Table
from sql.incremental.program import MaintenanceProgram, Strategy
from sql.plan.nodes import RelationId
from sql.statements.bound import RefreshMaterializedView
from storage.batch import ShardView
from storage.changes import Change, changes, view_of_places
from storage.types import ShardId, Timestamp

CHANGED_ROWS_MAX: Final = 200_000
"""Rows of inputs that came or went, and rows that a step makes. Larger: more memory."""

SHARE_MAX: Final = 4
"""Of the rows that the query reads, at most one in so many may have changed. Smaller: the rows of
large changes are looked at one by one where the query would take less."""


async def refresh_by_changes(execution: Execution, statement: RefreshMaterializedView) -> bool:
    """Write what is different since the view was exact, and attach it; False: it was not done, and
    nothing is written (R2). A REFRESH that compares is for people: it computes all rows.
    """
    table, source = statement.table, statement.source
    if statement.difference is not None or statement.after is not table:
        return False
    if source is None or any(map(follows_inputs, statement.tables)):
        return False
    upkeep = execution.services.catch_up.upkeep_of(table.oid)
    followed = execution.services.coordination.followed_views
    left = followed.left(table.oid, upkeep.computed)
    program = None if left is None else upkeep.program_for(source)
    if left is None or not isinstance(program, MaintenanceProgram):
        return False
    if program.strategy is Strategy.FULL:
        return False
    after = await execution.views(statement.tables, plan=source)
    ts = await execution.transaction.timestamp(statement.tables)
    try:
        async with _followed(execution, statement.tables, left.exact_at) as step:
            found = _input_changes(step, after, ts, read_size(source, after).rows // SHARE_MAX)
            if found is None:
                return False
            change = await _changed_rows(execution, program, found, table)
    except (RequestRefused, StoredRowsDiffer, TooManyChanges, EngineUnavailable):
        return False
    await _write(execution, table, change)
    attach_view(execution, table, ts, source)
    attempts = execution.services.catch_up.of(table.oid)
    attempts.by_changes += 1
    attempts.delta_rows += change.rows
    return True


@asynccontextmanager
async def _followed(
    execution: Execution, tables: tuple[Table, ...], since: Timestamp
) -> AsyncGenerator[ChangeStep]:
    """The inputs' states and all of their changes since then, held. Raises RequestRefused if their
    history does not go back so far.
    """
    coordination = execution.services.coordination
    txn = coordination.begin(SERVER, read_only=True)
    try:
        await coordination.snapshot(txn, as_of=since)
        stream = await coordination.subscribe(txn, SubscriptionRequest(tables, since))
        try:
            yield stream.take()
        finally:
            stream.close()
    finally:
        coordination.abort(txn)


def _input_changes(
    step: ChangeStep, after: Mapping[RelationId, ShardView], ts: Timestamp, most: int
) -> Mapping[RelationId, InputChange] | None:
    """All sides of the inputs; None: too many rows have changed."""
    inputs: dict[RelationId, InputChange] = {}
    count = 0
    for one in step.shards:
        name = one.state.shard
        some: list[Change] = []
        for change in changes(one.state, step.after, ts, one.schema):
            count += sum(len(part.rows) for part in (*change.came, *change.went))
            if count > min(most, CHANGED_ROWS_MAX):
                return None
            some.append(change)
        view = partial(view_of_places, ShardId(name), one.schema)
        inputs[RelationId(name)] = InputChange(
            before=one.state.view(step.after, schema=one.schema),
            after=after[RelationId(name)],
            came=view([part for change in some for part in change.came]),
            went=view([part for change in some for part in change.went]),
        )
    return inputs


async def _changed_rows(
    execution: Execution,
    program: MaintenanceProgram,
    inputs: Mapping[RelationId, InputChange],
    table: Table,
) -> ViewChange:
    stored = await depended_rows(execution, table)
    run = partial(run_over_transient, execution)
    return await maintain_view(program, inputs, stored, run, rows_max=CHANGED_ROWS_MAX)


async def depended_rows(execution: Execution, table: Table) -> ShardView:
    """All rows of a view, on which the transaction depends (R1)."""
    ts = await execution.transaction.timestamp([table])
    (view,) = await execution.services.coordination.scan(
        execution.transaction.id, ts, [table], (), frozenset({table.oid})
    )
    return view


async def _write(execution: Execution, table: Table, change: ViewChange) -> None:
    sink = RowSink.of(execution, table, checked=False)
    try:
        for batch in change.came:
            await sink.add(batch.columns)
        rows = await sink.finish(dict(change.gone))
    except BaseException:
        await sink.discard()
        raise
    if sink.rows or rows.deletes:
        await write_rows(execution, table, rows)
