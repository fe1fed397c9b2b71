"""Unique keys: the keys of new rows, and predicates that find them again in others' rows.

    new rows ─▶ NewKeys of a constraint ─┬─▶ KeyIndex       in a view, at the statement
                                         └─▶ KeyPredicate   in recent writes, at the commit

INVARIANTS
  Y1  two rows have the same key if their columns are equal as PostgreSQL compares them; NULLs are
      equal only for NULLS NOT DISTINCT, and otherwise a row with a NULL has no key.
  Y2  a predicate of more than KEYS_MAX keys holds them as Arrow columns and has no `points`.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from functools import reduce
from typing import Any, Final, TypeAlias, cast

import pyarrow as pa
import pyarrow.compute as pc

from compute.access.bloom_filters import Hashes, hash_of_row, row_hashes
from compute.access.computed_keys import ComputedKey, key_ordinals
from compute.arrow import arrow_type
from compute.reference.arrow import to_array
from sql.catalog.catalog import Key, Table
from sql.types.sql_type import Value, quoted_name
from sql.types.text_output import format_text
from storage.batch import DataFile
from storage.delta.statistics import column_bounds
from storage.errors import Corrupt
from storage.known_rows import KnownRows, Points

KEYS_MAX: Final = 10_000
"""Keys of one predicate that are held as Python values. Larger: more memory, faster checks at the
commit."""

COMPUTED_ROWS_MAX: Final = 10_000
"""Rows of one commit whose computed keys are compared. Larger: longer stalls of the loop. Smaller:
more false conflicts with bulk writes."""

KeyValues: TypeAlias = tuple[Hashable, ...]
"""Values as in `sql/types/sql_type.py`."""


def key_violation_text(
    table: Table, key: Key, values: KeyValues, *, named: Callable[[str], str] = quoted_name
) -> str:
    """`(a, b)=(1, x)`, as PostgreSQL names a key in the detail of 23505."""
    values_ = cast("tuple[Value, ...]", values)
    columns = [table.columns[ordinal] for ordinal in key.columns]
    names: Sequence[str] = [named(column.name) for column in columns]
    if isinstance(key, ComputedKey):
        names = key.names
    shown = ", ".join(
        "null" if value is None else format_text(value, column.type)
        for _, value, column in zip(names, values_, columns, strict=False)
    )
    return f"({', '.join(names)})=({shown})"


def columns_of_key(key: Key, rows: pa.Table, *, live: bool = False) -> pa.Table:
    """The key's columns of rows that have all columns of the table. `live`: see ComputedKey."""
    if isinstance(key, ComputedKey):
        return key.columns_of(KnownRows.of(rows).columns, live=live)
    return rows.select(list(key.columns))


def rows_with_key(key: Key, rows: pa.Table) -> pa.Table:
    """Of the key's columns, the rows that have a key (Y1)."""
    if key.nulls_distinct:
        return rows.drop_null() if any(column.null_count for column in rows.columns) else rows
    if isinstance(key, ComputedKey) and key.partial:
        return rows.filter(rows.column(rows.num_columns - 1).is_valid())
    return rows


def comparable_column(column: Any) -> Any:
    """A key column in a form in which equal values are equal (Y1)."""
    if pa.types.is_floating(column.type):
        # Zero has two signs.
        zero: Any = pa.scalar(0.0, column.type)
        return pc.add(column, zero)
    return column


def key_field_names(table: Table, key: Key) -> tuple[str, ...]:
    """The names of the key's columns in data files."""
    return tuple([table.columns[ordinal].field for ordinal in key.columns])


_ids: dict[tuple[tuple[str, ...], tuple[pa.DataType, ...]], int] = {}


def _columns_id(fields: tuple[str, ...], types: tuple[pa.DataType, ...]) -> int:
    """A number for the columns of a key, by their names in files and their types: hashing those
    costs more than finding a key. There are as many as there were keys.
    """
    return _ids.setdefault((fields, types), len(_ids))


class NoSuchKeyError(Exception):
    """A value is outside of its column's type, so no row can have the key."""


