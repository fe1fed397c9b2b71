"""Conditions over a row outside and a subquery at once, which Spark takes in a value only.

    exists (select from u where t.v = (select max(w) from s where s.id = u.id))
      ─▶  (select count(1) from u where t.v = (select max(w) from s where s.id = u.id)) > 0

Spark moves what a subquery says of the row outside to the join that it makes of it. A condition of
EXISTS, IN and LATERAL takes its own subqueries with it, to where their rows are not: Spark fails
then, or finds several rows (21000) where there is one.

INVARIANTS
  X1  as a value, EXISTS and IN answer the same; LATERAL has no such form, and its rows carry the
      columns (`carry_outer_columns.py`).
"""

from collections.abc import Set as AbstractSet

from sql.plan.nodes import ColumnId, Expr, Filter, Join, Plan, SubqueryKind
from sql.plan.renumbering import free_columns
from sql.plan.traverse import column_ids, conjuncts, plan_nodes, subqueries


def is_mixed(plan: Plan) -> bool:
    """Whether the plan of a subquery has such a condition."""
    outside = free_columns(plan)
    return bool(outside) and any(
        mixes(part, outside) for node in plan_nodes(plan) for part in conditions(node)
    )


def conditions(plan: Plan) -> tuple[Expr, ...]:
    """The parts of the condition of a node."""
    if isinstance(plan, Filter):
        return conjuncts(plan.predicate)
    if isinstance(plan, Join) and plan.condition is not None:
        return conjuncts(plan.condition)
    return ()


def mixes(part: Expr, outside: AbstractSet[ColumnId]) -> bool:
    """Whether it is about columns outside and a subquery at once."""
    if outside.isdisjoint(column_ids(part)):
        return False
    return any(
        inner.kind is not SubqueryKind.SCALAR or free_columns(inner.plan)
        for inner in subqueries(part)
    )
