"""Aggregates whose argument is a whole row: json_agg(t), count(t), plain or over a window."""

from collections.abc import Sequence
from typing import Final

from sql.binder.expressions.json_rows import ROW_TAKING_FUNCTIONS, row_argument
from sql.binder.expressions.row_fields import is_record
from sql.binder.expressions.rows import counted_whole_row
from sql.binder.resolve.coercion import zone_arguments
from sql.binder.resolve.styled_arguments import refuse_styled_rows
from sql.binder.state import Binding, Scope
from sql.functions.table import function_by_id
from sql.parser.syntax import Node
from sql.plan.nodes import Call, Expr
from sql.types.sql_type import JSON

_OF_ROWS: Final = {"json_agg": "json_agg.rows", "json_agg_strict": "json_agg_strict.rows"}
"""JSON arrays of rows, which stand on lines of their own."""


def bind_aggregate_argument(binding: Binding, scope: Scope, call: Node, arg: Node) -> Expr:
    """An argument of an aggregate; a row with DISTINCT is bound, and refused, like any other
    row.
    """
    row = None
    name = call.funcname[-1].sval
    if name in ROW_TAKING_FUNCTIONS and not call.agg_distinct:
        row = row_argument(binding, scope, arg)
        if row is not None:
            binding.rows[id(row)] = row
    elif name == "count" and not call.agg_distinct:
        row = counted_whole_row(binding, scope, arg)
    if row is None and name in _OF_ROWS and not call.agg_distinct:
        return _row_as_json(binding, binding.expression(scope, arg))
    return binding.expression(scope, arg) if row is None else row


def _row_as_json(binding: Binding, expr: Expr) -> Expr:
    """A row that is computed, as JSON; any other expression unchanged."""
    if not is_record(expr.type):
        return expr
    refuse_styled_rows(binding, expr)
    to_json = function_by_id("row_to_json(record)")
    row = Call(to_json, (expr, *zone_arguments(binding, to_json)), JSON)
    binding.rows[id(row)] = row
    return row


def aggregate_lookup_name(binding: Binding, call: Node, exprs: Sequence[Expr]) -> str:
    """The name to look up in the function table: JSON arrays of rows have names of their own."""
    name: str = call.funcname[-1].sval
    return _OF_ROWS.get(name, name) if exprs and id(exprs[0]) in binding.rows else name
