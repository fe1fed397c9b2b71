"""The type char(n): the padding of its values, and the type that several of them have together."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from sql.types.sql_type import BLANKED, SqlType, Value

_WITHOUT: Final = frozenset(
    {"bool", "int2", "int4", "int8", "oid", "float4", "float8", "numeric", "uuid", "bytea", "date",
     "time", "timetz", "timestamp", "timestamptz", "interval"}
)  # fmt: skip
"""Types whose text never ends in a blank."""


def blank_padded(value: Value, width: int) -> Value:
    """The value with blanks up to that width, or without any that were more."""
    if isinstance(value, tuple):
        return tuple([blank_padded(item, width) for item in value])
    return value.rstrip(" ").ljust(width) if isinstance(value, str) else value


def char_width(type_: SqlType) -> int | None:
    """How wide values are shown, 0 for those that have no blanks; None if each has its own."""
    return None if type_.has_blanks else (type_.element or type_).length or 0


def alike_types(types: Sequence[SqlType], name: str = "bpchar") -> SqlType:
    """What holds values of all these types; they may be elements or arrays."""
    widths = {char_width(type_) for type_ in types}
    if len(widths) > 1 or None in widths:
        return replace(BLANKED, name=name)
    return SqlType(name, precision=widths.pop() or None if widths else None)


def cast_type(source: SqlType, name: str) -> SqlType:
    """The bare type of that name, which a cast makes: a bpchar has the blanks that a text has."""
    plain = is_char(source) or (source.element or source).name in _WITHOUT
    return SqlType(name, trim=name in ("bpchar", "_bpchar") and not plain)


def column_type(type_: SqlType) -> SqlType:
    """The type of a column that is declared so, or made of such values: without a length every
    value has the blanks that it came with.
    """
    if not is_char(type_) or type_.typmod != -1:
        return type_
    return replace(BLANKED, name=type_.name)


def is_char(type_: SqlType) -> bool:
    """bpchar, or an array of it."""
    return type_.name in ("bpchar", "_bpchar")


def united(types: Sequence[SqlType], common: SqlType) -> SqlType:
    """What holds the values of both sides of a set operation: their common type, without modifier;
    what is no bpchar becomes one.
    """
    if not is_char(common):
        return common
    found = [each if is_char(each) else cast_type(each, common.name) for each in types]
    return alike_types(found, common.name)


def with_blanks(value: Value, type_: SqlType) -> Value:
    """The value of such a type as one that has blanks holds it; of other types as it is."""
    width = char_width(type_) if is_char(type_) else None
    return blank_padded(value, width) if width is not None else value
