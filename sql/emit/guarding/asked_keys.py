"""What may fail in a subquery is computed of rows that some row outside asks for: Spark computes it
of all, and then looks for the row's.

    (select sum(10/u.v) from u where u.k = t.k)
      ─▶  (select sum(10/u.v) from u where coalesce(u.k, u.k) = t.k)

Spark takes what says that a column is equal to one outside to the join that it makes of a subquery,
and groups all rows by it. An expression it leaves where it is: there it joins the distinct keys of
the rows outside, by the expression, before anything is computed of the rows.

INVARIANTS
  K1  only subqueries that may fail otherwise than by overflow are changed: the keys outside are
      made once more for it.
"""

from collections.abc import Set as AbstractSet
from dataclasses import replace

from sql.emit.guarding.guarded_subqueries import plan_may_fail
from sql.plan import (
    Call,
    Coalesce,
    ColumnId,
    ColumnRef,
    Expr,
    Filter,
    Plan,
    Subquery,
)
from sql.renumbering import free_columns
from sql.traverse import (
    column_ids,
    conjuncts,
    has_subquery,
    rewritten_node,
    with_children,
    with_inputs,
)


def with_asked_keys(plan: Plan) -> Plan:
    """The plan with such subqueries over the keys that are asked for (K1)."""

    def within(expr: Expr) -> Expr:
        if not isinstance(expr, Subquery):
            return with_children(expr, within) if has_subquery(expr) else expr
        made = replace(expr, args=tuple(map(within, expr.args)), plan=with_asked_keys(expr.plan))
        return _asking(made)

    return rewritten_node(with_inputs(plan, with_asked_keys), within)


def _asking(expr: Subquery) -> Subquery:
    if not plan_may_fail(expr.plan, by_overflow=False):
        return expr
    outside = free_columns(expr.plan)
    return replace(expr, plan=_by_expressions(expr.plan, outside)) if outside else expr


def _by_expressions(plan: Plan, outside: AbstractSet[ColumnId]) -> Plan:
    """The plan in which no condition says that a column is equal to something of these."""

    def told(part: Expr) -> Expr:
        if not isinstance(part, Call) or part.function.name != "=":
            return part
        own = [outside.isdisjoint(column_ids(arg)) for arg in part.args]
        if sorted(own) != [False, True]:
            return part
        return replace(part, args=tuple(map(_as_expression, part.args, own)))

    def within(expr: Expr) -> Expr:
        return with_children(expr, told) if len(conjuncts(expr)) > 1 else told(expr)

    below = with_inputs(plan, lambda part: _by_expressions(part, outside))
    return rewritten_node(below, within) if isinstance(below, Filter) else below


def _as_expression(expr: Expr, own: bool) -> Expr:
    return Coalesce((expr, expr), expr.type) if own and isinstance(expr, ColumnRef) else expr
