"""Answers written by Spark itself into a table's directory."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compute.arrow import table_schema
from compute.executor import Run
from compute.spark import SparkExecutor
from compute.spark_session import LaneName
from compute.staging import stage
from sql.catalog import Column
from sql.errors import SqlError
from sql.plan import Plan, RelationId
from sql.types import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT8,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    SqlType,
    numeric,
)
from storage.batch import ShardView
from storage.delta.files import data_file_from_parquet, decode_parquet
from storage.types import Source
from tests.spark.shared_engine import Shard, forced, plan_of, scan, until

pytestmark = pytest.mark.spark

TYPES: list[SqlType] = [
    BOOL, INT2, INT8, FLOAT4, FLOAT8, numeric(5, 2), numeric(38, 18), TEXT, BYTEA, DATE, TIMESTAMP,
    TIMESTAMPTZ,
]  # fmt: skip
SCHEMA = table_schema([Column(f"Col`{n}.x", type_) for n, type_ in enumerate(TYPES)])
IDS = table_schema([Column("id", INT8)])


def staged(
    spark: SparkExecutor, plan: Plan, view: ShardView, directory: Path, schema: pa.Schema
) -> Sequence[Source]:
    return asyncio.run(stage(spark, Run(plan, {RelationId("t"): view}), directory, schema))


def test_types_and_names_are_the_tables(spark: SparkExecutor, tmp_path: Path) -> None:
    noon = datetime(2024, 2, 29, 12, 0, 0, 123456)
    values = [
        True, -5, 2**62, 1.5, -0.0, Decimal("-999.99"), Decimal("1E-18"), "a'\\\u2028", b"\x00\xff",
        date(1, 1, 1), noon, noon.replace(tzinfo=UTC),
    ]  # fmt: skip
    rows = pa.table([[value, None] for value in values], schema=SCHEMA)
    view = Shard.new(SCHEMA).view(inline=[("@1", rows, [])])
    names = staged(spark, scan(TYPES), view, tmp_path, SCHEMA)
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    found = [decode_parquet((tmp_path / name).read_bytes(), SCHEMA) for name in names]
    assert pa.concat_tables(found).equals(rows)
    for name in names:
        assert pq.read_schema(tmp_path / name).types == SCHEMA.types
        assert not (tmp_path / name).stat().st_mode & 0o077
        metadata = pq.read_metadata(tmp_path / name)
        assert data_file_from_parquet(name, metadata, 1, SCHEMA).rows == metadata.num_rows


def test_many_parts_keep_their_order(spark: SparkExecutor, tmp_path: Path) -> None:
    shard = Shard.new(IDS)
    shard.file("a.parquet", pa.table([range(100_000)], schema=IDS))
    view = shard.view([("a.parquet", None, [])])
    with forced(LaneName.LARGE):
        plan = plan_of("select id from t where id >= 10 order by id desc", t=[("id", INT8)])
        names = staged(spark, plan, view, tmp_path, IDS)
    found = pa.concat_tables([pq.read_table(tmp_path / name) for name in names])
    assert found.column(0).to_pylist() == list(range(99_999, 9, -1))


def test_no_rows_make_no_files(spark: SparkExecutor, tmp_path: Path) -> None:
    assert staged(spark, scan([INT8]), Shard.new(IDS).view(), tmp_path, IDS) == []
    assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_nothing(spark: SparkExecutor, tmp_path: Path) -> None:
    shard = Shard.new(IDS)
    shard.file("a.parquet", pa.table([range(100_000)], schema=IDS))
    plan = plan_of("select 1 / (id - 99999) from t", t=[("id", INT8)])
    with pytest.raises(SqlError) as caught:
        staged(spark, plan, shard.view([("a.parquet", None, [])]), tmp_path, IDS)
    assert caught.value.sqlstate == "22012"
    asyncio.run(until(lambda: not list(tmp_path.iterdir())))


def test_a_cancelled_write_leaves_nothing(spark: SparkExecutor, tmp_path: Path) -> None:
    shard = Shard.new(IDS)
    view = shard.view(inline=[("@1", pa.table([range(4000)], schema=IDS), [])])
    endless = plan_of(
        "select id from t union all select a.id from t a, t b, t c where a.id + b.id + c.id < 0",
        t=[("id", INT8)],
    )

    async def story() -> None:
        run = Run(endless, {RelationId("t"): view})
        task = asyncio.create_task(stage(spark, run, tmp_path, IDS))  # noqa: TID251
        await until(lambda: list(tmp_path.rglob("part-*")))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: not list(tmp_path.iterdir()))

    asyncio.run(story())
