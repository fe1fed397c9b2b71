"""Simplify EXISTS and IN over correlated aggregates, which have one row for every outer row.

    exists (select max(v) from u where u.k = t.k)       ─▶  true
    t.v in (select count(*) from u where u.k = t.k)     ─▶  t.v in ((select count(*) ..))

Spark returns a row only for those outer rows for which there is an inner row, unless the subquery
is a scalar one.

INVARIANTS
  V1  only a subquery that has one row by its form is changed: with HAVING, Spark answers as
      PostgreSQL.
"""

from sql.emit.spark.types import unsupported
from sql.plan.conditions import conjunction
from sql.plan.nodes import (
    BoolOp,
    Const,
    DistinctOn,
    DistinctRows,
    Expr,
    GroupBy,
    InList,
    Limit,
    Logical,
    Plan,
    PlanColumn,
    Project,
    Sort,
    Subquery,
    SubqueryKind,
    Window,
    output_columns,
)
from sql.plan.nodes import ColumnRef as Ref
from sql.plan.renumbering import free_columns
from sql.types.sql_type import BOOL


def single_row_condition(expr: Subquery) -> Expr | None:
    """The condition on the only row; None if the subquery may have no row, or several (V1)."""
    if expr.kind in (SubqueryKind.SCALAR, SubqueryKind.ARRAY) or not free_columns(expr.plan):
        return None
    if not _has_one_row(expr.plan):
        return None
    if expr.kind is SubqueryKind.EXISTS:
        return Const(True, BOOL)
    columns = output_columns(expr.plan)
    same: list[Expr] = [
        InList(arg, (_value(expr.plan, column),), negated=False, type=BOOL)
        for arg, column in zip(expr.args, columns, strict=True)
    ]
    found = conjunction(same)
    return Logical(BoolOp.NOT, (found,), BOOL) if expr.kind is SubqueryKind.NOT_IN else found


def _value(plan: Plan, column: PlanColumn) -> Subquery:
    if len(output_columns(plan)) > 1:
        plan = Project(plan, (column,), (Ref(column.id, column.type),))
    return Subquery(SubqueryKind.SCALAR, plan, (), column.type)


def _has_one_row(plan: Plan) -> bool:
    match plan:
        case Project() | Sort() | DistinctRows() | DistinctOn() | Window():
            return _has_one_row(plan.input)
        case Limit() if _has_one_row(plan.input):
            if plan.offset is not None or not isinstance(plan.limit, Const) or not plan.limit.value:
                raise unsupported("LIMIT or OFFSET of one row in a subquery")
            return True
        case GroupBy():
            return not plan.keys and plan.sets is None
        case _:
            return False
