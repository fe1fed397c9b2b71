"""asyncpg: binary everywhere, prepared statements, COPY, cursors, its reset query."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import date
from decimal import Decimal
from pathlib import Path

import asyncpg
import pytest

from tests.clients.drivers.levels import EXPLAIN, STRICT, named_level


def run(dsn: str, story: Callable[[asyncpg.Connection], Awaitable[None]]) -> None:
    """Run a story with a connection of its own."""

    async def main() -> None:
        connection = await asyncpg.connect(dsn)
        try:
            await story(connection)
        finally:
            await connection.close()

    asyncio.run(main())


def test_prepared_statements(dsn: str) -> None:
    async def story(connection: asyncpg.Connection) -> None:
        await connection.execute("create table ap (a int4, b text, n numeric(10,2), d date)")
        insert = await connection.prepare("insert into ap values ($1, $2, $3, $4)")
        await insert.fetch(1, "one", Decimal("1.50"), date(2026, 1, 2))
        await connection.executemany(
            "insert into ap values ($1, $2, $3, $4)",
            [(number, None, None, None) for number in range(2, 6)],
        )
        rows = await connection.fetch("select * from ap where a <= $1 order by a", 2)
        assert [tuple(row) for row in rows] == [
            (1, "one", Decimal("1.50"), date(2026, 1, 2)),
            (2, None, None, None),
        ]
        assert await connection.fetchval("select count(*) from ap") == 5

    run(dsn, story)


async def delete_and_fail(connection: asyncpg.Connection) -> None:
    async with connection.transaction():
        await connection.execute("delete from ac")
        await connection.execute("select 1/0")


async def delete_and_fail_within(connection: asyncpg.Connection) -> None:
    async with connection.transaction():
        await connection.execute("select 1/0")


def test_a_cached_statement_follows_a_changed_table(dsn: str) -> None:
    """The error's routine tells asyncpg that it may prepare the statement anew."""

    async def story(connection: asyncpg.Connection) -> None:
        await connection.execute("create table acs (a int4)")
        await connection.execute("insert into acs values (1)")
        assert [tuple(row) for row in await connection.fetch("select * from acs")] == [(1,)]
        await connection.execute("alter table acs add column b text default 'x'")
        assert [tuple(row) for row in await connection.fetch("select * from acs")] == [(1, "x")]
        await connection.execute("alter table acs drop column b")
        # Inside a block it cannot be done again; the failure has a class of its own.
        with pytest.raises(asyncpg.InvalidCachedStatementError):
            async with connection.transaction():
                await connection.fetch("select * from acs")

    run(dsn, story)


def test_transactions_and_cursors(dsn: str) -> None:
    async def story(connection: asyncpg.Connection) -> None:
        await connection.execute("create table ac (a int4)")
        async with connection.transaction():
            await connection.execute("insert into ac select * from (values (1), (2), (3)) v")
            seen = [
                row["a"]
                async for row in connection.cursor("select a from ac order by a", prefetch=2)
            ]
            assert seen == [1, 2, 3]
        with pytest.raises(asyncpg.DivisionByZeroError):
            await delete_and_fail(connection)
        assert await connection.fetchval("select count(*) from ac") == 3
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            assert await connection.fetchval("show transaction_isolation") == "repeatable read"
            with pytest.raises(asyncpg.DivisionByZeroError):
                await delete_and_fail_within(connection)
            walked = await connection.cursor("select a from ac order by a")
            assert await walked.forward(1) == 1
            assert [row["a"] for row in await walked.fetch(5)] == [2, 3]

    run(dsn, story)


def test_the_level_is_read_and_set_back(dsn: str) -> None:
    async def story(connection: asyncpg.Connection) -> None:
        async def in_force() -> str:
            return named_level(row[0] for row in await connection.fetch(EXPLAIN))

        shown = await connection.fetchval("show transaction_isolation")
        assert shown == "serializable"
        async with connection.transaction(isolation=shown):
            assert await in_force() == STRICT
        # The driver reads the level of the outer one, and compares.
        async with connection.transaction(), connection.transaction(isolation=shown):
            assert await in_force() == STRICT
        await connection.execute(f"set default_transaction_isolation = '{shown}'")
        assert await in_force() == STRICT
        await connection.reset()
        assert await in_force() == STRICT

    run(dsn, story)


def test_copy_both_ways(dsn: str, tmp_path: Path) -> None:
    async def story(connection: asyncpg.Connection) -> None:
        await connection.execute("create table acopy (a int4, b text)")
        source = tmp_path / "in.csv"
        source.write_text('a,b\n1,"x, y"\n2,\n')
        tag = await connection.copy_to_table("acopy", source=source, format="csv", header=True)
        assert tag == "COPY 2"
        target = tmp_path / "out.csv"
        await connection.copy_from_query(
            "select * from acopy order by a", output=target, format="csv"
        )
        assert target.read_text() == '1,"x, y"\n2,\n'

    run(dsn, story)


def test_pools_reset_their_connections(dsn: str) -> None:
    async def main() -> None:
        async with asyncpg.create_pool(dsn, min_size=1, max_size=2) as pool:
            await pool.execute("set timezone = 'Asia/Tokyo'")
            assert await pool.fetchval("select 1") == 1

    asyncio.run(main())


def test_a_cancelled_query_leaves_a_usable_connection(dsn: str) -> None:
    async def story(connection: asyncpg.Connection) -> None:
        await connection.execute("create table slow (a int4)")
        await connection.execute(
            "insert into slow values " + ", ".join(f"({number})" for number in range(90))
        )
        query = "select count(*) from slow a, slow b, slow c where a.a + b.a + c.a < 0"
        with pytest.raises((asyncio.TimeoutError, TimeoutError)):
            await connection.fetchval(query, timeout=0.2)
        assert await connection.fetchval("select 1") == 1

    run(dsn, story)


def test_listeners_of_a_pool(dsn: str) -> None:
    async def main() -> None:
        heard: asyncio.Queue[tuple[int, str, object]] = asyncio.Queue()

        def hear(_: object, pid: int, channel: str, payload: object) -> None:
            heard.put_nowait((pid, channel, payload))

        async with asyncpg.create_pool(dsn, min_size=2, max_size=2) as pool:
            async with pool.acquire() as listening, pool.acquire() as telling:
                await listening.add_listener("asyncpg_jobs", hear)
                pid = telling.get_server_pid()
                async with telling.transaction():
                    await telling.execute("notify asyncpg_jobs, '1'")
                    await telling.execute("select pg_notify('asyncpg_jobs', $1)", "2")
                for payload in ("1", "2"):
                    told = await asyncio.wait_for(heard.get(), 20)
                    assert told == (pid, "asyncpg_jobs", payload)
                await listening.remove_listener("asyncpg_jobs", hear)
                channels = "select count(*) from pg_listening_channels()"
                assert await listening.fetchval(channels) == 0
                await listening.execute("listen asyncpg_jobs")
            # What the pool takes back listens no more: its reset has UNLISTEN *.
            for _ in range(2):
                assert await pool.fetchval(channels) == 0

    asyncio.run(main())
