"""One Spark engine for a test session, and views of shards that only one test sees.

The class archive outlives the session in `.cache`: the second session starts in half the time.
"""

import asyncio
import itertools
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, aclosing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from compute.executor import Run
from compute.spark.executor import SparkExecutor
from compute.spark.session import SessionPoolName, SparkSettings
from sql.binder.bind import bind
from sql.binder.state import BindContext
from sql.catalog.catalog import Catalog, Column, Table
from sql.parser.parse import parse
from sql.plan.nodes import ColumnId, Plan, PlanColumn, RelationId, Scan
from sql.statements.bound import BoundQuery
from sql.types.sql_type import INT8, TEXT, SqlType, Value
from storage.batch import DataFile, FileSlice, InlineSlice, ShardView
from storage.types import ShardId, Source

ARCHIVES = Path(__file__).parents[3] / ".cache" / "spark"

_numbers = itertools.count(1)


class _Shared:
    directory: Path | None = None
    executor: SparkExecutor | None = None


def settings(directory: Path) -> SparkSettings:
    """Small, and with the archive of all test sessions."""
    warehouse = directory / "ware house [1]"
    warehouse.mkdir(exist_ok=True)
    return SparkSettings(
        directory=directory / "spark",
        warehouse=warehouse,
        heap_mb=1024,
        archive_directory=ARCHIVES,
        cores=2,
    )


def directory() -> Path:
    """The directory of this session's engine; its warehouse has a name that globs would misread."""
    if _Shared.directory is None:
        _Shared.directory = Path(tempfile.mkdtemp(prefix="meridian-spark-"))
    return _Shared.directory


def warehouse() -> Path:
    """Where files of shards are."""
    return settings(directory()).warehouse


def executor() -> SparkExecutor:
    """The engine, which starts when it is first asked for."""
    if _Shared.executor is None:
        _Shared.executor = SparkExecutor(settings(directory()))
    return _Shared.executor


def close() -> None:
    """End what was started."""
    if _Shared.executor is not None:
        asyncio.run(_Shared.executor.close())
        _Shared.executor = None
    if _Shared.directory is not None:
        shutil.rmtree(_Shared.directory)
        _Shared.directory = None


@contextmanager
def forced(lane: SessionPoolName, *, spooled: bool = False) -> Iterator[None]:
    """Runs take this lane whatever their size, read files as files, and spool if asked to."""
    with ExitStack() as patches:
        enter = patches.enter_context
        enter(mock.patch("compute.spark.executor.choose_session_pool", return_value=lane))
        if lane is not SessionPoolName.SMALL:
            enter(mock.patch("compute.spark.relations.is_small_view", return_value=False))
        if spooled:
            enter(mock.patch("compute.spark.executor.COLLECT_ROWS_MAX", 0))
        yield


class Elsewhere:
    """An executor whose shards lie in another directory, under other names (they never collide)."""

    name = "spark"

    def __init__(self, engine: SparkExecutor, shards: Path) -> None:
        self._engine = engine
        self._shards = shards
        self._names: dict[ShardId, ShardId] = {}

    def run(self, run: Run) -> AsyncIterator[pa.RecordBatch]:
        """See Executor."""
        inputs = {name: self._moved(view) for name, view in run.inputs.items()}
        return self._engine.run(replace(run, inputs=inputs))

    async def close(self) -> None:
        """The engine is shared."""

    def _moved(self, view: ShardView) -> ShardView:
        if view.shard not in self._names:
            name = ShardId(f"m{next(_numbers)}")
            (warehouse() / name).symlink_to(self._shards / view.shard)
            self._names[view.shard] = name
        return replace(view, shard=self._names[view.shard])


@dataclass(slots=True)
class Shard:
    """A shard of a test: its files, and views of them."""

    schema: pa.Schema
    id: ShardId
    files: dict[str, DataFile]

    @classmethod
    def new(cls, schema: pa.Schema) -> "Shard":
        """A shard that no other test has."""
        return cls(schema, ShardId(f"s{next(_numbers)}"), {})

    @property
    def directory(self) -> Path:
        """Where its files are."""
        path = warehouse() / self.id
        path.mkdir(exist_ok=True)
        return path

    def file(self, name: str, rows: pa.Table, **options: Any) -> DataFile:
        """Write a data file."""
        path = self.directory / name
        pq.write_table(rows, path, store_schema=False, **options)
        file = DataFile(Source(name), rows.num_rows, path.stat().st_size, "{}")
        self.files[name] = file
        return file

    def view(
        self,
        files: Sequence[tuple[str, int | None, Sequence[int]]] = (),
        inline: Sequence[tuple[str, pa.Table, Sequence[int]]] = (),
    ) -> ShardView:
        """Files by (name, row limit, deleted rows), inline rows by (source, rows, deleted rows)."""
        slices = tuple(
            FileSlice(
                self.files[name],
                self.files[name].rows if limit is None else limit,
                BitMap64(deleted),
            )
            for name, limit, deleted in files
        )
        parts = tuple(
            InlineSlice(Source(source), rows, BitMap64(deleted)) for source, rows, deleted in inline
        )
        return ShardView(self.id, self.schema, repr(files), slices, parts)


def scan(
    types: Sequence[SqlType], *, relation: str = "t", identity: bool = False, first: int = 1
) -> Scan:
    """All columns of a relation."""
    columns = tuple(
        PlanColumn(ColumnId(first + n), f"c{first + n}", type_) for n, type_ in enumerate(types)
    )
    last = first + len(types)
    row = (
        PlanColumn(ColumnId(last), "source", TEXT),
        PlanColumn(ColumnId(last + 1), "index", INT8),
    )
    return Scan(
        RelationId(relation), relation, columns, tuple(range(len(types))), row if identity else None
    )


def plan_of(text: str, **tables: Sequence[tuple[str, SqlType]]) -> Plan:
    """The plan of a query over relations given by name and columns."""
    catalog = Catalog(
        tables={
            ("public", name): Table(
                number, "public", name, name, tuple(Column(*column) for column in columns)
            )
            for number, (name, columns) in enumerate(tables.items(), 1)
        }
    )
    bound = bind(parse(text)[0], BindContext(catalog, ["public"], 0), []).bound
    assert isinstance(bound, BoundQuery)
    return bound.plan


async def until(condition: Callable[[], object]) -> None:
    """Wait until something outside this process has happened."""
    async with asyncio.timeout(120):
        # There is no event to wait for: what is asked about happens in another process.
        while not await asyncio.to_thread(condition):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def rows_of(
    engine: Any, plan: Plan, views: Mapping[str, ShardView], parameters: Sequence[Value] = ()
) -> list[tuple[Any, ...]]:
    """All rows of the answer."""
    inputs = {RelationId(name): view for name, view in views.items()}
    rows: list[tuple[Any, ...]] = []
    batches = cast("Any", engine.run(Run(plan, inputs, parameters)))
    async with aclosing(batches):
        async for batch in batches:
            rows += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return rows


def answer(
    engine: Any, plan: Plan, views: Mapping[str, ShardView], parameters: Sequence[Value] = ()
) -> list[tuple[Any, ...]]:
    """All rows of the answer, for tests that do nothing else."""
    return asyncio.run(rows_of(engine, plan, views, parameters))
