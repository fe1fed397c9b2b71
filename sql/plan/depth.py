"""Refuse plans that are nested too deeply (54001), before anything recursive touches them."""

from typing import Final

from sql.errors import statement_too_complex
from sql.plan.nodes import Plan
from sql.plan.traverse import inputs

PLAN_DEPTH_MAX: Final = 450
"""Levels of plan nodes. Each costs a few frames of Python's stack, and more of the engine's. A view
or a WITH query that computes and filters takes two or three.
"""

RECURSION_MAX: Final = 4_000
"""Frames of Python in a server: some 5 for a level of plans, and 6 for one of expressions. Each
takes at most 1 KiB of the stack of a thread, which has 8 MiB, if C calls it."""


def check_depth(plan: Plan) -> None:
    """Raises 54001 for a plan that is nested too deeply; works without recursion."""
    level: list[Plan] = [plan]
    depth = 0
    while level:
        depth += 1
        if depth > PLAN_DEPTH_MAX:
            raise statement_too_complex()
        level = [below for node in level for below in inputs(node)]
