"""A subquery in a call with FILTER is computed for the rows that are left, as in a branch of CASE.

    sum((select ..)) filter (where c)  ─▶  sum(case when c then (select ..) end) filter (where c)

INVARIANTS
  F1  only what has a subquery that may fail is changed: what becomes of other rows is never looked
      at. A volatile condition guards nothing: it would be asked twice.

Not here: arguments without subqueries (`guards.py`), and what guards the subquery in the branch
(`guarded_subqueries.py`).
"""

from dataclasses import replace

from sql.emit.guarding.presumed_failures import may_fail_for_others
from sql.plan import Aggregate, Case, Const, Expr, GroupBy, Plan, SortKey, Window, WindowCall
from sql.traverse import is_volatile_anywhere, plan_has_subquery, with_queries


def with_filtered_arguments(plan: Plan) -> Plan:
    """The plan with such calls guarded (F1)."""
    if not plan_has_subquery(plan):
        return plan
    made = with_queries(plan, with_filtered_arguments)
    if isinstance(made, GroupBy):
        return replace(made, aggregates=tuple([_aggregate(call) for call in made.aggregates]))
    if isinstance(made, Window):
        return replace(made, calls=tuple([_window(call) for call in made.calls]))
    return made


def _aggregate(call: Aggregate) -> Aggregate:
    args = tuple([_asked(arg, call.filter) for arg in call.args])
    order: list[SortKey] = [replace(key, expr=_asked(key.expr, call.filter)) for key in call.order]
    return replace(call, args=args, order=tuple(order))


def _window(call: WindowCall) -> WindowCall:
    return replace(call, args=tuple([_asked(arg, call.filter) for arg in call.args]))


def _asked(expr: Expr, condition: Expr | None) -> Expr:
    if condition is None or not may_fail_for_others(expr) or is_volatile_anywhere(condition):
        return expr
    return Case(((condition, expr),), Const(None, expr.type), expr.type)
