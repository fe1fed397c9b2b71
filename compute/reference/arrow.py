"""Convert Arrow columns to Python values and back, by the table of `sql/types/sql_type.py`."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final, TypeAlias

import pyarrow as pa

from compute.arrow import arrow_type, batch_schema
from sql.plan.nodes import PlanColumn
from sql.types.sql_type import Interval, SqlType, Value, array_of

_Column: TypeAlias = "pa.ChunkedArray[pa.Scalar[pa.DataType]] | pa.Array[pa.Scalar[pa.DataType]]"


_FEW: Final = 4
"""Values that are taken one by one: faster than all at once, whatever they are."""

_PIECE: Final = 50_000
"""Values that are taken at once. Larger: all other threads stand meanwhile."""


def _list(column: _Column) -> list[Any]:
    if len(column) <= _FEW:
        return [column[place].as_py() for place in range(len(column))]
    found: list[Any] = []
    for first in range(0, len(column), _PIECE):
        piece = column.slice(first, _PIECE)
        found += pa.Table.from_arrays([piece], names=["values"]).to_pydict()["values"]
    return found


def to_values(column: _Column, type_: SqlType) -> Sequence[Value]:
    """The column as Python values of the type."""
    match type_.name:
        case "date":
            return _list(column.cast(pa.date32()).cast(pa.int32()))
        case "timestamp" | "timestamptz":
            return _list(column.cast(arrow_type(type_)).cast(pa.int64()))
        case "interval":
            return [
                None if item is None else Interval(item["months"], item["days"], item["micros"])
                for item in _list(column)
            ]
        case _ if (element := type_.element) is not None:
            return _array_values(column, element)
        case _:
            return _list(column)


def _array_values(column: _Column, element: SqlType) -> Sequence[Value]:
    """Convert the elements all at once, then cut them by the lists' lengths."""
    found: list[Value] = []
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        assert isinstance(chunk, pa.ListArray), "an array is a list"
        items = to_values(pa.chunked_array([chunk.flatten()]), element)
        first = 0
        for length in chunk.value_lengths().to_pylist():
            found.append(None if length is None else tuple(items[first : first + length]))
            first += length or 0
    return found


def to_array(values: Sequence[Value], type_: SqlType) -> "pa.Array[pa.Scalar[pa.DataType]]":
    """Python values as an Arrow array."""
    target = arrow_type(type_)
    match type_.name:
        case "date":
            return pa.array(values, pa.int32()).cast(target)
        case "timestamp" | "timestamptz":
            return pa.array(values, pa.int64()).cast(target)
        case "interval":
            return pa.array([_fields(value) for value in values], target)
        case "numeric":
            return pa.array([_plain(value) for value in values], target)
        case _ if (element := type_.element) is not None:
            return _array_column(values, element)
        case _:
            return pa.array(values, target)


def _array_column(values: Sequence[Value], element: SqlType) -> "pa.Array[pa.Scalar[pa.DataType]]":
    items: list[Value] = []
    ends: list[int | None] = []
    for value in values:
        assert value is None or isinstance(value, tuple), "an array is a tuple"
        ends.append(None if value is None else len(items))
        items += value or ()
    offsets = pa.array([*ends, len(items)], pa.int32())
    target = arrow_type(array_of(element))
    return pa.ListArray.from_arrays(offsets, to_array(items, element)).cast(target)


_CONVERTED: Final = frozenset({"numeric", "interval", "_numeric", "_interval"})
"""Types whose values Arrow does not take as they are."""


def _converted(value: Value) -> object:
    if isinstance(value, tuple):
        return [_converted(item) for item in value]
    return _plain(value) if isinstance(value, Decimal) else _fields(value)


def _fields(value: Value) -> tuple[int, int, int] | None:
    if value is None:
        return None
    assert isinstance(value, Interval), "an interval"
    return value.months, value.days, value.micros


def _plain(value: Value) -> Decimal | None:
    """Arrow refuses decimals with a positive exponent."""
    assert value is None or isinstance(value, Decimal), "numeric is a Decimal"
    if value is not None and (value.as_tuple().exponent or 0) > 0:  # type: ignore[operator]
        return Decimal(f"{value:f}")
    return value


class BatchMaker:
    """Rows as batches with one field for each column (E1 of `compute/executor.py`)."""

    def __init__(self, types: Sequence[SqlType], schema: pa.Schema) -> None:
        self.schema = schema
        self._struct = pa.struct(list(schema))
        self._converted = frozenset(
            at for at, type_ in enumerate(types) if type_.name in _CONVERTED
        )

    def batch(self, rows: Sequence[tuple[Value, ...]]) -> pa.RecordBatch:
        """For few rows one call of Arrow costs as much as one for each column: one for all."""
        if not len(self.schema):
            # A batch of no columns still has rows.
            counted = pa.RecordBatch.from_pydict({"z": [0] * len(rows)})
            return counted.select(list[str]())
        array = pa.array(self._plain(rows), self._struct)
        assert isinstance(array, pa.StructArray), "a struct was asked for"
        return pa.RecordBatch.from_struct_array(array)

    def _plain(self, rows: Sequence[tuple[Value, ...]]) -> Sequence[Sequence[object]]:
        """The rows as Arrow takes them."""
        if not self._converted:
            return rows
        plain: list[tuple[object, ...]] = []
        for row in rows:
            values: list[object] = list(row)
            for at in self._converted:
                values[at] = _converted(row[at])
            plain.append(tuple(values))
        return plain


def to_batch(rows: Sequence[tuple[Value, ...]], columns: Sequence[PlanColumn]) -> pa.RecordBatch:
    """Rows as a batch with one field for each column (E1 of `compute/executor.py`)."""
    return BatchMaker([column.type for column in columns], batch_schema(columns)).batch(rows)
