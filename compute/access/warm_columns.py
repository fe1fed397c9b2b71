"""The columns of a row group that is in memory, to take the cells of single rows from.

INVARIANTS
  C1  `cell` gives what Arrow's `as_py` does, without making a scalar where that can be done.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

import numpy as np
import pyarrow as pa

from sql.types.sql_type import Value
from storage.known_rows import Column

_Cell: TypeAlias = Callable[[int], Value]


class WarmColumn:
    """One of them. `values`: as it is stored; `cell`: what a row has (C1)."""

    __slots__ = ("cell", "type", "values")

    def __init__(self, values: Column) -> None:
        # Taking a row from many chunks would look for the right one.
        chunk: Any = values.chunk(0) if values.num_chunks == 1 else values
        self.values = cast("Column", chunk)
        self.type = values.type
        self.cell = _cells(chunk)


def warm_columns(rows: pa.Table) -> Mapping[str, WarmColumn]:
    """The columns of a table by name."""
    names, columns = rows.schema.names, rows.columns
    return {name: WarmColumn(column) for name, column in zip(names, columns, strict=True)}


def _cells(values: Any) -> _Cell:
    if isinstance(values, pa.Array) and len(values) and not values.null_count:
        if pa.types.is_integer(values.type) or pa.types.is_float64(values.type):
            return cast("_Cell", values.to_numpy().data.__getitem__)
        if pa.types.is_string(values.type):
            return _texts(values)
    return lambda row: cast("Value", values[row].as_py())


def _texts(values: "pa.Array[Any]") -> _Cell:
    _, bounds, content = values.buffers()
    assert bounds is not None, "texts have offsets"
    last = values.offset + len(values)
    ends = np.frombuffer(memoryview(bounds), np.int32)[values.offset : last + 1].data
    data = memoryview(b"" if content is None else content)

    def cell(row: int) -> Value:
        return str(data[ends[row] : ends[row + 1]], "utf-8")

    return cell
