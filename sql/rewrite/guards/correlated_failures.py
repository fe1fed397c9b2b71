"""Apply a rewrite to each correlated subquery and lateral side that may fail."""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import replace

from sql.plan.nodes import ColumnId, Join, Plan, Subquery
from sql.plan.renumbering import free_columns
from sql.plan.traverse import Rewrite, rewrite_queries
from sql.rewrite.failure_analysis import plan_may_fail
from sql.rewrite.plan_facts import PlanFacts

OuterColumns = AbstractSet[ColumnId]


def rewrite_failing_correlated_queries(
    plan: Plan, facts: PlanFacts, rewrite: Callable[[Plan, OuterColumns], Plan]
) -> Plan:
    """The plan with such subqueries and right sides of lateral joins rewritten, the innermost
    first. `rewrite` is given the outer columns. A query that can only overflow stays.
    """

    def told(query: Plan) -> Plan:
        outside = free_columns(query)
        fails = outside and plan_may_fail(query, by_overflow=False)
        return rewrite(query, outside) if fails else query

    def subquery(expr: Subquery, within: Rewrite) -> Subquery:
        return replace(expr, args=tuple(map(within, expr.args)), plan=told(node(expr.plan)))

    def node(part: Plan) -> Plan:
        made = rewrite_queries(part, node, subquery)
        if isinstance(made, Join) and made.lateral:
            return replace(made, right=told(made.right))
        return made

    return node(plan) if facts.has_outer_rows and facts.may_fail(by_overflow=False) else plan
