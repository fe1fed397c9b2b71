"""What may fail in a subquery is computed of rows that some row outside asks for.

    (select sum(10/u.v) from u where u.k = t.k)
      ─▶  (select sum(10/u.v) from u where coalesce(u.k, u.k) = t.k)

Spark makes a join of a subquery: it computes the subquery for every key u.k, and joins by
`u.k = t.k`. So 10/u.v fails for keys that no row of t has. By an expression it does not: there it
joins the distinct keys t.k to u before it computes anything. `coalesce(u.k, u.k)` is an expression
when Spark looks at it; it becomes u.k again only afterwards.

INVARIANTS
  K1  only subqueries that may fail otherwise than by overflow are changed: the rows outside are
      read once more for their keys.
"""

from collections.abc import Set as AbstractSet
from dataclasses import replace

from sql.conditions import flat, joined
from sql.emit.guarding.guarded_subqueries import plan_may_fail
from sql.plan import (
    BoolOp,
    Call,
    Coalesce,
    ColumnId,
    ColumnRef,
    Distinct,
    Expr,
    Filter,
    Join,
    Plan,
    Subquery,
)
from sql.renumbering import free_columns
from sql.traverse import (
    column_ids,
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
        sides = _equal(part)
        own = [outside.isdisjoint(column_ids(side)) for side in sides]
        if sorted(own) != [False, True]:
            return part
        left, right = map(_as_expression, sides, own)
        if isinstance(part, Distinct):
            return replace(part, left=left, right=right)
        return replace(part, args=(left, right)) if isinstance(part, Call) else part

    def within(expr: Expr) -> Expr:
        return joined(BoolOp.AND, [told(part) for part in flat(expr)])

    below = with_inputs(plan, lambda part: _by_expressions(part, outside))
    return rewritten_node(below, within) if isinstance(below, Filter | Join) else below


def _equal(part: Expr) -> tuple[Expr, ...]:
    """What a condition says to be equal; nothing if it is another one."""
    if isinstance(part, Call) and part.function.name == "=":
        return part.args
    return (part.left, part.right) if isinstance(part, Distinct) and part.negated else ()


def _as_expression(expr: Expr, own: bool) -> Expr:
    return Coalesce((expr, expr), expr.type) if own and isinstance(expr, ColumnRef) else expr
