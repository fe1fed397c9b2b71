"""CREATE TABLE AS and SELECT INTO: define a table and fill it, in one statement."""

from coordinator.execution.context import Done, Execution
from coordinator.execution.ddl import execute_definition
from coordinator.execution.dml.row_sink import RowSink
from coordinator.execution.locking_queries import run_locking_parts
from coordinator.execution.run_plan import run_plan
from coordinator.execution.sequence_calls import evaluate_row_calls
from coordinator.execution.spill import write_rows
from coordinator.streams import closing_batches
from sql.catalog.catalog import Table
from sql.statements.bound import CreateTable, CreateTableAs

TAG = "CREATE TABLE AS"


async def execute_create_as(execution: Execution, statement: CreateTableAs) -> Done:
    """Create the table and fill it, in the transaction."""
    created = statement.table
    makes_rows = statement.with_data and not created.exists
    locked = await run_locking_parts(execution, statement.locking if makes_rows else ())
    await execute_definition(execution, created, TAG)
    if created.exists:
        return Done(TAG)
    if not statement.with_data:
        return Done(TAG)
    table = await _defined(execution, created)
    sink = RowSink.of(execution, table)
    try:
        source = locked.plan(statement.source)
        inputs = await execution.views(statement.tables, plan=statement.source)
        inputs = {**inputs, **locked.inputs([source], statement.calls)}
        batches = run_plan(execution, source, inputs)
        async with closing_batches(
            evaluate_row_calls(execution, batches, statement.calls)
        ) as called:
            async for batch in called:
                await sink.add(batch.columns)
        rows = await sink.finish()
    except BaseException:
        await sink.discard()
        raise
    if sink.rows:
        await write_rows(execution, table, rows)
    return Done(f"SELECT {sink.rows}")


async def _defined(execution: Execution, created: CreateTable) -> Table:
    """The table as the transaction sees it now."""
    catalog = (await execution.transaction.snapshot()).catalog
    return catalog.tables[created.schema, created.name]
