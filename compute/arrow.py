"""Map PostgreSQL types to Arrow types: the table of `sql/types/sql_type.py` as code.

The Arrow field of a stored column also has its SQL type in its metadata (`meridian.type`), so that
the Delta table's schema says what a column was declared as (`storage/delta/schema.py`).
"""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import pyarrow as pa

from sql.catalog.catalog import Column
from sql.plan.nodes import PlanColumn
from sql.types.enums import storage_type_name
from sql.types.sql_type import REG_TYPES, SqlType, format_type
from storage.delta.schema import FEED_KEY, INVARIANT_KEY, NAME_KEY, NUMBER_KEY

TYPE_KEY: Final = b"meridian.type"

_SIMPLE: Final[dict[str, pa.DataType]] = {
    "bool": pa.bool_(),
    "int2": pa.int16(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "oid": pa.int64(),
    "float4": pa.float32(),
    "float8": pa.float64(),
    "text": pa.string(),
    "varchar": pa.string(),
    "bpchar": pa.string(),
    "name": pa.string(),
    "char": pa.string(),
    "unknown": pa.string(),
    "uuid": pa.string(),
    "json": pa.string(),
    "jsonb": pa.string(),
    "jsonpath": pa.string(),
    "record": pa.string(),
    "bytea": pa.binary(),
    "date": pa.date32(),
    "time": pa.int64(),
    "timetz": pa.int64(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", tz="UTC"),
    "interval": pa.struct(
        [
            pa.field("months", pa.int32()),
            pa.field("days", pa.int32()),
            pa.field("micros", pa.int64()),
        ]
    ),
    "void": pa.string(),
    **dict.fromkeys(REG_TYPES, pa.int64()),
}


def arrow_type(type_: SqlType) -> pa.DataType:
    """The Arrow type of a value of this PostgreSQL type."""
    if type_.name == "numeric":
        assert type_.precision is not None, "Y1 of `sql/types/sql_type.py`: numeric has a precision"
        assert type_.scale is not None, "Y1 of `sql/types/sql_type.py`: numeric has a scale"
        return pa.decimal128(type_.precision, type_.scale)
    if (element := type_.element) is not None:
        return pa.list_(pa.field("element", arrow_type(element)))
    return _SIMPLE[storage_type_name(type_.name)]


def batch_schema(columns: Sequence[PlanColumn]) -> pa.Schema:
    """The schema of the batches that an engine answers with (E1 of `compute/executor.py`)."""
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in columns])


def table_schema(
    columns: Sequence[Column], numbers: int = 0, *, change_feed: bool = False
) -> pa.Schema:
    """The schema of a table's files, batches and views. `numbers`: the largest column number that
    the table has ever used; `change_feed`: readers are told what each version changes.

    Tables that are alike have the same one.
    """
    return _table_schema(tuple(columns), numbers, change_feed)


@lru_cache(maxsize=10_000)
def _table_schema(columns: tuple[Column, ...], numbers: int, change_feed: bool) -> pa.Schema:
    fields = [_field(column) for column in columns]
    noted: dict[bytes | str, bytes | str] = {FEED_KEY: b"true"} if change_feed else {}
    if any(column.stored for column in columns):
        largest = max([numbers, *(column.number for column in columns)])
        noted[NUMBER_KEY] = str(largest).encode()
    return pa.schema(fields, metadata=noted or None)


@lru_cache(maxsize=10_000)
def _field(column: Column) -> "pa.Field[pa.DataType]":
    type_, noted = arrow_type(column.type), _noted(column)
    return pa.field(column.field, type_, nullable=not column.not_null, metadata=noted)


def _noted(column: Column) -> dict[bytes, bytes]:
    noted = {TYPE_KEY: format_type(column.type).encode()}
    if column.invariant:
        noted[INVARIANT_KEY] = json.dumps({"expression": {"expression": column.invariant}}).encode()
    if column.stored:
        noted |= {NAME_KEY: column.name.encode(), NUMBER_KEY: str(column.number).encode()}
    return noted
