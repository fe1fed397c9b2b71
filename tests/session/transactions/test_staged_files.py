"""Staged files of transactions: what commits is kept, what does not is removed, whatever happens.

A statement's rows are staged beyond a few bytes here, a transaction's beyond a few hundred.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Sequence

import psycopg
import pytest

from coordinator.core.settings import CoreSettings
from coordinator.execution.context import ExecutionLimits
from storage.errors import Indeterminate
from storage.memory import MemoryObjectStore, MemoryStash
from storage.stash import Require, Write
from storage.types import Epoch
from tests.support.connections import Connection, all_rows, connected, on_a_loop
from tests.support.stack import Stack, running

STAGING = ExecutionLimits(inline_bytes_max=16, transaction_inline_bytes_max=256)
SPILLING = ExecutionLimits(inline_bytes_max=1 << 20, transaction_inline_bytes_max=256)
# Nothing is flushed meanwhile: every file of the store is a staged one.
SLOW = CoreSettings(cut_age_us=3_600_000_000)
MANY = ", ".join(f"({number})" for number in range(100, 150))


class Files:
    """What of the store is staged."""

    def __init__(self, store: MemoryObjectStore) -> None:
        self._store = store

    async def names(self) -> list[str]:
        return [
            name for name in await self._store.list("") if re.search("part-[0-9a-f]{24}-", name)
        ]


@contextlib.asynccontextmanager
async def staging(
    limits: ExecutionLimits = STAGING, stash: MemoryStash | None = None
) -> AsyncIterator[tuple[Stack, Files, Connection]]:
    store = MemoryObjectStore()
    async with (
        running(limits=limits, core=SLOW, store=store, stash=stash) as stack,
        connected(stack, 1) as (connection,),
    ):
        await connection.execute("create table t (a int)")
        yield stack, Files(store), connection


async def settled(stack: Stack) -> None:
    """Everything that the driver was asked to do is done: its effects are done in order."""
    for _ in range(20):
        await asyncio.sleep(0)


async def count(connection: Connection) -> object:
    return (await all_rows(connection, "select count(*) from t"))[0][0]


@on_a_loop
async def test_a_commit_keeps_its_files() -> None:
    async with staging() as (stack, files, connection):
        await connection.execute("begin")
        await connection.execute(f"insert into t values {MANY}")
        await connection.execute("commit")
        await settled(stack)
        assert len(await files.names()) == 1
        assert await count(connection) == 50


@on_a_loop
async def test_rollback_removes_them() -> None:
    async with staging() as (stack, files, connection):
        await connection.execute("begin")
        await connection.execute(f"insert into t values {MANY}")
        assert len(await files.names()) == 1
        await connection.execute("rollback")
        await settled(stack)
        assert await files.names() == []


@on_a_loop
async def test_rollback_to_removes_those_behind_the_savepoint() -> None:
    async with staging() as (stack, files, connection):
        await connection.execute("begin")
        await connection.execute(f"insert into t values {MANY}")
        kept = await files.names()
        await connection.execute("savepoint s")
        await connection.execute(f"insert into t values {MANY}")
        await connection.execute("update t set a = a + 1")
        await connection.execute("rollback to s")
        await settled(stack)
        assert await files.names() == kept
        await connection.execute("commit")
        assert await count(connection) == 50


@on_a_loop
async def test_an_error_removes_them() -> None:
    async with staging() as (stack, files, connection):
        await connection.execute("begin")
        await connection.execute(f"insert into t values {MANY}")
        with pytest.raises(psycopg.errors.DivisionByZero):
            await connection.execute("select 1/0")
        await settled(stack)
        assert await files.names() == []
        await connection.execute("rollback")


@on_a_loop
async def test_an_error_behind_a_savepoint_removes_what_is_behind_it() -> None:
    async with staging() as (stack, files, connection):
        await connection.execute("begin")
        await connection.execute(f"insert into t values {MANY}")
        kept = await files.names()
        await connection.execute("savepoint s")
        await connection.execute(f"insert into t values {MANY}")
        with pytest.raises(psycopg.errors.DivisionByZero):
            await connection.execute("select 1/0")
        await settled(stack)
        assert await files.names() == kept
        await connection.execute("rollback to s")
        await connection.execute("commit")
        assert await count(connection) == 50


@on_a_loop
async def test_a_conflict_removes_them() -> None:
    async with staging() as (stack, files, connection), connected(stack, 1) as (other,):
        await connection.execute("insert into t values (1)")
        kept = await files.names()
        await connection.execute("begin")
        await connection.execute("select * from t")
        await connection.execute(f"insert into t values {MANY}")
        await other.execute("delete from t")
        with pytest.raises(psycopg.errors.SerializationFailure):
            await connection.execute("commit")
        await settled(stack)
        assert await files.names() == kept


@on_a_loop
async def test_who_leaves_leaves_nothing() -> None:
    async with staging() as (stack, files, _), connected(stack, 1) as (other,):
        await other.execute("begin")
        await other.execute(f"insert into t values {MANY}")
        assert len(await files.names()) == 1
        await other.close()
        while stack.driver.core.open_transactions:  # noqa: ASYNC110 - another task ends them
            await asyncio.sleep(0)
        await settled(stack)
        assert await files.names() == []


@on_a_loop
async def test_a_table_dropped_again_leaves_nothing() -> None:
    async with staging() as (stack, files, connection):
        await connection.execute("begin")
        await connection.execute("create table u (a int)")
        await connection.execute(f"insert into u values {MANY}")
        await connection.execute("drop table u")
        await connection.execute("insert into t values (1)")
        kept = await files.names()
        await connection.execute("commit")
        await settled(stack)
        assert len(kept) == 1
        assert await files.names() == []


class ForgetfulStash(MemoryStash):
    """Loses answers while `silent`; what it was asked is done all the same."""

    def __init__(self) -> None:
        super().__init__()
        self.silent = False
        self.asked = asyncio.Event()

    async def transact(
        self, epoch: Epoch, writes: Sequence[Write], *, requires: Sequence[Require] = ()
    ) -> None:
        await super().transact(epoch, writes, requires=requires)
        if self.silent and any(write.collection == "commits" for write in writes):
            self.asked.set()
            raise Indeterminate("the answer is lost")

    async def read(self, collection: str, key: str) -> bytes | None:
        if self.silent:
            raise Indeterminate("no answer")
        return await super().read(collection, key)


@on_a_loop
async def test_a_commit_of_unknown_fate_keeps_its_files() -> None:
    stash = ForgetfulStash()
    async with staging(stash=stash) as (stack, files, connection), connected(stack, 1) as (other,):
        await other.execute("begin")
        await other.execute(f"insert into t values {MANY}")
        stash.silent = True
        committing = asyncio.ensure_future(other.execute("commit"))  # noqa: TID251 - awaited below
        await stash.asked.wait()
        # The client gives up; the commit does not.
        await other.cancel_safe()
        await settled(stack)
        assert len(await files.names()) == 1
        stash.silent = False
        await committing
        assert await count(connection) == 50
        assert len(await files.names()) == 1


@on_a_loop
async def test_a_client_gone_during_its_commit_loses_nothing() -> None:
    stash = ForgetfulStash()
    async with staging(stash=stash) as (stack, files, connection), connected(stack, 1) as (other,):
        await other.execute("begin")
        await other.execute(f"insert into t values {MANY}")
        stash.silent = True
        other.pgconn.send_query(b"commit")
        other.pgconn.flush()
        await stash.asked.wait()
        other.pgconn.finish()
        await settled(stack)
        assert len(await files.names()) == 1
        stash.silent = False
        while stack.driver.core.open_transactions:  # noqa: ASYNC110 - another task ends them
            await asyncio.sleep(0)
        assert await count(connection) == 50


# --- memory --------------------------------------------------------------------------------------

STORY = (
    "insert into t select * from (values (1), (2), (3), (4), (5), (6), (7), (8)) v",
    "insert into t values (9), (10)",
    "delete from t where a in (2, 9)",
    "savepoint one",
    f"insert into t values {MANY}",
    "update t set a = a + 1000 where a % 2 = 1",
    "savepoint two",
    "delete from t where a > 1100",
    f"insert into t values {MANY}",
    "rollback to two",
    "insert into t values (11), (12)",
    "delete from t where a = 11",
    "savepoint three",
    f"insert into t values {MANY}",
    "delete from t where a % 3 = 0",
    "rollback to one",
    "update t set a = a + 1",
    f"insert into t values {MANY}",
    "delete from t where a = 101",
)


async def told(limits: ExecutionLimits) -> list[object]:
    """What a transaction sees of its own at every step, and everybody afterwards."""
    seen: list[object] = []
    async with staging(limits) as (_, files, connection):
        await connection.execute("begin")
        for statement in STORY:
            await connection.execute(statement)
            seen.append(await all_rows(connection, "select a from t order by a"))
        await connection.execute("commit")
        seen.append(await all_rows(connection, "select a from t order by a"))
        seen.append(bool(await files.names()))
    return seen


@on_a_loop
async def test_spilling_changes_no_answer() -> None:
    *spilled, files = await told(SPILLING)
    *plain, none = await told(ExecutionLimits())
    assert spilled == plain
    assert files
    assert not none


@on_a_loop
async def test_staging_changes_no_answer() -> None:
    assert (await told(STAGING))[:-1] == (await told(ExecutionLimits()))[:-1]


@on_a_loop
async def test_a_transaction_of_many_statements_keeps_little_in_memory() -> None:
    limits = ExecutionLimits(transaction_inline_bytes_max=4096)
    async with staging(limits) as (stack, files, connection):
        await connection.execute("begin")
        most = 0
        for number in range(300):
            await connection.execute(f"insert into t values {MANY}")
            most = max(most, stack.driver.core.inline_bytes)
            assert number < 30 or await files.names()
        assert most <= 4096 + 50 * 8
        await connection.execute("commit")
        assert await count(connection) == 300 * 50
