"""A session's own timestamps, for AS OF; and what may stand behind a time."""

import pytest
from psycopg import errors

from coordinator.core.settings import CoreSettings
from tests.support.connections import all_rows, connected, on_a_loop
from tests.support.stack import running

LAST = "select meridian.last_commit_timestamp()"


@on_a_loop
async def test_the_last_commit_is_the_sessions_own() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        assert await all_rows(one, LAST) == [(None,)]
        await one.execute("create table t (id int primary key, v int)")
        seen = [(await all_rows(one, LAST))[0][0]]
        # A blind insert, one that is not, a short write, a block: each commits in its own way.
        for statement in (
            "insert into t values (1, 1)",
            "insert into t values (2, 2)",
            "insert into t select 3, 3",
            "update t set v = 5 where id = 1",
            "delete from t where v = 2",
        ):
            await one.execute(statement)
            await other.execute("insert into t select coalesce(max(id), 0) + 10, 0 from t")
            seen.append((await all_rows(one, LAST))[0][0])
            assert await all_rows(one, LAST) == [(seen[-1],)]
        async with one.transaction():
            await one.execute("insert into t values (7, 7)")
            assert await all_rows(one, LAST) == [(seen[-1],)]
        seen.append((await all_rows(one, LAST))[0][0])
        assert seen == sorted(set(seen))
        query = "select id from t where id < 10 as of {} order by 1"
        found = [await all_rows(one, query.format(ts)) for ts in seen]
        assert found == [
            [], [(1,)], [(1,), (2,)], [(1,), (2,), (3,)], [(1,), (2,), (3,)], [(1,), (3,)],
            [(1,), (3,), (7,)],
        ]  # fmt: skip
        assert await all_rows(other, f"select v from t where id = 1 as of {seen[3]}") == [(1,)]


@on_a_loop
async def test_a_rolled_back_block_has_no_timestamp() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await one.execute("create table t (v int)")
        before = await all_rows(one, LAST)
        await one.execute("begin")
        await one.execute("insert into t values (1)")
        await one.execute("rollback")
        await one.execute("select * from t")
        assert await all_rows(one, LAST) == before


@on_a_loop
async def test_the_query_timestamp_is_where_the_statement_reads() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await one.execute("create table t (v int)")
        await one.execute("insert into t values (1)")
        (first,) = await all_rows(one, LAST)
        told = await all_rows(one, "select meridian.query_timestamp(), v from t")
        assert told[0][0] >= first[0]
        past = f"select meridian.query_timestamp(), v from t as of {first[0]}"
        assert await all_rows(one, past) == [(first[0], 1)]
        await one.execute("update t set v = 2")
        assert await all_rows(one, f"select v from t as of {told[0][0]}") == [(1,)]


@on_a_loop
async def test_what_these_functions_do_not_take() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        for call in ("query_timestamp(1)", "last_commit_timestamp(*)", "nothing()"):
            with pytest.raises(errors.UndefinedFunction):
                await one.execute(f"select meridian.{call}".encode())
        with pytest.raises(errors.UndefinedFunction):
            await one.execute("select query_timestamp()")
        with pytest.raises(errors.FeatureNotSupported):
            await one.execute("select 1 where meridian.accept_clock()")
        # A clock that is believed anyway.
        assert await all_rows(one, "select meridian.accept_clock()") == [(False,)]


@on_a_loop
async def test_an_order_and_a_limit_may_stand_behind_the_time() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await one.execute("create table t (v int)")
        await one.execute("insert into t select g from generate_series(1, 5) g")
        ((then,),) = await all_rows(one, LAST)
        await one.execute("delete from t where v > 2")
        for text, expected in (
            (f"select v from t as of {then} order by v desc limit 2", [5, 4]),
            (f"select v from t order by v as of {then} limit 2 offset 1", [2, 3]),
            (f"select v from t as of {then} order by v fetch first row only", [1]),
            (f"select v from t as of at least {then} order by v desc limit 1", [2]),
            ("select v from t as of now() order by (select 1), v", [1, 2]),
            (f"select v from t as of {then - 1} limit 3", []),
        ):
            assert [v for (v,) in await all_rows(one, text)] == expected, text
        copied = f"copy (select v from t as of {then} order by v desc limit 2) to stdout"
        async with one.cursor().copy(copied) as copy:
            assert b"".join([bytes(part) async for part in copy]) == b"5\n4\n"
        shown = await all_rows(one, f"explain select v from t as of {then} limit 3")
        assert any("Limit" in line for (line,) in shown)
        with pytest.raises(errors.SyntaxError):
            await one.execute(f"select v from t as of {then} where v = 1")


@on_a_loop
async def test_a_time_that_is_a_subquery_is_refused() -> None:
    core = CoreSettings()
    async with running(core=core) as stack, connected(stack, 1) as (one,):
        await one.execute("create table t (v int)")
        for time in ("(select 1)", "(select max(v) from t)", "now() - (select interval '1 s')"):
            for text in (
                f"select v from t as of {time}",
                f"copy (select v from t as of {time}) to stdout",
                f"begin as of {time}",
                f"explain timestamp for select v from t as of {time}",
            ):
                with pytest.raises(errors.FeatureNotSupported, match="a subquery in AS OF"):
                    await one.execute(text.encode())
        assert await all_rows(one, "select 1") == [(1,)]


@on_a_loop
async def test_a_table_that_rewrites_its_files_is_refused() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        with pytest.raises(errors.FeatureNotSupported, match="deletion_vectors"):
            await one.execute("create table t (v int) with (deletion_vectors = off)")
