"""A shard's view as input for DuckDB: Parquet files as scans, rows as Arrow streams or tables.

    ShardView ─┬─ whole files ───────────────▶ read_parquet(..)
               ├─ files with deleted rows ───▶ the same, anti-joined to their deleted rows
               └─ inline slices ─────────────▶ a table
               (all of it, if it is small) ──▶ a table

When a view is read for the first time, its rows go to DuckDB as an Arrow stream: it may be the last
time. The second time they become an in-memory table of DuckDB, cached while queries use it. Queries
over a table run without Python and open no file.

INVARIANTS
  N1  a relation's columns are `f0`, `f1` .. by ordinal; with identity also `__source`, `__index`;
      with versions `__ctid`, `__xmin`, in this order.
  N2  paths, names of files and limits are bound arguments; the text of a statement holds only names
      that Meridian generates.
  N3  DuckDB gets Arrow rows as a stream, into which it can push no condition: only DuckDB compares
      values, never Arrow.
  N4  a table is dropped only when no run uses it, the least recently used one first.
"""

import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Final, Protocol, TypeAlias, cast

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from compute.duckdb.database import escape_glob
from compute.duckdb.row_versions import version_expressions, version_pieces
from compute.scan import (
    RowColumns,
    RowReader,
    file_name,
    is_small_view,
    is_whole_file,
    view_key,
)
from sql.errors import not_supported
from storage.batch import DataFile, FileSlice, ShardView
from storage.row_versions import VERSION_FIELDS
from storage.types import ShardId, Source

CachedTableKey: TypeAlias = tuple[object, ...]
BoundArgument: TypeAlias = str | list[str] | list[int]

TABLES_BYTES_MAX: Final = 256 << 20
"""Rows kept as tables for views that are read again. Less: they are created again more often."""
TABLES_MAX: Final = 1_000
SEEN_MAX: Final = 200
"""Views of which it is remembered that they have been read once."""
SCHEMAS_MAX: Final = 100_000
"""Files whose column names are remembered; for others the footer is read by every scan."""

_TYPES: Final[dict[pa.DataType, str]] = {
    pa.bool_(): "boolean",
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "varchar",
    pa.binary(): "blob",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp",
    pa.timestamp("us", tz="UTC"): "timestamptz",
}


def stored_duckdb_type(type_: pa.DataType) -> str:
    """The type of a stored column."""
    if pa.types.is_decimal128(type_):
        return f"decimal({type_.precision},{type_.scale})"
    if isinstance(type_, pa.StructType):
        fields = ", ".join(f"{field.name} {stored_duckdb_type(field.type)}" for field in type_)
        return f"struct({fields})"
    if isinstance(type_, pa.ListType):
        return f"{stored_duckdb_type(type_.value_type)}[]"
    name = _TYPES.get(type_)
    if name is None:
        raise not_supported(f"a stored column of type {type_} on the local engine")
    return name


@dataclass(slots=True)
class _Table:
    name: str
    size: int
    kept: object
    """Keeps alive what the key names by identity."""
    users: int = 0


class VersionKind(Enum):
    """Where the ids and commits of a file's rows are found."""

    IN_FILE = "in columns of the file"
    SINGLE = "all rows are of one commit, and their ids one range"
    PIECES = "several ranges or commits, or none"


_Group: TypeAlias = tuple[tuple[str, ...], VersionKind | None]
"""Files of equal columns, of which the ids are found alike; None: nobody asks for them."""


class ArrowStream(Protocol):
    """Arrow's PyCapsule interface, which the stubs of pyarrow leave untyped."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """A capsule with a stream."""
        ...


class _Stream:
    """Rows as nothing but an Arrow stream, which can be opened more than once (N3)."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """See Arrow's PyCapsule interface."""
        return cast("ArrowStream", self._rows).__arrow_c_stream__(requested_schema)


@dataclass(slots=True)
class StatementRelations:
    """The relations of one statement: common table expressions, their arguments, pinned tables."""

    relations: list[str] = field(default_factory=list[str])
    arguments: dict[str, BoundArgument] = field(default_factory=dict[str, BoundArgument])
    tables: list[_Table] = field(default_factory=list[_Table])

    def argument(self, value: BoundArgument) -> str:
        """Bind a value to the statement; a reference to it (N2)."""
        name = f"p{len(self.arguments) + 1}"
        self.arguments[name] = value
        return f"${name}"


