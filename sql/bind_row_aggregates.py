"""Aggregates of whole rows, json_agg(t) and count(t), as they are and over windows."""

from collections.abc import Sequence
from typing import Final

from pglast import ast

from sql.bind_json_rows import TAKING_ROWS, is_row, row_argument
from sql.bind_rows import counted_row
from sql.binding import Binding
from sql.plan import Expr
from sql.scope import Scope
from sql.syntax import Node, is_a

_OF_ROWS: Final = "json_agg.rows"
"""json_agg() of rows, which stand on lines of their own."""


def aggregated(binding: Binding, scope: Scope, call: Node, arg: Node) -> Expr:
    """An argument of an aggregate's call; rows with DISTINCT are refused as any other row is."""
    row = None
    name = call.funcname[-1].sval
    if name in TAKING_ROWS and not call.agg_distinct:
        row = row_argument(binding, scope, arg)
    elif name == "count" and not call.agg_distinct:
        row = counted_row(binding, scope, arg)
    return binding.expression(scope, arg) if row is None else row


def chosen_name(call: Node, exprs: Sequence[Expr]) -> str:
    """By which name the rows of the function table are looked for."""
    name: str = call.funcname[-1].sval
    rows = exprs and is_row(exprs[0]) and is_a(call.args[0], ast.RowExpr, ast.ColumnRef)
    # What row_to_json(t) has made is json like any other.
    return _OF_ROWS if name == "json_agg" and rows else name
