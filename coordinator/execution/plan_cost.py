"""Which small plans may take long all the same: by what they make of a few rows.

    select regexp_count(repeat('ab', 200000), 'a')      one row, and ten seconds

What is long comes from constants and parameters that are, or from functions that make much of
little. Anything else is short work for whatever plan fits WORK_MAX of
`compute/reference/support.py`.
"""

from typing import Final

from compute.executor import Run
from sql.plan.nodes import Const, Expr, Plan, Recursive
from sql.plan.traverse import functions, walk
from sql.types.sql_type import Value

_LENGTH_MAX: Final = 10_000
"""Characters, bytes or elements. Larger: longer stalls. Smaller: more hand-overs to a thread."""

_GROWING: Final = frozenset(
    {"repeat", "lpad", "rpad", "array_fill", "factorial", "format", "string_agg", "array_agg"}
)


def makes_much(plan: Plan) -> bool:
    """Whether the plan may take long by itself."""
    grows = any(function.name in _GROWING for function in functions(plan))
    return grows or any(map(_is_long, walk(plan)))


def is_given_much(run: Run) -> bool:
    """Whether it may by its parameters."""
    return any(map(_is_large, run.parameters))


def _is_long(node: Plan | Expr) -> bool:
    if isinstance(node, Const):
        return _is_large(node.value)
    return isinstance(node, Recursive)


def _is_large(value: Value) -> bool:
    return isinstance(value, str | bytes | list | tuple) and len(value) > _LENGTH_MAX
