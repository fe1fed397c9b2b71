"""Encode columns in PostgreSQL's binary format, a whole column at a time.

INVARIANTS
  N1  every cell equals `values.encode_value` of its value.
"""

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa

from coordinator.pgwire.cells import (
    Cells,
    FixedCells,
    VariableCells,
    big_endian,
    valid_mask,
    variable_cells,
)
from coordinator.pgwire.column_numeric import numeric_cells
from coordinator.pgwire.messages import BINARY_FORMAT
from coordinator.pgwire.values import DAYS_OF_2000, MICROS_OF_2000, encode_value
from ingest.copy_text.arrow_types import as_integers, to_values
from ingest.copy_text.kernels import (
    Bytes,
    Column,
    Mask,
    characters,
    column_of,
    from_offsets,
    numbers,
    offsets,
    pad_right,
)
from sql.types.catalog_types import is_catalog_type
from sql.types.enums import storage_type_name
from sql.types.sql_type import SqlType

BinaryColumn = Callable[[Column], Cells]

_LAYOUTS: Final = {
    "bool": ">u1", "int2": ">i2", "int4": ">i4", "int8": ">i8", "oid": ">u4", "float4": ">f4",
    "float8": ">f8", "date": ">i4", "time": ">i8", "timestamp": ">i8", "timestamptz": ">i8",
}  # fmt: skip
_EPOCHS: Final = {
    "date": DAYS_OF_2000, "timestamp": MICROS_OF_2000, "timestamptz": MICROS_OF_2000,
}  # fmt: skip
_PADDED: Final = "bpchar"
_STRINGS: Final = frozenset({"text", "varchar", "name", "unknown", "bytea", "void", "json"})
_UUID_BYTES: Final = 16
_UUID_DIGITS: Final = 32
_NIBBLES: Final = np.array(
    [int(chr(code), 16) if chr(code) in "0123456789abcdef" else 255 for code in range(256)],
    np.uint8,
)


def binary_column(type_: SqlType) -> BinaryColumn:
    """How a column of the type becomes binary cells."""
    if type_.name in _LAYOUTS:
        return lambda column: _numbers(column, type_)
    if type_.name == _PADDED and type_.length is not None:
        width = type_.length
        return lambda column: variable_cells(pad_right(column, width), valid_mask(column))
    is_string = storage_type_name(type_.name) in _STRINGS or type_.name == _PADDED
    if is_string and (not is_catalog_type(type_.name) or type_.name == "pg_node_tree"):
        return lambda column: variable_cells(column, valid_mask(column))
    if type_.name == "uuid":
        return _uuids
    if type_.name == "numeric":
        return lambda column: numeric_cells(column, type_) or _python_cells(column, type_)
    return lambda column: _python_cells(column, type_)


def _python_cells(column: Column, type_: SqlType) -> VariableCells:
    cells = [
        None if value is None else encode_value(value, type_, BINARY_FORMAT)
        for value in to_values(column, type_)
    ]
    return variable_cells(column_of(cells, pa.binary()), valid_mask(column))


def _numbers(column: Column, type_: SqlType) -> Cells:
    valid = valid_mask(column)
    if type_.name == "bool":
        column = column.cast(pa.uint8())
    elif type_.name in _EPOCHS:
        column = as_integers(column)
    values = numbers(column)
    epoch = _EPOCHS.get(type_.name)
    if epoch is not None:
        values = values - values.dtype.type(epoch)
    return _with_nulls(big_endian(values, _LAYOUTS[type_.name]), valid)


def _with_nulls(data: Bytes, valid: Mask | None) -> Cells:
    """Cells of one width, or of that width and none."""
    if valid is None:
        return FixedCells(data)
    width = data.shape[1]
    starts = np.zeros(len(valid) + 1, np.int32)
    np.cumsum(valid * width, out=starts[1:])
    return VariableCells(from_offsets(starts, np.ascontiguousarray(data[valid]).reshape(-1)), valid)


def _uuids(column: Column) -> Cells:
    """Hexadecimal digits to bytes; the text is canonical, 36 characters."""
    valid = valid_mask(column)
    present = column if valid is None else column.drop_null()
    rows = len(present)
    starts = offsets(present)
    nibbles = _NIBBLES[characters(present)[starts[0] : starts[-1]]]
    nibbles = nibbles[nibbles != 255]
    assert len(nibbles) == rows * _UUID_DIGITS, "a uuid is canonical text"
    packed = (nibbles[0::2] << 4 | nibbles[1::2]).astype(np.uint8).reshape(rows, _UUID_BYTES)
    if valid is None:
        return FixedCells(packed)
    data = np.zeros((len(valid), _UUID_BYTES), np.uint8)
    data[valid] = packed
    return _with_nulls(data, valid)
