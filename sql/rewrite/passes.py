"""Run the passes of an engine over a plan, one after the other.

    plan ─▶ facts_of ─┐
      └─▶ pass ─▶ plan ─▶ pass ─▶ .. ─▶ plan        every pass gets the same facts (F1)

INVARIANTS
  P1  a pass leaves a plan's columns and their order as they are.
  P2  a pass that adds columns takes their ids from a range of its own (`column_ids.py`), so it runs
      at most once in an emission.

Not here: which passes an engine runs (`sql/emit/spark/passes.py`, `sql/emit/duckdb/passes.py`).
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from sql.plan.nodes import Plan
from sql.rewrite.plan_facts import PlanFacts, facts_of

Pass: TypeAlias = Callable[[Plan, PlanFacts], Plan]
"""Rewrites a plan. The facts are those of the plan that the first pass was given."""


def apply_passes(plan: Plan, passes: Sequence[Pass]) -> Plan:
    """The plan as the last of these passes leaves it."""
    facts = facts_of(plan)
    for rewrite in passes:
        plan = rewrite(plan, facts)
    return plan
