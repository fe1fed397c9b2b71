"""Join encoded columns into framed rows, without a loop over the rows.

    Fixed      n x k bytes, no NULL          ┐
    Variable   a binary array + which are    ┴─▶ join_rows ─▶ D len n | len val | len val ..
               valid

INVARIANTS
  C1  a NULL cell has no bytes in `values`; its length on the wire is -1.
  C2  the bytes of a batch stay below 2 GiB, Arrow's offset limit: the caller slices by estimate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from ingest.copy_text.kernels import (
    Bytes,
    Column,
    Floats,
    Ints,
    Mask,
    content,
    fill_nulls,
    from_offsets,
    join_pieces,
    mask_of,
    offsets,
)

_ROW_HEADER_BYTES: Final = 7
_FRAME_HEADER_BYTES: Final = 5


@dataclass(frozen=True, slots=True)
class FixedCells:
    """Cells of one width: an array of shape (rows, width)."""

    data: Bytes


@dataclass(frozen=True, slots=True)
class VariableCells:
    """Cells of any width: a binary array without nulls, and where they stood (None: nowhere)."""

    values: Column
    valid: Mask | None = None


Cells: TypeAlias = FixedCells | VariableCells


def valid_mask(column: Column) -> Mask | None:
    """Which rows are not NULL; None if all are."""
    return None if column.null_count == 0 else mask_of(column.is_valid())


def variable_cells(column: Column, valid: Mask | None) -> VariableCells:
    """Cells of a string or binary column; `valid` tells what a NULL was before (C1)."""
    nothing = "" if pa.types.is_string(column.type) else b""
    return VariableCells(fill_nulls(column, nothing).cast(pa.binary()), valid)


def lengths(values: Column) -> Ints:
    """Bytes of each value of a binary column."""
    return np.diff(offsets(values)).astype(np.int64)


def binary_from_fixed(data: Bytes) -> Column:
    """A binary column of rows of one width, without a copy."""
    count, width = data.shape
    starts = np.arange(0, (count + 1) * width, width, dtype=np.int32)
    return from_offsets(starts, np.ascontiguousarray(data))


def big_endian(values: Ints | Floats | Bytes, layout: str) -> Bytes:
    """Numbers as bytes of shape (rows, width)."""
    swapped = np.ascontiguousarray(values.astype(layout))
    return swapped.view(np.uint8).reshape(len(values), -1)


class RowJoiner:
    """Puts pieces side by side: neighbours of fixed width become one block first."""

    def __init__(self) -> None:
        self._pieces: list[Column | Bytes] = []
        self._block: list[Bytes] = []

    def add_fixed(self, data: Bytes) -> None:
        """The same number of bytes in every row."""
        self._block.append(data)

    def add_values(self, values: Column) -> None:
        """A binary array without nulls."""
        self._end_block()
        self._pieces.append(values)

    def _end_block(self) -> None:
        if self._block:
            block = self._block[0] if len(self._block) == 1 else np.hstack(self._block)
            self._pieces.append(block)
            self._block = []

    def join(self) -> memoryview:
        """All rows, one behind the other."""
        self._end_block()
        if len(self._pieces) == 1 and isinstance(self._pieces[0], np.ndarray):
            return np.ascontiguousarray(self._pieces[0]).data.cast("B")
        arrays = [binary_from_fixed(p) if isinstance(p, np.ndarray) else p for p in self._pieces]
        return content(join_pieces(*arrays))


def join_rows(columns: Sequence[Cells], rows: int, kind: bytes = b"D") -> memoryview:
    """Framed DataRows (C2), or messages of another kind that look like them."""
    sizes = [_sizes(cells) for cells in columns]
    total = np.full(rows, 6 + 4 * len(columns), np.int64)
    for size in sizes:
        total += size
    header = np.empty((rows, _ROW_HEADER_BYTES), np.uint8)
    header[:, 0] = kind[0]
    header[:, 1:5] = big_endian(total, ">i4")
    header[:, 5:7] = np.frombuffer(len(columns).to_bytes(2, "big"), np.uint8)
    joiner = RowJoiner()
    joiner.add_fixed(header)
    for cells, size in zip(columns, sizes, strict=True):
        if isinstance(cells, FixedCells):
            joiner.add_fixed(_repeated(cells.data.shape[1].to_bytes(4, "big"), rows))
            joiner.add_fixed(cells.data)
            continue
        shown = size if cells.valid is None else np.where(cells.valid, size, -1)
        joiner.add_fixed(big_endian(shown, ">i4"))
        joiner.add_values(cells.values)
    return joiner.join()


def _sizes(cells: Cells) -> Ints:
    """Bytes of each cell, 0 for NULL."""
    if isinstance(cells, FixedCells):
        rows, width = cells.data.shape
        return np.full(rows, width, np.int64)
    return lengths(cells.values)


def _repeated(piece: bytes, rows: int) -> Bytes:
    return np.broadcast_to(np.frombuffer(piece, np.uint8), (rows, len(piece)))


def join_frames(kind: bytes, pieces: Sequence[Column | bytes], rows: int) -> memoryview:
    """Messages of this type, one a row, whose content is the pieces side by side."""
    total = np.full(rows, 4, np.int64)
    for piece in pieces:
        total += len(piece) if isinstance(piece, bytes) else lengths(piece)
    header = np.empty((rows, _FRAME_HEADER_BYTES), np.uint8)
    header[:, 0] = kind[0]
    header[:, 1:5] = big_endian(total, ">i4")
    joiner = RowJoiner()
    joiner.add_fixed(header)
    for piece in pieces:
        if isinstance(piece, bytes):
            joiner.add_fixed(_repeated(piece, rows))
        else:
            joiner.add_values(piece)
    return joiner.join()
