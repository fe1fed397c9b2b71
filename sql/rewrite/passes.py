"""Run the passes of an engine over a plan, one after the other.

    plan ─▶ facts_of ─┐
      └─▶ pass ─▶ plan ─▶ pass ─▶ .. ─▶ plan        every pass gets the same facts (F1)

    RewrittenPlans: one engine's answers, by the plan's identity

A plan that the plan cache holds is run again and again, over relations whose names change with
every commit. The passes depend on the plan alone, so they run once for it.

INVARIANTS
  P1  a pass leaves a plan's columns and their order as they are.
  P2  a pass that adds columns takes their ids from a range of its own (`column_ids.py`), so it runs
      at most once in an emission.
  P3  a plan is recognised by its identity and held, so its identity is not given to another one.

Not here: which passes an engine runs (`sql/emit/spark/passes.py`, `sql/emit/duckdb/passes.py`).
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from sql.plan.constant_rows import size_of_node
from sql.plan.nodes import Const, Plan
from sql.plan.traverse import walk
from sql.rewrite.plan_facts import PlanFacts, facts_of

REWRITTEN_MAX: Final = 500
NODES_MAX: Final = 1_000
"""Of a plan that is remembered. A longer one has many literals and is seldom run twice."""
CHARACTERS_MAX: Final = 65_536
"""In the constants of a plan that is remembered: it would keep them alive."""

Pass: TypeAlias = Callable[[Plan, PlanFacts], Plan]
"""Rewrites a plan. The facts are those of the plan that the first pass was given."""


def apply_passes(plan: Plan, passes: Sequence[Pass]) -> Plan:
    """The plan as the last of these passes leaves it."""
    facts = facts_of(plan)
    for rewrite in passes:
        plan = rewrite(plan, facts)
    return plan


class RewrittenPlans:
    """Plans as these passes leave them, each computed once. Thread-safe."""

    def __init__(self, passes: Sequence[Pass]) -> None:
        self._passes = passes
        self._lock = threading.Lock()
        self._rewritten: OrderedDict[int, tuple[Plan, Plan]] = OrderedDict()

    def of(self, plan: Plan) -> Plan:
        """See `apply_passes`."""
        with self._lock:
            known = self._rewritten.get(id(plan))
            if known is not None and known[0] is plan:
                self._rewritten.move_to_end(id(plan))
                return known[1]
        found = apply_passes(plan, self._passes)
        if _is_small(plan):
            with self._lock:
                self._rewritten[id(plan)] = plan, found
                if len(self._rewritten) > REWRITTEN_MAX:
                    self._rewritten.popitem(last=False)
        return found


def _is_small(plan: Plan) -> bool:
    """Whether a plan may be kept alive for the sake of its next run."""
    characters = 0
    for number, node in enumerate(walk(plan)):
        if isinstance(node, Const) and isinstance(node.value, str | bytes):
            characters += len(node.value)
        if size_of_node(node) > 1:
            return False
        if number >= NODES_MAX or characters > CHARACTERS_MAX:
            return False
    return True
