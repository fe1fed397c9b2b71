"""Many rows of COPY in binary at once: the places of all fields first, then column by column.

    rows ─▶ where each begins, the length of each field ─▶ numpy ─▶ Arrow

INVARIANTS
  Y5  a block holds what `BinaryReader` would read row by row, or there is no block: what is wrong
      is read row by row, by whoever knows how to say so.
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coordinator.pgwire.values import DAYS_OF_2000, MICROS_OF_2000, decode_field
from ingest.copy_text.arrow_types import shown_arrow_type, to_array
from ingest.copy_text.kernels import Column, column_of, content, from_offsets
from sql.errors import SqlError
from sql.types.datetime.calendar import MICROS_PER_DAY, days_from_civil
from sql.types.datetime.date_input import DATE_DAYS_MAX, TIMESTAMP_MICROS_END
from sql.types.sql_type import SqlType

BLOCK_ROWS_MIN: Final = 16
"""Fewer rows are read one by one. Larger: more of them are read slowly; smaller: numpy is asked
for so little that it costs more."""

LOOKALIKES_MAX: Final = 3
"""Passes over places that only look like rows: an integer that ends in the number of fields, before
a field as long as the first. Each leaves out those that no row reaches."""

GATHERED_BYTES_MAX: Final = 64
"""Texts up to this mean length are gathered byte by byte, longer ones cut out one by one."""

_NULL: Final = -1
_DAYS_MIN: Final = days_from_civil(1, 1, 1)
_SIZE: Final = struct.Struct("!i")
_COUNT: Final = struct.Struct("!h")
_INTEGER: Final = np.dtype(">i4")

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
        self._head = _head(self._lengths)

    def block(self, data: bytes, position: int) -> RowBlock | None:
        """The whole rows that begin at a position; None if they are few, or something is wrong."""
        raw = np.frombuffer(data, np.uint8)
        starts, sizes, end = self._linked(data, raw, position) or self._scan(data, position)
        if len(starts) < BLOCK_ROWS_MIN:
            return None
        widths = np.maximum(sizes, 0) + _SIZE.size
        first = starts[:, None] + _COUNT.size + _SIZE.size
        places = first + np.cumsum(widths, axis=1) - widths
        try:
            columns = [
                _column(data, raw, places[:, n], sizes[:, n], type_)
                for n, type_ in enumerate(self._types)
            ]
        except (_Irregular, SqlError, pa.ArrowInvalid):
            return None
        return RowBlock(columns, len(starts), end)

    def _linked(
        self, data: bytes, raw: npt.NDArray[np.uint8], position: int
    ) -> tuple[_Places, _Places, int] | None:
        """As `_scan`, without a look at each row: all places that look like the beginning of one
        are taken for it, but for those where none ends. They are the rows if the first is at
        `position`, each ends where the next one begins, and no row follows; else None.
        """
        places = len(raw) - position - len(self._head) + 1
        if places <= 0 or len(raw) < _SIZE.size:
            return None
        first, second, *others = self._head
        count_here = raw[position : position + places] == first
        starts = position + np.flatnonzero(count_here & (raw[position + 1 :][:places] == second))
        for at, byte in enumerate(others, 2):
            starts = starts[raw[starts + at] == byte]
        sizes, ends, is_whole = self._sizes(data, starts)
        for _ in range(LOOKALIKES_MAX):
            is_end = np.zeros(len(raw) + 1, np.bool_)
            is_end[position] = True
            is_end[ends[is_whole]] = True
            is_next = is_end[starts]
            if is_next.all():
                break
            starts, sizes = starts[is_next], sizes[is_next]
            ends, is_whole = ends[is_next], is_whole[is_next]
        count = len(starts) if is_whole.all() else int(np.argmin(is_whole))
        if count == 0 or starts[0] != position or (starts[1:count] != ends[: count - 1]).any():
            return None
        end = int(ends[count - 1])
        return None if self._row(data, end, len(data)) else (starts[:count], sizes[:count], end)

    def _sizes(
        self, data: bytes, starts: _Places
    ) -> tuple[_Places, _Places, npt.NDArray[np.bool_]]:
        """Of rows that begin here: the lengths of their fields, where they end, whether they do so
        within the data and all lengths can be.
        """
        last = len(data) - _SIZE.size
        sizes = np.empty((len(starts), len(self._types)), np.int64)
        ends, is_whole = starts + _COUNT.size, np.ones(len(starts), np.bool_)
        for column, expected in enumerate(self._lengths):
            is_whole &= ends <= last
            given = sizes[:, column] = _fields(data, _INTEGER, np.minimum(ends, last))
            right = given >= _NULL if expected is None else given == expected
            is_whole &= right | (given == _NULL)
            ends = np.minimum(ends + _SIZE.size + np.maximum(given, 0), len(data) + 1)
        return sizes, ends, is_whole & (ends <= len(data))

    def _scan(self, data: bytes, position: int) -> tuple[_Places, _Places, int]:
        """Where whole, regular rows begin, the lengths of their fields, and where they end."""
        starts: list[int] = []
        lengths: list[int] = []
        limit = len(data)
        while True:
            found = self._plain_row(data, position, limit) or self._row(data, position, limit)
            if found is None:
                sizes = np.array(lengths, np.int64).reshape(len(starts), len(self._types))
                return np.array(starts, np.int64), sizes, position
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


def _fields(data: bytes, kind: "np.dtype[Any]", places: _Places) -> _Numbers:
    """The numbers at these places, wherever they are."""
    everywhere: _Numbers = np.ndarray((len(data) - kind.itemsize + 1,), kind, data, strides=(1,))
    found: _Numbers = everywhere[places]
    return found


def _head(lengths: Sequence[int | None]) -> bytes:
    """What a row begins with whose first field is no NULL, as far as it is the same in all."""
    head = _COUNT.pack(len(lengths))
    return head if not lengths or lengths[0] is None else head + _SIZE.pack(lengths[0])


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
        return _numbers(shaped(_fields(data, kind, places[there])), there, type_)
    lengths = np.maximum(sizes, 0)
    if type_.name == "text" and lengths.sum() <= GATHERED_BYTES_MAX * len(lengths):
        return _plain_texts(_gathered(raw, places, lengths, there))
    ends = (places + lengths).tolist()
    cells = [
        data[start:end] if size != _NULL else None
        for start, end, size in zip(places.tolist(), ends, sizes.tolist(), strict=True)
    ]
    if type_.name == "text":
        return _plain_texts(column_of(cells, pa.binary()))
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


def _gathered(
    raw: npt.NDArray[np.uint8], places: _Places, lengths: _Places, there: npt.NDArray[np.bool_]
) -> Column:
    """The bytes at these places as a binary column, NULL where nothing is there."""
    ends = np.cumsum(lengths)
    content_ = raw[np.arange(ends[-1]) + np.repeat(places - ends + lengths, lengths)]
    column = from_offsets(np.concatenate(([0], ends)).astype(np.int32), content_)
    nulls = None if there.all() else pa.array(there).buffers()[1]
    buffers = [nulls, *column.buffers()[1:]]
    return cast("Column", pa.Array.from_buffers(pa.binary(), len(there), buffers))


def _plain_texts(column: Column) -> Column:
    """Texts in UTF-8 without NUL. Raises _Irregular, ArrowInvalid."""
    if b"\0" in bytes(content(column)):
        raise _Irregular
    return column.cast(pa.string())
