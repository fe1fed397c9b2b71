"""Short writes of the simulation: what `coordinator/execution/short_writes/` does, over its tables.

Rows are found by the server's own index (`compute/access/key_index.py`); a file that it would have
to read is read here, for nothing is slow in a simulation. Now and then an evaluator says that it
cannot, as one whose rows are not in memory.
"""

import random
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq

from compute.access.key_index import KeyIndex
from compute.access.key_predicates import SingleKey
from coordinator.core.locking.modes import LockMode
from coordinator.core.predicates import ReadPredicate
from coordinator.core.short_writes.by_key import (
    CannotEvaluate,
    ChangedRow,
    CurrentRow,
    CurrentRows,
    RowValues,
    returned_rows,
)
from sql.catalog.catalog import Key as TableKey
from sql.catalog.catalog import NameDependency, Table
from storage.batch import DataFile, RowIdentity, ShardView
from storage.errors import NotFound
from storage.memory import MemoryObjectStore
from storage.row_versions import table_columns
from storage.types import ShardId
from tests.resilience.sim.rows import Content, ContentEncoder, KeyRead

UNABLE = 0.03
"""Share of the evaluations that say that they cannot."""


def key_index(store: MemoryObjectStore) -> KeyIndex:
    """An index over the files of a run; each server has its own."""

    def read(shard: ShardId, file: DataFile, names: Sequence[str]) -> pa.Table:
        return _file(store, shard, file).select([*names])

    def read_rows(shard: ShardId, file: DataFile, rows: Sequence[int]) -> pa.Table:
        return _file(store, shard, file).take(pa.array(rows, pa.int64()))

    return KeyIndex(read, read_rows)


def _file(store: MemoryObjectStore, shard: ShardId, file: DataFile) -> pa.Table:
    stored = store.peek(f"{shard}/{file.name}")
    if not stored:
        raise NotFound(file.name)
    parquet = pq.ParquetFile(pa.BufferReader(stored))
    return parquet.read(table_columns(parquet.schema_arrow.names), use_threads=False)


@dataclass(frozen=True)
class Finder:
    """Implements RowFinder for a table of the simulation."""

    table: Table
    index: KeyIndex
    looked_for: set[tuple[Hashable, ...]]

    def find(
        self, view: ShardView, key: TableKey, values: tuple[Hashable, ...]
    ) -> tuple[RowIdentity, RowValues] | None:
        """See RowFinder."""
        self.looked_for.add(values)
        wanted = SingleKey(self.table, key, values)
        try:
            places = self.index.places(view, wanted, may_read=True)
            assert places is not None, "it may read"
            assert len(places) <= 1, f"{values} has {places}"
            first = self.index.places(view, wanted, may_read=True, is_unique=True)
            assert first == places, f"{values} has {places}, and {first} is found first"
            return (places[0], self.row(view, places[0])) if places else None
        except NotFound as error:  # a deposed leader; a successor has removed it
            raise CannotEvaluate from error

    def row(self, view: ShardView, place: RowIdentity) -> Content:
        """All columns of a row of the view."""
        source, number = place
        part = view.inline_slice(source)
        if part is None:
            file = next(part.file for part in view.files if part.file.name == source)
            rows, at = self.index.read_rows(view.shard, file, [number]), 0
        else:
            rows, at = part.rows, number
        cells = [rows.column(field.name)[at].as_py() for field in view.schema]
        return cast("Content", tuple(cells))


Make = Callable[[CurrentRows, TableKey], Sequence[ChangedRow]]


@dataclass(frozen=True)
class KeyChange:
    """Implements WriteByKey for a table of the simulation."""

    table: Table
    names: Collection[NameDependency]
    index: KeyIndex
    random: random.Random
    make: Make
    nbytes: int = 24
    locks: LockMode | None = None
    touched: list[tuple[RowIdentity, LockMode]] = field(
        default_factory=list[tuple[RowIdentity, LockMode]]
    )
    """The rows that it has changed or deleted, for who watches the locks."""
    looked_for: set[tuple[Hashable, ...]] = field(default_factory=set[tuple[Hashable, ...]])
    shown: list[tuple[RowValues, ...]] = field(default_factory=list[tuple[RowValues, ...]])
    """The rows of RETURNING of each evaluation, with its number."""

    def reads(self) -> Sequence[ReadPredicate]:
        """See WriteByKey."""
        return [KeyRead(frozenset(cast("int", key[0]) for key in self.looked_for))]

    @property
    def finder(self) -> Finder:
        """See WriteByKey."""
        return Finder(self.table, self.index, self.looked_for)

    @property
    def encoder(self) -> ContentEncoder:
        """See WriteByKey."""
        return ContentEncoder(self.table)

    def evaluate(self, rows: CurrentRows) -> Sequence[ChangedRow]:
        """See WriteByKey."""
        return self.evaluated(rows, self.make)

    def evaluated(self, rows: CurrentRows, make: Make) -> Sequence[ChangedRow]:
        """What it does, and what is remembered of that."""
        if self.random.random() < UNABLE:
            raise CannotEvaluate
        made = make(rows, self.table.keys[0])
        number = len(self.shown)
        changes = [replace(one, returned=(number, *(one.values or ()))) for one in made]
        self.shown.append(returned_rows(changes))
        self.touched.clear()
        for change in changes:
            if change.row is not None and change.row.base is not None:
                goes = self.locks is None and change.values is None
                mode = LockMode.ROW_UPDATE if goes else LockMode.ROW_NO_KEY_UPDATE
                self.touched.append((change.row.base, mode))
        return changes


