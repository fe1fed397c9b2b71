"""The blanks of char(n), for the casts that see them.

A value of char(n) is kept without its trailing blanks (sql/types.py). Casts to other texts cut them
off and most input functions read over them; what PostgreSQL converts by way of the output function
and keeps to the letter has them.
"""

from typing import Final

from sql.binding import Binding
from sql.errors import not_supported
from sql.functions import Function, function_by_id
from sql.plan import Const, Expr
from sql.stand_ins import stand_in
from sql.types import SqlType, display

_SEEN: Final = frozenset({"bytea", "json", "uuid", "enum"})
"""Types whose input functions do not read over blanks."""
_KEPT: Final = frozenset({"bytea", "json"})
"""Of these, those whose values have blanks."""


def with_blanks(
    binding: Binding, expr: Expr, row: Function, target: SqlType
) -> tuple[Expr, Function] | None:
    """What a cast reads instead of a char(n), and the cast of that; None if blanks do not matter.
    0A000 if nobody knows how many there are.
    """
    source, _, name = row.id.partition("::")
    if source == "anyarray":
        blank = expr.type.name == "_bpchar" and target.name.removeprefix("_") in _SEEN
        if blank and not _is_null(expr):
            raise not_supported(f"the cast from character[] to {display(target)}")
        return None
    if source != "bpchar" or name not in _SEEN:
        return None
    if expr.type.length is None:
        if name in _KEPT and not _is_null(expr):
            raise not_supported(f"the cast from bpchar without length to {display(target)}")
        return None
    text = stand_in(binding, f"rpad($1::text, {expr.type.length})", (expr,))
    return text, function_by_id(f"text::{name}")


def _is_null(expr: Expr) -> bool:
    return isinstance(expr, Const) and expr.value is None
