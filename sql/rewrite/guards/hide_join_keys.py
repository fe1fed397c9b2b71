"""Hide equi-join columns from Spark, which would infer a failing condition on the other side.

    t join u on t.id = u.v where 60/t.id > 1  ─▶  t join u on coalesce(t.id, t.id) = u.v ..

From `t.id = u.v` Spark infers `60/u.v > 1`, which it evaluates for all rows of u. It infers nothing
from an expression, but joins by it.

INVARIANTS
  H1  a column is hidden only if a condition on it may fail otherwise than by overflow.

Not here: the keys that a subquery is joined by (`restrict_to_outer_keys.py`).
"""

from collections.abc import Iterator
from dataclasses import replace

from sql.plan.conditions import conjunction
from sql.plan.nodes import Call, ColumnId, ColumnRef, Expr, Filter, Join, Plan, Project, Subquery
from sql.plan.traverse import (
    Rewrite,
    column_ids,
    conjuncts,
    plan_nodes,
    rewrite_node,
    rewrite_queries,
)
from sql.rewrite.guard_expressions import may_fail
from sql.rewrite.guards.restrict_to_outer_keys import as_opaque_expression, is_column_or_cast
from sql.rewrite.plan_facts import PlanFacts

_Ids = frozenset[ColumnId]


def hide_join_keys(plan: Plan, facts: PlanFacts) -> Plan:
    """The plan with such keys hidden (H1)."""
    return _query(plan) if facts.may_fail(by_overflow=False) else plan


def _query(plan: Plan) -> Plan:
    """A query with the keys of its own joins hidden, and those of its subqueries."""
    asked = set(_failing(plan))
    return _hidden(plan, _by_all_names(asked, plan) if asked else frozenset())


def _hidden(plan: Plan, asked: _Ids) -> Plan:
    def subquery(expr: Subquery, within: Rewrite) -> Subquery:
        return replace(expr, args=tuple(map(within, expr.args)), plan=_query(expr.plan))

    made = rewrite_queries(plan, lambda part: _hidden(part, asked), subquery)
    if not asked or not isinstance(made, Filter | Join):
        return made
    return rewrite_node(made, lambda condition: _told(condition, asked))


def _failing(plan: Plan) -> Iterator[ColumnId]:
    """The columns of conditions that may fail, below a join or above it."""
    for node in plan_nodes(plan):
        if isinstance(node, Filter | Join):
            condition = node.predicate if isinstance(node, Filter) else node.condition
            for part in () if condition is None else conjuncts(condition):
                if may_fail(part, by_overflow=False):
                    yield from column_ids(part)


def _renamed(plan: Plan) -> Iterator[tuple[ColumnId, ColumnId]]:
    """Columns that are the same."""
    for node in plan_nodes(plan):
        if isinstance(node, Project):
            for column, expr in zip(node.columns, node.exprs, strict=True):
                if isinstance(expr, ColumnRef):
                    yield column.id, expr.id


def _by_all_names(asked: set[ColumnId], plan: Plan) -> _Ids:
    found, same = asked, list(_renamed(plan))
    while True:
        more = found.union(*({*pair} for pair in same if not found.isdisjoint(pair)))
        if more == found:
            return frozenset(found)
        found = more


def _told(condition: Expr, hidden: _Ids) -> Expr:
    return conjunction([_hiding(part, hidden) for part in conjuncts(condition)])


def _hiding(part: Expr, hidden: _Ids) -> Expr:
    """Of IS NOT DISTINCT FROM Spark concludes nothing."""
    if (
        not isinstance(part, Call)
        or part.function.name != "="
        or hidden.isdisjoint(column_ids(part))
    ):
        return part
    left, right, *zone = part.args
    return (
        replace(part, args=(as_opaque_expression(left), right, *zone))
        if is_column_or_cast(right)
        else part
    )
