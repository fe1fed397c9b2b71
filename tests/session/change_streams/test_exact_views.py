"""Subscriptions to views with `refresh = 'on commit'`: told only where stored rows are exact (S10).

That the fold is always the query's answer is in `test_queries.py`.
"""

from collections import Counter

import pytest
from psycopg import errors

from tests.session.transactions.test_followed_views import LAST, exact, play, setup
from tests.session.transactions.test_isolation import refused, value
from tests.support.connections import Connection, all_rows, connected, on_a_loop
from tests.support.stack import Stack, running

BEHIND = "insert into t values (4, 2, 5)"
FETCH = "fetch all c with (timeout = '0 s')"


async def leave_behind(stack: Stack, connection: Connection, text: str = BEHIND) -> int:
    """A write that the view does not follow; its timestamp."""
    stack.server.stop_catch_up()
    # Without a program nothing is maintained.
    await play(connection, "alter table t alter column v set default 1")
    await play(connection, text)
    ts = await value(connection, LAST)
    assert isinstance(ts, int)
    return ts


async def declare(connection: Connection, followed: str = "m", options: str = "") -> None:
    await play(connection, "begin", f"declare c cursor for subscribe {followed} {options}")


@on_a_loop
async def test_while_it_is_behind_nothing_is_told_and_the_attach_is_one_step() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await setup(one)
        await declare(other)
        rows = await all_rows(other, "fetch all c")
        assert sorted(row[1:] for row in rows) == [(1, 1, 30, 2), (1, 2, 30, 1)]
        await leave_behind(stack, one)
        await play(one, "insert into t values (5, 1, 1)", "delete from t where id = 5")
        assert await all_rows(other, FETCH) == []
        await exact(one, "m")
        told = await all_rows(other, FETCH)
        assert [row[1:] for row in told] == [(-1, 2, 30, 1), (1, 2, 35, 2)]
        attached = await value(one, LAST)
        assert {row[0] for row in told} == {attached}


@pytest.mark.parametrize("followed", ["m", "(select * from m where g = 2)"])
@on_a_loop
async def test_rows_that_were_written_while_it_was_behind_are_told_with_the_attach(
    followed: str,
) -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await setup(one)
        await declare(other, followed, "with (progress)")
        await all_rows(other, "fetch all c")
        await leave_behind(stack, one)
        for number in (7, 8):
            await play(
                one,
                f"insert into t values ({number}, 2, 100)",
                "begin isolation level repeatable read",
                "refresh materialized view m",
                "commit",
            )
            assert not [row for row in await all_rows(other, FETCH) if not row[1]]
        await play(one, "delete from t where id = 8")
        await exact(one, "m")
        told = [row for row in await all_rows(other, FETCH) if not row[1]]
        assert Counter(row[2:] for row in told) == {(-1, 2, 30, 1): 1, (1, 2, 135, 3): 1}
        assert {row[0] for row in told} == {await value(one, LAST)}


@pytest.mark.parametrize(
    "followed", ["m", "(select sum(s) from m)", "(select sum(s) from m join u on u.a = m.g)"]
)
@on_a_loop
async def test_an_attach_without_rows_has_the_timestamp_of_what_came_before_it(
    followed: str,
) -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await play(one, "create table u (a int)", "insert into u values (1), (2)")
        await setup(one)
        await declare(other, followed)
        await all_rows(other, "fetch all c")
        await leave_behind(stack, one)
        await play(
            one,
            "begin isolation level repeatable read",
            "refresh materialized view m",
            "commit",
            "insert into u values (1)",
        )
        assert await all_rows(other, FETCH) == []
        await exact(one, "m")
        told = await all_rows(other, "fetch all c")
        assert {row[0] for row in told} == {await value(one, LAST)}


@pytest.mark.parametrize(
    "followed", ["m", "(select s from m where g = 1)", "(select sum(s) from m)"]
)
@on_a_loop
async def test_progress_ends_with_the_exact_interval(followed: str) -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await setup(one)
        await declare(other, followed, "with (progress)")
        await all_rows(other, "fetch all c")
        left = await leave_behind(stack, one)
        # Time goes on elsewhere.
        await play(one, "create table x (a int)", "insert into x values (1)")
        told = [*await all_rows(other, FETCH), *await all_rows(other, FETCH)]
        assert all(row[0] <= left for row in told)
        await play(other, "rollback")


