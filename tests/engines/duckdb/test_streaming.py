"""Large results and long queries on DuckDB: order, bounded memory, concurrency, cancellation."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from compute.executor import BATCH_ROWS_MAX, EngineUnavailable, Run
from sql.errors import SqlError
from sql.types.sql_type import INT8, TEXT
from storage.batch import ShardView
from tests.engines.duckdb.local_engine import Engine, Shard, T, opened, plan_of, rows_of

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
COLUMNS = [("id", INT8), ("name", TEXT)]
ROWS = 4_000_000
ENDLESS = "select count(*) from t a, t b, t c where a.id * b.id % 7 = c.id % 11"


def rows(first: int, count: int) -> pa.Table:
    numbers = pa.array(range(first, first + count), pa.int64())
    names = pc.binary_join_element_wise("row number", numbers.cast(pa.string()), " ")
    return pa.table([numbers, names], schema=SCHEMA)


@pytest.fixture(scope="module")
def large(engine: Engine) -> ShardView:
    """Four million rows in four files, the last rows first."""
    shard = Shard(engine, SCHEMA)
    for number in range(4):
        shard.file(f"{number}.parquet", rows((3 - number) * ROWS // 4, ROWS // 4))
    return shard.view([(name, None, []) for name in shard.files])


def twice(text: str) -> str:
    return text + text


def run_of(text: str, view: ShardView) -> Run:
    return Run(plan_of(text, COLUMNS), {T: view})


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that another thread does."""
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.to_thread(threading.Event().wait, 0.01)


def in_use(engine: Engine) -> int:
    tables = engine.executor.instances.newest.relations._tables.values()
    return sum(table.users for table in tables) + engine.executor.running


def test_a_large_ordered_result(engine: Engine, large: ShardView) -> None:
    async def read() -> int:
        count = 0
        async for batch in engine.executor.run(run_of("select id, name from t order by id", large)):
            assert batch.schema.types == SCHEMA.types
            assert batch.num_rows <= BATCH_ROWS_MAX
            assert batch.column(0)[0].as_py() == count
            count += batch.num_rows
        return count

    assert asyncio.run(read()) == ROWS


def test_a_slow_reader_does_not_fill_memory(engine: Engine, large: ShardView) -> None:
    async def read() -> int:
        most = 0
        # 64 million rows, 2 GB and more.
        text = "select a.id, a.name from t a, (values (1), (2), (3), (4)) v(x), (values (1), (2), (3), (4)) w(x)"  # noqa: E501
        async with aclosing(cast("Any", engine.executor.run(run_of(text, large)))) as batches:
            seen = 0
            async for _ in batches:
                seen += 1
                if seen == 1:
                    before = resident_bytes()
                if seen == 20:
                    break
                await asyncio.to_thread(threading.Event().wait, 0.02)
                most = max(most, resident_bytes() - before)
        return most

    assert asyncio.run(read()) < 200 << 20


def test_a_reader_that_leaves_stops_the_query(engine: Engine, large: ShardView) -> None:
    async def leave() -> None:
        text = "select a.id from t a, t b"
        async with aclosing(cast("Any", engine.executor.run(run_of(text, large)))) as batches:
            async for _ in batches:
                break
        await until(lambda: not in_use(engine))

    asyncio.run(leave())


def test_a_task_that_is_cancelled_stops_the_query(engine: Engine, large: ShardView) -> None:
    async def cancel() -> None:
        async with asyncio.TaskGroup() as group:
            query = group.create_task(rows_of(engine.executor.run(run_of(ENDLESS, large))))
            await until(lambda: in_use(engine) > 0)
            query.cancel()
        assert query.cancelled()
        await until(lambda: not in_use(engine))

    asyncio.run(cancel())


