"""Bloom filters over the keys of data files: skip files that surely lack some keys.

    key columns ─▶ a hash for each row ─▶ BITS_PER_ROW bits in the file's filter
    new keys    ─▶ their hashes        ─▶ in none: the file is not read again

INVARIANTS
  B1  equal keys have equal hashes, however their columns are cut into chunks: a filter never denies
      a key that its file has.
  B2  memory is bounded by FILTERS_BYTES_MAX; keys that do not fit or cannot be hashed have no
      filter.
  B3  data files never change, so a filter stays right and is never updated.

A filter is built when a file's keys are read for the first time. It helps with keys without an
order, such as UUIDs, where the minimum and maximum of a file exclude nothing.
"""

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Hashes: TypeAlias = npt.NDArray[np.uint64]

FILTERS_BYTES_MAX: Final = 64 << 20
"""Larger: more rows whose keys are looked up without reading a file: about 40 million here."""

ROWS_MAX: Final = 8_000_000
"""Of one file. Larger: making a filter takes more memory for a moment."""

BITS_PER_ROW: Final = 12
PROBES: Final = 6
"""Together: one look in three hundred finds a key that is not there."""

FEW_KEYS_MAX: Final = 16
"""Keys that are looked up one by one: for so few, numpy costs more than it saves."""

_TEXT_BYTES_MAX: Final = 1 << 12
"""Of the longest text of a key that is hashed."""

_CHUNK_ROWS: Final = 1 << 16
_NULL: Final = np.uint64(0x9E3779B97F4A7C15)
_WORD: Final = (1 << 64) - 1
_BASE: Final = 0x100000001B3
_POWERS: Final[Hashes] = np.cumprod(
    np.full(_TEXT_BYTES_MAX, _BASE, dtype=np.uint64), dtype=np.uint64
)


class KeyBloomFilter:
    """The keys of one file (B1)."""

    __slots__ = ("_bits", "_size")

    def __init__(self, hashes: Hashes) -> None:
        self._size = max(64, BITS_PER_ROW * len(hashes))
        marks = np.zeros(self._size, dtype=np.bool_)
        for probe in _probes(hashes, self._size):
            marks[probe] = True
        self._bits = np.packbits(marks, bitorder="little").tobytes()

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return len(self._bits)

    def may_have(self, hashes: Hashes | Sequence[int]) -> bool:
        """Whether the file may have one of the keys with these hashes."""
        if len(hashes) == 1:
            return self._may_have_one(int(hashes[0]))
        if len(hashes) <= FEW_KEYS_MAX or not isinstance(hashes, np.ndarray):
            return any(self._may_have_one(int(value)) for value in hashes)
        bits = np.frombuffer(self._bits, np.uint8)
        found = np.ones(len(hashes), dtype=np.bool_)
        for probe in _probes(hashes, self._size):
            found &= (
                bits[probe >> np.uint64(3)] >> (probe & np.uint64(7)).astype(np.uint8)
            ) & 1 > 0
        return bool(found.any())

    def _may_have_one(self, value: int) -> bool:
        first, step = value & 0xFFFFFFFF, (value >> 32) | 1
        for number in range(PROBES):
            place = (first + number * step) % self._size
            if not self._bits[place >> 3] >> (place & 7) & 1:
                return False
        return True


def _probes(hashes: Hashes, size: int) -> Iterator[Hashes]:
    first = hashes & np.uint64(0xFFFFFFFF)
    step = (hashes >> np.uint64(32)) | np.uint64(1)
    for number in range(PROBES):
        yield (first + np.uint64(number) * step) % np.uint64(size)


class BloomFilterCache:
    """The filters of many files (B2). The caller ensures that one thread at a time changes them."""

    def __init__(self, bytes_max: int = FILTERS_BYTES_MAX) -> None:
        self._filters: OrderedDict[Hashable, KeyBloomFilter] = OrderedDict()
        self._bytes_max = bytes_max
        self._bytes = 0

    def get(self, place: Hashable) -> KeyBloomFilter | None:
        """The filter of a file, if it has one."""
        return self._filters.get(place)

    def add(self, place: Hashable, made: KeyBloomFilter) -> None:
        """Keep a filter and evict the oldest ones that it displaces."""
        if place in self._filters or made.nbytes > self._bytes_max:
            return
        self._filters[place] = made
        self._bytes += made.nbytes
        while self._bytes > self._bytes_max:
            _, gone = self._filters.popitem(last=False)
            self._bytes -= gone.nbytes


