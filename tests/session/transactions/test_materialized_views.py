"""Materialized views beside other transactions, in the past, prepared, and after a restart.

What PostgreSQL answers to one session is in `tests/postgres/ddl/testdata/materialized_views.sql`.
"""

import asyncio

import pytest
from psycopg import Error, errors

from storage.memory import MemoryObjectStore, MemoryStash
from tests.session.transactions.test_isolation import refused, value
from tests.support.connections import Connection, all_rows, connected, cut, on_a_loop
from tests.support.stack import running

LAST = "select meridian.last_commit_timestamp()"
LEVELS = ("serializable", "repeatable read", "read committed")
ACCOUNTS = 8


async def said_by(connection: Connection, text: str, error: type[Error]) -> str:
    """The first line of the error."""
    return (await refused(connection, text, error)).partition("\n")[0]


async def play(connection: Connection, *texts: str) -> None:
    for text in texts:
        await connection.execute(text.encode())


async def setup(connection: Connection) -> None:
    await play(
        connection,
        "create table t (id int primary key, v int)",
        "insert into t values (1, 10), (2, 20)",
        "create materialized view m as select id, v from t",
    )


# --- REFRESH beside writers -----------------------------------------------------------------------


@on_a_loop
async def test_a_view_is_its_query_at_one_timestamp_whoever_writes_meanwhile() -> None:
    async with running() as stack, connected(stack, 6) as (one, *others):
        *writers, refresher, reader = others
        await play(
            one,
            "create table account (id int primary key, balance int)",
            f"insert into account select i, 100 from generate_series(1, {ACCOUNTS}) i",
            "create materialized view balances as select id, balance from account",
        )
        done = asyncio.Event()

        async def write(writer: Connection, number: int) -> None:
            for step in range(15):
                rich, poor = (step + number) % ACCOUNTS + 1, (step * 3 + number) % ACCOUNTS + 1
                try:
                    async with writer.transaction():
                        change = "update account set balance = balance + %s where id = %s"
                        await writer.execute(change, (-1, rich))
                        await writer.execute(change, (1, poor))
                except (errors.SerializationFailure, errors.DeadlockDetected):
                    continue

        async def refresh() -> int:
            count = 0
            while not done.is_set():
                await refresher.execute("refresh materialized view balances")
                count += 1
            return count

        async def read() -> None:
            while not done.is_set():
                found = await all_rows(reader, "select count(*), sum(balance) from balances")
                assert found == [(ACCOUNTS, 100 * ACCOUNTS)]

        async with asyncio.TaskGroup() as group:
            refreshing, _ = group.create_task(refresh()), group.create_task(read())
            await asyncio.gather(*(write(writer, at) for at, writer in enumerate(writers)))
            done.set()
        assert refreshing.result(), "it comes through beside writers that never rest"
        await one.execute("refresh materialized view balances")
        assert not await all_rows(one, "table account except table balances")


@pytest.mark.parametrize("level", LEVELS)
@on_a_loop
async def test_two_refreshes_at_once_leave_each_row_once(level: str) -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await setup(one)
        await play(one, "insert into t values (3, 30)")
        await play(one, f"begin isolation level {level}", "refresh materialized view m")
        async with asyncio.TaskGroup() as group:
            group.create_task(other.execute("refresh materialized view m"))
            await play(one, "commit")
        assert await all_rows(other, "select * from m order by id") == [(1, 10), (2, 20), (3, 30)]


@on_a_loop
async def test_many_refreshes_at_once_all_come_through() -> None:
    async with running() as stack, connected(stack, 4) as connections:
        await setup(connections[0])
        await asyncio.gather(*(c.execute("refresh materialized view m") for c in connections))
        assert await value(connections[0], "select count(*) from m") == 2


@on_a_loop
async def test_a_block_that_refreshes_is_validated_against_what_its_query_has_read() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await setup(one)
        await play(one, "begin isolation level serializable", "refresh materialized view m")
        await play(other, "update t set v = 11 where id = 1")
        await refused(one, "commit", errors.SerializationFailure)
        assert await all_rows(one, "select v from m order by id") == [(10,), (20,)]
        await play(one, "begin isolation level repeatable read", "select 1 from t")
        await play(other, "update t set v = 12 where id = 1")
        await play(one, "refresh materialized view m", "commit")
        assert await all_rows(one, "select v from m order by id") == [(11,), (20,)]


@on_a_loop
async def test_who_has_read_the_view_loses_to_a_refresh_that_changed_it() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await setup(one)
        await play(one, "create table seen (v bigint)", "begin isolation level serializable")
        await play(one, "insert into seen select sum(v) from m")
        await play(other, "update t set v = 11 where id = 1", "refresh materialized view m")
        await refused(one, "commit", errors.SerializationFailure)


