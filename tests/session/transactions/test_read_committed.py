"""Read committed: each statement looks for itself, and what it relies on is validated from there.

INVARIANT  nobody is refused for news that his own later statement has seen; nobody commits rows
that were made under an older definition of their table.
"""

from typing import Any

import pytest
from psycopg import errors

from coordinator.core.refresh import SINCES_MAX
from coordinator.driver.timelines import Timelines
from tests.support.connections import Connection, all_rows, connected, on_a_loop
from tests.support.stack import WITHOUT_LOCKS, running

SETUP = (
    "create table t (id int primary key, v int)",
    "create table p (id int primary key)",
    "create table c (p int references p)",
    "insert into t values (26, 0)",
    "insert into p values (100)",
)


async def _set_up(one: Connection) -> None:
    for text in SETUP:
        await one.execute(text.encode())


@pytest.mark.parametrize(
    ("first", "other", "then", "query", "rows"),
    [
        (
            "insert into t values (5, 0)",
            "insert into t values (6, 0)",
            ("delete from t where id = 6", "insert into t values (6, 1)"),
            "select * from t where id < 10 order by id",
            [(5, 0), (6, 1)],
        ),
        (
            "insert into t values (5, 0)",
            "insert into t values (6, 0)",
            ("update t set id = 27 where id = 26", "insert into t values (26, 1)"),
            "select * from t order by id",
            [(5, 0), (6, 0), (26, 1), (27, 0)],
        ),
        (
            "insert into t values (5, 0)",
            "insert into t values (6, 0)",
            ("insert into t values (6, 1) on conflict (id) do update set v = 9",),
            "select * from t where id < 10 order by id",
            [(5, 0), (6, 9)],
        ),
        (
            "insert into c values (100)",
            "insert into p values (101)",
            ("insert into c values (101)",),
            "select * from c order by p",
            [(100,), (101,)],
        ),
    ],
)
@on_a_loop
async def test_news_that_a_later_statement_has_seen_are_no_conflict(
    first: str, other: str, then: tuple[str, ...], query: str, rows: list[tuple[int, ...]]
) -> None:
    async with running() as stack, connected(stack, 2) as (one, two):
        await _set_up(two)
        await one.execute("begin isolation level read committed")
        await one.execute(first.encode())
        await two.execute(other.encode())
        for text in then:
            await one.execute(text.encode())
        await one.execute("commit")
        assert await all_rows(one, query) == rows


@on_a_loop
async def test_a_key_that_another_has_given_first_is_refused() -> None:
    async with running() as stack, connected(stack, 2) as (one, two):
        await _set_up(two)
        await one.execute("begin isolation level read committed")
        await one.execute("insert into t values (5, 0)")
        await two.execute("insert into t values (5, 1)")
        with pytest.raises(errors.UniqueViolation):
            await one.execute("select count(*) from t")


@on_a_loop
async def test_a_parent_that_went_after_an_early_statement_is_refused() -> None:
    async with running() as stack, connected(stack, 2) as (one, two):
        await _set_up(two)
        await two.execute("insert into p values (101)")
        await one.execute("begin isolation level read committed")
        await one.execute("insert into c values (101)")
        await two.execute("delete from p where id = 101")
        await one.execute("insert into c values (100)")
        with pytest.raises(errors.SerializationFailure):
            await one.execute("commit")
        assert await all_rows(two, "select * from c") == []


@pytest.mark.parametrize(
    ("write", "definition"),
    [
        ("insert into t values (-1, 0)", "alter table t add check (id > 0)"),
        ("insert into t values (1, 0), (2, 0)", "alter table t add unique (v)"),
        ("insert into t values (1, 0)", "alter table t add column z int not null default 5"),
        ("insert into t values (1, 7)", "alter table t drop column v"),
    ],
)
@on_a_loop
async def test_rows_written_under_an_older_definition_do_not_commit(
    write: str, definition: str
) -> None:
    async with running(core=WITHOUT_LOCKS) as stack, connected(stack, 2) as (one, two):
        await _set_up(two)
        await two.execute("delete from t")
        await one.execute("begin isolation level read committed")
        await one.execute(write.encode())
        await two.execute(definition.encode())
        with pytest.raises(errors.SerializationFailure):
            # The statement binds the table as it is now: the rows before it were made otherwise.
            await one.execute("select count(*) from t")
        await one.execute("rollback")
        assert await all_rows(two, "select * from t") == []


@on_a_loop
async def test_a_key_found_free_late_is_not_given_twice() -> None:
    """So many look-ups at different times that they are kept together: a key was taken at the first
    of these times, free when it was given, and others give it, too.
    """
    async with running() as stack, connected(stack, 2) as (one, other):
        await one.execute("create table t (id int primary key, v int)")
        await one.execute("insert into t values (1, 0), (2, 0)")

        async def both_give_it() -> None:
            await one.execute("begin isolation level read committed")
            for number in range(SINCES_MAX + 4):
                await one.execute("insert into t values (1, 0) on conflict do nothing")
                await other.execute("update t set v = v + 1 where id = 1")
                if number == 2:
                    await other.execute("delete from t where id = 2")
                if number == SINCES_MAX // 2:
                    await one.execute("insert into t values (2, 7)")
            await other.execute("insert into t values (2, 8)")
            await one.execute("commit")

        with pytest.raises((errors.UniqueViolation, errors.SerializationFailure)):
            await both_give_it()


@on_a_loop
@pytest.mark.parametrize(
    "text",
    [
        b"update t set v = v + 1 where id = 26",
        b"insert into t values (27, 0)",
        b"select * from t where id = 26 for update",
    ],
)
async def test_a_statement_takes_one_snapshot(text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each asks who leads. None is taken for the short way, which this level does not have."""
    taken = 0
    async with running() as stack, connected(stack, 1) as (one,):
        timelines = stack.services.coordination
        assert isinstance(timelines, Timelines)
        snapshot = timelines.snapshot

        async def counted(*args: Any, **options: Any) -> Any:
            nonlocal taken
            taken += 1
            return await snapshot(*args, **options)

        monkeypatch.setattr(timelines, "snapshot", counted)
        await _set_up(one)
        for _ in range(2):
            await one.execute(b"begin isolation level read committed")
            taken = 0
            await one.execute(text)
            assert taken == 1
            await one.execute(b"rollback")
