"""Give types to the untyped output columns of a bound query (resolveTargetListUnknowns)."""

from dataclasses import replace

from sql.binder.resolve.coercion import coerce_implicitly
from sql.binder.state import Binding, SelectResult
from sql.plan.nodes import (
    ColumnRef,
    DistinctOn,
    DistinctRows,
    Expr,
    Filter,
    Limit,
    Plan,
    PlanColumn,
    Project,
    Sort,
    With,
)
from sql.types.sql_type import TEXT, SqlType


def resolve_unknown_columns(binding: Binding, result: SelectResult) -> None:
    """Make all columns that are still untyped text."""
    for index in tuple(result.unknown):
        retype_column(binding, result, index, TEXT)


def retype_column(binding: Binding, result: SelectResult, index: int, target: SqlType) -> None:
    """Give an untyped column a type, at its literal."""
    expr = coerce_implicitly(binding, result.unknown.pop(index), result.nodes[index], target)
    column = result.columns[index]
    made = replace(column, type=expr.type)
    result.plan = _redefined(result.plan, column, expr)
    result.columns = (*result.columns[:index], made, *result.columns[index + 1 :])


def _redefined(plan: Plan, column: PlanColumn, expr: Expr) -> Plan:
    """The plan with the literal behind an output column replaced."""
    match plan:
        case Project():
            index = next(i for i, made in enumerate(plan.columns) if made.id == column.id)
            made = replace(plan.columns[index], type=expr.type)
            columns = (*plan.columns[:index], made, *plan.columns[index + 1 :])
            below, own = plan.input, plan.exprs[index]
            if isinstance(own, ColumnRef):
                below = _redefined(below, PlanColumn(own.id, made.name, own.type), expr)
                expr = ColumnRef(own.id, expr.type)
            exprs = (*plan.exprs[:index], expr, *plan.exprs[index + 1 :])
            return Project(below, columns, exprs)
        case Sort() | Limit() | DistinctRows() | DistinctOn() | Filter() | With():
            return replace(plan, input=_redefined(plan.input, column, expr))
        case _:
            raise AssertionError("an unknown column comes from a projection")