class SingleKey:
    """One key to look up. Its types are equal in Python exactly when they are equal in PostgreSQL,
    and none of its values is NULL.
    """

    __slots__ = ("_arrays", "_hashes", "_id", "fields", "key", "table", "types", "values")

    def __init__(
        self, table: Table, key: Key, values: KeyValues, like: "SingleKey | None" = None
    ) -> None:
        """`like`: one of the same columns, whose names and types are kept."""
        self.table = table
        self.key = key
        self.values = values
        if like is None:
            self.fields = key_field_names(table, key)
            self.types = tuple([arrow_type(table.columns[at].type) for at in key.columns])
            """The Arrow types of the key's columns."""
            self._id = -1
        else:
            self.fields, self.types, self._id = like.fields, like.types, like.columns_id
        self._arrays: Sequence[Any] | None = None
        self._hashes: Hashes | Sequence[int] | None = None

    def having(self, values: KeyValues) -> "SingleKey":
        """The same columns with other values."""
        return SingleKey(self.table, self.key, values, like=self)

    @property
    def columns_id(self) -> int:
        """Of the key's columns in data files."""
        if self._id < 0:
            self._id = _columns_id(self.fields, self.types)
        return self._id

    @property
    def arrays(self) -> Sequence[Any]:
        """Each value as an array. Raises NoSuchKeyError."""
        if self._arrays is None:
            columns = [self.table.columns[ordinal] for ordinal in self.key.columns]
            try:
                self._arrays = [
                    to_array([cast("Value", value)], column.type)
                    for value, column in zip(self.values, columns, strict=True)
                ]
            except (pa.ArrowInvalid, OverflowError) as error:
                raise NoSuchKeyError from error
        return self._arrays

    @property
    def hashes(self) -> Hashes | Sequence[int] | None:
        """The hash of the key, if its types have hashes (`bloom_filters.py`)."""
        if self._hashes is None:
            one = hash_of_row(self.values, self.types)
            self._hashes = row_hashes(self.arrays) if one is None else (one,)
        return self._hashes


class NewKeys:
    """The keys of new rows. `rows`: the columns of the key, in its order."""

    def __init__(self, table: Table, key: Key, rows: pa.Table) -> None:
        self.table = table
        self.key = key
        self.fields = key_field_names(table, key)
        self._all = rows
        self._rows = rows = rows_with_key(key, rows)
        self._values: list[KeyValues] | None = None
        self._hashed = False
        self._id = -1
        self._hashes: Hashes | None = None
        floating = any(table.columns[at].type.name in ("float4", "float8") for at in key.columns)
        self.is_small = rows.num_rows <= KEYS_MAX and not floating
        """Whether the keys are looked up as Python values, which NaN cannot be (Y2)."""

    @classmethod
    def of_values(cls, table: Table, key: Key, values: Sequence[tuple[Value, ...]]) -> "NewKeys":
        """Keys of the table itself, given as values. Raises pa.ArrowException, OverflowError if one
        is outside of its column's type.
        """
        arrays = [
            to_array([one[place] for one in values], table.columns[at].type)
            for place, at in enumerate(key.columns)
        ]
        return cls(table, key, pa.table(arrays, names=_names(key)))

    @property
    def count(self) -> int:
        """How many rows have a key."""
        return self._rows.num_rows

    @property
    def rows(self) -> int:
        """How many rows there are, also without a key."""
        return self._all.num_rows

    @property
    def given(self) -> pa.Table:
        """The key columns of the rows that have a key."""
        return self._rows

    def beginning(self, rows: int) -> "NewKeys":
        """The keys of the first rows."""
        return NewKeys(self.table, self.key, self._all.slice(0, rows))

    @property
    def columns(self) -> Sequence[Any]:
        """The key's columns, comparable."""
        return [comparable_column(column) for column in self._rows.columns]

    @property
    def values(self) -> list[KeyValues]:
        """The keys as Python values."""
        if self._values is None:
            known = KnownRows.of(pa.table(self.columns, names=_names(self.key)))
            parts = [known.values(place) for place in range(len(self.key.columns))]
            self._values = list(zip(*parts, strict=True))
        return self._values

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """The Arrow types of the key's columns."""
        return tuple(self._all.schema.types)

    @property
    def columns_id(self) -> int:
        """Of the key's columns in data files."""
        if self._id < 0:
            self._id = _columns_id(self.fields, self.types)
        return self._id

    @property
    def hashes(self) -> Hashes | None:
        """A hash for each key, if its types have hashes (`bloom_filters.py`)."""
        if not self._hashed:
            self._hashed = True
            self._hashes = row_hashes(self._rows.columns)
        return self._hashes

    def repeated(self) -> KeyValues | None:
        """A key that two of the rows have, if there is one."""
        if self.is_small:
            seen: set[KeyValues] = set()
            for values in self.values:
                if values in seen:
                    return values
                seen.add(values)
            return None
        names = _names(self.key)
        grouped = pa.table(self.columns, names=names).group_by(names)
        counted = grouped.aggregate([([], "count_all")])
        one: Any = pa.scalar(1, pa.int64())
        several = counted.filter(pc.greater(counted.column("count_all"), one)).slice(0, 1)
        if not several.num_rows:
            return None
        known = KnownRows.of(several.select(names))
        return tuple(known.values(place)[0] for place in range(len(names)))

    def among(self, rows: pa.Table) -> list[int]:
        """The indexes of the rows (of the key's columns alone) that have one of the keys."""
        wanted = self.columns
        masks = [
            pc.is_in(comparable_column(column), value_set=_combined(values))
            for column, values in zip(rows.columns, wanted, strict=True)
        ]
        mask: Any = reduce(pc.and_, masks)
        found: list[int] = pc.indices_nonzero(mask).to_pylist()
        if len(wanted) == 1 or not found:
            return found
        # Each column is one of those wanted; the combination may not be.
        known = KnownRows.of(rows.take(pa.array(found, pa.int64())))
        parts = [known.values(place) for place in range(len(wanted))]
        keys = set(self.values)
        return [row for row, *values in zip(found, *parts, strict=True) if tuple(values) in keys]

    def may_be_in(self, file: DataFile) -> bool:
        """Whether a file may hold one of the keys, by its statistics."""
        return not self.is_small or _may_hold(self.table, self.key, self.values, file)

    def predicate(self, *, decides: bool = False) -> "KeyPredicate":
        """The predicate that validation tests at the commit. `decides`: see KeyLookUp."""
        if self.is_small:
            return KeyPredicate(self.table, self.key, frozenset(self.values), decides=decides)
        return KeyPredicate(self.table, self.key, frozenset(), self, decides=decides)


