"""Find out why a view's query is not updatable (view_query_is_auto_updatable)."""

from collections.abc import Iterator, Sequence
from typing import Final

from pglast import ast
from pglast.enums import SetOperation

from sql.binder.resolve.function_choice import returns_set
from sql.functions.table import FunctionKind, functions
from sql.parser.syntax import Node, is_a, string_values, tree_nodes


def _containing(what: str) -> str:
    return f"Views containing {what} are not automatically updatable."


def _is_aggregate(call: Node) -> bool:
    rows = functions(_name(call))
    return not call.over and bool(rows) and rows[0].kind is FunctionKind.AGGREGATE


def _name(call: Node) -> str:
    return string_values(call.funcname)[-1]


NO_SINGLE_RELATION: Final = (
    "Views that do not select from a single table or view are not automatically updatable."
)


def _own_parts(node: Node) -> Iterator[Node]:
    """Without those of subqueries, which have aggregates and sets of their own."""
    inner = {
        id(part)
        for sub in tree_nodes(node)
        if is_a(sub, ast.SubLink)
        for part in tree_nodes(sub.subselect)
    }
    return (part for part in tree_nodes(node) if id(part) not in inner)


def not_updatable_reasons(tree: Node) -> Iterator[str]:
    """The reasons, except those of single columns, in PostgreSQL's order."""
    if tree.distinctClause:
        yield _containing("DISTINCT")
    if tree.groupClause:
        yield _containing("GROUP BY")
    if tree.havingClause:
        yield _containing("HAVING")
    if tree.op != SetOperation.SETOP_NONE:
        yield _containing("UNION, INTERSECT, or EXCEPT")
    if tree.withClause:
        yield _containing("WITH")
    if tree.limitCount or tree.limitOffset:
        yield _containing("LIMIT or OFFSET")
    for what in row_changing_calls(tree):
        yield f"Views that return {what} are not automatically updatable."
    items: Sequence[Node] = tree.fromClause or ()
    if len(items) == 1 and is_a(items[0], ast.RangeTableSample):
        yield _containing("TABLESAMPLE")
    if len(items) != 1 or not is_a(items[0], ast.RangeVar):
        yield NO_SINGLE_RELATION


def row_changing_calls(tree: Node) -> Iterator[str]:
    """The kinds of target-list calls that change the number of rows: aggregates, windows, sets."""
    calls = [part for part in _own_parts(tree.targetList or ()) if is_a(part, ast.FuncCall)]
    if any(_is_aggregate(call) for call in calls):
        yield "aggregate functions"
    if any(call.over for call in calls):
        yield "window functions"
    if any(returns_set(_name(call)) for call in calls):
        yield "set-returning functions"
