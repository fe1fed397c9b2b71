"""What a short write is to the core: a table, and what it does to rows that it finds by key.

The invariants are those of the package.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from coordinator.core.locking.modes import LockMode
from coordinator.core.notifications.changes import utf8_bytes
from coordinator.core.predicates import ReadPredicate
from sql.catalog.catalog import Key, NameDependency, Table
from storage.batch import RowIdentity, ShardView
from storage.fast_dataclass import fast_dataclass
from storage.known_rows import KnownRows
from storage.unencoded_rows import RowEncoder

RowValues: TypeAlias = tuple[object, ...]
"""A row: one value for each column of the table, as in `sql/types/sql_type.py`."""

KeyPlace: TypeAlias = tuple[tuple[int, ...], tuple[Hashable, ...]]
"""The ordinals of a key's columns, and values of them."""


class CannotEvaluate(Exception):
    """The statement must go the general way (E5)."""


@dataclass(slots=True, eq=False)
class CurrentRow:
    """A row as the members so far have left it. `base`: its identity in the shard, None for one
    that a member has made; `values`: None if it is deleted.
    """

    base: RowIdentity | None
    values: RowValues | None
    before: RowValues | None = None
    """What others were told last (E2); at first what the shard has."""


@fast_dataclass(frozen=True, slots=True)
class ChangedRow:
    """Replace a row, delete it (`values` is None), or make a new one (`row` is None). `returned`:
    what RETURNING shows of it; None without.
    """

    row: CurrentRow | None
    values: RowValues | None
    nbytes: int = 0
    returned: RowValues | None = None


class RowFinder(Protocol):
    """Finds rows of one table in memory."""

    def find(
        self, view: ShardView, key: Key, values: tuple[Hashable, ...]
    ) -> tuple[RowIdentity, RowValues] | None:
        """The row that has a unique key. Raises CannotEvaluate if it is not in memory (E4)."""
        ...


class FreeRows(Protocol):
    """The rows that a statement with SKIP LOCKED chooses from, and how it locks them."""

    @property
    def mode(self) -> LockMode:
        """Of the locks."""
        ...

    def candidates(self, view: ShardView) -> Iterator[tuple[RowIdentity, RowValues]]:
        """Rows of the view in the order of the query, and what it shows of them. Raises
        CannotEvaluate.
        """
        ...

    def row(self, view: ShardView, identity: RowIdentity) -> RowValues:
        """All columns of one of them. Raises CannotEvaluate."""
        ...


class CurrentRows(Protocol):
    """What an evaluator sees of its table."""

    def first_free(self, wanted: FreeRows, limit: int) -> Sequence[tuple["CurrentRow", RowValues]]:
        """The first rows that nobody else holds or is about to change, and what the query shows of
        them; fewer only if there are no others (E7). Raises CannotEvaluate.
        """
        ...

    def find(self, key: Key, values: tuple[Hashable, ...]) -> CurrentRow | None:
        """The row that has a unique key now; NULL is in no key. Raises CannotEvaluate."""
        ...


class WriteByKey(Protocol):
    """A whole transaction that changes rows of a table by key; opaque but for this."""

    @property
    def table(self) -> Table:
        """The table that it writes."""
        ...

    @property
    def finder(self) -> RowFinder:
        """How it finds its rows."""
        ...

    @property
    def encoder(self) -> RowEncoder:
        """What makes Arrow of them."""
        ...

    @property
    def names(self) -> Collection[NameDependency]:
        """Those that it rests on (A6 of `validation.py`)."""
        ...

    @property
    def nbytes(self) -> int:
        """About what its values take."""
        ...

    @property
    def locks(self) -> LockMode | None:
        """How it locks the rows that it finds, if it leaves them as they are: SELECT FOR UPDATE and
        its kin, in blocks only. None: it changes them.
        """
        ...

    def reads(self) -> Iterable[ReadPredicate | None]:
        """What it depends on, for a transaction whose commit validates it; None: all rows."""
        ...

    def evaluate(self, rows: CurrentRows) -> Sequence[ChangedRow]:
        """What it does to the rows as they are now, each row once, and all that it does. Raises
        CannotEvaluate. Called again if the group has to be gathered again (E3).
        """
        ...


@fast_dataclass(frozen=True, slots=True)
class WriteAnswer:
    """What a short write is answered: how many rows it changes, and the rows of RETURNING."""

    affected: int
    returned: tuple[RowValues, ...] = ()


NOTHING_CHANGED: Final = WriteAnswer(0)


def returned_rows(changes: Sequence[ChangedRow]) -> tuple[RowValues, ...]:
    """What RETURNING shows of the changes, in their order; nothing without."""
    return tuple([change.returned for change in changes if change.returned is not None])


def keys_of_row(table: Table, values: RowValues) -> Iterable[KeyPlace]:
    """Where the row is found: by each unique key that it has."""
    for key in table.keys:
        found = tuple([values[ordinal] for ordinal in key.columns])
        if None not in found:
            yield key.columns, found


_PLAIN_TYPES: Final = frozenset({"bool", "int2", "int4", "int8", "text", "varchar"})
"""Types whose values Arrow gives back as they are."""


def known_rows(table: Table, encoder: RowEncoder, rows: Sequence[RowValues]) -> KnownRows:
    """Rows, one at least, with their values; Arrow is made of them only if somebody asks."""
    columns = table.columns
    return KnownRows.of_values(
        rows,
        sum(map(row_bytes, rows)),
        lambda: encoder.table(rows),
        lambda ordinal: columns[ordinal].type.name in _PLAIN_TYPES,
    )


def row_bytes(values: RowValues) -> int:
    """About what a row takes: some for each value, and the bytes of texts."""
    size = 16 * len(values)
    for value in values:
        if isinstance(value, str):
            size += utf8_bytes(value)
        elif isinstance(value, bytes):
            size += len(value)
    return size
