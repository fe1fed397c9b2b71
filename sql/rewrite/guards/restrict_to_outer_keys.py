"""Compute what may fail in a correlated subquery only for keys that outer rows have, on Spark.

    (select sum(10/u.v) from u where u.k = t.k)
      ─▶  (select sum(10/u.v) from u where coalesce(u.k, u.k) = t.k)

Spark turns a subquery into a join: it computes the subquery for every key u.k, and joins by
`u.k = t.k`. So 10/u.v fails for keys that no row of t has. With an expression in place of u.k,
Spark joins the distinct keys t.k to u before it computes anything. `coalesce(u.k, u.k)` is an
expression when Spark looks at it; it becomes u.k again only afterwards.

INVARIANTS
  K1  only subqueries and lateral joins that may fail otherwise than by overflow are changed: Spark
      reads the outer rows once more for their keys.
"""

from dataclasses import replace

from sql.functions.table import FunctionKind
from sql.plan.conditions import connect_conditions, equality_sides, flatten_conjuncts
from sql.plan.nodes import BoolOp, Call, Coalesce, ColumnRef, Distinct, Expr, Filter, Join, Plan
from sql.plan.traverse import column_ids, rewrite_inputs, rewrite_node
from sql.rewrite.guards.correlated_failures import OuterColumns, rewrite_failing_correlated_queries
from sql.rewrite.plan_facts import PlanFacts


def restrict_to_outer_keys(plan: Plan, facts: PlanFacts) -> Plan:
    """The plan, which computes such subqueries and lateral joins for keys of outer rows (K1)."""
    return rewrite_failing_correlated_queries(plan, facts, _by_expressions)


def as_opaque_expression(expr: Expr) -> Expr:
    """A column, or a cast of one, as an expression that it is equal to."""
    return Coalesce((expr, expr), expr.type) if is_column_or_cast(expr) else expr


def is_column_or_cast(expr: Expr) -> bool:
    """Whether Spark treats it as a column: a cast of one counts, too."""
    while isinstance(expr, Call) and expr.function.kind is FunctionKind.CAST:
        expr = expr.args[0]
    return isinstance(expr, ColumnRef)


def _by_expressions(plan: Plan, outside: OuterColumns) -> Plan:
    """The plan in which no condition says that a column is equal to something of these."""

    def told(part: Expr) -> Expr:
        sides = equality_sides(part)
        own = [outside.isdisjoint(column_ids(side)) for side in sides]
        if sorted(own) != [False, True]:
            return part
        left, right = (
            as_opaque_expression(side) if its_own else side
            for side, its_own in zip(sides, own, strict=True)
        )
        if isinstance(part, Distinct):
            return replace(part, left=left, right=right)
        return replace(part, args=(left, right, *part.args[2:])) if isinstance(part, Call) else part

    def within(expr: Expr) -> Expr:
        return connect_conditions(BoolOp.AND, [told(part) for part in flatten_conjuncts(expr)])

    below = rewrite_inputs(plan, lambda part: _by_expressions(part, outside))
    return rewrite_node(below, within) if isinstance(below, Filter | Join) else below
