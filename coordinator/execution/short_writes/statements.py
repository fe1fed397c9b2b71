"""What short writes do to the rows of their keys: the evaluators of `core/short_writes/`.

    INSERT       the rows, if all of their keys are free
    FOR UPDATE   the row of a key, as it is
    ON CONFLICT  the row, or nothing, or the existing row as DO UPDATE makes it
    UPDATE       the row of a key, as its plan makes it
    DELETE       the row of a key, if its plan has it

INVARIANTS
  S1  a new row is what a scan would read once it is stored: others compute with it before it is.
      What is not sure to be stored as it is goes through Arrow first.
  S2  whatever fails leaves this way (I3 of the package).
"""

from abc import abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import Final, TypeAlias, cast

import pyarrow as pa

from compute.access.key_index import KeyIndex
from compute.access.key_predicates import KeyPredicate
from compute.access.point_reads import point_value
from compute.access.rows_in_memory import NotInMemoryError, RowsInMemory
from compute.access.scanned_rows import ScannedCells
from compute.reference.expressions import Row
from coordinator.core.locking.modes import LockMode
from coordinator.core.predicates import ReadPredicate
from coordinator.core.short_writes.by_key import (
    CannotEvaluate,
    ChangedRow,
    CurrentRow,
    CurrentRows,
    KeyPlace,
    RowValues,
    WriteByKey,
    row_bytes,
)
from coordinator.execution.blind_insert import TableRows
from coordinator.execution.dml.last_year import LastYear
from coordinator.execution.dml.row_sink import stored_schema
from coordinator.execution.read_predicates import read_predicates
from coordinator.execution.short_writes.plain_values import PLAIN_TYPES
from coordinator.execution.short_writes.row_plans import RowPlan
from sql.catalog.catalog import Key, NameDependency, Table
from sql.plan.nodes import ColumnId, Const, Param, Plan, PlanColumn, RelationId, Scan
from sql.types.sql_type import Value
from storage.batch import RowIdentity, ShardView
from storage.fast_dataclass import fast_dataclass

ROW_BYTES_MAX: Final = 64 << 10
"""Of a row that is computed at the gather. Larger: longer stalls of the loop."""

_STORED_AS_THEY_ARE: Final = PLAIN_TYPES | {"bytea"}
"""Times are whole numbers that fit, as `LastYear` has seen."""

Names: TypeAlias = Collection[NameDependency]

MakeWrite: TypeAlias = Callable[[Sequence[Value], Names], WriteByKey | None]
"""A statement that is given its values, the runtime ones behind the client's; None: the general way
must say what is wrong (I3)."""


class TargetTable:
    """A table that short writes change: how its rows are found, made Arrow of, and checked."""

    def __init__(self, table: Table, index: KeyIndex) -> None:
        self.table = table
        self._rows = RowsInMemory(index, table)
        self._schema = stored_schema(table)
        self.encoder = TableRows(table)
        self.width = len(table.columns)
        self._not_null = tuple(at for at, column in enumerate(table.columns) if column.not_null)
        self._last_year = LastYear(table)
        self._is_stored_as_is = all(c.type.name in _STORED_AS_THEY_ARE for c in table.columns)
        columns = [PlanColumn(ColumnId(at), c.name, c.type) for at, c in enumerate(table.columns)]
        every = tuple(range(len(columns)))
        self._scan = Scan(RelationId(table.shard), table.name, tuple(columns), every)

    def find(
        self, view: ShardView, key: Key, values: tuple[Hashable, ...]
    ) -> tuple[RowIdentity, RowValues] | None:
        """See RowFinder."""
        try:
            return self._rows.find(view, key, values)
        except NotInMemoryError as error:
            raise CannotEvaluate from error

    def row(self, view: ShardView, identity: RowIdentity) -> RowValues:
        """All columns of a row of the view. Raises CannotEvaluate."""
        try:
            return self._rows.row(view, identity)
        except NotInMemoryError as error:
            raise CannotEvaluate from error

    def stored(self, row: Row) -> Row:
        """The row as a scan will read it (S1). Raises CannotEvaluate."""
        if any(row[ordinal] is None for ordinal in self._not_null):
            raise CannotEvaluate
        if not self._last_year.holds([row]):
            raise CannotEvaluate
        if self._is_stored_as_is:
            return row
        try:
            encoded = self.encoder.table([row])
        except (ValueError, OverflowError, pa.ArrowException) as error:
            raise CannotEvaluate from error
        return ScannedCells(encoded, self._schema, self._scan).row(0)

    def computed(self, row: Row) -> Row:
        """A row that was computed at the gather, as `stored`. Raises CannotEvaluate."""
        if row_bytes(row) > ROW_BYTES_MAX:
            raise CannotEvaluate
        return self.stored(row)


