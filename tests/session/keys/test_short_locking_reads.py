"""SELECT FOR UPDATE of a row by its key, inside of blocks: the short way and the general one."""

import asyncio

import psycopg
import pytest

from coordinator.execution.context import ExecutionLimits
from tests.session.keys.test_short_returning import Counted
from tests.support.connections import Connection, all_rows, blocked, connected, on_a_loop
from tests.support.stack import running

LOCK = "select n, id * 2 from t where id = %s for update"
DJANGO = "select id, n from t where id = %s limit 21 for update"
COUNT = "update t set n = n + 1 where id = %s"
OTHERS = ("select n from t where id = 2 for update nowait", "update t set n = 9 where id = 2")


async def _made(connection: Connection, *warm: str) -> None:
    await connection.execute("create table t (id int primary key, n int, check (n < 100))")
    await connection.execute("insert into t select i, i from generate_series(1, 5) i")
    async with connection.transaction():
        for text in warm:
            await connection.execute(text, (1,), prepare=True)


async def _rows(connection: Connection, text: str, *values: object) -> list[tuple[object, ...]]:
    found = await connection.execute(text, values or None, prepare=bool(values))
    return await found.fetchall()


@on_a_loop
async def test_the_second_one_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await _made(one, LOCK, DJANGO)
        counted = Counted(stack, monkeypatch)
        for text, found in ((LOCK, [(2, 4)]), (DJANGO, [(2, 2)])):
            await one.execute("begin")
            assert await _rows(one, text, 2) == found
            assert await _rows(one, text, 7) == []
            assert counted.since() == (0, 0, 2)
            with pytest.raises(psycopg.errors.LockNotAvailable):
                await other.execute(OTHERS[0])
            # A key that nobody has is no row.
            await other.execute("delete from t where id = 7")
            await one.execute("rollback")
            assert await _rows(other, OTHERS[0]) == [(2,)]
        # Outside of a block it goes the general way, and holds nothing.
        counted.since()
        assert await _rows(one, LOCK, 2) == [(2, 4)]
        assert counted.since() == (0, 0, 0)


@on_a_loop
async def test_each_strength(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await _made(one)
        strengths = ("key share", "share", "no key update", "update")
        for mine in strengths:
            text = f"select n from t where id = %s for {mine}"
            async with one.transaction():
                await one.execute(text, (1,), prepare=True)
        counted = Counted(stack, monkeypatch)
        free: dict[str, list[str]] = {}
        for mine in strengths:
            async with one.transaction():
                await one.execute(f"select n from t where id = %s for {mine}", (2,), prepare=True)
                assert counted.since() == (0, 0, 1)
                for theirs in strengths:
                    try:
                        await other.execute(f"select n from t where id = 2 for {theirs} nowait")
                        free.setdefault(mine, []).append(theirs)
                    except psycopg.errors.LockNotAvailable:
                        pass
        assert free == {  # PostgreSQL: table 13.3
            "key share": ["key share", "share", "no key update"],
            "share": ["key share", "share"],
            "no key update": ["key share"],
        }


@on_a_loop
async def test_who_waits_reads_the_newest_row_and_nothing_is_lost() -> None:
    async with running() as stack, connected(stack, 4) as clients:
        await _made(clients[0], LOCK)

        async def count(client: Connection) -> None:
            for _ in range(10):
                async with client.transaction():
                    ((n, _),) = await _rows(client, LOCK, 3)
                    await client.execute("update t set n = %s + 1 where id = 3", (n,))

        async with asyncio.TaskGroup() as group:
            for client in clients:
                group.create_task(count(client))
        assert await all_rows(clients[0], "select n from t where id = 3") == [(43,)]


@on_a_loop
async def test_it_waits_and_begins_again_after_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await _made(one, LOCK)
        await other.execute(LOCK, (1,), prepare=True)
        counted = Counted(stack, monkeypatch)
        await one.execute("begin")
        await one.execute(COUNT, (2,))
        await other.execute("begin")
        waiting = await blocked(stack, other, LOCK, (2,))
        counted.since()
        await one.execute("commit")
        assert await (await waiting).fetchall() == [(3, 4)]
        assert counted.since() == (0, 0, 1)
        await other.execute("commit")


@on_a_loop
async def test_rows_of_its_own_savepoints_and_read_only() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await _made(one, LOCK)
        await one.execute("begin")
        await one.execute("insert into t values (9, 9)")
        assert await _rows(one, LOCK, 9) == [(9, 18)]
        await one.execute(COUNT, (2,))
        assert await _rows(one, LOCK, 2) == [(3, 4)]
        await one.execute("savepoint a")
        assert await _rows(one, LOCK, 4) == [(4, 8)]
        await one.execute("rollback to a")
        assert await _rows(other, "select n from t where id = %s for update nowait", 4) == [(4,)]
        await one.execute("commit")
        await one.execute("begin read only")
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction, match="SELECT FOR UPDATE"):
            await _rows(one, LOCK, 2)
        await one.execute("rollback")
        assert await all_rows(one, "select id, n from t order by id") == [
            (1, 1), (2, 3), (3, 3), (4, 4), (5, 5), (9, 9),
        ]  # fmt: skip


@on_a_loop
async def test_what_it_has_read_is_validated() -> None:
    """A key that was free when it was looked for has been taken: the block is not serializable."""
    async with running() as stack, connected(stack, 2) as (one, other):
        await _made(one, LOCK)
        await one.execute("begin")
        assert await _rows(one, LOCK, 8) == []
        await other.execute("insert into t values (8, 8)")
        await one.execute(COUNT, (1,))
        with pytest.raises(psycopg.errors.SerializationFailure):
            await one.execute("commit")


@on_a_loop
async def test_the_general_way_answers_the_same() -> None:
    texts = (
        LOCK, DJANGO, "select * from t where id = %s for share", "select n / (n - 2) from t where"
        " id = %s for update", "select id from t where id = %s and n > 2 order by n for update",
        "select x.n from t x where x.id = %s limit 0 for update",
        "select t.* from t join t u using (id) where t.id = %s for update of t",
    )  # fmt: skip
    found: list[list[object]] = []
    for short in (True, False):
        limits = ExecutionLimits(short_writes=short)
        async with running(limits=limits) as stack, connected(stack, 1) as (one,):
            await _made(one)
            found.append([])
            for text in texts:
                for value in (1, 2, 3, None, 77):
                    try:
                        async with one.transaction():
                            found[-1].append(await _rows(one, text, value))
                    except psycopg.Error as error:
                        found[-1].append((error.sqlstate, str(error)))
    assert found[0] == found[1]
