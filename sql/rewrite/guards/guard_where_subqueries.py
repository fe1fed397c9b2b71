"""Guard a subquery in WHERE or HAVING by the plain conditions beside it, for Spark.

    where t.id < 3 and (select max(10/u.v) from u where u.k = t.k) > t.w
      ─▶  .. and (select max(case when t.id < 3 then 10/u.v end) from u where u.k = t.k) > t.w

Spark evaluates all conditions at once, and computes the subquery for all rows that they are
evaluated for.

INVARIANTS
  W1  PostgreSQL evaluates correlated scalar subqueries behind all other conditions of the same
      relations (A3 of `lazy_init_plans.py`): the plain conditions that cannot fail guard them.

Not here: the guards themselves, and which subqueries take one on Spark (S4 of
`guard_branch_subqueries.py`).
"""

from collections.abc import Sequence

from sql.plan.conditions import conjunction, flatten_conjuncts
from sql.plan.nodes import ColumnId, Expr, Filter, Plan
from sql.plan.traverse import column_ids, has_subquery, rewrite_queries
from sql.rewrite.guard_expressions import is_harmless
from sql.rewrite.guards.guard_branch_subqueries import guarded_by_conditions
from sql.rewrite.guards.guard_where_conditions import columns_by_relation
from sql.rewrite.plan_facts import PlanFacts


def guard_where_subqueries(plan: Plan, facts: PlanFacts) -> Plan:
    """The plan with such subqueries guarded (W1)."""
    return _plan(plan) if facts.has_subquery else plan


def _plan(plan: Plan) -> Plan:
    made = rewrite_queries(plan, _plan)
    return _guarded(made) if isinstance(made, Filter) else made


def _guarded(plan: Filter) -> Filter:
    parts = flatten_conjuncts(plan.predicate)
    guards = [part for part in parts if is_harmless(part)]
    if not guards or not any(map(has_subquery, parts)):
        return plan
    tables = list(columns_by_relation(plan.input))
    told = [
        guarded_by_conditions(part, _beside(part, guards, tables), by_key=True) for part in parts
    ]
    return Filter(plan.input, conjunction(told))


def _beside(
    part: Expr, guards: Sequence[Expr], tables: Sequence[frozenset[ColumnId]]
) -> Sequence[Expr]:
    """Those of the guards that speak of no other relation than the part."""
    own = _used(part, tables)
    return [guard for guard in guards if _used(guard, tables) <= own]


def _used(part: Expr, tables: Sequence[frozenset[ColumnId]]) -> set[int]:
    used = set(column_ids(part))
    return {place for place, table in enumerate(tables) if not table.isdisjoint(used)}
