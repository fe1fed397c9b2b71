"""ORDER BY entries of aggregates and windows, and the direction of any ORDER BY entry."""

from pglast.enums import SortByDir, SortByNulls

from sql.binding import Binding
from sql.coerce import settled
from sql.comparability import check_ordering
from sql.errors import not_supported
from sql.plan import SortKey
from sql.scope import Scope
from sql.syntax import Node, at, position


def sort_key(binding: Binding, scope: Scope, item: Node) -> SortKey:
    """An entry that is always an expression, never the name or number of a target (SQL99)."""
    expr = settled(binding, scope, item.node)
    check_ordering(expr.type, position(item.node))
    return SortKey(expr, *sort_direction(item))


def argument_key(binding: Binding, scope: Scope, item: Node) -> SortKey:
    """An entry that is an argument, too: a literal has no type yet."""
    expr = binding.expression(scope, item.node)
    check_ordering(expr.type, position(item.node))
    return SortKey(expr, *sort_direction(item))


def sort_direction(item: Node) -> tuple[bool, bool]:
    """DESC and NULLS FIRST of a SortBy, PostgreSQL's defaults filled in."""
    if item.sortby_dir == SortByDir.SORTBY_USING:
        raise not_supported("ORDER BY .. USING", at(item.location))
    descending = item.sortby_dir == SortByDir.SORTBY_DESC
    if item.sortby_nulls == SortByNulls.SORTBY_NULLS_DEFAULT:
        return descending, descending
    return descending, item.sortby_nulls == SortByNulls.SORTBY_NULLS_FIRST
