"""Move join conditions with outer references to places where Spark resolves them.

    t left join lateral (..) u on t.k = u.k
      ─▶  t left join lateral (select * from (..) u where t.k = u.k) u on true
    (select a.id + t.k from t join u on u.k = a.k and t.v = u.v)
      ─▶  (select a.id + t.k from t join u on t.v = u.v where u.k = a.k)

Spark copies a WITH query that is read twice, with new columns. It does not rename the columns of a
lateral side in the join's condition, and fails with "Resolved attribute(s) missing". Nor does it
resolve the outer row of a subquery there. In the condition of an inner join it leaves the outer row
as it is if something else in the subquery refers to that, too: "Cannot evaluate expression: outer".

INVARIANTS
  L1  the rows are the same: a condition of a left join rules out rows of its right side only, one
      of an inner join rules out pairs.

Not here: lateral inner joins, whose conditions go to WHERE anyway (`emit/plans.py`).
"""

from dataclasses import replace

from sql.plan.conditions import conjunction, filter_plan, flatten_conjuncts
from sql.plan.nodes import ColumnId, Const, Expr, Filter, Join, JoinKind, Plan, With, output_columns
from sql.plan.renumbering import expression_columns
from sql.plan.traverse import has_subquery, rewrite_queries
from sql.rewrite.plan_facts import PlanFacts
from sql.rewrite.subqueries.lateral_set_functions import is_unconditional_left_join
from sql.types.sql_type import BOOL


def place_join_conditions(plan: Plan, facts: PlanFacts) -> Plan:
    """The plan with the conditions of such joins moved (L1)."""
    return _plan(plan, in_with=False) if facts.has_outer_rows else plan


def _plan(plan: Plan, *, in_with: bool) -> Plan:
    """`in_with`: it is part of a WITH query."""

    def below(part: Plan) -> Plan:
        return _plan(part, in_with=in_with)

    if isinstance(plan, With):
        definition = _plan(plan.definition, in_with=True)
        return replace(plan, definition=definition, input=below(plan.input))
    made = rewrite_queries(plan, below)
    if not isinstance(made, Join) or made.condition is None:
        return made
    known = {column.id for side in (made.left, made.right) for column in output_columns(side)}
    if made.kind is JoinKind.INNER and not made.lateral:
        return _with_filter(made, made.condition, known)
    is_inside = in_with or not known.issuperset(expression_columns(made.condition))
    if made.kind is JoinKind.LEFT and made.lateral and is_inside:
        return _with_condition_inside(made, made.condition)
    return made


def _with_filter(plan: Join, condition: Expr, known: set[ColumnId]) -> Plan:
    parts = flatten_conjuncts(condition)
    outside = [part for part in parts if not known.issuperset(expression_columns(part))]
    if not outside:
        return plan
    rest = [part for part in parts if part not in outside]
    kind = JoinKind.INNER if rest else JoinKind.CROSS
    return filter_plan(
        replace(plan, kind=kind, condition=conjunction(rest) if rest else None), outside
    )


def _with_condition_inside(plan: Join, condition: Expr) -> Join:
    if is_unconditional_left_join(plan) or has_subquery(condition):
        return plan
    return replace(plan, right=Filter(plan.right, condition), condition=Const(True, BOOL))
