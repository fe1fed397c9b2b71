"""Row values (`ROW(1, 'a')`, type record): a text encoding that compares and sorts as the row does.

    the fields' keys ─ the row as the session's styles show it ─ the length of that, 8 digits

INVARIANTS
  R1  rows of the same types compare as their texts do, byte by byte (record_cmp): each field by its
      type's order, NULL last and equal to itself.
  R2  equal rows have the same text: a type has a key only if its equal values look the same. Rows
      with a field of another type have no keys, and precision 0: nobody compares them.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Context, Decimal
from functools import cache
from itertools import zip_longest
from typing import Final

from sql.errors import SqlError, not_supported
from sql.types.enums import enum_of, is_enum
from sql.types.sql_type import REG_TYPES, RowType, SqlType, Value, format_type
from sql.types.styled_output import styled_text
from sql.types.styles import DEFAULT_STYLES, Styles
from sql.types.text_output import RECORD_LENGTH_DIGITS

RECORD: Final = SqlType("record")
_INTEGERS: Final = frozenset(
    {"int2", "int4", "int8", "oid", "date", "time", "timestamp", "timestamptz"}
)
_TEXTS: Final = frozenset({"text", "varchar", "bpchar", "name", "char", "uuid", "record"})
_EXACT: Final = Context(prec=120)
_DIGITS: Final = 38
_NEEDS_QUOTES: Final = re.compile(r'[\s"\\(),]')


def check_record_field(type_: SqlType) -> None:
    """Raises 0A000 for a field whose text is not that of its value."""
    if type_.name.removeprefix("_") in REG_TYPES:
        raise not_supported(f"a field of type {format_type(type_.bare())} in a row value")


def record_type(
    fields: Sequence[SqlType], names: Sequence[str] | None = None, row: RowType | None = None
) -> SqlType:
    """The type of rows with these fields; with precision and scale 0 where one has no key (R2)."""
    keyed = all(map(_has_key, fields))
    return SqlType(
        "record",
        precision=None if keyed else 0,
        scale=None if keyed else 0,
        fields=tuple(fields),
        names=None if names is None else tuple(names),
        row=row,
    )


@cache
def _has_key(type_: SqlType) -> bool:
    if type_.element is not None:
        return _has_key(type_.element)
    if type_.name == "record":
        return type_.precision != 0
    known = type_.name in _INTEGERS or type_.name in _TEXTS
    return known or type_.name in ("bool", "numeric", "bytea") or is_enum(type_.name)


def field_names(type_: SqlType) -> tuple[str, ...]:
    """The names of a record's fields, whose types are known."""
    assert type_.fields is not None, "the fields are known"
    return type_.names or tuple([f"f{place}" for place in range(1, len(type_.fields) + 1)])


def mixed_record_type(type_: SqlType, types: Iterable[SqlType]) -> SqlType:
    """The type of rows, or arrays of rows, of several types: they are shown, but not compared."""
    scale = 0 if any(each.scale == 0 for each in types) else None
    return replace(type_, precision=0, scale=scale, fields=None, names=None, row=None)


def check_record_keys(type_: SqlType) -> None:
    """Raises 0A000 for rows that have no keys (R2), however they are compared."""
    if type_.name in ("record", "_record") and type_.scale == 0:
        check_record_types_known(type_, None)


def check_record_types_known(type_: SqlType, place: int | None) -> None:
    """Raises 0A000 if it is not known whether PostgreSQL can compare these rows."""
    if type_.name in ("record", "_record") and type_.precision == 0:
        what = "comparing rows of several types, or with a literal that has no type"
        unkeyed = [
            field for field in type_.fields or () if not _has_key(field) and field.name != "unknown"
        ]
        if unkeyed:
            what = f"comparing rows with a field of type {format_type(unkeyed[0].bare())}"
        raise not_supported(what, place)


def check_records_comparable(left: SqlType, right: SqlType) -> None:
    """Raises 42804 for rows that PostgreSQL cannot compare (record_eq), 0A000 if unknown."""
    check_record_types_known(left, None)
    check_record_types_known(right, None)
    if left.fields is None or right.fields is None:
        return
    for number, (one, other) in enumerate(zip_longest(left.fields, right.fields), start=1):
        if one is None or other is None:
            message = "cannot compare record types with different numbers of columns"
            raise SqlError("42804", message)
        if one.name == other.name and "numeric" in one.name and one.bare() != other.bare():
            # They look different where they are equal (R2).
            raise not_supported("comparing rows with numerics of several scales")
        if one.name != other.name:
            types = f"{format_type(one.bare())} and {format_type(other.bare())}"
            message = f"cannot compare dissimilar column types {types} at record column {number}"
            raise SqlError("42804", message)


def encode_record(
    values: Sequence[Value],
    types: Sequence[SqlType],
    timezone: str,
    styles: Styles = DEFAULT_STYLES,
) -> str:
    """The encoded text of a row (R1, R2)."""
    fields = list(zip(values, types, strict=True))
    keys = "".join(_nullable_key(v, type_) for v, type_ in fields) if _have_keys(types) else ""
    shown = ",".join(_shown(v, type_, timezone, styles) for v, type_ in fields)
    text = f"({shown})"
    return f"{keys}{text}{len(text):0{RECORD_LENGTH_DIGITS}d}"


def _have_keys(types: Sequence[SqlType]) -> bool:
    return all(map(_has_key, types))


def _nullable_key(value: Value, type_: SqlType) -> str:
    return "9" if value is None else f"1{_key(value, type_)}"


def _key(value: Value, type_: SqlType) -> str:
    if (element := type_.element) is not None:
        assert isinstance(value, tuple), "an array is a tuple"
        # The end is below every element.
        return "".join(_nullable_key(item, element) for item in value) + "0"
    if is_enum(type_.name):
        return f"{enum_of(type_.name).labels.index(str(value)):08d}"
    match value:
        case bool():
            return "1" if value else "0"
        case int():
            return f"{value + (1 << 63):020d}"
        case Decimal():
            whole = int(_EXACT.scaleb(value, _DIGITS)) + 10 ** (2 * _DIGITS + 1)
            return f"{whole:0{2 * _DIGITS + 2}d}"
        case bytes():
            return f"{value.hex()} "
        case str():
            value = value.rstrip(" ") if type_.has_blanks else value
            # The end is below every character, also below those that it is made of.
            return value.replace("\x01", "\x01\x02") + "\x01\x01"
        case _:
            raise AssertionError("R2: such a type has no key")


def _shown(value: Value, type_: SqlType, timezone: str, styles: Styles) -> str:
    if value is None:
        return ""
    text = styled_text(value, type_, styles, timezone=timezone)
    if text and not _NEEDS_QUOTES.search(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '""')
    return f'"{escaped}"'