def _names(key: Key) -> list[str]:
    return [f"k{place}" for place in range(len(key.columns))]


def _combined(column: Any) -> Any:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


class KeyPredicate:
    """The rows that have one of some keys: a `ReadPredicate` and a `KeyLookUp` of the core."""

    __slots__ = ("_bulk", "_key", "_keys", "_table", "decides")

    def __init__(
        self,
        table: Table,
        key: Key,
        keys: frozenset[KeyValues],
        bulk: NewKeys | None = None,
        *,
        decides: bool = False,
    ) -> None:
        self.decides = decides
        """See KeyLookUp."""
        self._table = table
        self._key = key
        self._keys = keys
        self._bulk = bulk

    @property
    def constraint(self) -> str:
        """See KeyLookUp."""
        return self._key.name

    @property
    def look_up(self) -> "KeyPredicate":
        """See ReadPredicate."""
        return self

    @property
    def nbytes(self) -> int:
        """See ReadPredicate."""
        if self._bulk is not None:
            return sum(int(column.nbytes) for column in self._bulk.columns)
        return 100 * (1 + len(self._keys))

    @property
    def points(self) -> Points | None:
        """See ReadPredicate."""
        if self._bulk is not None or isinstance(self._key, ComputedKey):
            return None
        return Points(self._key.columns, self._keys, only=True)

    @property
    def keys(self) -> Collection[KeyValues] | None:
        """See KeyLookUp."""
        return None if self._bulk is not None else self._keys

    def merged(self, keys: Collection[KeyValues]) -> "KeyPredicate":
        """The same look-up, for these keys."""
        return KeyPredicate(self._table, self._key, frozenset(keys), decides=self.decides)

    def matches(self, rows: KnownRows) -> bool:
        """See ReadPredicate."""
        try:
            return bool(self.present(rows))
        except Exception:  # whatever Arrow makes of rows of others: P3 of the core's predicates
            return True

    def present(self, rows: KnownRows) -> Sequence[KeyValues]:
        """The keys that these rows have. Of a bulk, or if a key column is unknown, or too much work
        to compute, empty tuples stand for them.
        """
        if any(ordinal not in rows.columns for ordinal in key_ordinals(self._key)):
            return [()]
        if isinstance(self._key, ComputedKey):
            if not rows.count:
                return []
            if rows.count > COMPUTED_ROWS_MAX:
                return [()]
            table = self._key.columns_of(rows.columns)
            rows = KnownRows.of(table)
            ordinals: Sequence[int] = range(table.num_columns)
        else:
            ordinals = self._key.columns
        if self._bulk is None:
            parts = [rows.values(ordinal) for ordinal in ordinals]
            return [values for values in zip(*parts, strict=True) if values in self._keys]
        columns = [rows.columns[ordinal] for ordinal in ordinals]
        table = pa.table(columns, names=_names(self._key))
        return [()] * len(self._bulk.among(table))

    def may_match_file(self, file: DataFile) -> bool:
        """See ReadPredicate."""
        keys = self._bulk
        if keys is None:
            return _may_hold(self._table, self._key, self._keys, file)
        return keys.may_be_in(file)

    def describe(self) -> str:
        """See ReadPredicate."""
        return f"{self._key.name}: {self._bulk.count if self._bulk else len(self._keys)} keys"

    def key_text(self, values: KeyValues) -> str:
        """See KeyLookUp."""
        return key_violation_text(self._table, self._key, values)


def _may_hold(table: Table, key: Key, keys: Iterable[KeyValues], file: DataFile) -> bool:
    try:
        bounds = [
            column_bounds(file.stats_json, column.field, arrow_type(column.type))
            for column in (table.columns[ordinal] for ordinal in key.columns)
        ]
        return any(all(map(_within, values, bounds)) for values in keys)
    except (Corrupt, TypeError, ArithmeticError):
        return True


def _within(value: Any, bounds: tuple[Any, Any]) -> bool:
    low, high = bounds
    return value is None or ((low is None or low <= value) and (high is None or value <= high))
