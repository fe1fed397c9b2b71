"""Connections of libpq that end while somebody waits for them, and those that come after them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
import uvloop

from ingest.postgres.libpq_link import LibpqLink
from ingest.reader import ReaderFailure
from tests.ingest.upstream_database import UpstreamDatabase


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("is_woken", [True, False], ids=["woken", "asleep"])
def test_the_next_connection_has_the_same_socket(
    database: UpstreamDatabase, loop: Callable[[], asyncio.AbstractEventLoop], *, is_woken: bool
) -> None:
    """L4. Whoever waited was woken, and had not gone on when the connection was closed."""

    async def scenario() -> None:
        for _ in range(3):
            first = await LibpqLink.connect(database.address(), "first")
            socket = first._pgconn.socket
            async with asyncio.TaskGroup() as tasks:
                waiting = tasks.create_task(_wait(first))
                await asyncio.sleep(0)
                if is_woken:
                    first.wake()
                first.close()
            assert waiting.result() == is_woken
            second = await LibpqLink.connect(database.address(), "second")
            assert second._pgconn.socket == socket
            assert await second.query("SELECT 1") == [("1",)]
            second.close()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(scenario())


async def _wait(link: LibpqLink) -> bool:
    try:
        return await link.wait_readable(5)
    except ReaderFailure:
        return False


def _read_all(link: LibpqLink) -> None:
    while True:
        link.next_message()


def test_a_connection_that_is_cut_while_it_sends(database: UpstreamDatabase) -> None:
    """libpq closes its socket, and the loop watches it no more (L4)."""

    async def scenario() -> None:
        link = await LibpqLink.connect(database.address(), "cut", replication=True)
        await link.query("CREATE_REPLICATION_SLOT cut TEMPORARY LOGICAL pgoutput NOEXPORT_SNAPSHOT")
        await link.start_streaming(
            "START_REPLICATION SLOT cut LOGICAL 0/0 (proto_version '1', publication_names 'p')"
        )
        database.execute(f"SELECT pg_terminate_backend({link.backend_pid}, 5000)")
        # One is sent, the next one is refused: the other side has gone.
        for _ in range(100):
            link.send(b"r" + bytes(33))
            await asyncio.sleep(0)
        with pytest.raises(ReaderFailure):
            _read_all(link)
        assert link._unwatch is None

    database.execute("CREATE PUBLICATION p")
    asyncio.run(scenario())
