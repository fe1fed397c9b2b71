"""Sorted key columns of a file or slice: find the rows of a key by binary search.

INVARIANTS
  O1  `among` answers as `NewKeys.among` does; sorting only finds candidates.
  O2  a column that Arrow, numpy and Python do not sort alike is not sorted but compared whole.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import reduce
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from compute.access.key_predicates import NewKeys, SingleKey
from storage.known_rows import KnownRows

TEXTS_MAX: Final = 1_000
"""Texts that are searched one by one, in Python; for more, all rows are compared."""

ROWS_MIN: Final = 1_000
"""Files with fewer rows are compared whole, if their keys are no single numbers."""


class TooManyRows(Exception):
    """More rows have a key than the caller wants."""


class SortedKeys:
    """The key columns of all rows of a file or slice. `once`: not sorted, as they are read once."""

    def __init__(self, rows: pa.Table, *, once: bool = False) -> None:
        self.rows = rows
        self._column = 0
        self._sorted: _Numbers | _Texts | None = None
        if once:
            return
        if rows.num_rows >= ROWS_MIN:
            self._column = _most_telling(rows)
            self._sorted = _ordered(rows.column(self._column))
        elif rows.num_columns == 1 and has_numeric_order(rows.schema.types[0]):
            self._sorted = _ordered(rows.column(0))

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self.rows.nbytes + (0 if self._sorted is None else self._sorted.nbytes)

    @property
    def is_ordered(self) -> bool:
        """Whether a few keys are found without comparing many rows."""
        return self._sorted is not None or self.rows.num_rows < ROWS_MIN

    @property
    def is_quick(self) -> bool:
        """Whether finding a key costs less than hashing it."""
        return isinstance(self._sorted, _Numbers)

    def having(self, key: SingleKey, at_most: int | None = None) -> list[int]:
        """The rows that have this key (O1). Raises TooManyRows for more than `at_most`, perhaps
        also if so many share the value of its most selective column.
        """
        ordered = self._sorted
        if ordered is None:
            columns = zip(self.rows.columns, key.arrays, strict=True)
            masks: list[Any] = [pc.equal(column, array[0]) for column, array in columns]
            numbers = pc.indices_nonzero(reduce(pc.and_, masks))
            if at_most is not None and len(numbers) > at_most:
                raise TooManyRows
            found: list[int] = numbers.to_pylist()
            return found
        if isinstance(ordered, _Numbers):
            candidates = ordered.find_one(key.values[self._column], at_most)
        else:
            candidates = ordered.find([key.values[self._column]], at_most)
        if not candidates or len(self.rows.columns) == 1:
            return candidates
        known = KnownRows.of(self.rows.take(pa.array(candidates, pa.int64())))
        parts = [known.values(place) for place in range(len(key.values))]
        pairs = zip(candidates, zip(*parts, strict=True), strict=True)
        return [row for row, values in pairs if values == key.values]

    def among(self, keys: NewKeys) -> list[int]:
        """The rows that have one of the keys (O1)."""
        ordered = self._sorted
        if ordered is None or not keys.is_small:
            return keys.among(self.rows)
        if isinstance(ordered, _Texts) and keys.count > TEXTS_MAX:
            return keys.among(self.rows)
        wanted = list({values[self._column] for values in keys.values})
        if None in wanted:
            return keys.among(self.rows)  # NULLs have no place in the order
        candidates = ordered.find(wanted)
        if not candidates or len(self.rows.columns) == 1:
            return candidates
        found = self.rows.take(pa.array(candidates, pa.int64()))
        return [candidates[row] for row in keys.among(found)]


def _most_telling(rows: pa.Table) -> int:
    """The most selective column: the one with the most different values."""
    if len(rows.columns) == 1:
        return 0
    counts = [int(pc.count_distinct(column).as_py()) for column in rows.columns]
    return counts.index(max(counts))


class _Numbers:
    """Integers, and types that are stored as such. `order`: None if they ascend as they are."""

    def __init__(self, values: npt.NDArray[np.int64], order: npt.NDArray[np.int64] | None) -> None:
        self._values = values
        self._order = order
        # Bisection of these costs a tenth of what numpy asks for one number.
        self._numbers = values.data

    @property
    def nbytes(self) -> int:
        return int(self._values.nbytes) + (0 if self._order is None else int(self._order.nbytes))

    def find_one(self, wanted: Any, at_most: int | None = None) -> list[int]:
        """The rows that have this value. Raises TooManyRows."""
        numbers = self._numbers
        low = bisect_left(numbers, wanted)
        if low == len(numbers) or numbers[low] != wanted:
            return []
        # Most keys are unique: to look at the next one costs less than another bisection.
        high = low + 1
        if high < len(numbers) and numbers[high] == wanted:
            high = bisect_right(numbers, wanted, high)
        return _rows([low], [high], self._order, at_most)

    def find(self, wanted: Sequence[Any], at_most: int | None = None) -> list[int]:
        """The rows that have one of these values. Raises TooManyRows."""
        if len(wanted) == 1:
            return self.find_one(wanted[0], at_most)
        given = np.array(wanted, dtype=np.int64)
        lows = np.searchsorted(self._values, given, "left")
        highs = np.searchsorted(self._values, given, "right")
        return _rows(lows.tolist(), highs.tolist(), self._order, at_most)


class _Texts:
    """Texts. Arrow sorts them by bytes and Python by characters, which is the same order."""

    def __init__(self, values: "pa.Array[Any]", order: npt.NDArray[np.int64]) -> None:
        self._values = values
        self._order = order

    @property
    def nbytes(self) -> int:
        return int(self._order.nbytes)

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, place: int) -> str:
        return str(self._values[int(self._order[place])].as_py())

    def find(self, wanted: Sequence[Any], at_most: int | None = None) -> list[int]:
        """The rows that have one of these values. Raises TooManyRows."""
        lows = [bisect_left(self, text) for text in wanted]
        highs = [bisect_right(self, text) for text in wanted]
        return _rows(lows, highs, self._order, at_most)


def _rows(
    lows: Sequence[int],
    highs: Sequence[int],
    order: npt.NDArray[np.int64] | None,
    at_most: int | None,
) -> list[int]:
    if at_most is not None and sum(highs) - sum(lows) > at_most:
        raise TooManyRows
    if len(lows) == 1 and highs[0] == lows[0] + 1:
        return [lows[0] if order is None else int(order[lows[0]])]
    found: list[int] = []
    for low, high in zip(lows, highs, strict=True):
        found += range(low, high) if order is None else order[low:high].tolist()
    return sorted(found)


def has_numeric_order(type_: pa.DataType) -> bool:
    """Whether values of a type are sorted as integers."""
    return bool(
        pa.types.is_integer(type_) or pa.types.is_date32(type_) or pa.types.is_timestamp(type_)
    )


def _ordered(column: "pa.ChunkedArray[Any]") -> _Numbers | _Texts | None:
    type_ = column.type
    if pa.types.is_string(type_):
        order = pc.sort_indices(column).to_numpy().astype(np.int64)
        return _Texts(column.combine_chunks(), order[: len(column) - column.null_count])
    if not has_numeric_order(type_):
        return None
    # NULLs have no place in the order: no key that is looked up has one.
    there = np.flatnonzero(column.is_valid().to_numpy()) if column.null_count else None
    plain = column if there is None else column.drop_null()
    if not pa.types.is_integer(type_):
        plain = plain.cast(pa.int32() if pa.types.is_date32(type_) else pa.int64())
    values = plain.to_numpy().astype(np.int64)
    if there is None and bool((values[:-1] <= values[1:]).all()):
        return _Numbers(values, None)
    order = np.argsort(values, kind="stable").astype(np.int64)
    return _Numbers(values[order], order if there is None else there[order])
