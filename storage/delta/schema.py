"""Convert Arrow schemas to Delta schemas, and back.

The metadata of an Arrow field (our PostgreSQL type, under `meridian.type`) becomes the metadata of
the Delta field: other readers keep it and make nothing of it. A field whose metadata has a name
(`meridian.name`) is called so by Delta, and its own name is the physical one (column mapping).
"""

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias, TypedDict, cast

import pyarrow as pa

from storage.errors import Corrupt

_TypeName: TypeAlias = "str | dict[str, object]"


class _Field(TypedDict):
    name: str
    type: _TypeName
    nullable: bool
    metadata: dict[str, str]


_Type: TypeAlias = pa.DataType

_PRIMITIVES: Final[dict[str, _Type]] = {
    "boolean": pa.bool_(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp_ntz": pa.timestamp("us"),
    "timestamp": pa.timestamp("us", "UTC"),
}
_NAMES: Final[dict[_Type, str]] = {type_: name for name, type_ in _PRIMITIVES.items()}
NAME_KEY: Final = b"meridian.name"
NUMBER_KEY: Final = b"meridian.number"
"""The number of a column, never used twice in a table; in the schema's own metadata the largest."""
FEED_KEY: Final = b"meridian.change_feed"
"""In a schema's own metadata: readers of Delta are told what each version changes."""
INVARIANT_KEY: Final = b"delta.invariants"
"""What every value of a column has to be: an expression in JSON, for other writers."""

_PHYSICAL: Final = "delta.columnMapping.physicalName"
_ID: Final = "delta.columnMapping.id"
_PART_NUMBERS: Final = 1_000_000
"""How far the numbers of a struct's fields are from their column's and from each other's: readers
want one for each field. Larger: they do not fit into an int. Smaller: as many columns, in all of a
table's life, could meet them."""
_PARTS_MAX: Final = 3
"""The fields of the only struct that we store, an interval."""
_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")


def delta_type(type_: pa.DataType) -> _TypeName:
    """The Delta type of an Arrow type that Meridian stores: a name, or JSON for a nested one."""
    if pa.types.is_decimal128(type_):
        return f"decimal({type_.precision},{type_.scale})"
    if isinstance(type_, pa.ListType):
        element = delta_type(type_.value_type)
        return {"type": "array", "elementType": element, "containsNull": True}
    if isinstance(type_, pa.StructType):
        return {"type": "struct", "fields": [_encode_field(field) for field in type_]}
    assert type_ in _NAMES, f"no table has a column of Arrow type {type_}"
    return _NAMES[type_]


def _arrow_type(name: object) -> pa.DataType:
    """The Arrow type of a Delta type. Raises Corrupt for types that we never write."""
    if isinstance(name, dict):
        return _nested_type(cast("dict[str, object]", name))
    text = str(name)
    if match := _DECIMAL.fullmatch(text):
        return pa.decimal128(int(match[1]), int(match[2]))
    if text not in _PRIMITIVES:
        raise Corrupt(f"a column of Delta type {text}")
    return _PRIMITIVES[text]


def _nested_type(described: dict[str, object]) -> pa.DataType:
    match described:
        case {"type": "array", "elementType": element}:
            return pa.list_(pa.field("element", _arrow_type(element)))
        case {"type": "struct", "fields": fields}:
            return pa.struct([_decode_field(field) for field in cast("list[_Field]", fields)])
        case _:
            raise Corrupt(f"a column of Delta type {described.get('type')}")


def encode_schema(schema: pa.Schema) -> str:
    """The `schemaString` of a metaData action."""
    fields = [_told(field) for field in schema]
    return json.dumps({"type": "struct", "fields": fields}, separators=(",", ":"))


def reported_definition(schema: pa.Schema) -> str:
    """All that the log tells of a definition: the `schemaString`, and whether it has a feed."""
    return _reported(_Same(schema))


@dataclass(frozen=True, slots=True, eq=False)
class _Same:
    """A schema that equals itself alone: others may differ in what pyarrow does not compare."""

    schema: pa.Schema

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.schema is other.schema

    def __hash__(self) -> int:
        return id(self.schema)


@lru_cache(maxsize=1_000)
def _reported(of: _Same) -> str:
    """A start asks for each table, and many tables are alike (`compute/arrow.py`)."""
    return definition_text(encode_schema(of.schema), feed=has_feed(of.schema))


def definition_text(schema_string: str, *, feed: bool) -> str:
    """The same of what the log has."""
    return f"{schema_string} with a feed" if feed else schema_string


def has_feed(schema: pa.Schema) -> bool:
    """Whether the table has a change data feed."""
    return FEED_KEY in (schema.metadata or {})


def _encode_field(field: "pa.Field[pa.DataType]") -> _Field:
    return {
        "name": field.name,
        "type": delta_type(field.type),
        "nullable": field.nullable,
        "metadata": {
            key.decode(): value.decode()
            for key, value in sorted((field.metadata or {}).items())
            if key not in (NAME_KEY, NUMBER_KEY)
        },
    }


def _told(field: "pa.Field[pa.DataType]") -> object:
    """A column as the log tells of it: with its name, if that is not its field's."""
    noted, encoded = field.metadata or {}, _encode_field(field)
    if NAME_KEY not in noted:
        return encoded
    number = int(noted[NUMBER_KEY])
    metadata = {**encoded["metadata"], _ID: number, _PHYSICAL: field.name}
    type_ = _mapped_type(encoded["type"], number)
    return {**encoded, "name": noted[NAME_KEY].decode(), "type": type_, "metadata": metadata}


def _mapped_type(type_: _TypeName, number: int) -> object:
    """The type of a mapped column, whose struct's fields have numbers and fields of their own."""
    if isinstance(type_, str):
        return type_
    match type_:
        case {"type": "array", "elementType": element}:
            return {**type_, "elementType": _mapped_type(cast("_TypeName", element), number)}
        case {"type": "struct", "fields": fields}:
            told: list[object] = []
            for place, field in enumerate(cast("list[_Field]", fields), 1):
                assert place <= _PARTS_MAX, "the numbers of its fields are below the largest"
                mapping = {_ID: number + place * _PART_NUMBERS, _PHYSICAL: field["name"]}
                told.append({**field, "metadata": {**field["metadata"], **mapping}})
            return {**type_, "fields": told}
        case _:
            return type_


def has_invariant(field: "pa.Field[pa.DataType]") -> bool:
    """Whether a column has rules: NOT NULL or others (Delta's protocol, Column Invariants)."""
    return not field.nullable or INVARIANT_KEY in (field.metadata or {})


def is_mapped(schema: pa.Schema) -> bool:
    """Whether columns are called otherwise than their fields (column mapping by name)."""
    return any(NAME_KEY in (field.metadata or {}) for field in schema)


def largest_number(schema: pa.Schema) -> int:
    """No column of a mapped table, nor a field of a struct, ever had a larger number."""
    return int((schema.metadata or {})[NUMBER_KEY]) + _PARTS_MAX * _PART_NUMBERS


def decode_schema(text: str) -> pa.Schema:
    """The Arrow schema of a `schemaString`. Raises Corrupt."""
    try:
        fields: list[_Field] = json.loads(text)["fields"]
        return pa.schema([_decode_field(field) for field in fields])
    except (ValueError, KeyError, TypeError) as error:
        raise Corrupt(f"schema in the log: {error}") from None


def _decode_field(field: _Field) -> "pa.Field[pa.DataType]":
    return pa.field(
        field["name"],
        _arrow_type(field["type"]),
        nullable=field["nullable"],
        metadata=field["metadata"] or None,
    )


def has_timestamp_ntz(schema: pa.Schema) -> bool:
    """True if the table needs the `timestampNtz` feature."""
    return any(_has_ntz(type_) for type_ in schema.types)


def _has_ntz(type_: pa.DataType) -> bool:
    return type_ == pa.timestamp("us") or any(
        _has_ntz(type_.field(place).type) for place in range(type_.num_fields)
    )
