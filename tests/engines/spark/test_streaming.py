"""Large results: in order, in bounded batches and memory, gone when nobody reads them."""

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from compute.executor import BATCH_ROWS_MAX, Run
from compute.spark.executor import SparkExecutor
from compute.spark.results import COLLECT_ROWS_MAX, Spool
from compute.spark.session import SessionPoolName
from sql.errors import SqlError
from sql.plan.nodes import RelationId
from sql.types.sql_type import INT8, TEXT
from storage.batch import ShardView
from tests.engines.spark.shared_engine import Shard, answer, directory, forced, plan_of, scan, until

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
COLUMNS = [("id", INT8), ("name", TEXT)]
ROWS = 5_000_000


def rows(first: int, count: int) -> pa.Table:
    ids = pa.array(range(first, first + count), pa.int64())
    names = pc.binary_join_element_wise("row number", ids.cast(pa.string()), " ")
    return pa.table([ids, names], schema=SCHEMA)


@pytest.fixture(scope="module")
def large() -> ShardView:
    """Five million rows in five files, the last rows first."""
    shard = Shard.new(SCHEMA)
    names = [f"{n}.parquet" for n in range(5)]
    for n, name in enumerate(reversed(names)):
        shard.file(name, rows(n * ROWS // 5, ROWS // 5))
    return shard.view([(name, None, []) for name in names])


@pytest.fixture(scope="module")
def medium() -> ShardView:
    """More than is collected in one piece."""
    shard = Shard.new(SCHEMA)
    shard.file("a.parquet", rows(0, 3 * COLLECT_ROWS_MAX))
    return shard.view([("a.parquet", None, [])])


def run_of(text: str, view: ShardView) -> Run:
    return Run(plan_of(text, t=COLUMNS), {RelationId("t"): view})


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def spools() -> list[Path]:
    return list((directory() / "spark" / "spools").iterdir())


def test_a_large_ordered_result_takes_bounded_memory(
    spark: SparkExecutor, large: ShardView
) -> None:
    async def read() -> tuple[int, int]:
        before, most, count = resident_bytes(), 0, 0
        run = run_of("select id, name from t order by id", large)
        async for batch in spark.run(run):
            assert batch.schema.types == SCHEMA.types
            assert batch.num_rows <= BATCH_ROWS_MAX
            expected = pa.array(range(count, count + batch.num_rows), pa.int64())
            assert batch.column(0).equals(expected)
            count += batch.num_rows
            most = max(most, resident_bytes() - before)
        return count, most

    count, most = asyncio.run(read())
    assert count == ROWS
    # The result is more than 150 MB.
    assert most < 120 << 20
    asyncio.run(until(lambda: not spools()))


def test_an_answer_that_turns_out_long_is_streamed(spark: SparkExecutor, medium: ShardView) -> None:
    for lane in (SessionPoolName.MEDIUM, SessionPoolName.LARGE):
        with forced(lane):
            # A filter: nobody knows beforehand how many rows will come.
            plan = plan_of("select id, name from t where id >= 0 order by id", t=COLUMNS)
            found = answer(spark, plan, {"t": medium})
        assert [row[0] for row in found] == list(range(3 * COLLECT_ROWS_MAX))


def test_a_limit_keeps_a_large_table_small(spark: SparkExecutor, large: ShardView) -> None:
    plan = plan_of("select id from t order by id desc limit 3", t=COLUMNS)
    assert answer(spark, plan, {"t": large}) == [(ROWS - 1,), (ROWS - 2,), (ROWS - 3,)]
    counted = plan_of("select count(*), sum(id % 2) from t", t=COLUMNS)
    [(count, odd)] = answer(spark, counted, {"t": large})
    assert (count, int(odd)) == (ROWS, ROWS // 2)


def test_a_reader_that_leaves_stops_the_job(spark: SparkExecutor, large: ShardView) -> None:
    async def leave() -> None:
        run = run_of("select id, name from t order by name", large)
        async with aclosing(cast("Any", spark.run(run))) as batches:
            async for _ in batches:
                break
        await until(lambda: not spools())

    asyncio.run(leave())
    assert answer(spark, scan([INT8, TEXT]), {"t": Shard.new(SCHEMA).view()}) == []


def test_a_failure_in_the_middle_of_a_long_answer(spark: SparkExecutor, medium: ShardView) -> None:
    plan = plan_of("select 1 / (id - 98000) from t where id >= 0", t=COLUMNS)
    with forced(SessionPoolName.MEDIUM, spooled=True), pytest.raises(SqlError) as caught:
        answer(spark, plan, {"t": medium})
    assert (caught.value.sqlstate, caught.value.message) == ("22012", "division by zero")
    asyncio.run(until(lambda: not spools()))


def test_an_empty_long_answer(spark: SparkExecutor, medium: ShardView) -> None:
    plan = plan_of("select id from t where id < 0", t=COLUMNS)
    with forced(SessionPoolName.MEDIUM, spooled=True):
        assert answer(spark, plan, {"t": medium}) == []


def test_a_result_has_no_columns_but_rows(spark: SparkExecutor, medium: ShardView) -> None:
    async def count(run: Run) -> int:
        return sum([batch.num_rows async for batch in spark.run(run)])

    for spooled in (False, True):
        with forced(SessionPoolName.MEDIUM, spooled=spooled):
            run = run_of("select from t where id < 7", medium)
            assert asyncio.run(count(run)) == 7


def test_a_spool_has_a_limit(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", SCHEMA, bytes_max=1000)
    spool.check_size()
    (tmp_path / "spool" / "_temporary").mkdir(parents=True)
    (tmp_path / "spool" / "_temporary" / "part").write_bytes(b"x" * 1001)
    with pytest.raises(SqlError) as caught:
        spool.check_size()
    assert caught.value.sqlstate == "53400"
    spool.close()
    assert not (tmp_path / "spool").exists()


def test_parts_are_read_in_order_as_they_come(tmp_path: Path) -> None:
    spool = Spool(tmp_path, SCHEMA, bytes_max=1 << 20)

    def part(number: int) -> None:
        pa.parquet.write_table(rows(number, 1), tmp_path / f"part-{number:05}-x-c000.parquet")

    def read(*, complete: bool = False) -> list[int] | None:
        batch = spool.read(complete=complete)
        return None if batch is None else batch.column(0).to_pylist()

    part(1)
    assert read() is None
    part(0)
    assert [read(), read(), read()] == [[0], [1], None]
    # Empty partitions make no part: only the end of the job tells.
    part(3)
    part(5)
    assert read() is None
    assert [read(complete=True) for _ in range(3)] == [[3], [5], None]