@on_a_loop
async def test_who_begins_while_it_is_behind_is_told_so() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await setup(one)
        await play(one, "create view over as select g from m")
        before = await value(one, "select meridian_now()")
        await leave_behind(stack, one)
        for followed in ("m", "over", "(select count(*) from m)"):
            text = f"subscribe {followed}"
            said = await refused(other, text, errors.ObjectNotInPrerequisiteState)
            assert 'materialized view "m" is behind its inputs' in said
            await declare(other, followed, f"as of {before}")
            await play(other, "rollback")
        await exact(one, "m")
        await play(one, "set view_reads = definition")
        said = await refused(one, "subscribe m", errors.FeatureNotSupported)
        assert "the definition of a materialized view" in said


@on_a_loop
async def test_up_to_where_it_is_behind_is_an_error_at_the_end() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await setup(one)
        await play(one, "insert into t values (6, 6, 6)")
        await exact(one, "m")
        begin = await value(one, LAST)
        await leave_behind(stack, one)
        inside = await value(one, "select meridian_now()")
        await exact(one, "m")
        end = await value(one, LAST)
        text = f"subscribe m with (snapshot = false) as of {begin} up to {inside}"
        said = await refused(other, text, errors.ObjectNotInPrerequisiteState)
        assert 'UP TO lies where materialized view "m" was behind' in said
        assert isinstance(end, int)
        whole = f"subscribe m with (snapshot = false) as of {begin} up to {end + 1}"
        assert [row[0] for row in await all_rows(other, whole)] == [end, end]


@pytest.mark.parametrize("reads", ["auto", "stored"])
@on_a_loop
async def test_a_block_that_has_written_follows_what_is_committed(reads: str) -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await setup(one)
        await play(other, f"set view_reads = {reads}", "begin", "insert into t values (9, 1, 9)")
        await play(other, "declare c cursor for subscribe m")
        told = await all_rows(other, "fetch all c")
        assert sorted(row[1:] for row in told) == [(1, 1, 30, 2), (1, 2, 30, 1)]
        await exact(one, "m")
        await play(one, "insert into t values (10, 2, 5)")
        await exact(one, "m")
        assert [row[1:] for row in await all_rows(other, "fetch all c")] == [
            (-1, 2, 30, 1),
            (1, 2, 35, 2),
        ]


@pytest.mark.parametrize(
    ("change", "followed"),
    [
        ("alter table t add column x int default 7", "t"),
        ("alter table t rename column v to w", "(select g from t)"),
        ("alter table t rename column v to w", "(select count(*) from t)"),
        ("create table n (a int)", "n"),
        ("create view n as select g from t", "n"),
        ("create materialized view n as select g from t", "n"),
        ("alter materialized view m set (refresh = 'manual')", "m"),
    ],
)
@on_a_loop
async def test_what_the_block_itself_has_defined_is_refused(change: str, followed: str) -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await setup(one)
        await play(one, "begin", change)
        said = await refused(
            one, f"declare c cursor for subscribe {followed}", errors.FeatureNotSupported
        )
        assert "SUBSCRIBE to what the same transaction has defined" in said
        await play(one, "rollback", "begin", "savepoint a", change, "rollback to a")
        if followed != "n":
            await play(one, f"declare c cursor for subscribe {followed}")
            assert await all_rows(one, "fetch all c")
        await play(one, "rollback", "begin", "alter table t alter v set default 8")
        await play(one, "declare c cursor for subscribe t")
        assert len(await all_rows(one, "fetch all c")) == 3


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ("drop materialized view m", errors.UndefinedTable, "was dropped"),
        (
            "alter materialized view m set (refresh = 'manual')",
            errors.FeatureNotSupported,
            "has changed",
        ),
    ],
)
@on_a_loop
async def test_ddl_ends_it_also_while_it_is_behind(
    change: str, error: type[Exception], said: str
) -> None:
    async with running() as stack, connected(stack, 3) as (one, followed, late):
        await setup(one)
        await declare(followed)
        await all_rows(followed, "fetch all c")
        await declare(late)
        await all_rows(late, "fetch all c")
        await leave_behind(stack, one)
        assert await all_rows(late, FETCH) == []
        await play(one, change)
        for connection in (followed, late):
            with pytest.raises(error, match=said):
                await all_rows(connection, FETCH)
            await play(connection, "rollback")
