"""A row as PostgreSQL shows it in `Failing row contains (..)`."""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from sql.catalog import Column
from sql.text_output import format_text
from sql.types import Interval, Value

SHOWN_CHARACTERS_MAX: Final = 64
"""PostgreSQL cuts values there, so that an error never carries a large row."""


def failing_row(columns: Sequence[Column], row: pa.RecordBatch) -> str:
    """The values of a one-row batch, separated by commas."""
    assert row.num_rows == 1, "one row fails at a time"
    return ", ".join(
        _shown(column, value_of(row.column(ordinal))) for ordinal, column in enumerate(columns)
    )


def _shown(column: Column, value: Value) -> str:
    if value is None:
        return "null"
    text = format_text(value, column.type)
    if len(text) <= SHOWN_CHARACTERS_MAX:
        return text
    return text[:SHOWN_CHARACTERS_MAX] + "..."


def value_of(array: pa.Array) -> Value:
    """The first value of an array, as `sql/types.py` has it in Python."""
    if pa.types.is_date(array.type):
        array = array.cast(pa.int32())
    elif pa.types.is_timestamp(array.type):
        array = array.cast(pa.int64())
    value = array[0].as_py()
    if isinstance(value, pa.MonthDayNano):
        return Interval(value.months, value.days, value.nanoseconds // 1000)
    checked: Value = value
    return checked
