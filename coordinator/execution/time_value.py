"""Evaluate a bound time expression in process, before the statement uses its timestamp."""

import pyarrow as pa

from coordinator.execution.context import Execution
from sql.errors import SqlError
from sql.plan.nodes import ColumnId, Expr, PlanColumn, Project, Values
from storage.types import Timestamp

_COLUMN = ColumnId(1)


async def time_value(execution: Execution, expr: Expr, clause: str) -> Timestamp:
    """A timestamp of int8 or timestamptz. Raises 22023 for NULL and for what is before 1970."""
    column = PlanColumn(_COLUMN, "time", expr.type)
    plan = Project(Values((), ((),)), (column,), (expr,))
    in_process = execution.services.in_process
    in_process.require(plan, f"this expression in {clause}")
    table = await in_process.answer(execution.run(plan, {}))
    value = timestamp_of_table(table)
    if value is None:
        raise SqlError("22023", f"{clause} timestamp must not be null")
    if value < 0:
        raise SqlError("22023", f"{clause} timestamp must not be negative")
    return Timestamp(value)


def timestamp_of_table(table: pa.Table) -> int | None:
    """The one value of a table as microseconds, or as the integer that it is."""
    column = table.column(0)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", tz=column.type.tz)).cast(pa.int64())
    value = column[0].as_py()
    return None if value is None else int(value)
