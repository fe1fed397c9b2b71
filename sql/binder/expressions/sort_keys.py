"""ORDER BY entries of aggregates and windows, and the direction of any ORDER BY entry."""

from pglast.enums import SortByDir, SortByNulls

from sql.binder.resolve.coercion import bind_settled
from sql.binder.state import Binding, Scope
from sql.errors import not_supported
from sql.parser.syntax import Node, node_position, offset_to_position
from sql.plan.nodes import SortKey
from sql.types.comparability import check_ordering


def expression_sort_key(binding: Binding, scope: Scope, item: Node) -> SortKey:
    """An entry that is always an expression, never the name or number of a target (SQL99)."""
    expr = bind_settled(binding, scope, item.node)
    check_ordering(expr.type, node_position(item.node))
    return SortKey(expr, *sort_direction(item))


def argument_sort_key(binding: Binding, scope: Scope, item: Node) -> SortKey:
    """An entry that is also an argument of the aggregate: a literal stays untyped."""
    expr = binding.expression(scope, item.node)
    check_ordering(expr.type, node_position(item.node))
    return SortKey(expr, *sort_direction(item))


def sort_direction(item: Node) -> tuple[bool, bool]:
    """DESC and NULLS FIRST of a SortBy, with PostgreSQL's defaults."""
    if item.sortby_dir == SortByDir.SORTBY_USING:
        raise not_supported("ORDER BY .. USING", offset_to_position(item.location))
    descending = item.sortby_dir == SortByDir.SORTBY_DESC
    if item.sortby_nulls == SortByNulls.SORTBY_NULLS_DEFAULT:
        return descending, descending
    return descending, item.sortby_nulls == SortByNulls.SORTBY_NULLS_FIRST
