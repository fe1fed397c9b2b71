"""Whole rows as JSON: row_to_json(t), to_jsonb(t), json_agg(t), and ROW(..) in their place.

Rows are no values here, so that such a call is bound as what it makes of the columns.

INVARIANTS
  J1  a row that an outer join may have made up is NULL as a whole in PostgreSQL; so only a query
      over one item has rows here.
"""

from collections.abc import Sequence
from typing import Final

from pglast import ast

from sql.bind_calls import check_styles
from sql.binding import Binding
from sql.coerce import EXPLICIT, coerce, settled, zone_arguments
from sql.functions import function_by_id
from sql.plan import Call, Const, Expr
from sql.scope import Scope, find_column
from sql.syntax import Node, is_a
from sql.types import JSON, JSONB, TEXT, array_of

_FUNCTIONS: Final = frozenset({"row_to_json", "to_json", "to_jsonb"})
JSON_AGGREGATES: Final = frozenset({"json_agg", "jsonb_agg"})
_ROW: Final = "json_row(_text,any)"
ROWS_NAME: Final = "json_agg.rows"
"""json_agg() of rows, which stand on lines of their own."""


def json_of_row(binding: Binding, scope: Scope, node: Node, name: str) -> Expr | None:
    """A call that makes JSON of a row, None if it is none."""
    args: Sequence[Node] = node.args or ()
    if name not in _FUNCTIONS or len(args) != 1:
        return None
    found = row_argument(binding, scope, args[0])
    if found is None or name != "to_jsonb":
        return found
    return coerce(binding, found, args[0], JSONB, EXPLICIT)


def row_argument(binding: Binding, scope: Scope, node: Node) -> Expr | None:
    """A row as json; None for any other expression (J1)."""
    if is_a(node, ast.RowExpr):
        exprs = [settled(binding, scope, part) for part in node.args or ()]
        return _row(binding, [f"f{place}" for place in range(1, len(exprs) + 1)], exprs)
    if not is_a(node, ast.ColumnRef) or len(node.fields) != 1:
        return None
    if not is_a(node.fields[0], ast.String):
        return None
    items = scope.items
    if len(items) != 1 or items[0].name != node.fields[0].sval or items[0].whole is not None:
        return None
    if find_column(binding, scope, node.fields[0].sval, node.location) is not None:
        return None
    columns = items[0].columns
    return _row(binding, [name for name, _ in columns], [expr for _, expr in columns])


def is_row(expr: Expr) -> bool:
    """Whether an expression is the json of a row."""
    return isinstance(expr, Call) and expr.function.id == _ROW


def _row(binding: Binding, names: list[str], exprs: list[Expr]) -> Expr:
    row = function_by_id(_ROW)
    check_styles(binding, row, exprs, "json")
    keys = Const(tuple(names), array_of(TEXT))
    return Call(row, (keys, *exprs, *zone_arguments(binding, row)), JSON)
