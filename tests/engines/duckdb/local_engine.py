"""A local engine for a test, shards for it, and statements over one table `t`."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from compute.duckdb.database import LocalSettings
from compute.duckdb.executor import LocalExecutor
from compute.executor import Run
from compute.reference.arrow import to_values
from sql.binder.bind import bind
from sql.binder.state import BindContext
from sql.catalog.catalog import Catalog, Column, Table
from sql.parser.parse import parse
from sql.plan.nodes import Plan, RelationId, output_columns
from sql.statements.bound import BoundQuery
from sql.types.sql_type import SqlType, Value
from storage.batch import DataFile, FileSlice, InlineSlice, ShardView
from storage.types import ShardId, Source

T = RelationId("t")
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Engine:
    """An executor and its warehouse, whose name file patterns would misread."""

    executor: LocalExecutor
    warehouse: Path

    def answer(
        self, plan: Plan, view: ShardView | None = None, parameters: Sequence[Value] = ()
    ) -> list[tuple[Any, ...]]:
        """All rows."""
        inputs: Mapping[RelationId, ShardView] = {} if view is None else {T: view}
        return asyncio.run(rows_of(self.executor.run(Run(plan, inputs, parameters))))

    def values(
        self, plan: Plan, view: ShardView | None = None, parameters: Sequence[Value] = ()
    ) -> list[tuple[Value, ...]]:
        """All rows, as our values."""
        inputs: Mapping[RelationId, ShardView] = {} if view is None else {T: view}

        async def read() -> list[tuple[Value, ...]]:
            found: list[tuple[Value, ...]] = []
            types = [column.type for column in output_columns(plan)]
            async for batch in self.executor.run(Run(plan, inputs, parameters)):
                columns = [
                    to_values(pa.chunked_array([column]), type_)
                    for column, type_ in zip(batch.columns, types, strict=True)
                ]
                found += zip(*columns, strict=True)
            return found

        return asyncio.run(read())


@contextmanager
def opened(directory: Path, **settings: Any) -> Generator[Engine]:
    """An engine that is closed at the end."""
    warehouse = directory / "ware house [1]*"
    warehouse.mkdir()
    executor = LocalExecutor(LocalSettings(warehouse, directory / "spill", **settings))
    try:
        yield Engine(executor, warehouse)
    finally:
        asyncio.run(executor.close())


async def rows_of(batches: AsyncIterator[pa.RecordBatch]) -> list[tuple[Any, ...]]:
    """The rows of a stream."""
    rows: list[tuple[Any, ...]] = []
    async for batch in batches:
        columns = [column.to_pylist() for column in batch.columns]
        rows += list(zip(*columns, strict=True)) if columns else [()] * batch.num_rows
    return rows


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard of a test: its files, and views of them."""

    engine: Engine
    schema: pa.Schema
    id: ShardId = field(default_factory=lambda: ShardId(f"s{next(_numbers)}"))
    files: dict[str, DataFile] = field(default_factory=dict[str, DataFile])

    def file(self, name: str, rows: pa.Table, **options: Any) -> None:
        """Write a data file."""
        path = self.engine.warehouse / self.id / name
        path.parent.mkdir(exist_ok=True)
        pq.write_table(rows, path, **options)
        self.files[name] = DataFile(Source(name), rows.num_rows, path.stat().st_size, "{}")

    def view(
        self,
        files: Sequence[tuple[str, int | None, Sequence[int]]] = (),
        inline: Sequence[tuple[str, pa.Table, Sequence[int]]] = (),
    ) -> ShardView:
        """Files with their row limits and deleted rows, rows in memory with theirs."""
        key = repr([(name, limit, list(gone)) for name, limit, gone in files])
        slices = tuple(
            FileSlice(
                self.files[name],
                self.files[name].rows if limit is None else limit,
                BitMap64(gone),
            )
            for name, limit, gone in files
        )
        pieces = tuple(
            InlineSlice(Source(source), rows, BitMap64(gone)) for source, rows, gone in inline
        )
        return ShardView(self.id, self.schema, key, slices, pieces)


def plan_of(text: str, columns: Sequence[tuple[str, SqlType]]) -> Plan:
    """The plan of a query over the table `t`."""
    table = Table(1, "public", "t", ShardId(T), tuple(Column(*column) for column in columns))
    catalog = Catalog(tables={("public", "t"): table})
    prepared = bind(parse(text)[0], BindContext(catalog, ["public"], 0), [])
    assert isinstance(prepared.bound, BoundQuery)
    return prepared.bound.plan
