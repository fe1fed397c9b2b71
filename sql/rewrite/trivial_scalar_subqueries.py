"""Recognise `(SELECT value [WHERE condition])`, which is an expression over the outer row."""

from dataclasses import replace

from sql.plan.nodes import Case, Const, Expr, Filter, Project, Subquery, SubqueryKind, Values
from sql.plan.traverse import is_volatile_plan


def trivial_subquery_value(expr: Subquery) -> Expr | None:
    """The expression that is equal to the subquery; None for other subqueries and volatile ones."""
    plan = expr.plan
    if expr.kind is not SubqueryKind.SCALAR or not isinstance(plan, Project):
        return None
    rows = plan.input.input if isinstance(plan.input, Filter) else plan.input
    if not isinstance(rows, Values) or rows.columns or is_volatile_plan(plan):
        return None
    if len(rows.rows) != 1:
        return None
    value = plan.exprs[0]
    if not isinstance(plan.input, Filter):
        return value
    return Case(((plan.input.predicate, value),), Const(None, value.type), value.type)


def with_trivial_subquery_value(expr: Subquery, value: Expr) -> Subquery:
    """Such a subquery with another value."""
    assert isinstance(expr.plan, Project), "it is one, by `trivial_subquery_value`"
    return replace(expr, plan=replace(expr.plan, exprs=(value,)))
