"""Connections that have not logged in: they keep nobody out, and sessions do not keep them out."""

import asyncio
import contextlib
import socket
from pathlib import Path

import psycopg

from coordinator.config import Settings
from tests.support.servers import meridian, postgres
from tests.support.stack import Stack, running


async def _silent(stack: Stack, opened: contextlib.ExitStack, count: int) -> list[socket.socket]:
    """Connections of one address that say nothing."""
    found = []
    for _ in range(count):
        place = ("127.0.0.1", stack.port)
        found.append(opened.enter_context(await asyncio.to_thread(socket.create_connection, place)))
    return found


async def _value(stack: Stack, query: bytes) -> object:
    async with await psycopg.AsyncConnection.connect(stack.dsn, autocommit=True) as connection:
        row = await (await connection.execute(query)).fetchone()
    assert row is not None
    found: object = row[0]
    return found


def test_silent_connections_keep_nobody_out() -> None:
    async def story() -> None:
        settings = Settings(connections_unauthenticated_max=16)
        with contextlib.ExitStack() as opened:
            async with running(settings) as stack:
                silent = await _silent(stack, opened, 100)
                assert await _value(stack, b"select 7") == 7
                # The first one has heard why it had to go.
                silent[0].settimeout(20)
                said = await asyncio.to_thread(silent[0].recv, 1000)
                assert b"C53300\0Msorry, too many clients already\0" in said

    asyncio.run(story())


def test_strangers_come_in_beside_all_sessions() -> None:
    async def story() -> None:
        settings = Settings(connections_max=2, superuser_reserved_connections=0)
        async with running(settings) as stack:
            sessions = [
                await psycopg.AsyncConnection.connect(stack.dsn, autocommit=True) for _ in range(2)
            ]
            # A cancel request is a connection of its own, and there is no session for it.
            async with asyncio.TaskGroup() as group:
                sleeping = group.create_task(_cancelled(sessions[0]))
                while await (await sessions[1].execute(_SLEEPERS)).fetchone() is None:
                    pass
                await sessions[0].cancel_safe(timeout=20)
                assert await sleeping
            for one in sessions:
                await one.close()

    asyncio.run(story())


async def _cancelled(connection: "psycopg.AsyncConnection[tuple[object, ...]]") -> bool:
    try:
        await connection.execute("select pg_sleep(60)")
    except psycopg.errors.QueryCanceled:
        return True
    return False


_SLEEPERS = "select 1 from pg_stat_activity where query like '%pg_sleep(60)' and state = 'active'"


def _log_ins(dsn: str) -> list[str]:
    """What each who comes is told while the sessions of the server get fewer."""
    said: list[str] = []
    database = "postgres"
    parts = psycopg.conninfo.conninfo_to_dict(dsn)
    superuser = str(parts.get("user") or "postgres")
    with psycopg.connect(dsn, autocommit=True) as first:
        first.execute("create role plain login")
        first.execute("create role member login in role pg_use_reserved_connections")
        first.execute("create role heir login in role member")
        first.execute("create role stubborn login noinherit in role pg_use_reserved_connections")
    with contextlib.ExitStack() as opened:
        for user in (
            "plain", "plain", "plain", "stubborn", "heir", "member", superuser, superuser, superuser
        ):  # fmt: skip
            try:
                opened.enter_context(psycopg.connect(dsn, user=user, dbname=database))
                said.append("in")
            except psycopg.OperationalError as error:
                said.append(str(error).rpartition("FATAL:  ")[2].strip())
    return said


def test_the_last_sessions_are_reserved_as_in_postgresql(tmp_path: Path) -> None:
    ours = ("superuser_reserved_connections=1", "reserved_connections=1", "connections_max=4")
    options = ["--spark-master", "none", *(part for one in ours for part in ("--set", one))]
    with meridian(tmp_path, options) as server:
        mine = _log_ins(server.dsn)
    with postgres([*ours[:2], "max_connections=4", "max_wal_senders=0"]) as dsn:
        peers = _log_ins(dsn)
    assert mine == peers
    assert mine.count("in") == 4
    assert len(set(mine)) == 4
