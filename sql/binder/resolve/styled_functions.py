"""Know the functions and casts whose text depends on DateStyle, IntervalStyle or bytea_output."""

from collections.abc import Sequence
from typing import Final

from sql.errors import SqlError, not_supported
from sql.functions.table import Function, FunctionKind
from sql.types.styles import DATE_STYLE_TYPES, FLOAT_TYPES, Styles

_JSON: Final = frozenset({"json", "jsonb"})


_OWN_FORMAT: Final = frozenset({"to_char", "encode", "md5", "convert_from"})
"""Functions that make texts of values in a form of their own."""


_TEXTS: Final = frozenset({"text", "varchar", "bpchar", "name", "unknown"})


def _depends(type_name: str) -> SqlError:
    setting = {"bytea": "bytea_output", "interval": "IntervalStyle"}
    name = type_name.removeprefix("_")
    word = "extra_float_digits" if name in FLOAT_TYPES else setting.get(name, "DateStyle")
    hint = f"Only results, literals and parameters follow {word}; expressions need its default."
    return not_supported(f"{word} other than the default within an expression", hint=hint)


def check_style(styles: Styles, row: Function, args: Sequence[str], result: str) -> None:
    """0A000 for a call whose result depends on a non-default style (L1)."""
    in_json = prints_arguments(row, result)
    if in_json is not None:
        for name in args:
            dated = in_json and name.removeprefix("_") in DATE_STYLE_TYPES  # always ISO there
            if styles.writes(name) and not dated:
                raise _depends(name)
    is_input = row.kind is FunctionKind.CAST and args[0].removeprefix("_") in _TEXTS
    if is_input and styles.reads(result):
        raise _depends(result)


def prints_arguments(row: Function, result: str) -> bool | None:
    """Whether a call makes JSON of its arguments' texts; false if it makes text of them.

    None if it does neither, or in a format of its own.
    """
    made = result.removeprefix("_")
    if made not in _TEXTS | _JSON or row.name in _OWN_FORMAT:
        return None
    return made in _JSON
