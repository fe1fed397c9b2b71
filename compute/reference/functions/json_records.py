"""Turn json objects into rows by a column definition list: json_to_record() etc. (jsonfuncs.c).

    [{"a": 1, "b": [2]}]  ─ json_records ─▶  {{1,"{2}"}}, texts of rows  ─ record_field ─▶  1, {2}

A jsonb is read through its text output: PostgreSQL's input functions get the same text for its
parts.

INVARIANTS
  R1  a field's text is converted to the column's type once before it goes into a row.
"""

from collections.abc import Mapping, Sequence

from compute.reference.registry import Function, makes
from sql.errors import SqlError
from sql.plan.nodes import Call
from sql.types.array_text import format_array, multidimensional_array, parse_array
from sql.types.json.parser import (
    parse_jsonb,
    quote_json,
    split_json_array,
    split_json_object,
    unquote_json,
)
from sql.types.sql_type import SqlType, Value
from sql.types.text_input import apply_typmod, parse_text


@makes("json_records(any,_text,text,any)")
def _records(call: Call) -> Function:
    types = [arg.type for arg in call.args[3:-1]]

    def run(document: str | None, names: tuple[str, ...], name: str, *rest: Value) -> Value:
        zone = str(rest[-1])
        return tuple([_row(found, names, types, zone) for found in _objects(document, name)])

    return run


def _objects(document: str | None, name: str) -> list[Mapping[str, str]]:
    """The objects of a document, for the function of this name: keys, and their values' texts."""
    many = name.endswith("set")
    if document is None:
        return [] if many else [{}]
    if "\\u" in document:
        # Every string of a json is read, also of what is no column: 22P05.
        parse_jsonb(document)
    if not many:
        found = split_json_object(document)
        if found is None:
            kind = "a scalar" if split_json_array(document) is None else "an array"
            raise SqlError("22023", f"cannot call populate_composite on {kind}")
        return [dict(found)]
    items = split_json_array(document)
    if items is None:
        is_object = split_json_object(document) is not None
        kind = (
            "a non-array" if name.startswith("jsonb") else "an object" if is_object else "a scalar"
        )
        raise SqlError("22023", f"cannot call {name} on {kind}")
    return [_object(item, name) for item in items]


def _object(item: str, name: str) -> Mapping[str, str]:
    found = split_json_object(item)
    if found is None:
        raise SqlError("22023", f"argument of {name} must be an array of objects")
    return dict(found)


def _row(
    found: Mapping[str, str], names: Sequence[str], types: Sequence[SqlType], zone: str
) -> str:
    texts: list[Value] = []
    for name, type_ in zip(names, types, strict=True):
        text = _text(found.get(name, "null"), type_)
        if text is not None:
            _converted(text, type_, zone)
        texts.append(text)
    return format_array(tuple(texts), str)


def _text(part: str, type_: SqlType) -> str | None:
    """The text of a part that the type's input function gets (populate_record_field)."""
    if part == "null":
        return None
    if part.startswith('"'):
        text = unquote_json(part)
        return quote_json(text) if type_.name in ("json", "jsonb") else text
    element = type_.element
    if element is None:
        return part
    items = split_json_array(part)
    if items is None:
        raise SqlError("22P02", "expected JSON array")
    if items and items[0].startswith("["):
        raise multidimensional_array()
    return format_array(tuple([_text(item, element) for item in items]), str)


def _converted(text: str, type_: SqlType, zone: str) -> Value:
    value = parse_text(type_.name, text, timezone=zone, typmod=type_.typmod)
    return apply_typmod(value, type_, explicit=False)


@makes("record_field(text,int4)")
def _field(call: Call) -> Function:
    type_ = call.type

    def run(row: str, number: int, zone: str) -> Value:
        text = parse_array(row, str)[number - 1]
        return None if text is None else _converted(str(text), type_, zone)

    return run
