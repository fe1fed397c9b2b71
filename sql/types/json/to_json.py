"""Convert values of all types to JSON, for to_json() and functions built on it.

INVARIANTS
  V1  numbers and booleans are themselves, json and jsonb are embedded, arrays are arrays, dates and
      timestamps are ISO 8601, everything else is a string of its text.
"""

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import TypeGuard

from sql.errors import SqlError, not_supported
from sql.types.json.parser import (
    JsonTree,
    canonical_jsonb,
    parse_json_tree,
    parse_jsonb,
    quote_json,
    unquote_json,
)
from sql.types.record_text import record_fields
from sql.types.records import field_names
from sql.types.sql_type import SqlType, Value
from sql.types.text_output import format_text


def is_json_array(value: object) -> TypeGuard[Sequence[JsonTree]]:
    """Whether a tree is an array."""
    return isinstance(value, list)


def json_item_as_text(value: JsonTree) -> str | None:
    """An item of a jsonb as text: a string without quotes, NULL for null."""
    if value is None:
        return None
    return value if isinstance(value, str) else canonical_jsonb(value)


def raw_json_item_as_text(part: str | None) -> str | None:
    """An item of a json, given as JSON text, as text."""
    if part is None or part == "null":
        return None
    return unquote_json(part) if part.startswith('"') else part


def value_to_json(value: Value, type_: SqlType, timezone: str) -> str:
    """A value as JSON text (V1)."""
    if value is None:
        return "null"
    if (element := type_.element) is not None:
        assert isinstance(value, tuple), "an array"
        return f"[{','.join(value_to_json(item, element, timezone) for item in value)}]"
    match type_.name:
        case "record":
            pairs = _fields(value, type_, timezone)
            parts = [f"{quote_json(n)}:{value_to_json(v, t, timezone)}" for n, v, t in pairs]
            return f"{{{','.join(parts)}}}"
        case "bool":
            return "true" if value else "false"
        case "json" | "jsonb":
            assert isinstance(value, str), "json is a str"
            return value
        case "int2" | "int4" | "int8":
            return str(value)
        case "float4" | "float8" | "numeric":
            text = format_text(value, type_)
            finite = not isinstance(value, float) or math.isfinite(value)
            return text if finite else quote_json(text)
        case _:
            return quote_json(value_to_json_string(value, type_, timezone))


def _fields(value: Value, type_: SqlType, timezone: str) -> list[tuple[str, Value, SqlType]]:
    """The names, values and types of a row's fields."""
    if type_.fields is None:
        raise not_supported("a row of several types as JSON")
    values = record_fields(value, type_, timezone)
    return list(zip(field_names(type_), values, type_.fields, strict=True))


def value_to_json_string(value: Value, type_: SqlType, timezone: str) -> str:
    """The text of a value that becomes a JSON string."""
    text = format_text(value, type_, timezone=timezone)
    if type_.name not in ("timestamp", "timestamptz") or not text[:1].isdigit():
        return text
    text, era, _ = text.replace(" ", "T", 1).partition(" BC")
    if type_.name == "timestamptz" and text[-3:-2] in ("+", "-"):
        text += ":00"
    return text + era


def value_to_json_tree(value: Value, type_: SqlType, timezone: str) -> JsonTree:
    """A value as a JSON tree (V1)."""
    if value is None:
        return None
    if (element := type_.element) is not None:
        assert isinstance(value, tuple), "an array"
        return [value_to_json_tree(item, element, timezone) for item in value]
    match value:
        case bool():
            return value
        case str() if type_.name == "record":
            pairs = _fields(value, type_, timezone)
            return {name: value_to_json_tree(part, t, timezone) for name, part, t in pairs}
        case str() if type_.name == "json":
            # A json holds what no jsonb does: numbers that are too large, escapes of no character.
            return parse_json_tree(parse_jsonb(value))
        case str() if type_.name == "jsonb":
            return parse_json_tree(value)
        case int() if type_.name in ("int2", "int4", "int8"):
            return Decimal(value)
        case float() if math.isfinite(value):
            return Decimal(format_text(value, type_))
        case Decimal():
            return Decimal(format_text(value, type_))
        case _:
            return value_to_json_string(value, type_, timezone)


def value_to_json_key(value: Value, type_: SqlType, timezone: str) -> str:
    """A value as the key of an object. Raises 22023 for arrays, rows and JSON."""
    if type_.element is not None or type_.name in ("json", "jsonb", "record"):
        raise SqlError("22023", "key value must be scalar, not array, composite, or json")
    if type_.name == "bool":
        return "true" if value else "false"
    return value_to_json_string(value, type_, timezone)
