"""A database that DuckDB gives up, after an error that is DuckDB's own: the next one answers."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, contextmanager, suppress
from pathlib import Path
from typing import cast

import duckdb
import pyarrow as pa
import pytest

from compute.duckdb.instance import LocalInstance, LocalInstances
from compute.executor import EngineUnavailable, Run
from sql.emit.emitted_query import EmittedQuery
from sql.errors import SqlError
from sql.types.sql_type import INT8
from storage.batch import ShardView
from tests.engines.duckdb.local_engine import Engine, Shard, T, opened, plan_of, rows_of
from tests.engines.duckdb.test_streaming import until

SCHEMA = pa.schema([("id", pa.int64())])
COLUMNS = [("id", INT8)]
ROWS = 3_000_000

BREAKING = """
    with t(i, h) as materialized (values (1, 1), (2, 2), (3, 1), (5, 3)),
         r(k, v, w) as materialized (values ('x', 10, 100), ('x', 30, 300), (null, null, 400))
    select a1.i from t a1
      left join r a2 on a1.h = a2.w and a2.k in (select k from r a3)
      left join r a5 on a1.i > a5.w and a1.i < a2.v
"""
"""DuckDB 2.0 takes the mark of the join below for a column of the inequalities."""


@pytest.fixture
def engine(tmp_path: Path) -> Generator[Engine]:
    with opened(tmp_path) as engine:
        yield engine


@pytest.fixture
def view(engine: Engine) -> ShardView:
    shard = Shard(engine, SCHEMA)
    shard.file("a.parquet", pa.table([pa.array(range(ROWS), pa.int64())], schema=SCHEMA))
    return shard.view([("a.parquet", None, [])])


def run_of(text: str, view: ShardView) -> Run:
    return Run(plan_of(text, COLUMNS), {T: view})


def count(engine: Engine, view: ShardView) -> int:
    [(found,)] = engine.answer(plan_of("select count(*) from t", COLUMNS), view)
    return int(found)


def give_up(instance: LocalInstance) -> None:
    """Have DuckDB give the database up."""
    with instance.database.cursor() as cursor, suppress(duckdb.InternalException):
        cursor.execute(BREAKING)


async def fail(engine: Engine) -> None:
    """A run that has DuckDB give the database up."""
    plan = plan_of("select 1", COLUMNS)
    with pytest.MonkeyPatch.context() as planted:
        planted.setattr(
            "compute.duckdb.statements.emit", lambda *_args: EmittedQuery(BREAKING, {}, ())
        )
        with pytest.raises(SqlError) as caught:
            await rows_of(engine.executor.run(Run(plan, {})))
    assert (caught.value.sqlstate, caught.value.message) == ("XX000", "the engine failed")


@contextmanager
def given_up_at_entry(times: int) -> Generator[None]:
    """Runs find that their database is given up just behind their entry, so many times."""
    enter, entered = LocalInstances.enter, 0

    def entering(self: LocalInstances) -> tuple[LocalInstance, duckdb.DuckDBPyConnection]:
        nonlocal entered
        found = enter(self)
        entered += 1
        if entered <= times:
            give_up(found[0])
        return found

    with pytest.MonkeyPatch.context() as planted:
        planted.setattr(LocalInstances, "enter", entering)
        yield


async def until_one_is_left(engine: Engine) -> None:
    await until(lambda: engine.executor.instances.count == 1)


def test_the_next_statement_is_answered(engine: Engine, view: ShardView) -> None:
    before = engine.executor.instances.newest
    text = "select count(*) from t where encode(sha256(id::text::bytea), 'base64') like 'a%'"
    plan = plan_of(text, COLUMNS)
    # Tables of rows, functions and statements are made again.
    small = Shard(engine, SCHEMA).view(
        inline=[("@1", pa.table([pa.array(range(100), pa.int64())], schema=SCHEMA), [])]
    )
    answers = [engine.answer(plan, small) for _ in range(3)]
    asyncio.run(fail(engine))
    assert engine.executor.instances.newest is not before
    assert [engine.answer(plan, small) for _ in range(3)] == answers
    assert count(engine, view) == ROWS
    asyncio.run(until_one_is_left(engine))
    assert engine.executor.running == 0


def test_the_next_database_is_no_more_open_than_the_first(engine: Engine) -> None:
    asyncio.run(fail(engine))
    with pytest.raises(duckdb.PermissionException):
        engine.executor.instances.newest.database.execute(f"select * from read_text('{__file__}')")


def test_who_has_seen_nothing_is_answered(engine: Engine, view: ShardView) -> None:
    with given_up_at_entry(1):
        assert count(engine, view) == ROWS
    asyncio.run(until_one_is_left(engine))


def test_who_would_have_to_be_run_a_third_time_is_not(engine: Engine, view: ShardView) -> None:
    with given_up_at_entry(2), pytest.raises(EngineUnavailable):
        count(engine, view)
    assert count(engine, view) == ROWS
    asyncio.run(until_one_is_left(engine))


def test_who_has_seen_rows_goes_on_until_the_next_is_given_up_too(
    engine: Engine, view: ShardView
) -> None:
    text = "select id from t"

    async def read() -> None:
        batches = engine.executor.run(run_of(text, view))
        async with aclosing(cast("AsyncGenerator[pa.RecordBatch]", batches)):
            assert (await anext(batches)).num_rows
            await fail(engine)
            assert (await anext(batches)).num_rows
            assert engine.executor.instances.count == 2
            await fail(engine)
            assert engine.executor.instances.count == 2
            with pytest.raises(EngineUnavailable):
                await rows_of(batches)
        await until_one_is_left(engine)

    asyncio.run(read())
    assert engine.executor.running == 0
    assert len(engine.answer(plan_of(text, COLUMNS), view)) == ROWS


def test_an_engine_is_closed_with_a_database_that_was_given_up(
    engine: Engine, view: ShardView, tmp_path: Path
) -> None:
    async def leave() -> None:
        batches = engine.executor.run(run_of("select id from t", view))
        async with aclosing(cast("AsyncGenerator[pa.RecordBatch]", batches)):
            await anext(batches)
            await fail(engine)
        await engine.executor.close()

    asyncio.run(leave())
    assert not (tmp_path / "spill").exists()
