"""Few rows of DuckDB as Python values, and as a batch of ours.

The way through Arrow parses the statement three times and plans one more, which for a small answer
is most of its cost.

INVARIANTS
  R1  a batch is the one that Arrow would have brought, or there is none: of times Python has fewer
      than DuckDB, and shows those that it lacks as others, or as text.
"""

from collections.abc import Sequence
from datetime import MAXYEAR, MINYEAR
from typing import Any, Final

import pyarrow as pa

from compute.duckdb.statements import FEW_ROWS

_FAILURES: Final = (pa.ArrowException, AttributeError, OverflowError, TypeError, ValueError)


def few_rows(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch | None:
    """The rows as a batch; None if they are not few, or not to be had so (R1)."""
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
