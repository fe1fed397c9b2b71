"""Register table views as temporary views of Spark, and cache them for later queries.

INVARIANTS
  R1  a relation in use is not dropped: a run that emits a statement over it pins it until Spark has
      analysed the statement; after that the relation's name is not needed any more.
  R2  cached relations are bounded in number and in the bytes of their inline rows.
"""

import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow as pa

from compute.scan import (
    INDEX,
    SOURCE,
    RowReader,
    ViewKey,
    column_names,
    file_name,
    is_small_view,
    is_whole_file,
    spark_schema,
    view_key,
)
from compute.spark.deleted_rows import (
    DELETED_BLOCK,
    DELETED_BLOCK_SCHEMA,
    IS_NOT_DELETED,
    deleted_row_blocks,
)
from compute.spark.gateway import JavaObject
from compute.spark.session import SessionPoolName, SparkSession
from storage.batch import FileSlice, ShardView

RELATIONS_MAX: Final = 256
"""Relations cached in a lane. Fewer are created again more often (5 to 30 ms each)."""
RELATION_BYTES_MAX: Final = 128 << 20
"""Bytes of inline rows that the relations of a lane hold, in Arrow; in the JVM they take about
twice that."""
FILE_SETS_MAX: Final = 256
"""Sets of files whose listing is cached, and as many whose deleted rows are."""
DELETED_LITERALS_MAX: Final = 200
"""Deleted rows written into the filter. More are faster as a join."""
ARROW_ROWS_MAX: Final = 65_536
"""Rows of one batch on the way to the JVM."""


@dataclass(slots=True)
class _Relation:
    """A registered view. `shard_view` keeps the objects alive that the key names by address."""

    name: str
    shard_view: ShardView
    frame: JavaObject = None
    bytes: int = 0
    pins: int = 0
    making: threading.Lock = field(default_factory=threading.Lock)


