"""The type char(n), called bpchar: blank padding, and the common type of several widths."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from sql.types.sql_type import UNTRIMMED_BPCHAR, SqlType, Value

_WITHOUT: Final = frozenset(
    {"bool", "int2", "int4", "int8", "oid", "float4", "float8", "numeric", "uuid", "bytea", "date",
     "time", "timetz", "timestamp", "timestamptz", "interval"}
)  # fmt: skip
"""Types whose text never ends in a blank."""


def blank_padded(value: Value, width: int) -> Value:
    """The value padded with blanks to that width; trailing blanks beyond it are removed."""
    if isinstance(value, tuple):
        return tuple([blank_padded(item, width) for item in value])
    return value.rstrip(" ").ljust(width) if isinstance(value, str) else value


def char_width(type_: SqlType) -> int | None:
    """The width that values are padded to: 0 for none, None if each value has its own blanks."""
    return None if type_.has_blanks else (type_.element or type_).length or 0


def common_bpchar_type(types: Sequence[SqlType], name: str = "bpchar") -> SqlType:
    """The common type of these bpchar types, which may be elements or arrays."""
    widths = {char_width(type_) for type_ in types}
    if len(widths) > 1 or None in widths:
        return replace(UNTRIMMED_BPCHAR, name=name)
    return SqlType(name, precision=widths.pop() or None if widths else None)


def cast_type(source: SqlType, name: str) -> SqlType:
    """The result type of a cast, without modifier: a bpchar keeps the blanks of a text source."""
    plain = is_bpchar(source) or (source.element or source).name in _WITHOUT
    return SqlType(name, trim=name in ("bpchar", "_bpchar") and not plain)


def column_type(type_: SqlType) -> SqlType:
    """The type of a column declared with a type, or computed from values of it: without a length
    every value keeps its own blanks.
    """
    if not is_bpchar(type_) or type_.typmod != -1:
        return type_
    return replace(UNTRIMMED_BPCHAR, name=type_.name)


def is_bpchar(type_: SqlType) -> bool:
    """Whether a type is bpchar, or an array of it."""
    return type_.name in ("bpchar", "_bpchar")


def set_operation_type(types: Sequence[SqlType], common: SqlType) -> SqlType:
    """The column type of a set operation: the common type without modifier; inputs that are no
    bpchar are cast to it.
    """
    if not is_bpchar(common):
        return common
    found = [each if is_bpchar(each) else cast_type(each, common.name) for each in types]
    return common_bpchar_type(found, common.name)


def with_padding(value: Value, type_: SqlType) -> Value:
    """A bpchar value with its padding; values of other types stay as they are."""
    width = char_width(type_) if is_bpchar(type_) else None
    return blank_padded(value, width) if width is not None else value
