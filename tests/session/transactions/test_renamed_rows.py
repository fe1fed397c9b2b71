"""A locked row of a table without a key stays locked, whatever cuts and compactions call it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from psycopg import errors

from coordinator.core.settings import CoreSettings
from tests.support.connections import Connection, all_rows, connected, cut, on_a_loop
from tests.support.stack import Stack, running

RENAMED = pytest.mark.parametrize("how", ["cut", "compaction"])
LOCKED = "select v from t where id = 1 for update"


@asynccontextmanager
async def sessions(how: str) -> AsyncIterator[tuple[Stack, list[Connection]]]:
    """Sessions, and a table whose rows are in the tail, or in two files."""
    core = replace(CoreSettings(), cut_commits_max=2 if how == "cut" else 1)
    async with running(core=core) as stack, connected(stack, 3) as connections:
        for connection in connections:
            await connection.execute("set default_transaction_isolation = 'read committed'")
        await connections[0].execute("create table t (id int, v int)")
        await connections[0].execute("insert into t values (1, 0), (2, 0)")
        if how == "compaction":
            await cut(stack, connections[0])
        yield stack, connections


async def rename(stack: Stack, connection: Connection, how: str) -> None:
    """Move all rows to another file."""
    before = names(stack)
    await connection.execute("insert into t values (3, 0)")
    await cut(stack, connection)
    if how == "compaction":
        before = names(stack)
        await connection.execute("optimize t")
    assert not before & names(stack), "nothing was renamed"


def names(stack: Stack) -> set[str]:
    """What the rows of all tables are called by."""
    return {
        name
        for state in stack.driver.core.shards.values()
        for name in (*(state.versions[-1].files if state.versions else ()), *map(str, state.tail))
    }


async def is_locked(connection: Connection) -> bool:
    """Whether somebody else holds the first row, as every kind of statement sees it."""
    try:
        await connection.execute(f"{LOCKED} nowait".encode())
        found = {False}
    except errors.LockNotAvailable:
        found = {True}
    free = await all_rows(connection, "select id from t where id <= 2 for update skip locked")
    found.add((1,) not in free)
    await connection.execute("set lock_timeout = '30ms'")
    for text in ("update t set v = v where id = 1", "begin; delete from t where id = 1; rollback"):
        try:
            await connection.execute(text.encode())
            found.add(False)
        except errors.LockNotAvailable:
            found.add(True)
            await connection.execute("rollback")
    await connection.execute("reset lock_timeout")
    assert len(found) == 1, "they are not of one mind"
    return found.pop()


@RENAMED
@pytest.mark.parametrize("change", [LOCKED, "update t set v = v + 1 where id = 1"])
@on_a_loop
async def test_it_is_held_by_its_new_name(how: str, change: str) -> None:
    async with sessions(how) as (stack, (one, other, third)):
        await one.execute("begin")
        await one.execute(change.encode())
        await rename(stack, third, how)
        assert await is_locked(other)
        await one.execute(LOCKED)
        await one.execute("update t set v = v + 10 where id = 1")
        assert await is_locked(other)
        await one.execute("commit")
        assert not await is_locked(other)
        assert await all_rows(other, "select v / 10 from t where id = 1") == [(1,)]


@RENAMED
@on_a_loop
async def test_it_is_given_back_to_a_savepoint(how: str) -> None:
    async with sessions(how) as (stack, (one, other, third)):
        await one.execute("begin")
        await one.execute("savepoint s")
        await one.execute(LOCKED)
        await rename(stack, third, how)
        await one.execute(LOCKED)
        assert await is_locked(other)
        await one.execute("rollback to s")
        assert not await is_locked(other)
        await one.execute("commit")


@RENAMED
@on_a_loop
async def test_who_waits_stays_in_line(how: str) -> None:
    async with sessions(how) as (stack, (one, other, third)):
        await one.execute("begin")
        await one.execute(LOCKED)
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(
                all_rows(other, "update t set v = v + 1 where id = 1 returning v")
            )
            blocked = f"select pg_blocking_pids({other.info.backend_pid}) <> '{{}}'"
            while await all_rows(third, blocked) != [(True,)]:
                pass
            await rename(stack, third, how)
            await one.execute("update t set v = v + 10 where id = 1")
            await one.execute("commit")
        assert waiting.result() == [(11,)]
