"""Convert a small answer of DuckDB to a record batch through Python values.

Fetching Arrow batches parses the statement three times and plans it once more: most of the cost of
a small answer.

INVARIANTS
  R1  a batch is the one that Arrow would have given, or there is none. Python has fewer dates and
      times than DuckDB, and gives those that it lacks as other values or as text.
"""

from collections.abc import Sequence
from datetime import MAXYEAR, MINYEAR
from typing import Any, Final

import pyarrow as pa

from compute.duckdb.statements import FEW_ROWS

_FAILURES: Final = (pa.ArrowException, AttributeError, OverflowError, TypeError, ValueError)


def small_batch(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch | None:
    """The rows as a batch; None if they are too many or cannot be converted exactly (R1)."""
    if len(rows) > FEW_ROWS or not len(schema):
        return None
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    try:
        arrays = [
            pa.array(values, field.type)
            for values, field in zip(columns, schema, strict=True)
            if _is_plain(values, field.type)
        ]
    except _FAILURES:
        return None
    if len(arrays) < len(schema):
        return None
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _is_plain(values: Sequence[Any], type_: pa.DataType) -> bool:
    if isinstance(type_, pa.ListType):
        inner = type_.value_type
        return not (pa.types.is_nested(inner) or pa.types.is_temporal(inner))
    if not pa.types.is_temporal(type_):
        return True
    return all(
        value is None or (not isinstance(value, str) and MINYEAR < value.year < MAXYEAR)
        for value in values
    )


def conform_duckdb_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """DuckDB's batch with the names and types of the plan's columns."""
    if not len(schema):
        return batch.select(list[str]())
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