class LocalRelations:
    """See the module. Thread-safe."""

    def __init__(self, warehouse: Path, reader: RowReader) -> None:
        self._warehouse = warehouse
        self._reader = reader
        self._lock = threading.Lock()
        self._making = threading.Lock()
        self._tables: OrderedDict[CachedTableKey, _Table] = OrderedDict()
        self._seen: OrderedDict[CachedTableKey, object] = OrderedDict()
        self._bytes = 0
        self._layouts: OrderedDict[tuple[ShardId, Source], tuple[str, ...]] = OrderedDict()
        self._numbers = itertools.count(1)

    def release(self, bound: StatementRelations) -> None:
        """Unpin the tables of a statement that has ended."""
        with self._lock:
            for table in bound.tables:
                table.users -= 1
        bound.tables.clear()

    def relation(
        self,
        connection: duckdb.DuckDBPyConnection,
        view: ShardView,
        bound: StatementRelations,
        columns: RowColumns,
    ) -> str:
        """Make a view's rows readable; the name under which the statement reads them. `columns`:
        what is read besides the table's.
        """
        read = partial(
            self._reader.rows if view.files and is_small_view(view) else self._reader.inline,
            view,
            identity=columns.identity,
            versions=columns.versions,
        )
        if is_small_view(view) or not view.files:
            key = ("rows", columns, _uncommitted(view, columns), *view_key(view))
            return self._table(connection, bound, key, read, kept=view)
        parts = list(self._files(connection, view, bound, columns))
        if view.inline:
            key = ("tail", columns, *view_key(view)[:1], *view_key(view)[2:])
            tail = self._table(connection, bound, key, read, kept=view)
            parts.append(f"select * from {tail}")
        name = f"v{len(bound.relations) + 1}"
        bound.relations.append(f"{name} as not materialized ({' union all '.join(parts)})")
        return name

    # --- files ---------------------------------------------------------------------------------

    def _files(
        self,
        connection: duckdb.DuckDBPyConnection,
        view: ShardView,
        bound: StatementRelations,
        columns: RowColumns,
    ) -> Iterator[str]:
        whole: dict[_Group, list[FileSlice]] = {}
        cut: dict[_Group, list[FileSlice]] = {}
        for part in sorted(view.files, key=lambda part: part.file.name):
            groups = whole if is_whole_file(part) else cut
            layout = self._layout(view.shard, part.file)
            kind = _version_kind(part.file) if columns.versions else None
            groups.setdefault((layout, kind), []).append(part)
        for group, parts in whole.items():
            yield self._scan(connection, view, group, parts, bound, columns)
        for number, (group, parts) in enumerate(cut.items()):
            key = ("holes", view.shard, view.base_key, number, group[1])
            holes = self._table(connection, bound, key, partial(deleted_row_table, parts))
            # Of NOT EXISTS over virtual columns DuckDB makes a join over all rows.
            on = "h.file = x.file_index and h.row = x.file_row_number"
            scan = self._scan(connection, view, group, parts, bound, columns)
            yield f"{scan} anti join {holes} h on {on}{_row_limits(parts, bound)}"

    def _scan(
        self,
        connection: duckdb.DuckDBPyConnection,
        view: ShardView,
        group: "_Group",
        parts: Sequence[FileSlice],
        bound: StatementRelations,
        asked: RowColumns,
    ) -> str:
        layout, kind = group
        directory = self._warehouse / view.shard
        paths = bound.argument(
            [escape_glob(directory / file_name(part.file.name)) for part in parts]
        )
        places = {name: place for place, name in enumerate(layout)}
        columns = [
            f"{_column(field.type, places.get(field.name))} as f{ordinal}"
            for ordinal, field in enumerate(view.schema)
        ]
        if asked.identity:
            names = bound.argument([str(part.file.name) for part in parts])
            columns += [
                f"cast({names} as varchar[])[cast(x.file_index as bigint) + 1] as __source",
                "x.file_row_number as __index",
            ]
        called = ", ".join(f"k{place}" for place in range(len(layout)))
        files = f"read_parquet({paths}, hive_partitioning=false) x({called})"
        if kind is VersionKind.IN_FILE:
            stored = [f"x.k{places[name]}" for name in VERSION_FIELDS]
            columns += version_expressions(stored[0], stored[1])
        elif kind is VersionKind.SINGLE:
            columns += version_expressions(*_single_versions(parts, bound))
        elif kind is VersionKind.PIECES:
            known = [(part.file.name, part.file.origins is None) for part in parts]
            key = ("pieces", view.shard, tuple(known))
            pieces = self._table(connection, bound, key, partial(version_pieces, parts))
            columns += version_expressions("v.id + x.file_row_number - v.row", "v.ts")
            # Of files that nobody has committed there are no pieces.
            files += (
                f" asof left join {pieces} v"
                " on v.file = x.file_index and v.row <= x.file_row_number"
            )
        return f"select {', '.join(columns) or '0 as z'} from {files}"

    def _layout(self, shard: ShardId, file: DataFile) -> tuple[str, ...]:
        """The names of a file's columns, in the file's order; files never change."""
        key = (shard, file.name)
        with self._lock:
            known = self._layouts.get(key)
        if known is not None:
            return known
        layout = tuple(pq.read_schema(self._warehouse / shard / file.name).names)
        with self._lock:
            self._layouts[key] = layout
            while len(self._layouts) > SCHEMAS_MAX:
                self._layouts.popitem(last=False)
        return layout

    # --- tables --------------------------------------------------------------------------------

    def _table(
        self,
        connection: duckdb.DuckDBPyConnection,
        bound: StatementRelations,
        key: CachedTableKey,
        rows: Callable[[], pa.Table],
        *,
        kept: object = None,
    ) -> str:
        """The name of a relation with these rows, pinned by the statement."""
        known = self._known(key, bound)
        if known is not None:
            return known
        if not self._seen_before(key, kept):
            name = f"r{next(self._numbers)}"
            connection.register(name, _Stream(rows()))
            return name
        with self._making:
            # A run that waited here finds the table that the run before it has created.
            known = self._known(key, bound)
            if known is not None:
                return known
            table = self._make(connection, rows(), kept)
            with self._lock:
                self._tables[key] = table
                self._bytes += table.size
                self._use(table, bound)
                unused = self._unused()
        for old in unused:
            connection.execute(f"drop table {old.name}")
        return table.name

    def _seen_before(self, key: CachedTableKey, kept: object) -> bool:
        with self._lock:
            if key in self._seen:
                del self._seen[key]
                return True
            self._seen[key] = kept
            if len(self._seen) > SEEN_MAX:
                self._seen.popitem(last=False)
            return False

    def _known(self, key: CachedTableKey, bound: StatementRelations) -> str | None:
        with self._lock:
            table = self._tables.get(key)
            if table is None:
                return None
            self._tables.move_to_end(key)
            self._use(table, bound)
            return table.name

    def _use(self, table: _Table, bound: StatementRelations) -> None:
        table.users += 1
        bound.tables.append(table)

    def _make(self, connection: duckdb.DuckDBPyConnection, rows: pa.Table, kept: object) -> _Table:
        name = f"r{next(self._numbers)}"
        connection.register("arriving", _Stream(rows))
        try:
            connection.execute(f"create table {name} as select * from arriving")
        finally:
            connection.unregister("arriving")
        return _Table(name, rows.nbytes, kept)

    def _unused(self) -> list[_Table]:
        """Remove tables beyond the limits that no run uses (N4); the caller drops them."""
        found: list[_Table] = []
        for key, table in list(self._tables.items()):
            if self._bytes <= TABLES_BYTES_MAX and len(self._tables) <= TABLES_MAX:
                break
            if not table.users:
                del self._tables[key]
                self._bytes -= table.size
                found.append(table)
        return found


