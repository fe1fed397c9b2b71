"""Run the program of a view before commits wait for it.

What takes time at first is done then: plans are compiled, columns of files are read and sorted, the
local engine learns of the files. A view that is attached before that might be left behind by the
first commit, however small.
"""

from coordinator.execution.context import Execution
from sql.catalog.catalog import Table
from sql.incremental.program import MaintenanceProgram, Strategy
from sql.plan.nodes import Plan, RelationId


async def rehearse_view(
    execution: Execution, table: Table, tables: tuple[Table, ...], query: Plan
) -> None:
    """Run the program of a view once, as the transaction sees its inputs and its rows, if it was
    not. `query`: over these tables.
    """
    # A server starts without it.
    from coordinator.execution.views.maintain import ViewMaintenance, program_tables

    upkeep = execution.services.catch_up.upkeep_of(table.oid)
    program = upkeep.program_for(query)
    if not isinstance(program, MaintenanceProgram) or upkeep.is_warm:
        return
    upkeep.is_warm = True
    if not {RelationId(one.shard) for one in tables}.issuperset(program.inputs):
        return  # it reads stored rows of a view below, which are no input
    views = await execution.views((*tables, table))
    stored = views.pop(RelationId(table.shard))
    large = program_tables(program, table, tables)
    await ViewMaintenance(execution.services).rehearse(program, views, stored, large)


async def rehearse_attached(
    execution: Execution, table: Table, tables: tuple[Table, ...], query: Plan
) -> None:
    """The same for a view that the transaction attaches. A program that computes all rows is left
    to catch-up: it would make CREATE take twice as long.
    """
    upkeep = execution.services.catch_up.upkeep_of(table.oid)
    is_followed = upkeep.strategy is not None and upkeep.query == query
    if is_followed and upkeep.strategy != Strategy.FULL.value:
        await rehearse_view(execution, table, tables, query)
