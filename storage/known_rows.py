"""Known column values of written rows, so that predicates can be tested against a commit.

    inserted inline   every column is known
    deleted           the columns that the UPDATE or DELETE has read anyway

INVARIANTS
  N1  a column that is there holds the true values, in row order; one that is missing may hold
      anything.
  N2  values are converted once, however many predicates look at them.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import field
from decimal import Decimal
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from storage.batch import Deletes, bytes_of
from storage.fast_dataclass import fast_dataclass
from storage.unencoded_rows import SliceRows, UnencodedRows, table_of

Column: TypeAlias = "pa.ChunkedArray[pa.Scalar[pa.DataType]]"
Bound: TypeAlias = int | Decimal | str
Interval: TypeAlias = tuple[Bound | None, Bound | None]
"""Least and greatest value, both within; None: no bound."""


_EQUAL_TO_THEMSELVES: Final = frozenset({int, str, bytes, bool})
NAN: Final = ("NaN",)
"""NaN is equal to itself in PostgreSQL, and not in Python."""


def equal_key(values: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
    """The values of a key, equal to those of another one exactly when PostgreSQL says so."""
    if all(type(value) in _EQUAL_TO_THEMSELVES for value in values):
        return values
    return tuple([_equal(value) for value in values])


def _equal(value: Hashable) -> Hashable:
    if isinstance(value, tuple):
        return equal_key(value)
    return value if value == value else NAN  # noqa: PLR0124, as only NaN is not


@fast_dataclass(frozen=True, slots=True, eq=False)
class KnownRows:
    """See the module; columns by ordinal."""

    count: int
    columns: Mapping[int, Column]
    _values: dict[int, Sequence[Any]] = field(default_factory=dict[int, Sequence[Any]], repr=False)

    @classmethod
    def of(cls, rows: SliceRows) -> "KnownRows":
        """All columns of rows."""
        if isinstance(rows, UnencodedRows) and rows.num_rows:
            return cls.of_values(rows.values, rows.nbytes, rows.table, _is_there)
        return cls(rows.num_rows, _ColumnsOf(table_of(rows)))

    @classmethod
    def of_values(
        cls,
        rows: Sequence[tuple[object, ...]],
        nbytes: int,
        make: Callable[[], pa.Table],
        is_plain: Callable[[int], bool],
    ) -> "KnownRows":
        """All columns of a table, which is made for the first who asks: for most nobody does.
        `nbytes`: about what it takes; `is_plain`: whether the values of a column are what Arrow
        would give back.
        """
        return cls(len(rows), _ColumnsOfRows(nbytes, make, rows, is_plain))

    @property
    def nbytes(self) -> int:
        """What the columns take in memory."""
        if isinstance(self.columns, _ColumnsOf | _ColumnsOfRows):
            return self.columns.nbytes
        return sum(bytes_of(column) for column in self.columns.values())

    def values(self, ordinal: int) -> Sequence[Any]:
        """A column as Python values (N2); dates and timestamps are integers, as in SQL plans."""
        known = self._values.get(ordinal)
        if known is None:
            columns = self.columns
            if isinstance(columns, _ColumnsOfRows) and columns.is_plain(ordinal):
                known = [row[ordinal] for row in columns.rows]
            else:
                known = _listed(_integral(columns[ordinal]))
            self._values[ordinal] = known
        return known

    def within(self, bounds: Mapping[int, Interval]) -> "KnownRows":
        """The rows that lie within all of these bounds, of columns that are known."""
        columns = dict(self.columns)
        count = self.count
        for ordinal, interval in bounds.items():
            if count and ordinal in columns and interval != (None, None):
                mask = _inside(_integral(columns[ordinal]), interval)
                columns = {at: column.filter(mask) for at, column in columns.items()}
                count = len(columns[ordinal])
        return KnownRows(count, columns)


def _is_there(_ordinal: int) -> bool:
    return True


class _ColumnsOf(Mapping[int, Column]):
    """The columns of a table: of most commits nobody ever asks for one."""

    __slots__ = ("rows",)

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows

    def __getitem__(self, ordinal: int) -> Column:
        if 0 <= ordinal < self.rows.num_columns:
            return self.rows.column(ordinal)
        raise KeyError(ordinal)

    def __contains__(self, ordinal: object) -> bool:
        return isinstance(ordinal, int) and 0 <= ordinal < self.rows.num_columns

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.rows.num_columns))

    def __len__(self) -> int:
        return int(self.rows.num_columns)

    @property
    def nbytes(self) -> int:
        return bytes_of(self.rows)


class _ColumnsOfRows(Mapping[int, Column]):
    """The same, of rows that are not a table yet, and whose values are known."""

    __slots__ = ("_known", "_make", "is_plain", "nbytes", "rows")

    def __init__(
        self,
        nbytes: int,
        make: Callable[[], pa.Table],
        rows: Sequence[tuple[object, ...]],
        is_plain: Callable[[int], bool],
    ) -> None:
        self.nbytes = nbytes
        self.rows = rows
        self.is_plain = is_plain
        self._make = make
        self._known: _ColumnsOf | None = None

    def __getitem__(self, ordinal: int) -> Column:
        if self._known is None:
            self._known = _ColumnsOf(self._make())
        return self._known[ordinal]

    def __contains__(self, ordinal: object) -> bool:
        return isinstance(ordinal, int) and 0 <= ordinal < len(self.rows[0])

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.rows[0])))

    def __len__(self) -> int:
        return len(self.rows[0])


def _inside(column: Any, bounds: Interval) -> Any:
    """Which values lie within the bounds; NULL is nowhere, and a filter drops it."""
    least, greatest = bounds
    parts: list[Any] = []
    if least is not None:
        parts.append(pc.greater_equal(column, pa.scalar(least, column.type)))
    if greatest is not None:
        parts.append(pc.less_equal(column, pa.scalar(greatest, column.type)))
    return parts[0] if len(parts) == 1 else pc.and_(parts[0], parts[1])


def _listed(column: Any) -> list[Any]:
    # Chunk by chunk: several times faster for the one-row tables of small transactions.
    if column.num_chunks == 1:
        values: list[Any] = column.chunk(0).to_pylist()
        return values
    return [value for chunk in column.chunks for value in chunk.to_pylist()]


def _integral(column: Column) -> Column:
    if pa.types.is_date32(column.type):
        return column.cast(pa.int32())
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64())
    return column


@fast_dataclass(frozen=True, slots=True)
class Points:
    """Rows that have one of `keys` in the columns `ordinals`; NULL is in no key.

    `only`: whoever asks for them asks for nothing else, so that every such row is meant.
    `presence`: what matters is how many rows have a key, and not what else is in them.
    """

    ordinals: tuple[int, ...]
    keys: frozenset[tuple[Hashable, ...]]
    only: bool
    presence: bool = False


@fast_dataclass(frozen=True, slots=True)
class OldRows:
    """Deleted rows, by identity, with the values that they had."""

    identities: Deletes
    rows: KnownRows