@fast_dataclass(frozen=True, slots=True)
class ShortWrite:
    """Implements WriteByKey but for `evaluate`: a table, and what all statements have. `shows`:
    what RETURNING shows of a row; None without. It raises CannotEvaluate.
    """

    target: TargetTable
    names: Names
    nbytes: int
    shows: Callable[[RowValues], RowValues] | None

    @property
    def table(self) -> Table:
        """See WriteByKey."""
        return self.target.table

    @property
    def finder(self) -> TargetTable:
        """See WriteByKey."""
        return self.target

    @property
    def encoder(self) -> TableRows:
        """See WriteByKey."""
        return self.target.encoder

    @property
    def locks(self) -> LockMode | None:
        """See WriteByKey."""
        return None

    def change(self, current: CurrentRow | None, row: Row) -> ChangedRow:
        """A row as it is stored, in place of the one that is there. Raises CannotEvaluate."""
        shown = None if self.shows is None else self.shows(row)
        return ChangedRow(current, row, row_bytes(row), shown)


@fast_dataclass(frozen=True, slots=True)
class KeyedInsert(ShortWrite):
    """INSERT .. VALUES: all rows, or none of them (S2). `rows`: as they are stored."""

    rows: Sequence[Row]

    def reads(self) -> Iterable[ReadPredicate | None]:
        """See WriteByKey."""
        return key_predicates(self.table, self.table.keys, self.rows, decides=False)

    def evaluate(self, rows: CurrentRows) -> Sequence[ChangedRow]:
        """See WriteByKey."""
        made: set[KeyPlace] = set()
        for row in self.rows:
            take_keys(self.table.keys, row, rows, made)
        return [self.change(None, row) for row in self.rows]


@fast_dataclass(frozen=True, slots=True)
class Upsert(ShortWrite):
    """INSERT .. VALUES .. ON CONFLICT. `rows`: as they are stored. `update`: the plan of DO UPDATE
    over the number, the existing row and the proposed one; None: DO NOTHING.
    """

    rows: Sequence[Row]
    arbiters: Sequence[Key]
    others: Sequence[Key]
    update: RowPlan | None
    parameters: Sequence[Value]

    def reads(self) -> Iterable[ReadPredicate | None]:
        """See WriteByKey."""
        yield from key_predicates(self.table, self.arbiters, self.rows, decides=True)
        yield from key_predicates(self.table, self.others, self.rows, decides=False)

    def evaluate(self, rows: CurrentRows) -> Sequence[ChangedRow]:
        """See WriteByKey."""
        made: set[KeyPlace] = set()
        met: dict[int, CurrentRow] = {}
        changes: list[ChangedRow] = []
        for row in self.rows:
            existing = self._existing(row, rows, made)
            if id(existing) in met:
                raise CannotEvaluate
            if existing is None:
                take_keys(self.others, row, rows, made)
                changes.append(self.change(None, row))
            elif self.update is not None and existing.values is not None:
                met[id(existing)] = existing  # kept, so that no other gets its address
                new = self.update.row(self.parameters, (0, *existing.values, *row))
                if new is not None:
                    changes.append(self.change(existing, self.target.computed(new[1:])))
        return changes

    def _existing(self, row: Row, rows: CurrentRows, made: set[KeyPlace]) -> CurrentRow | None:
        """The row that has one of the keys. Raises CannotEvaluate if it is of this statement."""
        for key in self.arbiters:
            values = key_of(key, row)
            if values is None:
                continue
            place = key.columns, values
            if place in made:
                raise CannotEvaluate
            made.add(place)
            existing = rows.find(key, values)
            if existing is not None:
                return existing
        return None


