"""Detect small plans that may run long: large constants or parameters, functions that grow data.

    select regexp_count(repeat('ab', 200000), 'a')      one row, and ten seconds

Long work comes from long constants and parameters, or from functions that make large values of
small ones. Functions of long stored values come beside (`computed_values.py`). Anything else is
short work for every plan that fits WORK_MAX of `compute/reference/support.py`.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from compute.computed_values import computes_much
from sql.plan.constant_items import ConstantItems, ConstantRows
from sql.plan.constant_rows import ConstantWhens
from sql.plan.nodes import Case, Const, Expr, InList, InRows, Plan, Recursive, Values
from sql.plan.traverse import walk
from sql.types.sql_type import Value

_LENGTH_MAX: Final = 10_000
"""Characters, bytes or elements. Larger: longer stalls. Smaller: more hand-overs to a thread."""

_SMALL: Final = frozenset({int, bool, float, Decimal, type(None)})


def may_run_long(plan: Plan) -> bool:
    """Whether the plan may take long by itself."""
    return computes_much(plan) or any(map(_is_long, walk(plan)))


def has_large_parameters(parameters: Sequence[Value]) -> bool:
    """Whether a run may take long because of its parameters."""
    return any(map(is_large, parameters))


def _is_long(node: Plan | Expr) -> bool:
    if isinstance(node, Const):
        return is_large(node.value)
    if isinstance(node, InList) and isinstance(node.items, ConstantItems):
        return _are_long(node.items)
    if isinstance(node, Case) and isinstance(node.whens, ConstantWhens):
        return _are_long(node.whens.keys) or _are_long(node.whens.results)
    if isinstance(node, InRows):
        lists = [column for column in node.columns if isinstance(column, ConstantItems)]
        return any(map(_are_long, lists))
    if isinstance(node, Values) and isinstance(node.rows, ConstantRows):
        return any(map(_are_long, node.rows.columns))
    return isinstance(node, Recursive)


def _are_long(items: ConstantItems) -> bool:
    return not items.kinds <= _SMALL and any(map(is_large, items.values))


def is_large(value: Value) -> bool:
    """Whether work on a value may take long."""
    return isinstance(value, str | bytes | list | tuple) and len(value) > _LENGTH_MAX
