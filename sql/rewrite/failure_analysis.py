"""Tell whether running a subquery or a plan may end in an error, as far as its form shows.

Not here: whether an expression may fail for a row (`guard_expressions.py`).
"""

from typing import Final

from sql.plan.nodes import (
    Aggregate,
    Const,
    Expr,
    Filter,
    GroupBy,
    Limit,
    Plan,
    Project,
    Sort,
    Subquery,
    SubqueryKind,
    Values,
)
from sql.plan.renumbering import free_columns
from sql.plan.traverse import inputs, plan_expressions, subqueries
from sql.rewrite.guard_expressions import may_fail

ONLY_VALUE: Final = "only_value(any)"


def has_failing_subquery(expr: Expr, *, by_overflow: bool = True) -> bool:
    """Whether the expression has a subquery that may fail for rows that do not demand it."""
    return any(
        any(may_fail(arg, by_overflow=by_overflow) for arg in inner.args)
        or subquery_may_fail(inner, by_overflow=by_overflow)
        for inner in subqueries(expr)
    )


def subquery_may_fail(expr: Subquery, *, by_overflow: bool = True) -> bool:
    """Whether running the subquery may end in an error."""
    return may_have_several_rows(expr) or plan_may_fail(expr.plan, by_overflow=by_overflow)


def plan_may_fail(plan: Plan, *, by_overflow: bool = True, by_several: bool = True) -> bool:
    """Whether something that the plan computes may fail. `by_several`: also a scalar subquery that
    refers to its rows, because it has several rows (21000).
    """
    if by_several and isinstance(plan, GroupBy) and any(map(is_only_value, plan.aggregates)):
        return True
    exprs = plan_expressions(plan)
    inner = [found for expr in exprs for found in subqueries(expr)]
    if by_several and any(
        may_have_several_rows(expr) and free_columns(expr.plan) for expr in inner
    ):
        return True
    plans = [*inputs(plan), *(expr.plan for expr in inner)]
    return any(may_fail(expr, by_overflow=by_overflow) for expr in exprs) or any(
        plan_may_fail(part, by_overflow=by_overflow, by_several=by_several) for part in plans
    )


def may_have_several_rows(expr: Subquery) -> bool:
    """Whether it is a scalar subquery that may have more than one row (21000)."""
    return expr.kind is SubqueryKind.SCALAR and not _is_one_row(expr.plan)


def is_only_value(call: Aggregate) -> bool:
    """Whether the aggregate fails for several rows (`aggregate_scalar_subqueries.py`)."""
    return call.function.id == ONLY_VALUE


def _is_one_row(plan: Plan) -> bool:
    """Whether the plan has one row at most, by its form."""
    if isinstance(plan, Project | Sort | Filter):
        return _is_one_row(plan.input)
    if isinstance(plan, Limit):
        return not plan.ties and isinstance(plan.limit, Const) and plan.limit.value in (0, 1)
    if isinstance(plan, Values):
        return len(plan.rows) < 2
    return isinstance(plan, GroupBy) and not plan.keys and plan.sets is None
