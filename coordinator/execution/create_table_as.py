"""CREATE TABLE AS, SELECT INTO, CREATE and REFRESH MATERIALIZED VIEW: the rows of a query, stored.

    query ─▶ rows ─▶ RowSink ─▶ the table        REFRESH: its old rows are deleted with that

INVARIANTS
  F1  REFRESH is one statement of a transaction like others: it reads the inputs of the query at the
      transaction's timestamp, and its commit is validated against those reads at the levels that
      validate any (A1 of `coordinator/core/validation.py`).
  F2  it depends on all rows of the view, at every isolation level: of two that run at once, one
      waits or begins again, and no row is there twice.
  F3  nobody has seen a row before the commit. So a query whose engine dies in the middle is run
      once more, into another sink.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial

from compute.executor import EngineUnavailable, NoExecutors
from coordinator.execution.alter_table import validate_rows
from coordinator.execution.context import Done, Execution
from coordinator.execution.ddl import execute_definition, redefine_table
from coordinator.execution.dml.computed_keys import check_unique_rows
from coordinator.execution.dml.row_sink import RowSink
from coordinator.execution.dml.unique_keys import ReplacedRows, check_keys_free
from coordinator.execution.locking_queries import run_locking_parts
from coordinator.execution.run_plan import run_plan
from coordinator.execution.sequence_calls import evaluate_row_calls
from coordinator.execution.spill import write_rows
from coordinator.execution.views.attach import attach_view
from coordinator.execution.views.refresh_by_changes import depended_rows, refresh_by_changes
from coordinator.pgwire.messages import Severity
from coordinator.streams import closing_batches
from sql.binder.stored.unique_indexes import unique_indexes_of
from sql.catalog.catalog import Table
from sql.errors import SqlError
from sql.plan.nodes import Plan
from sql.statements.bound import CreateTable, CreateTableAs, RefreshMaterializedView, RowCalls
from sql.statements.locking import LockingQuery
from storage.batch import all_rows

log = logging.getLogger("meridian.engines")

TAG = "CREATE TABLE AS"
VIEW_TAG = "CREATE MATERIALIZED VIEW"


async def execute_create_as(execution: Execution, statement: CreateTableAs) -> Done:
    """Create the table and fill it, in the transaction."""
    created = statement.table
    tag = VIEW_TAG if statement.is_view else TAG
    if created.exists or not statement.with_data:
        await execute_definition(execution, created, tag)
        return Done(tag)
    filling = _Filling(execution, statement.source, statement.tables, statement.calls)
    await filling.lock(statement.locking)
    await execute_definition(execution, created, tag)
    table = await _defined(execution, created)
    sink = await filling.fill(lambda: RowSink.of(execution, table))
    try:
        rows = await sink.finish()
    except BaseException:
        await sink.discard()
        raise
    if sink.rows:
        await write_rows(execution, table, rows)
    if table.query is not None:
        ts = await execution.transaction.timestamp([table])
        attach_view(execution, table, ts, statement.source)
    return Done(f"SELECT {sink.rows}")


async def _defined(execution: Execution, created: CreateTable) -> Table:
    """The table as the transaction sees it now."""
    catalog = (await execution.transaction.snapshot()).catalog
    return catalog.tables[created.schema, created.name]


async def execute_refresh(
    execution: Execution, statement: RefreshMaterializedView, tag: str
) -> Done:
    """Replace the rows of a materialized view by those that its query has now (F1, F2)."""
    execution.transaction.check_writable(tag)
    before, after = statement.table, statement.after
    if await refresh_by_changes(execution, statement):
        return Done(tag)
    old = await depended_rows(execution, before)
    if statement.difference is not None and not await _differs(execution, statement):
        # They are there already, and are those of the query: only that is to be said.
        if before.oid not in execution.catalog().exact_views and statement.source is not None:
            ts = await execution.transaction.timestamp([before])
            attach_view(execution, before, ts, statement.source)
        return Done(tag)
    made = partial(RowSink.of, execution, after, checked=statement.is_concurrent)
    if statement.source is None:
        sink = made()
    else:
        filling = _Filling(execution, statement.source, statement.tables, statement.calls)
        await filling.lock(statement.locking)
        sink = await filling.fill(made)
    try:
        if statement.is_concurrent:
            going = ReplacedRows(old, all_rows(old), range(len(after.columns)))
            await check_keys_free(execution, after, sink.keyed, going)
        rows = await sink.finish(all_rows(old))
    except BaseException:
        await sink.discard()
        raise
    if after is not before:
        redefine_table(execution, after)
    if sink.rows or rows.deletes:
        await write_rows(execution, after, rows)
    if not statement.is_concurrent and statement.source is not None:
        await validate_rows(execution, after, statement.validations)
        for index in unique_indexes_of(execution.catalog(), after):
            await check_unique_rows(execution, after, index)
    if statement.source is not None:
        ts = await execution.transaction.timestamp([after])
        attach_view(execution, after, ts, statement.source)
    return Done(tag)


async def _differs(execution: Execution, statement: RefreshMaterializedView) -> bool:
    """Whether stored rows differ from those of the query; the session is told how many."""
    plan, view = statement.difference, statement.table
    assert plan is not None, "asked for views that are compared"
    inputs = await execution.views((*statement.tables, view), plan=plan)
    count = 0
    async with closing_batches(run_plan(execution, plan, inputs)) as batches:
        async for batch in batches:
            count += batch.num_rows
    rows = "1 row differs" if count == 1 else f"{count} rows differ"
    told = f'materialized view "{view.name}": {rows} from those of its query'
    execution.notice(SqlError("00000", told), Severity.NOTICE)
    return count > 0


class _Filling:
    """The rows of a query on their way into a table."""

    def __init__(
        self, execution: Execution, source: Plan, tables: Sequence[Table], calls: RowCalls | None
    ) -> None:
        self._execution = execution
        self._source = source
        self._tables = tables
        self._calls = calls

    async def lock(self, parts: Sequence[LockingQuery]) -> None:
        """Run the parts of the query that lock rows, which come first."""
        self._locked = await run_locking_parts(self._execution, parts)

    async def fill(self, make: Callable[[], RowSink]) -> RowSink:
        """A sink with all rows (F3)."""
        try:
            return await self._filled(make())
        except NoExecutors:
            raise
        except EngineUnavailable as error:
            log.info("%s: the query is run once more", error)
        return await self._filled(make())

    async def _filled(self, sink: RowSink) -> RowSink:
        try:
            await self._run(sink)
        except BaseException:
            await sink.discard()
            raise
        return sink

    async def _run(self, sink: RowSink) -> None:
        execution, locked = self._execution, self._locked
        source = locked.plan(self._source)
        inputs = await execution.views(self._tables, plan=self._source)
        inputs = {**inputs, **locked.inputs([source], self._calls)}
        batches = run_plan(execution, source, inputs)
        async with closing_batches(evaluate_row_calls(execution, batches, self._calls)) as called:
            async for batch in called:
                await sink.add(batch.columns)
