"""`(SELECT value)`: a subquery that is nothing but an expression of the row outside."""

from dataclasses import replace

from sql.plan import Expr, Project, Subquery, SubqueryKind, Values
from sql.traverse import is_volatile_plan


def only_value(expr: Subquery) -> Expr | None:
    """The value of `(SELECT value)`, which is the same without SELECT unless it is volatile."""
    plan = expr.plan
    if expr.kind is not SubqueryKind.SCALAR or not isinstance(plan, Project):
        return None
    if not isinstance(plan.input, Values) or plan.input.columns or is_volatile_plan(plan):
        return None
    return plan.exprs[0] if len(plan.input.rows) == 1 else None


def of_value(expr: Subquery, value: Expr) -> Subquery:
    """Such a subquery with another value."""
    assert isinstance(expr.plan, Project), "it is one, by `only_value`"
    return replace(expr, plan=replace(expr.plan, exprs=(value,)))