@on_a_loop
async def test_nothing_is_left_of_a_refresh_that_is_rolled_back() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await setup(one)
        await play(one, "create materialized view e as select v from t with no data")
        await play(one, "insert into t values (3, 30)", "begin")
        await play(one, "refresh materialized view m", "savepoint s")
        await play(one, "refresh materialized view e", "rollback to s")
        await refused(one, "select * from e", errors.ObjectNotInPrerequisiteState)
        await play(one, "rollback")
        for connection in (one, other):
            assert await value(connection, "select count(*) from m") == 2
            await refused(connection, "select * from e", errors.ObjectNotInPrerequisiteState)


@on_a_loop
async def test_a_refresh_that_fails_leaves_the_rows_that_there_were() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await setup(one)
        await play(one, "create materialized view q as select id, 100 / v as r from t")
        await play(one, "create unique index q_r on q (r)", "insert into t values (3, 20)")
        said = await said_by(one, "refresh materialized view q", errors.UniqueViolation)
        assert said == 'could not create unique index "q_r"'
        await play(one, "update t set v = 0 where id = 3")
        await refused(one, "refresh materialized view q", errors.DivisionByZero)
        assert await all_rows(one, "select * from q order by id") == [(1, 10), (2, 5)]


# --- definitions beside it ------------------------------------------------------------------------


@on_a_loop
async def test_a_base_is_not_dropped_beside_a_new_view_of_it() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await play(one, "create table t (id int)", "create table u (id int)")
        await play(one, "begin", "create materialized view m as select id from t")
        await play(other, "begin", "drop table t", "commit")
        await refused(one, "commit", errors.SerializationFailure)
        await play(one, "begin", "create materialized view m as select id from u")
        await play(other, "alter table u rename column id to number")
        await refused(one, "commit", errors.SerializationFailure)


@on_a_loop
async def test_a_view_is_refreshed_as_its_base_is_called_and_not_beside_a_change() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await setup(one)
        await play(one, "begin", "refresh materialized view m")
        await play(other, "alter table t rename to renamed")
        await refused(one, "commit", errors.SerializationFailure)
        await play(one, "insert into renamed values (3, 30)", "refresh materialized view m")
        assert await value(one, "select count(*) from m") == 3


# --- the past, prepared statements ----------------------------------------------------------------


@on_a_loop
async def test_a_query_of_the_past_reads_what_was_stored_then() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await play(one, "create table t (v int)", "insert into t values (1)")
        await play(one, "create materialized view m as select v from t with no data")
        before = await value(one, LAST)
        await play(one, "refresh materialized view m", "insert into t values (2)")
        first = await value(one, LAST)
        await play(one, "refresh materialized view m")
        dated = "select v from m as of {} order by v"
        await refused(one, dated.format(before), errors.ObjectNotInPrerequisiteState)
        assert await all_rows(one, dated.format(first)) == [(1,)]
        assert await all_rows(one, "select v from m order by v") == [(1,), (2,)]
        await cut(stack, one)
        assert await all_rows(one, dated.format(first)) == [(1,)]


@on_a_loop
async def test_a_prepared_statement_fails_as_long_as_the_view_is_empty() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await play(one, "create table t (id int, v int)", "insert into t values (1, 10)")
        await play(one, "create materialized view m as select id, v from t with no data")
        await play(one, "create unique index m_id on m (id)")
        await play(one, "prepare p as select v from m where id = $1")
        for text in ("execute p(1)", "select v from m where id = 1", "select v from m"):
            await refused(one, text, errors.ObjectNotInPrerequisiteState)
        await play(one, "explain select v from m")
        await play(other, "refresh materialized view m")
        for text in ("execute p(1)", "select v from m where id = 1", "select v from m"):
            assert await value(one, text) == 10
        await play(other, "refresh materialized view m with no data")
        for text in ("execute p(1)", "select v from m where id = 1", "select v from m"):
            await refused(one, text, errors.ObjectNotInPrerequisiteState)


@on_a_loop
async def test_a_view_of_another_timeline_is_refused() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await play(one, "create timeline counted clock system")
        await play(one, "create table c (id int) in timeline counted")
        said = await said_by(
            one, "create materialized view m as select id from c", errors.FeatureNotSupported
        )
        assert said == "a materialized view over tables of another timeline is not supported"


@on_a_loop
async def test_views_and_rows_are_there_after_a_restart() -> None:
    stash, store = MemoryStash(), MemoryObjectStore()
    async with running(stash=stash, store=store) as stack, connected(stack, 1) as (one,):
        await setup(one)
        await play(one, "create materialized view e as select v from t with no data")
        await play(one, "create view over_m as select v from m")
        await play(one, "alter table t rename to base")
        await cut(stack, one)
    async with running(stash=stash, store=store) as stack, connected(stack, 1) as (one,):
        assert await all_rows(one, "select v from over_m order by v") == [(10,), (20,)]
        await refused(one, "select * from e", errors.ObjectNotInPrerequisiteState)
        await play(one, "insert into base values (3, 30)")
        await play(one, "refresh materialized view m", "refresh materialized view e")
        assert await value(one, "select sum(v) from over_m") == 60
        assert await value(one, "select count(*) from e") == 3