def look_at(number: int) -> Make:
    """SELECT .. WHERE key = .. FOR UPDATE, and its kin."""

    def make(rows: CurrentRows, key: TableKey) -> Sequence[ChangedRow]:
        row = rows.find(key, (number,))
        return () if row is None else (ChangedRow(row, row.values),)

    return make


def count_up(number: int, value: int) -> Make:
    """UPDATE .. SET position = position + 1, value = .. WHERE key = .."""

    def make(rows: CurrentRows, key: TableKey) -> Sequence[ChangedRow]:
        row = rows.find(key, (number,))
        return () if row is None else (_counted(row, value),)

    return make


def insert_or_count_up(number: int, value: int) -> Make:
    """INSERT .. ON CONFLICT (key) DO UPDATE, which counts."""

    def make(rows: CurrentRows, key: TableKey) -> Sequence[ChangedRow]:
        row = rows.find(key, (number,))
        if row is None:
            return (ChangedRow(None, (number, 0, value)),)
        return (_counted(row, value),)

    return make


def add_rows(content: Sequence[Content]) -> Make:
    """INSERT .. VALUES: the general way says which key is taken."""

    def make(rows: CurrentRows, key: TableKey) -> Sequence[ChangedRow]:
        for row in content:
            if rows.find(key, tuple([row[ordinal] for ordinal in key.columns])) is not None:
                raise CannotEvaluate
        return [ChangedRow(None, row) for row in content]

    return make


def remove(number: int) -> Make:
    """DELETE .. WHERE key = .."""

    def make(rows: CurrentRows, key: TableKey) -> Sequence[ChangedRow]:
        row = rows.find(key, (number,))
        return () if row is None else (ChangedRow(row, None),)

    return make


def _counted(row: CurrentRow, value: int) -> ChangedRow:
    number, position, _ = cast("Content", row.values)
    return ChangedRow(row, (number, position + 1, value))


@dataclass(frozen=True)
class FreeJobs:
    """Implements FreeRows: rows of a table in the order of their keys."""

    finder: Finder
    wanted: Callable[[RowValues], bool]
    mode: LockMode = LockMode.ROW_UPDATE

    def candidates(self, view: ShardView) -> Iterator[tuple[RowIdentity, RowValues]]:
        """See FreeRows."""
        found = [(place, self.row(view, place)) for place in _places(view)]
        for place, content in sorted(found, key=lambda pair: cast("int", pair[1][0])):
            if self.wanted(content):
                yield place, content

    def row(self, view: ShardView, identity: RowIdentity) -> RowValues:
        """See FreeRows."""
        try:
            return self.finder.row(view, identity)
        except NotFound as error:  # as in `find`
            raise CannotEvaluate from error


def _places(view: ShardView) -> Iterator[RowIdentity]:
    for part in view.files:
        yield from ((part.file.name, n) for n in range(part.row_limit) if n not in part.deleted)
    for piece in view.inline:
        yield from ((piece.source, n) for n in range(piece.rows.num_rows) if n not in piece.deleted)


@dataclass(frozen=True)
class JobTaker(KeyChange):
    """SELECT .. FOR UPDATE SKIP LOCKED LIMIT, or the UPDATE of what it has found, which makes
    `becomes` of it. `taken`: the keys that the last evaluation has found.
    """

    wanted: Callable[[RowValues], bool] = lambda _: True
    limit: int = 1
    becomes: Callable[[RowValues], RowValues] | None = None
    taken: list[int] = field(default_factory=list[int])

    def reads(self) -> Sequence[ReadPredicate]:
        """See WriteByKey."""
        return [] if self.becomes is None else [KeyRead(frozenset(self.taken))]

    def evaluate(self, rows: CurrentRows) -> Sequence[ChangedRow]:
        """See WriteByKey."""
        jobs = FreeJobs(self.finder, self.wanted)

        def take(current: CurrentRows, _key: TableKey) -> Sequence[ChangedRow]:
            found = current.first_free(jobs, self.limit)
            self.taken[:] = [cast("int", content[0]) for _, content in found]
            if self.becomes is None:
                return [ChangedRow(row, row.values) for row, _ in found]
            return [ChangedRow(row, self.becomes(content)) for row, content in found]

        return self.evaluated(rows, take)