class Relations:
    """The relations of one lane's session. Thread-safe."""

    def __init__(
        self, session: SparkSession, reader: RowReader, *, warehouse: Path, inbox: Path
    ) -> None:
        self._session = session
        self._reader = reader
        self._warehouse = warehouse
        self._inbox = inbox
        self._lock = threading.Lock()
        self._relations: OrderedDict[ViewKey, _Relation] = OrderedDict()
        self._file_sets: OrderedDict[ViewKey, JavaObject] = OrderedDict()
        self._holes: OrderedDict[ViewKey, JavaObject] = OrderedDict()
        self._bytes = 0
        self._numbers = itertools.count(1)

    @contextmanager
    def pinned(self, view: ShardView, *, identity: bool) -> Generator[str, None, None]:
        """The name of the relation for a view, valid until the context ends (R1)."""
        key = (*view_key(view), identity)
        with self._lock:
            relation = self._relations.get(key)
            if relation is None:
                relation = _Relation(f"r{next(self._numbers)}", view)
                self._relations[key] = relation
            self._relations.move_to_end(key)
            relation.pins += 1
        try:
            with relation.making:
                if relation.frame is None:
                    self._make(relation, identity=identity)
            yield relation.name
        finally:
            with self._lock:
                relation.pins -= 1
                dropped = self._evicted()
            for name in dropped:
                self._session.java.catalog().dropTempView(name)

    def local(self, rows: pa.Table) -> JavaObject:
        """A DataFrame of rows in memory."""
        return self._in_one(self._local(rows))

    def of_files(self, schema: pa.Schema, paths: Sequence[str]) -> JavaObject:
        """A DataFrame of files with this schema, its columns called `f0`, `f1` .."""
        frame = self._session.files(spark_schema(schema), paths)
        return self._named(frame, schema, identity=False)

    def united(self, frames: Sequence[JavaObject]) -> JavaObject:
        """The union of these DataFrames, of which there is at least one."""
        if len(frames) == 1:
            return frames[0]
        return self._in_one(_union(frames))

    def _in_one(self, frame: JavaObject) -> JavaObject:
        if self._session.lane is SessionPoolName.SMALL:
            # A single partition, known to be one: no exchange is planned above it.
            return frame.coalesce(1)
        return frame

    def _evicted(self) -> list[str]:
        """Evict relations beyond the limits, the least recently used first (R2)."""
        names: list[str] = []
        excess = len(self._relations) - RELATIONS_MAX
        for key, relation in list(self._relations.items()):
            if excess <= 0 and self._bytes <= RELATION_BYTES_MAX:
                break
            if relation.pins == 0:
                del self._relations[key]
                self._bytes -= relation.bytes
                excess -= 1
                names.append(relation.name)
        return names

    def _make(self, relation: _Relation, *, identity: bool) -> None:
        view = relation.shard_view
        if is_small_view(view):
            rows = self._reader.rows(view, identity=identity)
            frame = self.local(rows)
            size = rows.nbytes
        else:
            frame, size = self._from_files(view, identity=identity)
        frame.createOrReplaceTempView(relation.name)
        with self._lock:
            relation.frame, relation.bytes = frame, size
            self._bytes += size

    def _from_files(self, view: ShardView, *, identity: bool) -> tuple[JavaObject, int]:
        """A DataFrame of files and inline rows; and the bytes of the inline rows."""
        frames: list[JavaObject] = []
        whole = [part for part in view.files if is_whole_file(part)]
        if whole:
            frames.append(self._whole(view, whole, identity=identity))
        holed = [part for part in view.files if not is_whole_file(part)]
        if holed:
            frames.append(self._holed(view, holed, identity=identity))
        rows = self._reader.inline(view, identity=identity)
        if rows.num_rows or not frames:
            frames.append(self._local(rows))
        return _union(frames), rows.nbytes

    def _whole(self, view: ShardView, parts: Sequence[FileSlice], *, identity: bool) -> JavaObject:
        session = self._session
        frame = self._files(view, parts)
        if identity:
            frame = session.with_identity(frame)
        return self._named(frame, view.schema, identity=identity)

    def _named(self, frame: JavaObject, schema: pa.Schema, *, identity: bool) -> JavaObject:
        """The columns of whole files under the relation's names, safe to filter."""
        session = self._session
        frame = frame.toDF(session.strings(column_names(schema, identity=identity)))
        if any(pa.types.is_floating(type_) for type_ in schema.types):
            frame = frame.selectExpr(session.strings(_columns(schema, identity=identity)))
        return frame

    def _holed(self, view: ShardView, parts: Sequence[FileSlice], *, identity: bool) -> JavaObject:
        """Files of which the view has only some rows."""
        session = self._session
        frame = session.with_identity(self._files(view, parts))
        frame = frame.toDF(session.strings(column_names(view.schema, identity=True)))
        literally = sum(len(part.deleted) for part in parts) <= DELETED_LITERALS_MAX
        conditions = [
            text for part in parts if (text := _absent(part, literally=literally)) is not None
        ]
        if conditions:
            frame = frame.filter(f"not ({' or '.join(conditions)})")
        if not literally:
            frame = self._without_holes(view, parts, frame)
        # The join moved its columns to the front.
        return frame.selectExpr(session.strings(_columns(view.schema, identity=identity)))

    def _without_holes(
        self, view: ShardView, parts: Sequence[FileSlice], frame: JavaObject
    ) -> JavaObject:
        session = self._session
        holes = self._kept(
            self._holes,
            (view.shard, view.base_key),
            lambda: self._local(deleted_row_blocks(parts), DELETED_BLOCK_SCHEMA),
        )
        frame = frame.selectExpr(session.strings(["*", f"{DELETED_BLOCK} as __block"]))
        keys = session.strings([SOURCE, "__block"])
        return frame.join(session.broadcast(holes), keys, "left_outer").filter(IS_NOT_DELETED)

    def _kept(
        self,
        cache: "OrderedDict[ViewKey, JavaObject]",
        key: ViewKey,
        make: Callable[[], JavaObject],
    ) -> JavaObject:
        with self._lock:
            frame = cache.get(key)
            if frame is not None:
                cache.move_to_end(key)
                return frame
        frame = make()
        with self._lock:
            cache[key] = frame
            while len(cache) > FILE_SETS_MAX:
                cache.popitem(last=False)
        return frame

    def _files(self, view: ShardView, parts: Sequence[FileSlice]) -> JavaObject:
        """The rows of a set of files, whose listing is cached."""
        names = tuple(file_name(part.file.name) for part in parts)
        key = (view.shard, names, tuple(view.schema.names), tuple(view.schema.types))
        directory = self._warehouse / view.shard
        paths = [str(directory / name) for name in names]
        return self._kept(
            self._file_sets, key, lambda: self._session.files(spark_schema(view.schema), paths)
        )

    def _local(self, rows: pa.Table, schema: str | None = None) -> JavaObject:
        stream = self._inbox / f"{next(self._numbers)}.arrow"
        try:
            with pa.OSFile(str(stream), "wb") as file, pa.ipc.new_stream(file, rows.schema) as out:
                out.write_table(rows, max_chunksize=ARROW_ROWS_MAX)
            return self._session.local(stream, schema or spark_schema(rows.schema))
        finally:
            stream.unlink(missing_ok=True)


def _union(frames: Sequence[JavaObject]) -> JavaObject:
    frame, *others = frames
    for other in others:
        frame = frame.union(other)
    return frame


def _columns(schema: pa.Schema, *, identity: bool) -> list[str]:
    """A file's columns, safe to filter.

    Statistics in Parquet leave NaN out, so Spark must not push a filter that NaN passes into the
    file: an expression with the same value hides float columns from such filters.
    """
    names = column_names(schema, identity=identity)
    floats = [pa.types.is_floating(type_) for type_ in schema.types]
    hidden = [
        f"nanvl({name}, {name}) as {name}" if is_float else name
        for name, is_float in zip(names, floats, strict=False)
    ]
    return [*hidden, *names[len(hidden) :]]


def _absent(part: FileSlice, *, literally: bool) -> str | None:
    """The condition of rows of this file that the view does not have."""
    rows: list[str] = []
    if part.row_limit < part.file.rows:
        rows.append(f"{INDEX} >= {part.row_limit:d}L")
    if part.deleted and literally:
        rows.append(f"{INDEX} in ({', '.join(f'{index:d}L' for index in part.deleted)})")
    if not rows:
        return None
    return f"({SOURCE} = '{file_name(part.file.name)}' and ({' or '.join(rows)}))"