def key_predicates(
    table: Table, keys: Iterable[Key], rows: Sequence[Row], *, decides: bool
) -> Iterable[ReadPredicate]:
    """The look-ups of the keys that these rows have (N2 of `unique_keys.py`, V1 of
    `on_conflict.py`).
    """
    for key in keys:
        found = frozenset(filter(None, [key_of(key, row) for row in rows]))
        if found:
            yield KeyPredicate(table, key, found, decides=decides)


def take_keys(keys: Iterable[Key], row: Row, rows: CurrentRows, made: set[KeyPlace]) -> None:
    """The keys of a new row are free, and are taken now. Raises CannotEvaluate."""
    for key in keys:
        values = key_of(key, row)
        if values is None:
            continue
        place = key.columns, values
        if place in made or rows.find(key, values) is not None:
            raise CannotEvaluate
        made.add(place)


def key_of(key: Key, row: RowValues) -> tuple[Hashable, ...] | None:
    """A row's key; None: a column is NULL, so that it has none."""
    values = cast("tuple[Hashable, ...]", tuple([row[ordinal] for ordinal in key.columns]))
    return None if None in values else values


@fast_dataclass(frozen=True, slots=True)
class RowOfKey:
    """The row that a statement changes: by which key, and what its plan makes of it."""

    key: Key
    wanted: Sequence[Const | Param]
    plan: RowPlan
    source: Plan

    def reads(self, table: Table, parameters: Sequence[Value]) -> Iterable[ReadPredicate | None]:
        """The rows that its plan depends on."""
        return read_predicates(self.source, [table], parameters)

    def find(self, rows: CurrentRows, parameters: Sequence[Value]) -> tuple[CurrentRow, Row] | None:
        """The row as it is now, and what the plan says; None: there is none. Raises
        CannotEvaluate.
        """
        values = tuple([point_value(expr, parameters) for expr in self.wanted])
        if None in values:
            return None
        current = rows.find(self.key, values)
        if current is None or current.values is None:
            return None
        made = self.plan.row(parameters, current.values)
        return None if made is None else (current, made)


@fast_dataclass(frozen=True, slots=True)
class WriteOfRow(ShortWrite):
    """What statements have that find the row of a key, and change or lock it."""

    of: RowOfKey
    parameters: Sequence[Value]

    def reads(self) -> Iterable[ReadPredicate | None]:
        """See WriteByKey."""
        return self.of.reads(self.table, self.parameters)

    def evaluate(self, rows: CurrentRows) -> Sequence[ChangedRow]:
        """See WriteByKey."""
        found = self.of.find(rows, self.parameters)
        return () if found is None else (self.changed(*found),)

    @abstractmethod
    def changed(self, current: CurrentRow, made: Row, /) -> ChangedRow:
        """What becomes of the row. `made`: what the plan makes of it. Raises CannotEvaluate."""


@fast_dataclass(frozen=True, slots=True)
class KeyedUpdate(WriteOfRow):
    """UPDATE .. WHERE key = .., without a change of any key."""

    def changed(self, current: CurrentRow, made: Row, /) -> ChangedRow:
        """See WriteOfRow."""
        # The identity comes first, then the new row (`sql/statements/bound.py`).
        new = self.target.computed(made[2 : 2 + self.target.width])
        return self.change(current, new)


@fast_dataclass(frozen=True, slots=True)
class KeyedDelete(WriteOfRow):
    """DELETE .. WHERE key = .."""

    def changed(self, current: CurrentRow, _made: Row, /) -> ChangedRow:
        """See WriteOfRow."""
        assert current.values is not None, "a row that is found is there"
        shown = None if self.shows is None else self.shows(current.values)
        return ChangedRow(current, None, returned=shown)


@fast_dataclass(frozen=True, slots=True)
class KeyedLock(WriteOfRow):
    """SELECT .. WHERE key = .. FOR UPDATE, and its kin. `shown`: where its columns are in what the
    plan makes of a row.
    """

    mode: LockMode
    shown: Sequence[int]

    @property
    def locks(self) -> LockMode | None:
        """See WriteByKey."""
        return self.mode

    def changed(self, current: CurrentRow, made: Row, /) -> ChangedRow:
        """See WriteOfRow."""
        shown = tuple([made[place] for place in self.shown])
        return ChangedRow(current, current.values, returned=shown)
