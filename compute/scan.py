"""A shard's view as input for an engine: whole files, files to be filtered, rows in memory.

    ShardView ─┬─ whole files ───────────────▶ read.schema(S).parquet(..)
               ├─ files with deleted rows ───▶ the same, filtered by (file name, row index)
               └─ inline slices ─────────────▶ one Arrow table without the deleted rows
               (all of it, if it is small) ──▶ one Arrow table

INVARIANTS
  N1  a relation's columns are `f0`, `f1` .. by ordinal; with identity also `__source`, `__index`
      (B1 of `storage/batch.py`), with versions `__ctid`, `__xmin` (`row_versions.py`).
  N2  only names of data files, which Meridian generates, go into paths and texts for Spark. Names
      of columns go into a schema as JSON, never into a text that is parsed as SQL.

Not here: talking to the JVM (`spark/relations.py`).
"""

import json
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from compute.row_versions import VERSION_SCHEMA, file_versions, inline_versions
from sql.errors import not_supported
from storage.batch import DataFile, FileSlice, InlineSlice, ShardView
from storage.row_versions import VERSION_FIELDS, table_columns
from storage.types import ShardId, Source

SOURCE: Final = "__source"
INDEX: Final = "__index"
SMALL_ROWS_MAX: Final = 10_000
"""A view of at most so many rows goes to Spark as rows. More would cost more to send than files
to open."""
SMALL_BYTES_MAX: Final = 4 << 20
"""The same, in bytes of its files."""
FILE_CACHE_BYTES_MAX: Final = 64 << 20
"""Rows of small files kept in memory. Less reads them again after every commit."""
INLINE_CACHES_MAX: Final = 64
"""Shards whose inline rows are cached as one table; for others every scan concatenates them."""

_FILE_NAME: Final = re.compile(r"[A-Za-z0-9._=-]+")
_SPARK_TYPES: Final[dict[pa.DataType, str]] = {
    pa.bool_(): "boolean",
    pa.int16(): "short",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp_ntz",
    pa.timestamp("us", tz="UTC"): "timestamp",
}

ReadFile: TypeAlias = Callable[[ShardId, DataFile], pa.Table]


@dataclass(frozen=True, slots=True)
class RowColumns:
    """What a statement reads of rows besides their columns (N1): where they lie, ctid and xmin."""

    identity: bool = False
    versions: bool = False


def no_versions(_shard: ShardId, _file: DataFile) -> pa.Table:
    """For readers whose engine has no ctid and xmin."""
    raise not_supported("reading ctid or xmin on this engine")


def read_table_columns(path: Path) -> pa.Table:
    """All rows of a data file, with the columns of its table."""
    with pq.ParquetFile(path) as file:
        return file.read(table_columns(file.schema_arrow.names))


def read_version_columns(path: Path) -> pa.Table:
    """The columns of a rewritten file that say what its rows are (W2 of `row_versions.py`)."""
    with pq.ParquetFile(path) as file:
        return file.read([*VERSION_FIELDS])


def row_count_bound(view: ShardView) -> int:
    """An upper bound of the rows of a view; exact if no row is deleted."""
    return sum(part.row_limit for part in view.files) + view.inline_rows


def view_bytes(view: ShardView) -> int:
    """About how many bytes there are to read."""
    return sum(part.file.size_bytes for part in view.files) + sum(
        part.stored.nbytes for part in view.inline
    )


def deleted_row_count(view: ShardView) -> int:
    """How many rows of files and slices are deleted in the view."""
    return sum(len(part.deleted) for part in view.files) + sum(
        len(part.deleted) for part in view.inline
    )


def is_small_view(view: ShardView) -> bool:
    """Whether the view is sent to an engine as rows, not as files."""
    return (
        row_count_bound(view) <= SMALL_ROWS_MAX
        and sum(part.file.rows for part in view.files) <= SMALL_ROWS_MAX
        and view_bytes(view) <= SMALL_BYTES_MAX
    )


def is_whole_file(part: FileSlice) -> bool:
    """Whether the view has all rows of the file."""
    return part.row_limit >= part.file.rows and not part.deleted


def file_name(source: Source) -> str:
    """The name of a data file, checked to be safe in a text for Spark (N2)."""
    assert _FILE_NAME.fullmatch(source), "N2: names of data files are generated"
    return str(source)


