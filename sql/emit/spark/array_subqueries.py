"""Rewrite `ARRAY(SELECT ..)`, which Spark does not have, as an ordered array_agg().

    array(select x from t order by y limit 3)
        ─▶ coalesce((select array_agg(x order by y) from (select .. order by y limit 3)), '{}')

INVARIANTS
  R1  the rows stand in the array in the order of the query, or of its derived table. Only ORDER BY
      decides it.
"""

from sql.functions.table import function_by_id
from sql.plan.nodes import (
    Aggregate,
    Coalesce,
    ColumnRef,
    Const,
    Expr,
    GroupBy,
    Limit,
    Plan,
    PlanColumn,
    Project,
    Sort,
    SortKey,
    Subquery,
    SubqueryKind,
    output_columns,
)
from sql.rewrite.aggregate_order import ordered_rows


def array_subquery_as_aggregate(expr: Subquery) -> Expr:
    """The same value as an aggregate."""
    (column,) = output_columns(expr.plan)
    plan, value, order = _ordered(expr.plan, ColumnRef(column.id, column.type))
    function = function_by_id("array_agg(anynonarray)")
    call = Aggregate(function, (value,), False, None, order, expr.type)
    # The column that is gathered is not seen any more, so its id is free.
    made = PlanColumn(column.id, column.name, expr.type)
    values = Subquery(SubqueryKind.SCALAR, GroupBy(plan, (), (), (made,), (call,)), (), expr.type)
    # No rows are an empty array, not NULL.
    return Coalesce((values, Const((), expr.type)), expr.type)


def _ordered(plan: Plan, value: Expr) -> tuple[Plan, Expr, tuple[SortKey, ...]]:
    """The rows, the value of each, and what orders them (R1)."""
    if isinstance(plan, Project) and isinstance(plan.input, Sort | Limit):
        # It leaves out what is only sorted by.
        (value,) = plan.exprs
        plan = plan.input
    match plan:
        case Sort():
            return plan.input, value, plan.keys
        case Limit(input=Sort(keys=keys)):
            return plan, value, keys
        case _:
            rows, keys = ordered_rows(plan)
            return rows, value, keys
