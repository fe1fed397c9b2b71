"""Which views PostgreSQL would not write through either, and why (view_query_is_auto_updatable).

Writing through the others is not done here: 0A000.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from pglast import ast
from pglast.enums import SetOperation

from sql.bind_from import find_view
from sql.bind_sets import returns_set
from sql.bind_views import view_tree
from sql.binding import Binding
from sql.catalog import Catalog
from sql.catalog_objects import ViewDefinition
from sql.column_expressions import parts
from sql.errors import SqlError, not_supported
from sql.functions import FunctionKind, functions
from sql.syntax import Node, at, is_a, strings

_HINTS: Final = {
    "insert into": ("inserting into", "INSERT"),
    "update": ("updating", "UPDATE"),
    "delete from": ("deleting from", "DELETE"),
}


def refuse_view(binding: Binding, relation: Node, verb: str) -> None:
    """Raises 55000, or 0A000, if a statement that changes rows names a view."""
    view = find_view(binding, relation)
    while view is not None:
        reason = next(_reasons(view_tree(view.text)), None)
        if reason is not None:
            doing, event = _HINTS[verb]
            hint = (
                f"To enable {doing} the view, provide an INSTEAD OF {event} trigger or an "
                f"unconditional ON {event} DO INSTEAD rule."
            )
            raise SqlError("55000", f'cannot {verb} view "{view.name}"', detail=reason, hint=hint)
        base = _base(binding.context.catalog, view)
        if base is None:
            raise not_supported("changing the rows of a view", at(relation.location))
        view = base


def _base(catalog: Catalog, view: ViewDefinition) -> ViewDefinition | None:
    """The view that it selects from, if it is one."""
    used = {relation[2] for relation in view.relations}
    return next((other for other in catalog.views() if other.oid in used), None)


def _reasons(tree: Node) -> Iterator[str]:
    """In PostgreSQL's order."""
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
    calls = [part for part in parts(tree.targetList or ()) if is_a(part, ast.FuncCall)]
    for what, found in (
        ("aggregate functions", any(_is_aggregate(call) for call in calls)),
        ("window functions", any(call.over for call in calls)),
        ("set-returning functions", any(returns_set(_name(call)) for call in calls)),
    ):
        if found:
            yield f"Views that return {what} are not automatically updatable."
    items: Sequence[Node] = tree.fromClause or ()
    if len(items) == 1 and is_a(items[0], ast.RangeTableSample):
        yield _containing("TABLESAMPLE")
    if len(items) != 1 or not is_a(items[0], ast.RangeVar):
        what = "do not select from a single table or view"
        yield f"Views that {what} are not automatically updatable."
    if not any(is_a(target.val, ast.ColumnRef) for target in tree.targetList or ()):
        yield "Views that have no updatable columns are not automatically updatable."


def _containing(what: str) -> str:
    return f"Views containing {what} are not automatically updatable."


def _name(call: Node) -> str:
    return strings(call.funcname)[-1]


def _is_aggregate(call: Node) -> bool:
    rows = functions(_name(call))
    return not call.over and bool(rows) and rows[0].kind is FunctionKind.AGGREGATE