def build_bloom_filter(columns: Sequence[Any]) -> KeyBloomFilter | None:
    """Build the filter of a file from its key columns; None if it can have none (B2)."""
    if len(columns[0]) > ROWS_MAX:
        return None
    hashes = row_hashes(columns)
    return None if hashes is None else KeyBloomFilter(hashes)


# --- hashes -------------------------------------------------------------------------------------


def row_hashes(columns: Sequence[Any]) -> Hashes | None:
    """A hash for each row of Arrow columns; None for types whose equal values differ in bits."""
    found: Hashes | None = None
    for column in columns:
        hashes = _column_hashes(column)
        if hashes is None:
            return None
        found = hashes if found is None else _mixed(found * np.uint64(31) + hashes)
    return found


def hash_of_row(values: Sequence[object], types: Sequence[pa.DataType]) -> int | None:
    """The hash of one row of numbers, moments and texts, as `row_hashes` has it; None: it is for
    `row_hashes` to say. For one row, numpy costs ten times as much.
    """
    found: int | None = None
    for value, kind in zip(values, types, strict=True):
        if isinstance(value, int) and (pa.types.is_integer(kind) or pa.types.is_temporal(kind)):
            one = _mixed_one(value)
        elif isinstance(value, str) and pa.types.is_string(kind):
            content = value.encode()
            if len(content) > _TEXT_BYTES_MAX:
                return None
            one, power = len(content), 1
            for byte in content:
                power = power * _BASE & _WORD
                one += (byte + 1) * power
            one = _mixed_one(one)
        else:
            return None
        found = one if found is None else _mixed_one(found * 31 + one)
    return found


def _mixed_one(value: int) -> int:
    """As `_mixed`."""
    value &= _WORD
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & _WORD
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & _WORD
    return value ^ (value >> 31)


def _column_hashes(column: Any) -> Hashes | None:
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    parts: list[Hashes] = []
    for chunk in chunks:
        for first in range(0, len(chunk), _CHUNK_ROWS):
            hashes = _array_hashes(chunk.slice(first, _CHUNK_ROWS))
            if hashes is None:
                return None
            parts.append(hashes)
    return np.concatenate(parts) if parts else np.empty(0, np.uint64)


def _array_hashes(array: Any) -> Hashes | None:
    kind = array.type
    hashes: Hashes | None = None
    if pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        hashes = _word_hashes(array)
    elif pa.types.is_fixed_size_binary(kind) or pa.types.is_decimal128(kind):
        hashes = _fixed_hashes(array)
    elif pa.types.is_string(kind) or pa.types.is_binary(kind):
        hashes = _text_hashes(array, np.int32)
    elif pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        hashes = _text_hashes(array, np.int64)
    if hashes is None or not array.null_count:
        return hashes
    return np.where(pc.is_null(array).to_numpy(zero_copy_only=False), _NULL, hashes)


def _mixed(values: Hashes) -> Hashes:
    """Every bit depends on every bit (the end of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _word_hashes(array: Any) -> Hashes | None:
    width = array.type.bit_width
    if width not in (8, 16, 32, 64):
        return None
    words: Any = pc.fill_null(array.view(f"int{width}"), 0)
    return _mixed(words.to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64))


def _fixed_hashes(array: Any) -> Hashes | None:
    width = array.type.bit_width // 8
    content = array.buffers()[1]
    if width == 0 or width % 8 or content is None:
        return None
    words = np.frombuffer(content, np.uint64, offset=array.offset * width)
    rows = words[: len(array) * width // 8].reshape(len(array), width // 8)
    found = np.full(len(array), width, np.uint64)
    for place in range(width // 8):
        found = _mixed(found * np.uint64(31) + rows[:, place])
    return found


def _text_hashes(array: Any, offset_type: type[np.int32] | type[np.int64]) -> Hashes | None:
    _, starts, content = array.buffers()
    size = np.dtype(offset_type).itemsize
    offsets = np.frombuffer(starts, offset_type, len(array) + 1, array.offset * size)
    lengths = np.diff(offsets)
    if len(array) and int(lengths.max()) > _TEXT_BYTES_MAX:
        return None
    first, last = int(offsets[0]), int(offsets[-1])
    if content is None or first == last:
        return _mixed(lengths.astype(np.uint64))
    bytes_ = np.frombuffer(content, np.uint8, last - first, first).astype(np.uint64)
    within = np.arange(last - first) - np.repeat(offsets[:-1] - first, lengths)
    sums = np.zeros(last - first + 1, np.uint64)
    np.cumsum((bytes_ + np.uint64(1)) * _POWERS[within], out=sums[1:])
    hashes = sums[offsets[1:] - first] - sums[offsets[:-1] - first]
    return _mixed(hashes + lengths.astype(np.uint64))
