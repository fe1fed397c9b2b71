"""Refuse plans that are nested too deeply (54001), before anything recursive touches them."""

from typing import Final

from sql.errors import statement_too_complex
from sql.plan.nodes import Plan
from sql.plan.traverse import inputs

PLAN_DEPTH_MAX: Final = 150
"""Levels of plan nodes. Each costs a few frames of Python's stack, and more of the engine's."""


def check_depth(plan: Plan) -> None:
    """Raises 54001 for a plan that is nested too deeply; works without recursion."""
    level: list[Plan] = [plan]
    depth = 0
    while level:
        depth += 1
        if depth > PLAN_DEPTH_MAX:
            raise statement_too_complex()
        level = [below for node in level for below in inputs(node)]