def column_names(schema: pa.Schema, *, identity: bool) -> list[str]:
    """The names of a relation's columns (N1)."""
    return [f"f{ordinal}" for ordinal in range(len(schema))] + ([SOURCE, INDEX] if identity else [])


def relation_schema(schema: pa.Schema, *, identity: bool) -> pa.Schema:
    """The schema of the relation over a shard with this schema (N1)."""
    types: list[pa.DataType] = [field.type for field in schema]
    if identity:
        types += [pa.string(), pa.int64()]
    return pa.schema(list(zip(column_names(schema, identity=identity), types, strict=True)))


def spark_type(type_: pa.DataType) -> "str | dict[str, object]":
    """The type as Spark's JSON schemas name it."""
    if isinstance(type_, pa.StructType):
        return {"type": "struct", "fields": [_spark_field(field) for field in type_]}
    if isinstance(type_, pa.ListType):
        element = spark_type(type_.value_type)
        return {"type": "array", "elementType": element, "containsNull": True}
    if pa.types.is_decimal128(type_):
        return f"decimal({type_.precision},{type_.scale})"
    name = _SPARK_TYPES.get(type_)
    if name is None:
        raise not_supported(f"a stored column of type {type_} on the spark engine")
    return name


def spark_schema(schema: pa.Schema) -> str:
    """A schema in Spark's JSON. Every field may be NULL: Spark gives wrong rows if NOT NULL is
    untrue.
    """
    return json.dumps({"type": "struct", "fields": [_spark_field(field) for field in schema]})


def _spark_field(field: "pa.Field[pa.DataType]") -> dict[str, object]:
    return {"name": field.name, "type": spark_type(field.type), "nullable": True, "metadata": {}}


ViewKey: TypeAlias = tuple[object, ...]


def view_key(view: ShardView) -> ViewKey:
    """A key that is equal for views of the same rows; valid as long as the views themselves
    live.
    """
    parts = tuple(
        (part.source, id(part.rows), part.deleted.serialize() if part.deleted else b"")
        for part in view.inline
    )
    return (view.shard, view.base_key, tuple(view.schema.types), tuple(view.schema.names), parts)


@dataclass(frozen=True, slots=True)
class _Tail:
    parts: tuple[InlineSlice, ...]
    rows: pa.Table


class RowReader:
    """Reads rows of views as Arrow tables and caches them between scans. Thread-safe."""

    def __init__(self, read_file: ReadFile, read_versions: ReadFile = no_versions) -> None:
        self._read_file = read_file
        self._read_versions = read_versions
        self._lock = threading.Lock()
        self._files: OrderedDict[tuple[ShardId, Source], pa.Table] = OrderedDict()
        self._files_bytes = 0
        self._tails: OrderedDict[ShardId, _Tail] = OrderedDict()

    def rows(self, view: ShardView, *, identity: bool, versions: bool = False) -> pa.Table:
        """All rows of a small view. `versions`: with ctid and xmin behind all else."""
        schema = relation_schema(view.schema, identity=identity)
        parts: list[pa.Table] = []
        for part in view.files:
            rows = self._file_rows(view, part)
            if identity:
                rows = _identified(rows, part.file.name, schema)
            if versions:
                rows = _beside(rows, self._versions_of(view, part, rows.num_rows))
            parts.append(_without(rows.slice(0, part.row_limit), [(0, part.deleted)]))
        parts.append(self.inline(view, identity=identity, versions=versions))
        return pa.concat_tables(parts).combine_chunks()

    def _versions_of(self, view: ShardView, part: FileSlice, rows: int) -> pa.Table:
        return file_versions(part, rows, lambda part: self._read_versions(view.shard, part.file))

    def inline(self, view: ShardView, *, identity: bool, versions: bool = False) -> pa.Table:
        """The rows of the inline slices, likewise."""
        rows, deleted = self._all_inline(view, identity=identity)
        if versions:
            found = [VERSION_SCHEMA.empty_table(), *map(inline_versions, view.inline)]
            rows = _beside(rows, pa.concat_tables(found))
        return _without(rows, deleted)

    def _all_inline(
        self, view: ShardView, *, identity: bool
    ) -> tuple[pa.Table, list[tuple[int, BitMap64]]]:
        """All rows of the slices, and those that are deleted by the place of their slice."""
        schema = relation_schema(view.schema, identity=True)
        tail = self._tail(view, schema)
        deleted: list[tuple[int, BitMap64]] = []
        first = 0
        for part in view.inline:
            if part.deleted:
                deleted.append((first, part.deleted))
            first += part.num_rows
        return tail if identity else tail.select(schema.names[:-2]), deleted

    def _tail(self, view: ShardView, schema: pa.Schema) -> pa.Table:
        """All rows of the slices, deleted ones too; rows that an earlier scan has seen are not
        copied again.
        """
        with self._lock:
            known = self._tails.get(view.shard)
        start, tables = 0, [schema.empty_table()]
        if known is not None and known.rows.schema.equals(schema) and _begins(view, known.parts):
            start, tables = len(known.parts), [known.rows]
        for part in view.inline[start:]:
            tables.append(_identified(part.rows, part.source, schema))
        if start == len(view.inline):
            return tables[0]
        rows = pa.concat_tables(tables).combine_chunks()
        with self._lock:
            self._tails[view.shard] = _Tail(view.inline, rows)
            self._tails.move_to_end(view.shard)
            while len(self._tails) > INLINE_CACHES_MAX:
                self._tails.popitem(last=False)
        return rows

    def _file_rows(self, view: ShardView, part: FileSlice) -> pa.Table:
        key = (view.shard, part.file.name)
        with self._lock:
            known = self._files.get(key)
            if known is not None:
                self._files.move_to_end(key)
                return conform_batch(known, view.schema)
        rows = self._read_file(view.shard, part.file)
        with self._lock:
            if key not in self._files:
                self._files[key] = rows
                self._files_bytes += rows.nbytes
            while self._files_bytes > FILE_CACHE_BYTES_MAX:
                self._files_bytes -= self._files.popitem(last=False)[1].nbytes
        return conform_batch(rows, view.schema)


