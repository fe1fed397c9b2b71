"""The text of a row value, `(1,"a b",)`, back into its fields (record_in).

    encoded row ─▶ its text ─▶ texts of the fields ─▶ values

INVARIANTS
  F1  a field read back is the value that was written, if the session's styles do not change how
      values of its type are shown.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from sql.errors import SqlError
from sql.types.array_text import parse_array
from sql.types.records import encode_record
from sql.types.sql_type import SqlType, Value
from sql.types.styles import Styles
from sql.types.text_input import apply_typmod, parse_text
from sql.types.text_output import format_record


def record_fields(row: Value, type_: SqlType, timezone: str) -> tuple[Value, ...]:
    """The values of an encoded row of a type whose fields are known (F1)."""
    return _values(format_record(row), type_, timezone)


def record_field(row: Value, type_: SqlType, number: int, timezone: str) -> Value:
    """One of them, counted from 1."""
    assert type_.fields is not None, "the fields are known"
    text = split_record(format_record(row))[number - 1]
    return None if text is None else _value(text, type_.fields[number - 1], timezone)


def parse_record(text: str, type_: SqlType, timezone: str) -> str:
    """The encoded row that a text shows. Raises 22P02, and what the fields' types raise."""
    assert type_.fields is not None, "the fields are known"
    return encode_record(_values(text, type_, timezone), type_.fields, timezone)


def _values(text: str, type_: SqlType, timezone: str) -> tuple[Value, ...]:
    assert type_.fields is not None, "the fields are known"
    # A field is converted before the next one is looked at: that decides which error is reported.
    parts = _split(text)
    found: list[Value] = []
    for field in type_.fields:
        try:
            part = next(parts)
        except StopIteration:
            raise _malformed(text, "Too few columns.") from None
        found.append(None if part is None else _value(part, field, timezone))
    if type_.fields and next(parts, _END) is not _END:
        raise _malformed(text, "Too many columns.")
    return tuple(found)


_END: Final = "no further field"


def _value(text: str, type_: SqlType, timezone: str) -> Value:
    if type_.name == "record":
        return parse_record(text, type_, timezone)
    if type_.name == "_record" and type_.element is not None:
        element = type_.element
        return parse_array(text, lambda item: parse_record(item, element, timezone))
    value = parse_text(type_.name, text, timezone=timezone, typmod=type_.typmod)
    return apply_typmod(value, type_, explicit=False)


def styles_change_fields(styles: Styles, type_: SqlType) -> bool:
    """Whether rows of a type show a field that cannot be read back (F1)."""
    return any(
        styles.writes(field.name) or styles_change_fields(styles, field)
        for field in type_.fields or ()
    )


def split_record(text: str) -> Sequence[str | None]:
    """The texts of the fields; None for NULL. Raises 22P02."""
    return list(_split(text))


def _split(text: str) -> Iterator[str | None]:
    body = text.lstrip(" \t\n\r\v\f")
    if not body.startswith("("):
        raise _malformed(text, "Missing left parenthesis.")
    place = 1
    while True:
        part, place = _field(text, body, place)
        yield part
        if body[place] == ")":
            break
        place += 1
    if body[place + 1 :].strip(" \t\n\r\v\f"):
        raise _malformed(text, "Junk after right parenthesis.")


def _field(text: str, body: str, place: int) -> tuple[str | None, int]:
    """The field that begins at a place, and the place of the sign behind it."""
    if body[place : place + 1] in (",", ")"):
        return None, place
    parts: list[str] = []
    quoted = False
    while True:
        sign = body[place : place + 1]
        if not sign:
            raise _malformed(text, "Unexpected end of input.")
        if not quoted and sign in ",)":
            return "".join(parts), place
        if sign == "\\":
            if place + 1 >= len(body):
                raise _malformed(text, "Unexpected end of input.")
            parts.append(body[place + 1])
            place += 2
        elif sign == '"' and quoted and body[place + 1 : place + 2] == '"':
            parts.append('"')
            place += 2
        elif sign == '"':
            quoted = not quoted
            place += 1
        else:
            parts.append(sign)
            place += 1


def _malformed(text: str, detail: str) -> SqlError:
    return SqlError("22P02", f'malformed record literal: "{text}"', detail=detail)
