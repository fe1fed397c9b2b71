"""Convert arguments to text in the session's styles, where a function prints them.

    SET DateStyle = 'German';  d || ' x'  ─▶  styled(d) || ' x'

INVARIANTS
  Y1  if a function makes text of a value, the value is passed as its text in the session's style.
      So are an interval and a bytea of which a function makes JSON.
  Y2  other uses are refused: floats in JSON, where they are numbers; rows in JSON, whose fields are
      read from their texts; functions that parse text; and DISTINCT, because equal values may be
      displayed differently.

Not here: row values (`expressions/rows.py`), and results (`styled_output.py`).
"""

from collections.abc import Sequence
from typing import Final

from sql.binder.resolve.styled_functions import check_style, prints_arguments
from sql.binder.state import Binding
from sql.errors import not_supported
from sql.functions.table import Function, function_by_id
from sql.plan.nodes import Call, Const, Expr
from sql.types.record_text import styles_change_fields
from sql.types.sql_type import TEXT, array_of
from sql.types.styles import DEFAULT_STYLES

_STYLED: Final = "styled(any)"
_IN_JSON: Final = frozenset({"interval", "bytea"})


def styled_arguments(
    binding: Binding,
    row: Function,
    args: Sequence[Expr],
    result: str,
    *,
    distinct: bool = False,
) -> tuple[Expr, ...]:
    """The arguments of a call in the session's styles (Y1); 0A000 for a use that is refused
    (Y2).
    """
    styles = binding.context.styles
    if styles == DEFAULT_STYLES:
        return tuple(args)
    if "json" in row.name or "json" in result:
        for arg in args:
            refuse_styled_rows(binding, arg)
    made = list(args)
    if not distinct:
        made = [
            text_in_session_style(binding, a) if _is_shown(binding, row, a, result) else a
            for a in args
        ]
    check_style(styles, row, [arg.type.name for arg in made], result)
    return tuple(made)


def refuse_styled_rows(binding: Binding, expr: Expr) -> None:
    """0A000 for rows whose fields JSON reads back from their texts in the session's style (Y2)."""
    if expr.type.fields and styles_change_fields(binding.context.styles, expr.type):
        raise not_supported("JSON of computed rows under this DateStyle or IntervalStyle")


def text_in_session_style(binding: Binding, expr: Expr) -> Call:
    """The text of a value, or of an array's elements, in the session's style."""
    how = Const(binding.context.styles.packed(), TEXT)
    zone = Const(binding.context.timezone, TEXT)
    type_ = TEXT if expr.type.element is None else array_of(TEXT)
    return Call(function_by_id(_STYLED), (expr, how, zone), type_)


def _is_shown(binding: Binding, row: Function, arg: Expr, result: str) -> bool:
    if not binding.context.styles.writes(arg.type.name):
        return False
    shown = prints_arguments(row, result)
    return shown is not None and (not shown or arg.type.name.removeprefix("_") in _IN_JSON)