def _column(type_: pa.DataType, place: int | None) -> str:
    name = stored_duckdb_type(type_)
    if place is None:
        # The file is older than the column.
        return f"cast(null as {name})"
    column = f"cast(x.k{place} as {name})"
    if not pa.types.is_floating(type_):
        return column
    # Statistics in Parquet leave NaN out, and DuckDB believes them: it must not see the column
    # itself in a filter.
    return f"case when isnan({column}) then cast('nan' as {name}) else {column} end"


def _row_limits(parts: Sequence[FileSlice], bound: StatementRelations) -> str:
    """Keeps the first rows of files of which a view has not all yet."""
    if all(part.row_limit >= part.file.rows for part in parts):
        return ""
    limits = bound.argument([part.row_limit for part in parts])
    place = "cast(x.file_index as bigint) + 1"
    return f" where x.file_row_number < cast({limits} as bigint[])[{place}]"


def _version_kind(file: DataFile) -> "VersionKind":
    origins = file.origins
    if origins is None:
        return VersionKind.PIECES
    if origins.ids.in_file:
        return VersionKind.IN_FILE
    return VersionKind.SINGLE if origins.is_single else VersionKind.PIECES


def _uncommitted(view: ShardView, columns: RowColumns) -> tuple[Source, ...]:
    """The files whose rows get ids with their commit: views before and after it are no others."""
    if not columns.versions:
        return ()
    return tuple([part.file.name for part in view.files if part.file.origins is None])


def _single_versions(parts: Sequence[FileSlice], bound: StatementRelations) -> tuple[str, str]:
    """The id and the commit of a row of files that are of one commit each."""
    origins = [part.file.origins for part in parts]
    assert all(origins), "the kind of the files says so"
    ids = bound.argument([one.ids.first_ids[0] for one in origins if one is not None])
    times = bound.argument([int(one.times[0]) for one in origins if one is not None])
    place = "cast(x.file_index as bigint) + 1"
    return (
        f"cast({ids} as bigint[])[{place}] + x.file_row_number",
        f"cast({times} as bigint[])[{place}]",
    )


def deleted_row_table(parts: Sequence[FileSlice]) -> pa.Table:
    """The deleted rows of files: number of the file, number of the row."""
    files = [np.full(len(part.deleted), number) for number, part in enumerate(parts)]
    rows = [np.fromiter(part.deleted, np.int64, len(part.deleted)) for part in parts]
    empty = [np.empty(0, np.int64)]
    return pa.table(
        {
            "file": pa.array(np.concatenate(files or empty), pa.int64()),
            "row": pa.array(np.concatenate(rows or empty), pa.int64()),
        }
    )
