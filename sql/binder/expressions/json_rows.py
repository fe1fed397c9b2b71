"""Whole rows as JSON: row_to_json(t), to_jsonb(t), json_agg(t), also over ROW(..) or a subquery.

Subqueries that yield a row are in `json_row_subqueries.py`. The call is bound as a JSON object of
the row's columns (`whole_rows.py`).
"""

from collections.abc import Sequence
from typing import Final

from pglast import ast

from sql.binder.expressions.calls import reg_value_as_text
from sql.binder.expressions.json_row_subqueries import row_of_subquery
from sql.binder.expressions.whole_rows import expanded_row_fields, whole_row
from sql.binder.resolve.coercion import EXPLICIT, bind_settled, coerce, zone_arguments
from sql.binder.resolve.styled_arguments import styled_arguments
from sql.binder.state import Binding, Scope
from sql.functions.table import function_by_id
from sql.parser.syntax import Node, copy_node, is_a, string_values
from sql.plan.nodes import Call, Const, Expr
from sql.types.sql_type import JSON, JSONB, TEXT, array_of

_FUNCTIONS: Final = frozenset({"row_to_json", "to_json", "to_jsonb"})
_OF_ARRAYS: Final = frozenset({"array_to_json", "to_json", "to_jsonb"})
ROW_TAKING_FUNCTIONS: Final = frozenset({
    "json_agg", "json_agg_strict", "jsonb_agg", "jsonb_agg_strict", "json_object_agg",
    "jsonb_object_agg", "json_build_array", "jsonb_build_array", "json_build_object",
    "jsonb_build_object",
})  # fmt: skip
"""Functions that accept a row as an argument."""
_ROW: Final = "json_row(_text,any)"


def json_of_row(binding: Binding, scope: Scope, node: Node, name: str) -> Expr | None:
    """A call that makes JSON of a row; None if it is none."""
    args: Sequence[Node] = node.args or ()
    if name in _OF_ARRAYS and args and _collects_rows(binding, scope, args[0]):
        rows = copy_node(args[0], args=(_row_to_json(args[0].args[0]),))
        return binding.expression(scope, copy_node(node, args=(rows, *args[1:])))
    if name not in _FUNCTIONS or len(args) != 1:
        return None
    found = row_argument(binding, scope, args[0])
    if found is None or name != "to_jsonb":
        return found
    return coerce(binding, found, args[0], JSONB, EXPLICIT)


def _collects_rows(binding: Binding, scope: Scope, node: Node) -> bool:
    """array_agg(t): an array of rows is no value here, one of their json is."""
    if not is_a(node, ast.FuncCall) or len(node.args or ()) != 1 or node.agg_distinct:
        return False
    return string_values(node.funcname)[-1] == "array_agg" and (
        whole_row(binding, scope, node.args[0]) is not None
    )


def _row_to_json(row: Node) -> Node:
    name = (ast.String(sval="pg_catalog"), ast.String(sval="row_to_json"))
    return ast.FuncCall(funcname=name, args=(row,), location=row.location)


def row_argument(binding: Binding, scope: Scope, node: Node) -> Expr | None:
    """A row as JSON; None for any other expression."""
    if is_a(node, ast.RowExpr):
        exprs = [
            bind_settled(binding, scope, part) for part in expanded_row_fields(binding, scope, node)
        ]
        return _row(binding, node, [f"f{place}" for place in range(1, len(exprs) + 1)], exprs)
    whole = whole_row(binding, scope, node)
    if whole is None:
        return row_of_subquery(binding, scope, node)
    return whole.or_null(binding, _row(binding, node, whole.names, whole.exprs))


def _row(binding: Binding, node: Node, names: list[str], exprs: list[Expr]) -> Expr:
    row = function_by_id(_ROW)
    shown = [reg_value_as_text(binding, expr, node) for expr in exprs]
    values = styled_arguments(binding, row, shown, "json")
    keys = Const(tuple(names), array_of(TEXT))
    return Call(row, (keys, *values, *zone_arguments(binding, row)), JSON)
