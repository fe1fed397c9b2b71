"""Answer single-table look-ups by column values in process; read files in a thread.

The search itself is in `compute/access/point_reads.py`. The view and the transaction's read set are
those of every other query.
"""

import asyncio
from collections.abc import Sequence
from functools import partial

from compute.access.point_reads import NotAnsweredReason, PointRead, plan_point_query
from compute.reference.expressions import Row
from coordinator.execution.context import Execution
from sql.catalog.catalog import Table
from sql.catalog.meridian_schema import is_server_state
from sql.plan.nodes import Plan
from storage.batch import ShardView


def plan_point_read(execution: Execution, plan: Plan, tables: Sequence[Table]) -> PointRead | None:
    """How to answer a query of the local engine by key; None if the engine has to run it."""
    if len(tables) != 1 or execution.services.local is None or is_server_state(tables[0]):
        return None
    if execution.variables.get("engine") not in ("local", "auto"):
        return None
    return plan_point_query(plan, tables[0])


async def read_rows_by_key(
    execution: Execution, reading: PointRead, view: ShardView
) -> list[Row] | None:
    """The rows that the query selects; None if an engine has to find them after all."""
    index, parameters = execution.services.key_index, execution.parameters
    try:
        rows = reading.rows(index, view, parameters, may_read=False)
        if rows is NotAnsweredReason.FILES:
            read = partial(reading.rows, index, view, parameters, may_read=True)
            rows = await asyncio.to_thread(read)
    except Exception:
        await execution.services.coordination.examine([view])
        raise
    assert rows is not NotAnsweredReason.FILES, "R2: who may read has an answer"
    return None if rows is NotAnsweredReason.ENGINE else rows
