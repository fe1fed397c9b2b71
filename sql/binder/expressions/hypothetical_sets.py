"""Hypothetical-set aggregates such as `rank(3) WITHIN GROUP (ORDER BY x)`, rewritten as counts.

They count the rows that would precede the hypothetical one, so every engine can compute them:

    rank          1 + count(*) FILTER (WHERE row < hypothetical)
    dense_rank    1 + the same of different keys (of rows, if there are several keys)
    percent_rank  (rank - 1) / count(*)
    cume_dist     (1 + count(*) FILTER (WHERE row <= hypothetical)) / (1 + count(*))

INVARIANTS
  H1  the conditions of the counts never stand below a NOT, so NULL may count as false.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from sql.binder.expressions.calls import operator
from sql.binder.expressions.rows import record
from sql.binder.resolve.coercion import EXPLICIT, coerce
from sql.binder.resolve.unified_types import to_common_type
from sql.binder.state import Binding
from sql.errors import SqlError, not_supported
from sql.parser.syntax import Node, offset_to_position
from sql.plan.conditions import connect_conditions
from sql.plan.nodes import BoolOp, Case, Const, Expr, IsTest, SortKey, Test
from sql.plan.traverse import column_ids
from sql.types.sql_type import BOOL, FLOAT8, INT4, INT8, format_type

HYPOTHETICAL_SET_FUNCTIONS: Final = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})
RegisterCount: TypeAlias = Callable[[Expr | None, Expr | None], Expr]
"""Registers `count(* or DISTINCT second) FILTER (WHERE first)`."""


@dataclass(frozen=True, slots=True)
class _Key:
    """One key, and what the hypothetical row has there."""

    sort: SortKey
    value: Expr


def hypothetical_set(
    binding: Binding,
    node: Node,
    directs: Sequence[Expr],
    order: Sequence[SortKey],
    filter_: Expr | None,
    count: RegisterCount,
) -> Expr:
    """The aggregate as an expression of counts."""
    name = node.funcname[-1].sval
    keys = _keys(binding, node, name, directs, order)
    before = _before(binding, keys, node)
    first = _all([before, filter_])
    match name:
        case "rank":
            return _plus_one(binding, count(first, None), node)
        case "dense_rank":
            return _plus_one(binding, _different(binding, keys, first, count, node), node)
        case "percent_rank":
            return _share(binding, count(first, None), count(filter_, None), node)
        case _:
            peers = _all([_equal(binding, key, node) for key in keys])
            upto = count(_all([_any([before, peers]), filter_]), None)
            total = _plus_one(binding, count(filter_, None), node)
            return _share(binding, _plus_one(binding, upto, node), total, node)


def _keys(
    binding: Binding, node: Node, name: str, directs: Sequence[Expr], order: Sequence[SortKey]
) -> list[_Key]:
    place = offset_to_position(node.location)
    if len(directs) != len(order):
        shown = ", ".join(
            format_type(e.type.bare()) for e in [*directs, *(key.expr for key in order)]
        )
        hint = (
            f"To use the hypothetical-set aggregate {name}, the number of hypothetical direct"
            f" arguments (here {len(directs)}) must match the number of ordering columns"
            f" (here {len(order)})."
        )
        raise SqlError("42883", f"function {name}({shown}) does not exist", place, hint=hint)
    found: list[_Key] = []
    for direct, key, arg, item in zip(directs, order, node.args, node.agg_order, strict=True):
        if any(column_ids(direct)):
            raise not_supported("a direct argument that depends on columns", place)
        nodes = [item.node, arg]
        (sorted_, value), _ = to_common_type(binding, [key.expr, direct], nodes, "WITHIN GROUP")
        found.append(_Key(SortKey(sorted_, key.descending, key.nulls_first), value))
    return found


def _before(binding: Binding, keys: Sequence[_Key], node: Node) -> Expr:
    """Whether a row stands before the hypothetical one."""
    ways: list[Expr | None] = []
    for place, key in enumerate(keys):
        equal = [_equal(binding, earlier, node) for earlier in keys[:place]]
        ways.append(_all([*equal, _smaller(binding, key, node)]))
    return _any(ways)


def _smaller(binding: Binding, key: _Key, node: Node) -> Expr:
    sort, value = key.sort, key.value
    missing = _test(Test.IS_NULL, sort.expr)
    sign = ">" if sort.descending else "<"
    compared = operator(binding, sign, [sort.expr, value], [node, node], node.location)
    if sort.nulls_first:
        return _any([compared, _all([missing, _test(Test.IS_NOT_NULL, value)])])
    present = _test(Test.IS_NOT_NULL, sort.expr)
    return _any([compared, _all([present, _test(Test.IS_NULL, value)])])


def _equal(binding: Binding, key: _Key, node: Node) -> Expr:
    sort, value = key.sort, key.value
    compared = operator(binding, "=", [sort.expr, value], [node, node], node.location)
    both = _all([_test(Test.IS_NULL, sort.expr), _test(Test.IS_NULL, value)])
    return _any([compared, both])


def _different(
    binding: Binding, keys: Sequence[_Key], before: Expr, count: RegisterCount, node: Node
) -> Expr:
    """How many different keys, NULL being one, are before."""
    if len(keys) > 1:
        return count(before, record(binding, [key.sort.expr for key in keys]))
    key = keys[0].sort.expr
    nulls = count(_all([before, _test(Test.IS_NULL, key)]), None)
    some = operator(binding, ">", [nulls, Const(0, INT8)], [node, node], node.location)
    one = Case(((some, Const(1, INT8)),), Const(0, INT8), INT8)
    return operator(binding, "+", [count(before, key), one], [node, node], node.location)


def _plus_one(binding: Binding, expr: Expr, node: Node) -> Expr:
    return operator(binding, "+", [expr, Const(1, INT4)], [node, node], node.location)


def _share(binding: Binding, part: Expr, whole: Expr, node: Node) -> Expr:
    """The quotient as a float, 0 of nothing."""
    none = operator(binding, "=", [whole, Const(0, INT8)], [node, node], node.location)
    floats = [coerce(binding, each, node, FLOAT8, EXPLICIT) or each for each in (part, whole)]
    quotient = operator(binding, "/", floats, [node, node], node.location)
    return Case(((none, Const(0.0, FLOAT8)),), quotient, FLOAT8)


def _test(test: Test, expr: Expr) -> Expr:
    return IsTest(test, expr, BOOL)


def _all(parts: Sequence[Expr | None]) -> Expr:
    return _joined(BoolOp.AND, parts)


def _any(parts: Sequence[Expr | None]) -> Expr:
    return _joined(BoolOp.OR, parts)


def _joined(op: BoolOp, parts: Sequence[Expr | None]) -> Expr:
    return connect_conditions(op, [part for part in parts if part is not None])
