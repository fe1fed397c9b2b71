"""Rows as values that can be compared to the bit: 0 is not -0, NaN is NaN.

batch ─▶ row_images ─▶ one hashable value a row
"""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import pyarrow as pa

ImageColumn: TypeAlias = (
    "pa.Array[pa.Scalar[pa.DataType]] | pa.ChunkedArray[pa.Scalar[pa.DataType]]"
)


def row_images(columns: Sequence[ImageColumn], rows: int) -> Iterable[tuple[object, ...]]:
    """Each row as something that is equal for the same row only."""
    if not columns:
        return [()] * rows
    return zip(*map(_column_images, columns), strict=True)


def _column_images(column: ImageColumn) -> Sequence[object]:
    values = [value.as_py() for value in column]
    if pa.types.is_floating(column.type):
        return [value.hex() if isinstance(value, float) else value for value in values]
    # Values with parts cannot be hashed, and have floats in them: their text tells all apart.
    return list(map(repr, values)) if pa.types.is_nested(column.type) else values
