"""Rows of pseudo-types as rows of concrete ones: `array_append(anycompatiblearray, anycompatible)`
is asked as `array_append(int4[], int4)`, as `array_append(text[], text)` and so on.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from sql.functions.table import Function, FunctionKind

_ELEMENTS: Final = ("int4", "text", "numeric", "float8")
_VALUES: Final = (
    "int4", "text", "numeric", "float8", "bool", "date", "timestamptz", "interval", "_int4",
    "_text", "jsonb", "bytea", "record",
)  # fmt: skip
"""What a document can be made of, which keeps each type's own rules of it."""
_ARRAY_CASTS: Final = (
    ("_int4", "_text"), ("_text", "_int4"), ("_numeric", "_int4"), ("_float8", "_numeric"),
    ("_bool", "_text"), ("_text", "_bool"), ("_int4", "_float8"), ("_timestamp", "_text"),
)  # fmt: skip
_SINGLE: Final = frozenset({"anyelement", "anynonarray", "anycompatible", "anycompatiblenonarray"})
_ARRAYS: Final = frozenset({"anyarray", "anycompatiblearray"})


def is_polymorphic(row: Function) -> bool:
    """Whether a row has arguments of pseudo-types, `any` aside."""
    return not (_SINGLE | _ARRAYS).isdisjoint((*row.args, row.result))


def concrete(row: Function) -> Iterator[Function]:
    """The row itself, or one row for each of some types that its pseudo-types can stand for."""
    if not is_polymorphic(row) or row.kind is FunctionKind.WINDOW:
        yield row
    elif row.args == ("anyarray",) and row.result == "anyarray" and row.kind is FunctionKind.CAST:
        for source, target in _ARRAY_CASTS:
            yield replace(row, args=(source,), result=target)
    else:
        for type_ in _VALUES if row.name.startswith(("to_json", "json")) else _ELEMENTS:
            if not (type_.startswith("_") and "anyarray" in row.args):
                args = tuple([_meant(name, type_) for name in row.args])
                yield replace(row, args=args, result=_meant(row.result, type_))


def _meant(name: str, type_: str) -> str:
    if name in _ARRAYS:
        return f"_{type_}"
    return type_ if name in _SINGLE else name