def _beside(rows: pa.Table, more: pa.Table) -> pa.Table:
    """Rows with more columns."""
    columns = [*rows.columns, *more.columns]
    return pa.table(columns, names=[*rows.schema.names, *more.schema.names])


def _begins(view: ShardView, parts: Sequence[InlineSlice]) -> bool:
    """Whether the view's slices begin with these, apart from their deleted rows."""
    return len(parts) <= len(view.inline) and all(
        mine.rows is known.rows and mine.source == known.source
        for mine, known in zip(view.inline, parts, strict=False)
    )


def conform_batch(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of a file in the shard's order and types; NULL for columns newer than it."""
    there = {name: place for place, name in enumerate(rows.schema.names)}
    columns: list[pa.ChunkedArray[pa.Scalar[pa.DataType]]] = []
    for field in schema:
        place = there.get(field.name)
        if place is None:
            columns.append(pa.chunked_array([pa.nulls(rows.num_rows, field.type)]))
            continue
        column = rows.column(place)
        columns.append(column if column.type == field.type else column.cast(field.type))
    return pa.table(columns, schema=relation_schema(schema, identity=False))


def _identified(rows: pa.Table, source: Source, schema: pa.Schema) -> pa.Table:
    """Rows with their identity behind their columns."""
    count = rows.num_rows
    sources = pa.chunked_array([pa.repeat(pa.scalar(str(source), pa.string()), count)])
    indexes = pa.chunked_array([pa.array(np.arange(count, dtype=np.int64))])
    columns = [
        column.cast(type_) for column, type_ in zip(rows.columns, schema.types, strict=False)
    ]
    return pa.table([*columns, sources, indexes], schema=schema)


def _without(rows: pa.Table, deleted: Iterable[tuple[int, BitMap64]]) -> pa.Table:
    """The rows but those that are deleted, given as indexes from a first row on."""
    mask: np.ndarray[tuple[int], np.dtype[np.bool_]] | None = None
    for first, bitmap in deleted:
        if not bitmap:
            continue
        if mask is None:
            mask = np.ones(rows.num_rows, dtype=np.bool_)
        gone = np.fromiter(bitmap, dtype=np.int64, count=len(bitmap)) + first
        # Rows beyond the view's limit may be deleted too.
        mask[gone[gone < len(mask)]] = False
    return rows if mask is None else rows.filter(pa.array(mask))
