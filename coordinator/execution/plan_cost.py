"""Detect small plans that may run long: large constants or parameters, functions that grow data.

    select regexp_count(repeat('ab', 200000), 'a')      one row, and ten seconds

Long work comes from long constants and parameters, or from functions that make large values of
small ones. Anything else is short work for every plan that fits WORK_MAX of
`compute/reference/support.py`.
"""

from typing import Final

from compute.executor import Run
from compute.plan_nodes import nodes
from sql.functions.table import Function
from sql.plan.nodes import Const, Plan, Recursive
from sql.types.sql_type import Value

_LENGTH_MAX: Final = 10_000
"""Characters, bytes or elements. Larger: longer stalls. Smaller: more hand-overs to a thread."""

_GROWING: Final = frozenset(
    {"repeat", "lpad", "rpad", "array_fill", "factorial", "format", "string_agg", "array_agg"}
)


def makes_much(plan: Plan) -> bool:
    """Whether the plan may take long by itself."""
    return any(_is_long(node) for node in nodes(plan))


def is_given_much(run: Run) -> bool:
    """Whether a run may take long because of its parameters."""
    return any(map(_is_large, run.parameters))


def _is_long(node: object) -> bool:
    match node:
        case Const():
            return _is_large(node.value)
        case Function():
            return node.name in _GROWING
        case _:
            return isinstance(node, Recursive)


def _is_large(value: Value) -> bool:
    return isinstance(value, str | bytes | list | tuple) and len(value) > _LENGTH_MAX
