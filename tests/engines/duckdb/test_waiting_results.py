"""W1 and W2 of `waiting_results.py`: rests of results in files, whatever happens then."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest

from compute.duckdb import waiting_results
from compute.duckdb.executor import LocalExecutor
from compute.duckdb.waiting_results import SLOW_STREAMS_MAX, WaitingResult
from compute.executor import Run
from sql.errors import SqlError
from sql.types.sql_type import INT8, TEXT
from storage.batch import ShardView
from tests.engines.duckdb.local_engine import Engine, Shard, T, plan_of
from tests.engines.duckdb.test_streaming import until

ROWS = 200_000
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
COLUMNS = [("id", INT8), ("name", TEXT)]
Stream = AsyncGenerator[pa.RecordBatch, None]


@pytest.fixture(scope="module")
def view(engine: Engine) -> ShardView:
    shard = Shard(engine, SCHEMA)
    numbers = pa.array(range(ROWS), pa.int64())
    names = pa.array([f"{number:0100}" for number in range(ROWS)])
    shard.file("0.parquet", pa.table([numbers, names], schema=SCHEMA))
    return shard.view([("0.parquet", None, [])])


def stream(engine: Engine, view: ShardView, text: str) -> Stream:
    return cast("Stream", engine.executor.run(Run(plan_of(text, COLUMNS), {T: view})))


async def begun(
    opened: AsyncExitStack, engine: Engine, view: ShardView, text: str, count: int
) -> list[tuple[Stream, int]]:
    """Streams of which one batch was read, with its rows."""
    found: list[tuple[Stream, int]] = []
    for _ in range(count):
        batches = await opened.enter_async_context(aclosing(stream(engine, view, text)))
        found.append((batches, (await anext(batches)).num_rows))
    return found


def set_aside(executor: LocalExecutor) -> int:
    """How many streams wait in a file."""
    return sum(query._file is not None for query in executor._queries)


async def rest_of(batches: Stream, position: int) -> int:
    """Read to the end, and check that no row is missing; how many there were."""
    async for batch in batches:
        first, last = batch.column(0)[0].as_py(), batch.column(0)[-1].as_py()
        assert (first, last) == (position, position + batch.num_rows - 1)
        position += batch.num_rows
    return position


async def counted(batches: Stream, rows: int) -> tuple[int, str]:
    """Read to the end; how many rows there were, and the SQLSTATE that ended them, if one did."""
    try:
        async for batch in batches:
            rows += batch.num_rows
    except SqlError as error:
        return rows, error.sqlstate
    return rows, ""


def test_who_reads_again_gets_the_rest(engine: Engine, view: ShardView) -> None:
    async def story() -> None:
        count = SLOW_STREAMS_MAX + 3
        async with AsyncExitStack() as opened:
            text = "select id, name from t order by id"
            streams = await begun(opened, engine, view, text, count)
            await until(lambda: set_aside(engine.executor) == count - SLOW_STREAMS_MAX)
            for batches, position in streams:
                assert await rest_of(batches, position) == ROWS
        await until(lambda: not engine.executor.running)
        assert not engine.executor.slow

    asyncio.run(story())


def test_a_file_that_is_full_leaves_the_rest_to_the_stream(
    engine: Engine, view: ShardView, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting_results, "WAITING_BYTES_MAX", 1 << 20)

    async def story() -> None:
        async with AsyncExitStack() as opened:
            text = "select id, name from t order by id"
            streams = await begun(opened, engine, view, text, SLOW_STREAMS_MAX + 1)
            await until(lambda: set_aside(engine.executor) == 1)
            for batches, position in streams:
                assert await rest_of(batches, position) == ROWS

    asyncio.run(story())


def test_a_failure_comes_behind_the_rows_before_it(engine: Engine, view: ShardView) -> None:
    async def story() -> None:
        async with AsyncExitStack() as opened:
            text = f"select id / (id - {ROWS - 10}), name from t"
            streams = await begun(opened, engine, view, text, SLOW_STREAMS_MAX + 2)
            await until(lambda: set_aside(engine.executor) == 2)
            for batches, position in streams:
                rows, sqlstate = await counted(batches, position)
                assert sqlstate == "22012"
                assert 0 < rows < ROWS

    asyncio.run(story())


def test_who_leaves_leaves_no_file(engine: Engine, view: ShardView) -> None:
    async def story() -> None:
        async with AsyncExitStack() as opened:
            await begun(opened, engine, view, "select id, name from t", SLOW_STREAMS_MAX + 2)
            await until(lambda: set_aside(engine.executor) == 2)
        await until(lambda: not engine.executor.running)
        assert not list((engine.warehouse.parent / "spill" / "waiting").iterdir())

    asyncio.run(story())


def test_a_disk_that_is_full_fails_the_result(
    engine: Engine, view: ShardView, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_self: WaitingResult, _batch: pa.RecordBatch) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(WaitingResult, "write", full)

    async def story() -> None:
        async with AsyncExitStack() as opened:
            text = "select id, name from t"
            streams = await begun(opened, engine, view, text, SLOW_STREAMS_MAX + 1)
            queries = engine.executor._queries
            await until(lambda: any(query._failure is not None for query in queries))
            ends = [(await counted(*one))[1] for one in streams]
            assert sorted(ends) == ["", "", "53100"]

    asyncio.run(story())


def test_what_is_written_is_read(tmp_path: Path) -> None:
    one = WaitingResult(tmp_path, SCHEMA)
    batch = pa.record_batch({"id": [1, 2], "name": ["a", None]}, schema=SCHEMA)
    one.write(batch)
    one.write(batch)
    one.finish()
    assert not list(tmp_path.iterdir())
    assert [one.read(), one.read(), one.read()] == [batch, batch, None]
    one.close()
