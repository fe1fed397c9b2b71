"""A footer has no bounds of a column that holds a NaN (F1 of `storage/delta/files.py`)."""

import asyncio
import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder

from coordinator.execution.parquet_spooler import ParquetSpooler
from storage.batch import WriteBatch
from storage.clock import SystemClock
from storage.cuts import flush
from storage.delta.compaction import rewrite_files
from storage.delta.compaction_plan import CompactionLimits
from storage.delta.files import ROW_GROUP_ROWS, encode_parquet
from storage.delta.layout import data_path
from storage.local_store import LocalObjectStore
from storage.shard import ShardState
from storage.types import ShardId, Timestamp

SHARD = ShardId("tfeedfacecafebeef")
SCHEMA = pa.schema([("k", pa.int64()), ("f", pa.float64()), ("g", pa.float32())])
ARRAYS = pa.schema([("k", pa.int64()), ("a", pa.list_(pa.float64()))])


def rows(first: int, *, f: float = 1.0, g: float | None = 2.0) -> pa.Table:
    columns = {"k": [first, first + 1], "f": [f, 0.5], "g": [g, 1.5]}
    return pa.table(columns, schema=SCHEMA)


def bounded(file: pq.ParquetFile) -> list[set[str]]:
    """The columns with bounds, of each row group."""
    groups = [file.metadata.row_group(n) for n in range(file.metadata.num_row_groups)]
    return [
        {
            column.path_in_schema
            for column in (group.column(at) for at in range(group.num_columns))
            if column.statistics is not None and column.statistics.has_min_max
        }
        for group in groups
    ]


def opened(content: bytes) -> pq.ParquetFile:
    return pq.ParquetFile(pa.BufferReader(content))


def test_only_columns_with_a_nan_are_without_bounds() -> None:
    assert bounded(opened(encode_parquet(rows(1)))) == [{"k", "f", "g"}]
    assert bounded(opened(encode_parquet(rows(1, f=math.nan)))) == [{"k", "g"}]
    assert bounded(opened(encode_parquet(rows(1, f=math.nan, g=math.nan)))) == [{"k"}]
    assert bounded(opened(encode_parquet(rows(1, f=math.inf, g=None)))) == [{"k", "f", "g"}]


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [
        ([[1.0], None, []], {"k", "a.list.element"}),
        ([[1.0], [2.0, math.nan], None], {"k"}),
    ],
)
def test_elements_of_arrays_too(arrays: list[list[float] | None], expected: set[str]) -> None:
    table = pa.table({"k": [1, 2, 3], "a": arrays}, schema=ARRAYS)
    assert bounded(opened(encode_parquet(table))) == [expected]


def test_a_load_goes_on_in_another_file(tmp_path: Path) -> None:
    """The file before keeps its bounds; a NaN that comes again is no reason for a third one."""

    async def story() -> list[str]:
        store = LocalObjectStore.open(tmp_path / "warehouse")
        try:
            spooler = ParquetSpooler(store, SHARD, SCHEMA)
            for number, f in enumerate((1.0, math.nan, 1.0, math.nan)):
                keys = pa.array(range(ROW_GROUP_ROWS), pa.int64())
                values = pa.array([f] + [0.5] * (ROW_GROUP_ROWS - 1), pa.float64())
                g = pa.array([float(number)] * ROW_GROUP_ROWS, pa.float32())
                await spooler.write(pa.record_batch([keys, values, g], schema=SCHEMA))
            return [data_path(SHARD, file.name) for file in await spooler.finish()]
        finally:
            store.close()

    names = asyncio.run(story())
    files = [pq.ParquetFile(tmp_path / "warehouse" / name) for name in names]
    assert [bounded(file) for file in files] == [[{"k", "f", "g"}], [{"k", "g"}] * 3]


def test_delta_rs_finds_every_row(tmp_path: Path) -> None:
    """Its engine skips files by footers: the row with the NaN was lost. After a compaction, too."""
    store = LocalObjectStore.open(tmp_path / "warehouse")
    query = "SELECT k FROM t WHERE f > 100 ORDER BY k"

    async def story() -> list[list[int]]:
        now = SystemClock().now() // 1_000 * 1_000 - 10_000_000
        state = ShardState(SHARD, SCHEMA, Timestamp(now))
        for number, f in enumerate((math.nan, 200.0)):
            batch = WriteBatch(rows(10 * number, f=f))
            state = state.committed(Timestamp(now + 10_000 * number + 5_000), batch)
            cut = Timestamp(now + 10_000 * number + 6_000)
            state = state.flushed(await flush(store, state, cut))
        found = [ask()]
        live = [*state.versions[-1].files.live_files()]
        rewritten = await rewrite_files(store, state, live, CompactionLimits())
        version = await flush(store, state, Timestamp(now + 60_000), rewritten=rewritten)
        assert len(version.files) == 1
        return [*found, ask()]

    def ask() -> list[int]:
        table = DeltaTable(tmp_path / "warehouse" / SHARD)
        found = QueryBuilder().register("t", table).execute(query).read_all()
        return pa.table(found).column("k").to_pylist()

    try:
        # To DataFusion, as to PostgreSQL, NaN is greater than every number.
        assert asyncio.run(story()) == [[0, 10], [0, 10]]
    finally:
        store.close()
    (newest,) = (tmp_path / "warehouse" / SHARD).glob("part-c*.parquet")
    (group,) = bounded(pq.ParquetFile(newest))
    assert {"k", "g"} <= group
    assert "f" not in group
