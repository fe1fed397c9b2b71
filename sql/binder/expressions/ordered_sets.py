"""Ordered-set aggregates: `f(direct arguments) WITHIN GROUP (ORDER BY keys)`.

In the function table the keys come first, then the direct arguments (`Function.within`).
"""

from collections.abc import Sequence

from sql.binder.expressions.hypothetical_sets import HYPOTHETICAL_SET_FUNCTIONS
from sql.errors import SqlError, not_supported
from sql.functions.table import functions
from sql.parser.syntax import Node, offset_to_position
from sql.plan.nodes import Const, Expr, SortKey
from sql.plan.traverse import column_ids


def check_within_group(node: Node, name: str) -> None:
    """42809 for WITHIN GROUP that is missing or not allowed, if the number of arguments fits."""
    place = offset_to_position(node.location)
    rows = functions(name)
    within = any(row.within for row in rows)
    count = len(node.args or ()) + len(within_group_nodes(node))
    takes = any(count == len(row.args) or (row.variadic and count > len(row.args)) for row in rows)
    if name in HYPOTHETICAL_SET_FUNCTIONS:
        if count and not node.agg_within_group:
            message = f"WITHIN GROUP is required for ordered-set aggregate {name}"
            raise SqlError("42809", message, place)
        return
    if node.agg_within_group and not within:
        if not rows:
            raise not_supported("WITHIN GROUP", place)
        if takes:
            message = f"{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP"
            raise SqlError("42809", message, place)
    if within and takes and not node.agg_within_group:
        message = f"WITHIN GROUP is required for ordered-set aggregate {name}"
        raise SqlError("42809", message, place)


def within_group_nodes(node: Node) -> Sequence[Node]:
    """The expressions behind WITHIN GROUP (ORDER BY."""
    return [item.node for item in node.agg_order] if node.agg_within_group else []


def within_group_keys(node: Node, args: Sequence[Expr], order: list[SortKey]) -> list[SortKey]:
    """The sort keys, with the expressions that the aggregate takes."""
    if not node.agg_within_group:
        return order
    if any(list(column_ids(arg)) for arg in args[len(order) :]):
        raise not_supported(
            "a direct argument that depends on columns", offset_to_position(node.location)
        )
    for arg in args[len(order) :]:
        # Also where there is no row to take a fraction of.
        if isinstance(arg, Const) and isinstance(arg.value, float) and not 0 <= arg.value <= 1:
            message = f"percentile value {arg.value:g} is not between 0 and 1"
            raise SqlError("22003", message)
    return [
        SortKey(arg, key.descending, key.nulls_first) for arg, key in zip(args, order, strict=False)
    ]
