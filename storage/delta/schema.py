"""Arrow schemas as Delta schemas, and back.

The metadata of an Arrow field (our PostgreSQL type, under `meridian.type`) becomes the metadata of
the Delta field: other readers keep it and make nothing of it.
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
    fields: list[_Field] = [
        {
            "name": field.name,
            "type": delta_type(field.type),
            "nullable": field.nullable,
            "metadata": {
                key.decode(): value.decode()
                for key, value in sorted((field.metadata or {}).items())
            },
        }
        for field in schema
    ]
    return json.dumps({"type": "struct", "fields": fields}, separators=(",", ":"))


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
