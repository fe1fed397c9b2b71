"""Rows of the simulation's tables: all have the same three columns, and perhaps more.

    key       what a workload calls one thing: an account, a list, a register
    position  a place in a list, a balance, a count: what the workload's invariant is about
    value     written once in a run: the judges know rows by it
    ...       what ALTER TABLE has added: the row's value again, or NULL (`alterations.py`); its
              position in columns of types that users make (`user_types.py`)

A key of a history is `<table>_<key>`: `l0_2` is key 2 of table `l0`. The second letter of a
table's name tells its timeline, so that a key tells it, too: `sc0` is a set of `clocked`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from compute.arrow import table_schema
from coordinator.core.predicates import ReadPredicate
from sql.catalog.catalog import SYSTEM_TIMELINE, Column, Table, Timeline
from sql.catalog.catalog import Key as TableKey
from sql.types.enums import is_enum
from sql.types.sql_type import INT8
from storage.batch import DataFile, ShardView, WriteBatch
from storage.errors import NotFound
from storage.known_rows import KnownRows, OldRows, Points
from storage.memory import MemoryObjectStore
from storage.row_versions import table_columns
from storage.types import Source
from storage.unencoded_rows import SliceRows, UnencodedRows, schema_message
from tests.resilience.history.events import Event, History, Key

CLOCKED = Timeline("clocked")
COUNTED = Timeline("counted", manual=True)

COLUMNS = (Column("key", INT8), Column("position", INT8), Column("value", INT8))
SCHEMA = table_schema(COLUMNS)

Content = tuple[int, int, int]
"""Key, position, value."""

Decoded = tuple[int, int, int, frozenset[str]]
"""Key, position, value, and the fields beyond them that have a value."""


@dataclass(frozen=True, slots=True, order=True)
class Row:
    """A live row with its identity."""

    position: int
    value: int
    key: int
    source: Source
    index: int
    added: frozenset[str] = field(default=frozenset(), compare=False)
    """The fields beyond the three that have a value."""


def schema_of(table: Table) -> pa.Schema:
    """As the server has it."""
    return SCHEMA if table.columns == COLUMNS else table_schema(table.stored_columns, table.numbers)


def table_of(key: Key) -> str:
    """The name of the table that holds a key."""
    return key.rpartition("_")[0]


def timeline_of(key: Key) -> Timeline:
    """The timeline of a key, or of a table by its name."""
    match key[1:2]:
        case "c":
            return CLOCKED
        case "m":
            return COUNTED
        case "x":
            name = key.partition("_")[0]
            return Timeline(f"line_{name}", manual=int(name[2:]) % 2 == 0)
        case _:
            return SYSTEM_TIMELINE


def by_timeline(history: History) -> Mapping[str, History]:
    """The history of each timeline; what touches no key counts as one of `system`."""
    lines: dict[str, list[Event]] = {SYSTEM_TIMELINE.name: []}
    for event in history.events:
        keys = [operation.key for operation in event.operations]
        line = timeline_of(keys[0]) if keys else SYSTEM_TIMELINE
        lines.setdefault(line.name, []).append(event)
    return {name: History(tuple(events)) for name, events in lines.items()}


def number_of(key: Key) -> int:
    """The key as it stands in the rows."""
    return int(key.rpartition("_")[2])


REGISTERS = "abcdehjnr"
"""The first letters of tables that have one row for each key."""


KEYED = "hnu"
"""The same of tables that have a primary key in every run: short writes find rows by it."""


def primary_key(table: str) -> TableKey:
    """Of a table, in runs in which tables have one."""
    return TableKey(f"{table}_pkey", (0,) if table[0] in REGISTERS else (0, 2), primary=True)


def row_key(table: str, row: Row) -> tuple[int, ...]:
    """The primary key of a row, in runs in which tables have one."""
    return (row.key,) if table[0] in REGISTERS else (row.key, row.value)


def insertion(table: Table, rows: Sequence[Content], deleted: Iterable[Row] = ()) -> WriteBatch:
    """A batch that inserts and deletes."""
    return WriteBatch(arrow(table, rows) if rows else None, deletes=deletes_of(deleted))


def deletes_of(rows: Iterable[Row]) -> dict[Source, BitMap64]:
    """Rows by their identities."""
    deletes: dict[Source, BitMap64] = {}
    for row in rows:
        deletes.setdefault(row.source, BitMap64()).add(row.index)
    return deletes


def arrow(table: Table, rows: Sequence[tuple[object, ...]]) -> pa.Table:
    """Rows with the schema of a table."""
    key, position, value = (pa.array(column, pa.int64()) for column in zip(*rows, strict=True))
    added = [_added(column, position, value) for column in table.columns[len(COLUMNS) :]]
    return pa.Table.from_arrays([key, position, value, *added], schema=schema_of(table))


def _added(column: Column, position: pa.Array, value: pa.Array) -> pa.Array:
    if is_enum(column.type.name):
        return position.cast(pa.string())
    return value if column.domain is None else position


@dataclass(frozen=True)
class ContentEncoder:
    """Implements RowEncoder for a table of the simulation."""

    of: Table

    @property
    def schema(self) -> pa.Schema:
        return schema_of(self.of)

    @property
    def encoded_schema(self) -> bytes:
        return schema_message(self.schema)

    def table(self, rows: Sequence[tuple[object, ...]]) -> pa.Table:
        return arrow(self.of, rows)

    def rows(self, rows: Sequence[tuple[object, ...]]) -> SliceRows:
        is_plain = self.of.columns == COLUMNS
        return UnencodedRows(rows, 24 * len(rows), self) if is_plain else self.table(rows)


@dataclass(frozen=True)
class KeyRead(ReadPredicate):
    """A scan that depends on the rows of some keys only."""

    numbers: frozenset[int]

    @property
    def nbytes(self) -> int:
        return 64 * len(self.numbers)

    @property
    def look_up(self) -> None:
        return None

    @property
    def points(self) -> Points | None:
        return Points((0,), frozenset((number,) for number in self.numbers), only=True)

    def matches(self, rows: KnownRows) -> bool:
        return 0 not in rows.columns or not self.numbers.isdisjoint(rows.values(0))

    def may_match_file(self, file: DataFile) -> bool:
        return True

    def describe(self) -> str:
        return f"key in {sorted(self.numbers)}"


def old_rows(rows: Sequence[Row], ordinals: Collection[int]) -> OldRows:
    """Rows that are about to be deleted, as far as somebody has read their columns."""
    known = list(zip(*((row.key, row.position, row.value) for row in rows), strict=True))
    columns = {ordinal: pa.chunked_array([known[ordinal]], pa.int64()) for ordinal in ordinals}
    return OldRows(deletes_of(rows), KnownRows(len(rows), columns))


class Reader:
    """Reads views as an engine would; a file is decoded once in a run, for its name is its own."""

    def __init__(self) -> None:
        self._files: dict[str, list[Decoded]] = {}

    def rows(self, view: ShardView, store: MemoryObjectStore) -> list[Row]:
        """The live rows of a view."""
        found: list[Row] = []
        for part in view.files:
            name = f"{view.shard}/{part.file.name}"
            content = self.content(name, store)[: part.row_limit]
            found += _live(part.file.name, content, part.deleted)
        for inline in view.inline:
            found += _live(inline.source, _decoded(inline.rows), inline.deleted)
        return found

    def content(self, name: str, store: MemoryObjectStore) -> list[Decoded]:
        """All rows of a data file. Raises NotFound."""
        known = self._files.get(name)
        if known is None:
            stored = store.peek(name)
            if not stored:
                raise NotFound(name)
            file = pq.ParquetFile(pa.BufferReader(stored))
            columns = table_columns(file.schema_arrow.names)
            known = _decoded(file.read(columns, use_threads=False))
            self._files[name] = known
        return known


def _decoded(rows: pa.Table | pa.RecordBatch) -> list[Decoded]:
    names = SCHEMA.names
    contents = list(zip(*(rows.column(name).to_pylist() for name in names), strict=True))
    added = [name for name in rows.schema.names if name not in names]
    if not added:
        return [(*content, frozenset()) for content in contents]
    others = list(zip(*(rows.column(name).to_pylist() for name in added), strict=True))
    return [_whole(content, added, more) for content, more in zip(contents, others, strict=True)]


def _whole(content: Content, added: Sequence[str], more: Sequence[int | str | None]) -> Decoded:
    given = {name: value for name, value in zip(added, more, strict=True) if value is not None}
    assert all(int(value) in content[1:] for value in given.values()), f"{content} has {given}"
    return (*content, frozenset(given))


def _live(source: Source, rows: Sequence[Decoded], deleted: BitMap64) -> list[Row]:
    return [
        Row(position, value, key, source, index, added)
        for index, (key, position, value, added) in enumerate(rows)
        if index not in deleted
    ]
