"""Map SQL types and values to Arrow types and arrays, and back.

INVARIANTS
  A1  `shown_arrow_type` is `compute.arrow.arrow_type`, but for objects, which are shown by name; a
      column that comes in another guise (dictionary, large_string, string_view, other units) is
      cast to it first.
  A2  values and arrays agree: `to_values(to_array(v, t), t) == v`.
"""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from compute.arrow import arrow_type
from ingest.copy_text.kernels import Column, column_of, decimal_scale, to_python_list
from sql.types.sql_type import (
    NUMERIC_PRECISION_MAX,
    NUMERIC_SCALE_DEFAULT,
    REG_TYPES,
    Interval,
    SqlType,
    Value,
)

_NAMES: Final = frozenset(REG_TYPES)
"""They are shown by name: `reg_names.py` has looked the names up."""


def shown_arrow_type(type_: SqlType) -> pa.DataType:
    """The type of a column (A1)."""
    if type_.name == "numeric" and type_.precision is None:
        return pa.decimal128(NUMERIC_PRECISION_MAX, NUMERIC_SCALE_DEFAULT)
    if (element := type_.element) is not None:
        return pa.list_(shown_arrow_type(element))
    return pa.string() if type_.name in _NAMES else arrow_type(type_)


def normalize_column(column: Column, type_: SqlType) -> Column:
    """The column in the type's own guise (A1)."""
    expected = shown_arrow_type(type_)
    if column.type == expected:
        return column
    is_decimal = type_.name == "numeric" and pa.types.is_decimal128(column.type)
    # A narrower or wider precision changes nothing that is shown.
    if is_decimal and decimal_scale(column.type) == decimal_scale(expected):
        return column
    return column.cast(expected)


def as_integers(column: Column) -> Column:
    """Dates as days and timestamps as microseconds, without a copy."""
    return column.view(pa.int32() if pa.types.is_date32(column.type) else pa.int64())


def to_values(column: Column, type_: SqlType) -> list[Value]:
    """The values of a normalized column."""
    if type_.name in ("date", "timestamp", "timestamptz"):
        return to_python_list(as_integers(column))
    if type_.name == "interval":
        return [
            None if one is None else Interval(one["months"], one["days"], one["micros"])
            for one in to_python_list(column)
        ]
    if (element := type_.element) is not None:
        return _array_values(column, element)
    return to_python_list(column)


def _array_values(column: Column, element: SqlType) -> list[Value]:
    """The elements are converted all at once, and cut by the lists' lengths."""
    assert isinstance(column, pa.ListArray), "an array is a list"
    items = to_values(normalize_column(column.flatten(), element), element)
    found: list[Value] = []
    first = 0
    for length in column.value_lengths().to_pylist():
        found.append(None if length is None else tuple(items[first : first + length]))
        first += length or 0
    return found


def to_array(values: Sequence[Value], type_: SqlType) -> Column:
    """A column of values."""
    expected = shown_arrow_type(type_)
    if type_.name in ("date", "timestamp", "timestamptz"):
        integers = pa.int32() if type_.name == "date" else pa.int64()
        return column_of(values, integers).view(expected)
    if type_.name == "interval":
        return column_of([_fields(value) for value in values], expected)
    if (element := type_.element) is not None:
        return _array_column(values, element)
    return column_of(values, expected)


def _array_column(values: Sequence[Value], element: SqlType) -> Column:
    items: list[Value] = []
    ends: list[int | None] = []
    for value in values:
        assert value is None or isinstance(value, tuple), "an array is a tuple"
        ends.append(None if value is None else len(items))
        items += value or ()
    return pa.ListArray.from_arrays(
        pa.array([*ends, len(items)], pa.int32()), to_array(items, element)
    )


def _fields(value: Value) -> tuple[int, int, int] | None:
    if value is None:
        return None
    assert isinstance(value, Interval), "interval is an Interval"
    return value.months, value.days, value.micros
