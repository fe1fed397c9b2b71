"""Find conditions that combine an outer column and a subquery, which Spark takes only in a value.

    exists (select from u where t.v = (select max(w) from s where s.id = u.id))
      ─▶  (select count(1) from u where t.v = (select max(w) from s where s.id = u.id)) > 0

Spark turns a subquery into a join, and moves its conditions on the outer row to that join. A
condition of EXISTS, IN and LATERAL takes its own subqueries along, to a place without their rows.
Spark then fails, or finds several rows (21000) where there is one.

INVARIANTS
  X1  as a value, EXISTS and IN answer the same. LATERAL has no such form; its rows carry the
      columns (`carry_outer_columns.py`).
"""

from collections.abc import Set as AbstractSet

from sql.plan.nodes import ColumnId, Expr, Filter, Join, Plan, SubqueryKind
from sql.plan.renumbering import free_columns
from sql.plan.traverse import column_ids, conjuncts, plan_nodes, subqueries


def has_outer_and_subquery_condition(plan: Plan) -> bool:
    """Whether the plan of a subquery has such a condition."""
    outside = free_columns(plan)
    return bool(outside) and any(
        is_outer_and_subquery_condition(part, outside)
        for node in plan_nodes(plan)
        for part in node_conditions(node)
    )


def node_conditions(plan: Plan) -> tuple[Expr, ...]:
    """The ANDed parts of a node's condition."""
    if isinstance(plan, Filter):
        return conjuncts(plan.predicate)
    if isinstance(plan, Join) and plan.condition is not None:
        return conjuncts(plan.condition)
    return ()


def is_outer_and_subquery_condition(part: Expr, outside: AbstractSet[ColumnId]) -> bool:
    """Whether the condition refers to outer columns and has a subquery."""
    if outside.isdisjoint(column_ids(part)):
        return False
    return any(
        inner.kind is not SubqueryKind.SCALAR or free_columns(inner.plan)
        for inner in subqueries(part)
    )
