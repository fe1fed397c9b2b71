"""Arrow schemas as Delta schemas, and back.

The metadata of an Arrow field (our PostgreSQL type, under `meridian.type`) becomes the metadata of
the Delta field: other readers keep it and make nothing of it. A field whose metadata has a name
(`meridian.name`) is called so by Delta, and its own name is the physical one (column mapping).
"""

import json
import re
from typing import Final, TypeAlias, TypedDict

import pyarrow as pa

from storage.errors import Corrupt


class _Field(TypedDict):
    name: str
    type: str
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

_PHYSICAL: Final = "delta.columnMapping.physicalName"
_ID: Final = "delta.columnMapping.id"
_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")


def delta_type(type_: pa.DataType) -> str:
    """The Delta name of an Arrow type that Meridian stores."""
    if pa.types.is_decimal128(type_):
        return f"decimal({type_.precision},{type_.scale})"
    assert type_ in _NAMES, f"no table has a column of Arrow type {type_}"
    return _NAMES[type_]


def arrow_type(name: str) -> pa.DataType:
    """The Arrow type of a Delta name. Raises Corrupt for types that we never write."""
    if match := _DECIMAL.fullmatch(name):
        return pa.decimal128(int(match[1]), int(match[2]))
    if name not in _PRIMITIVES:
        raise Corrupt(f"a column of Delta type {name}")
    return _PRIMITIVES[name]


def encode_schema(schema: pa.Schema) -> str:
    """The `schemaString` of a metaData action."""
    fields = [_told(field) for field in schema]
    return json.dumps({"type": "struct", "fields": fields}, separators=(",", ":"))


def _encode_field(field: "pa.Field[_Type]") -> _Field:
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


def _told(field: "pa.Field[_Type]") -> object:
    """A column as the log tells of it: with its name, if that is not its field's."""
    noted, encoded = field.metadata or {}, _encode_field(field)
    if NAME_KEY not in noted:
        return encoded
    mapping = {_ID: int(noted[NUMBER_KEY]), _PHYSICAL: field.name}
    metadata = {**encoded["metadata"], **mapping}
    return {**encoded, "name": noted[NAME_KEY].decode(), "metadata": metadata}


def is_mapped(schema: pa.Schema) -> bool:
    """Whether columns are called otherwise than their fields (column mapping by name)."""
    return any(NAME_KEY in (field.metadata or {}) for field in schema)


def largest_number(schema: pa.Schema) -> int:
    """The largest number that a column of a mapped table ever had."""
    return int((schema.metadata or {})[NUMBER_KEY])


def decode_schema(text: str) -> pa.Schema:
    """The Arrow schema of a `schemaString`. Raises Corrupt."""
    try:
        fields: list[_Field] = json.loads(text)["fields"]
        return pa.schema(
            [
                pa.field(
                    field["name"],
                    arrow_type(field["type"]),
                    nullable=field["nullable"],
                    metadata=field["metadata"] or None,
                )
                for field in fields
            ]
        )
    except (ValueError, KeyError, TypeError) as error:
        raise Corrupt(f"schema in the log: {error}") from None


def has_timestamp_ntz(schema: pa.Schema) -> bool:
    """True if the table needs the `timestampNtz` feature."""
    return pa.timestamp("us") in schema.types
