"""Arrow columns to Python values and back, by the table of `sql/types.py`."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from compute.arrow import arrow_type
from sql.plan import PlanColumn
from sql.types import Interval, SqlType, Value


def _list(column: "pa.ChunkedArray[pa.Scalar[pa.DataType]]") -> list[Any]:
    return pa.Table.from_arrays([column], names=["values"]).to_pydict()["values"]


def to_values(column: "pa.ChunkedArray[pa.Scalar[pa.DataType]]", type_: SqlType) -> Sequence[Value]:
    """The column as Python values of the type."""
    match type_.name:
        case "date":
            return _list(column.cast(pa.date32()).cast(pa.int32()))
        case "timestamp" | "timestamptz":
            return _list(column.cast(arrow_type(type_)).cast(pa.int64()))
        case "interval":
            return [
                None if item is None else Interval(item.months, item.days, item.nanoseconds // 1000)
                for item in _list(column)
            ]
        case _:
            return _list(column)


def to_array(values: Sequence[Value], type_: SqlType) -> "pa.Array[pa.Scalar[pa.DataType]]":
    """Python values as a column."""
    target = arrow_type(type_)
    match type_.name:
        case "date":
            return pa.array(values, pa.int32()).cast(target)
        case "timestamp" | "timestamptz":
            return pa.array(values, pa.int64()).cast(target)
        case "interval":
            return pa.array([_nanos(value) for value in values], target)
        case "numeric":
            return pa.array([_plain(value) for value in values], target)
        case _:
            return pa.array(values, target)


def _nanos(value: Value) -> tuple[int, int, int] | None:
    if value is None:
        return None
    assert isinstance(value, Interval), "an interval"
    return value.months, value.days, value.micros * 1000


def _plain(value: Value) -> Decimal | None:
    """Arrow refuses decimals with a positive exponent."""
    assert value is None or isinstance(value, Decimal), "numeric is a Decimal"
    if value is not None and (value.as_tuple().exponent or 0) > 0:  # type: ignore[operator]
        return Decimal(f"{value:f}")
    return value


def to_batch(rows: Sequence[tuple[Value, ...]], columns: Sequence[PlanColumn]) -> pa.RecordBatch:
    """Rows as a batch with one field for each column (E1)."""
    schema = pa.schema([pa.field(column.name, arrow_type(column.type)) for column in columns])
    if not columns:
        # A batch of no columns still has rows.
        counted = pa.RecordBatch.from_pydict({"z": [0] * len(rows)})
        return counted.select(list[str]())
    values = zip(*rows, strict=True)
    arrays = [to_array(column, meta.type) for column, meta in zip(values, columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