def test_a_query_that_waits_for_a_thread_can_be_cancelled(engine: Engine, large: ShardView) -> None:
    async def cancel() -> None:
        # More than the engine has threads.
        async with asyncio.TaskGroup() as group:
            queries = [
                group.create_task(rows_of(engine.executor.run(run_of(ENDLESS, large))))
                for _ in range(20)
            ]
            await until(lambda: engine.executor.running == len(queries))
            for query in queries:
                query.cancel()
        await until(lambda: not in_use(engine))

    asyncio.run(cancel())


def test_a_failure_in_the_middle_of_a_long_answer(engine: Engine, large: ShardView) -> None:
    for text, sqlstate in (
        ("select 1 / (id - 500000) from t", "22012"),
        ("select cast(name as integer) from t where id > 2", "22P02"),
        ("select repeat(name, 100000000) from t", "54000"),
        ("select string_to_array(repeat(',', 4000001), ',') from t", "54000"),
    ):
        with pytest.raises(SqlError) as caught:
            engine.answer(plan_of(text, COLUMNS), large)
        assert caught.value.sqlstate == sqlstate
    assert not in_use(engine)


def test_several_queries_at_once(engine: Engine, large: ShardView) -> None:
    async def many() -> list[list[tuple[Any, ...]]]:
        return await asyncio.gather(
            *(
                rows_of(
                    engine.executor.run(
                        run_of(f"select count(*), sum(id % 2) from t where id % 50 = {n}", large)
                    )
                )
                for n in range(30)
            )
        )

    assert asyncio.run(many()) == [[(ROWS // 50, n % 2 * ROWS // 50)] for n in range(30)]


def test_what_does_not_fit_into_memory_is_spilled(tmp_path: Path) -> None:
    with opened(tmp_path, memory_mb=100) as engine:
        shard = Shard(engine, SCHEMA)
        shard.file("a.parquet", rows(0, 2_000_000))
        view = shard.view([("a.parquet", None, [])])
        text = "select name, id from t order by name || name desc, id limit 3 offset 1500000"
        found = engine.answer(plan_of(text, COLUMNS), view)
        names = sorted((f"row number {n}" for n in range(2_000_000)), key=twice, reverse=True)
        assert [name for name, _ in found] == names[1_500_000:1_500_003]


def test_more_memory_than_there_is(tmp_path: Path) -> None:
    with opened(tmp_path, memory_mb=40, spill_bytes_max=1 << 20) as engine:
        shard = Shard(engine, SCHEMA)
        shard.file("a.parquet", rows(0, 2_000_000))
        view = shard.view([("a.parquet", None, [])])
        plan = plan_of("select name from t order by name || name desc, id", COLUMNS)
        with pytest.raises(SqlError) as caught:
            engine.answer(plan, view)
        assert caught.value.sqlstate == "53200"
        assert str(tmp_path) not in caught.value.message
        # And the engine goes on.
        assert engine.answer(plan_of("select count(*) from t", COLUMNS), view) == [(2_000_000,)]


def test_an_engine_is_closed_while_it_works(tmp_path: Path) -> None:
    async def refused(engine: Engine, view: ShardView) -> None:
        with pytest.raises(EngineUnavailable):
            await rows_of(engine.executor.run(run_of(ENDLESS, view)))

    async def close(engine: Engine, view: ShardView) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(refused(engine, view))
            await until(lambda: engine.executor.running > 0)
            await engine.executor.close()

    with opened(tmp_path) as engine:
        shard = Shard(engine, SCHEMA)
        asyncio.run(close(engine, shard.view(inline=[("@1", rows(0, 100_000), [])])))


def test_an_engine_that_is_closed(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        pass
    with pytest.raises(EngineUnavailable):
        engine.answer(plan_of("select 1", COLUMNS))
    assert not (tmp_path / "spill").exists()


@pytest.fixture(autouse=True)
def quiet(engine: Engine) -> Iterator[None]:
    """Every test leaves the engine without a query."""
    yield
    asyncio.run(until(lambda: not in_use(engine)))
