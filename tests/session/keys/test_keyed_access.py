"""Statements that ask for rows by key: no engine, the same answers, the same conflicts."""

from collections.abc import AsyncIterator

import psycopg
import pyarrow as pa
import pytest

from compute.executor import Run
from coordinator.core.settings import CoreSettings
from tests.support.connections import all_rows, connected, cut, on_a_loop
from tests.support.stack import WITHOUT_LOCKS, running

SETUP = (
    "create table t (id int primary key, a int, b text, unique (a, b))",
    "insert into t select x, x * 10, 'b' || x from (values (1), (2), (3), (4)) v(x)",
)


class NoEngine:
    """An engine that must not be asked."""

    name = "none"

    async def run(self, run: Run) -> AsyncIterator[pa.RecordBatch]:
        raise AssertionError(f"an engine was asked: {run.plan}")
        yield

    async def close(self) -> None:
        return None


@pytest.mark.parametrize("flushed", [False, True])
@on_a_loop
async def test_no_engine_is_asked(flushed: bool) -> None:
    core = CoreSettings(cut_commits_max=1) if flushed else None
    async with (
        running(engine=NoEngine(), core=core) as stack,
        connected(stack, 1) as (one,),
    ):
        for line in SETUP:
            await one.execute(line)
        if flushed:
            await cut(stack, one)
        done = await one.execute("update t set b = b || '!' where id in (1, 3) returning *")
        assert sorted(await done.fetchall()) == [(1, 10, "b1!"), (3, 30, "b3!")]
        for text, affected in (
            ("delete from t where id = 9", 0),
            ("update t set a = a + 1 where a = 20 and b = 'b2'", 1),
            ("update t set b = 'far' where id = 4 and a > 1000", 0),
            ("update t set b = 'never' where id = 30000000000", 0),
            ("update t set b = null where id = null", 0),
            ("insert into t values (4, 4) on conflict (id) do update set a = t.a + 2", 1),
        ):
            assert (await one.execute(text.encode())).rowcount == affected
            if flushed:
                await cut(stack, one)
        async with one.transaction():
            await one.execute("insert into t values (7, 70, 'own')")
            done = await one.execute("update t set a = 71 where id = 7 returning old.a, new.a")
            assert await done.fetchall() == [(70, 71)]
            await one.execute("delete from t where id = 7")
            done = await one.execute("update t set a = 72 where id = 7")
            assert done.statusmessage == "UPDATE 0"


@on_a_loop
async def test_after_a_cut_everything_is_found() -> None:
    async with (
        running(core=CoreSettings(cut_commits_max=1)) as stack,
        connected(stack, 1) as (one,),
    ):
        for line in SETUP:
            await one.execute(line)
        await cut(stack, one)
        await one.execute("update t set b = 'second' where id = 2")
        await cut(stack, one)
        await one.execute("delete from t where id = 2 and b = 'second'")
        await one.execute("update t set id = 2 where id = 3")
        assert sorted(await all_rows(one, "select id, b from t")) == [
            (1, "b1"), (2, "b3"), (4, "b4"),
        ]  # fmt: skip


@on_a_loop
async def test_who_changes_the_row_conflicts() -> None:
    async with running(core=WITHOUT_LOCKS) as stack, connected(stack, 2) as (one, other):
        for line in SETUP:
            await one.execute(line)
        await one.execute("begin")
        await one.execute("update t set a = a + 1 where id = 1")
        await other.execute("update t set a = a + 1 where id = 1")
        await other.execute("update t set a = a + 1 where id = 2")
        with pytest.raises(psycopg.errors.SerializationFailure):
            await one.execute("commit")
        # Of other rows nobody is kept; of a key that was found missing the reader is.
        await one.execute("begin")
        await one.execute("update t set a = a + 1 where id = 1")
        await one.execute("update t set a = 0 where id = 99")
        await other.execute("update t set a = a + 1 where id = 3")
        await other.execute("insert into t values (99, 990, 'new')")
        with pytest.raises(psycopg.errors.SerializationFailure):
            await one.execute("commit")


@pytest.mark.parametrize("flushed", [False, True])
@on_a_loop
async def test_columns_that_are_no_key_find_rows_to_change(flushed: bool) -> None:
    core = CoreSettings(cut_commits_max=1) if flushed else None
    async with (
        running(engine=NoEngine(), local=NoEngine(), core=core) as stack,
        connected(stack, 2) as (one, other),
    ):
        await one.execute("set engine = local")
        await one.execute("create table t (id int, a int, b text, d date)")
        await one.execute(
            "insert into t select x, x / 2, 'b' || x, '2020-01-01'::date + x"
            " from (values (1), (2), (3), (4), (5)) v(x)"
        )
        if flushed:
            await cut(stack, one)
        for text, rows in (
            ("update t set b = b || '!' where a = 1 returning id, b", [(2, "b2!"), (3, "b3!")]),
            ("update t set a = a * 10 where d = '2020-01-03' and a = 1 returning a", [(10,)]),
            ("delete from t where b = 'b3!' and a = 1 returning id", [(3,)]),
            ("update t set a = 7 where b = null returning id", []),
            ("update t set a = a + 1 where id = 4 and d > '2021-01-01' returning a", []),
        ):
            assert await all_rows(one, text) == rows, text
            if flushed:
                await cut(stack, one)
        await one.execute("begin")
        await one.execute("update t set a = a + 1 where id = 4")
        await other.execute("update t set a = a + 1 where id = 5")
        await one.execute("update t set a = 0 where id = 99")
        await other.execute("insert into t values (99)")
        with pytest.raises(psycopg.errors.SerializationFailure):
            await one.execute("commit")
        await one.execute("rollback")
        shown = await all_rows(one, "explain update t set a = 1 where id = 4")
        assert shown[-1] == ("Engine: reference (rows by key)",)
