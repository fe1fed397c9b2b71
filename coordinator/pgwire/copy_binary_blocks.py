"""Many rows of COPY in binary at once: the places of all fields first, then column by column.

    rows ─▶ where each begins, the length of each field ─▶ numpy ─▶ Arrow

INVARIANTS
  Y5  a block holds what `BinaryReader` would read row by row, or there is no block: what is wrong
      is read row by row, by whoever knows how to say so.
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coordinator.pgwire.values import DAYS_OF_2000, MICROS_OF_2000, decode_field
from ingest.copy_text.arrow_types import shown_arrow_type, to_array
from ingest.copy_text.kernels import Column, column_of, content
from sql.errors import SqlError
from sql.types.datetime.calendar import MICROS_PER_DAY, days_from_civil
from sql.types.datetime.date_input import DATE_DAYS_MAX, TIMESTAMP_MICROS_END
from sql.types.sql_type import SqlType

BLOCK_ROWS_MIN: Final = 16
"""Fewer rows are read one by one. Larger: more of them are read slowly; smaller: numpy is asked
for so little that it costs more."""

_NULL: Final = -1
_DAYS_MIN: Final = days_from_civil(1, 1, 1)
_SIZE: Final = struct.Struct("!i")
_COUNT: Final = struct.Struct("!h")

_Numbers: TypeAlias = npt.NDArray[Any]
_Places: TypeAlias = npt.NDArray[np.int64]


class _Irregular(Exception):
    """Something that is read row by row."""


def _same(values: _Numbers) -> _Numbers:
    return values


def _between(values: _Numbers, first: int, last: int, shift: int) -> _Numbers:
    """The values on another day zero; irregular if one is out of range then."""
    if len(values) and not (first - shift <= values.min() and values.max() <= last - shift):
        raise _Irregular
    return values + shift


def _days(values: _Numbers) -> _Numbers:
    return _between(values.astype(np.int64), _DAYS_MIN, DATE_DAYS_MAX, DAYS_OF_2000)


def _micros(values: _Numbers) -> _Numbers:
    first = _DAYS_MIN * MICROS_PER_DAY
    return _between(values.astype(np.int64), first, TIMESTAMP_MICROS_END - 1, MICROS_OF_2000)


def _truth(values: _Numbers) -> _Numbers:
    found: _Numbers = values != 0
    return found


_FIXED: Final[dict[str, tuple[str, Callable[[_Numbers], _Numbers]]]] = {
    "bool": ("u1", _truth),
    "int2": (">i2", _same),
    "int4": (">i4", _same),
    "int8": (">i8", _same),
    "oid": (">u4", _same),
    "float4": (">f4", _same),
    "float8": (">f8", _same),
    "date": (">i4", _days),
    "timestamp": (">i8", _micros),
    "timestamptz": (">i8", _micros),
}
"""Types whose values have one length: the numbers on the wire, and what becomes of them."""


_STORED: Final = {"date": pa.int32(), "timestamp": pa.int64(), "timestamptz": pa.int64()}
"""What has the bits of the Arrow type, if numpy has no such type of its own."""


@dataclass(frozen=True, slots=True)
class RowBlock:
    """Rows that were read together. `end`: where the next one begins."""

    columns: Sequence[Column]
    rows: int
    end: int


class BlockDecoder:
    """Reads rows of these types."""

    def __init__(self, types: Sequence[SqlType]) -> None:
        self._types = tuple(types)
        self._lengths = [_fixed_length(type_) for type_ in types]
        self._parts = _parts(self._lengths)

    def block(self, data: bytes, position: int) -> RowBlock | None:
        """The whole rows that begin at a position; None if they are few, or something is wrong."""
        starts, lengths, end = self._scan(data, position)
        if len(starts) < BLOCK_ROWS_MIN:
            return None
        shape = (len(starts), len(self._types))
        sizes = np.array(lengths, np.int64).reshape(shape)
        widths = np.maximum(sizes, 0) + _SIZE.size
        first = np.array(starts, np.int64)[:, None] + _COUNT.size + _SIZE.size
        places = first + np.cumsum(widths, axis=1) - widths
        raw = np.frombuffer(data, np.uint8)
        try:
            columns = [
                _column(data, raw, places[:, n], sizes[:, n], type_)
                for n, type_ in enumerate(self._types)
            ]
        except (_Irregular, SqlError, pa.ArrowInvalid):
            return None
        return RowBlock(columns, len(starts), end)

    def _scan(self, data: bytes, position: int) -> tuple[list[int], list[int], int]:
        """Where whole, regular rows begin, the lengths of their fields, and where they end."""
        starts: list[int] = []
        lengths: list[int] = []
        limit = len(data)
        while True:
            found = self._plain_row(data, position, limit) or self._row(data, position, limit)
            if found is None:
                return starts, lengths, position
            starts.append(position)
            position = found[1]
            lengths += found[0]

    def _plain_row(
        self, data: bytes, position: int, limit: int
    ) -> tuple[Sequence[int], int] | None:
        """The lengths of a row without NULL, and its end; None if it is another."""
        lengths: Sequence[int] = ()
        for part, before, length in self._parts:
            if position + part.size > limit:
                return None
            found = part.unpack_from(data, position)
            size = found[-1] if length is None else length
            if found[: len(before)] != before or size < 0:
                return None
            lengths = (*lengths, *found)
            position += part.size + size
        return (lengths[1:], position) if position <= limit else None

    def _row(self, data: bytes, position: int, limit: int) -> tuple[Sequence[int], int] | None:
        """The same of any row, field by field; None if it is not whole, or wrong."""
        if position + _COUNT.size > limit:
            return None
        if _COUNT.unpack_from(data, position)[0] != len(self._types):
            return None
        position += _COUNT.size
        lengths: list[int] = []
        for expected in self._lengths:
            if position + _SIZE.size > limit:
                return None
            (size,) = _SIZE.unpack_from(data, position)
            is_wrong = expected is not None and size != expected
            if size != _NULL and (size < _NULL or is_wrong):
                return None
            lengths.append(size)
            position += _SIZE.size + max(size, 0)
        return (lengths, position) if position <= limit else None


def _fixed_length(type_: SqlType) -> int | None:
    found = _FIXED.get(type_.name)
    return None if found is None else np.dtype(found[0]).itemsize


def _parts(
    lengths: Sequence[int | None],
) -> list[tuple[struct.Struct, tuple[int, ...], int | None]]:
    """A row cut behind each length that varies: what is there, what must be, and the length of the
    last field if it is no matter of the row (it is part of the layout then, so 0).
    """
    parts: list[tuple[struct.Struct, tuple[int, ...], int | None]] = []
    layout, before = "!h", [len(lengths)]
    for length in lengths:
        layout += "i"
        if length is None:
            parts.append((struct.Struct(layout), tuple(before), None))
            layout, before = "!", []
        else:
            layout += f"{length}x"
            before.append(length)
    if before:
        parts.append((struct.Struct(layout), tuple(before), 0))
    return parts


def _column(
    data: bytes, raw: npt.NDArray[np.uint8], places: _Places, sizes: _Places, type_: SqlType
) -> Column:
    """The fields at these places as a column. Raises _Irregular, SqlError, ArrowInvalid."""
    there = sizes != _NULL
    if (fixed := _FIXED.get(type_.name)) is not None:
        kind, shaped = np.dtype(fixed[0]), fixed[1]
        fields = raw[places[there][:, None] + np.arange(kind.itemsize)]
        return _numbers(shaped(np.ascontiguousarray(fields).view(kind).reshape(-1)), there, type_)
    ends = (places + np.maximum(sizes, 0)).tolist()
    cells = [
        data[start:end] if size != _NULL else None
        for start, end, size in zip(places.tolist(), ends, sizes.tolist(), strict=True)
    ]
    if type_.name == "text":
        return _texts(cells)
    decoded = [None if cell is None else decode_field(cell, type_) for cell in cells]
    return to_array(decoded, type_)


def _numbers(values: _Numbers, there: npt.NDArray[np.bool_], type_: SqlType) -> Column:
    """The values where one is, NULL elsewhere."""
    expected = shown_arrow_type(type_)
    kind = _STORED.get(type_.name, expected)
    all_ = np.zeros(len(there), kind.to_pandas_dtype())
    all_[there] = values
    column: Column = pa.array(all_, kind, mask=~there, from_pandas=False)
    return column.view(expected) if kind is not expected else column


def _texts(cells: Sequence[bytes | None]) -> Column:
    """Texts in UTF-8 without NUL. Raises _Irregular, ArrowInvalid."""
    column = column_of(cells, pa.binary())
    if b"\0" in bytes(content(column)):
        raise _Irregular
    return column.cast(pa.string())
