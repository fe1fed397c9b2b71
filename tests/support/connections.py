"""Sessions against each other on one event loop: connections, blocks side by side, gated writes."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any, ParamSpec

import psycopg

from storage.memory import MemoryStash
from storage.stash import Require, Write
from storage.types import Epoch
from tests.support.stack import Stack

P = ParamSpec("P")


def on_a_loop(test: Callable[P, Coroutine[None, None, None]]) -> Callable[P, None]:
    """The test on an event loop of its own."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


Connection = psycopg.AsyncConnection[tuple[Any, ...]]


@contextlib.asynccontextmanager
async def connected(stack: Stack, count: int) -> AsyncIterator[list[Connection]]:
    """Connections in autocommit."""
    async with contextlib.AsyncExitStack() as opened:
        yield [
            await opened.enter_async_context(
                await psycopg.AsyncConnection.connect(stack.dsn, autocommit=True)
            )
            for _ in range(count)
        ]


async def all_rows(connection: Connection, text: str) -> list[tuple[Any, ...]]:
    """The answer of a query."""
    return await (await connection.execute(text)).fetchall()


async def pair(first: Connection, second: Connection, level: str = "serializable") -> None:
    """Two blocks that have taken their snapshots."""
    for connection in (first, second):
        await connection.execute(f"begin isolation level {level}")
        await connection.execute("select count(*) from nothing")


Waiting = asyncio.Task[psycopg.AsyncCursor[tuple[Any, ...]]]


async def blocked(
    stack: Stack, connection: Connection, text: str, parameters: Sequence[Any] | None = None
) -> Waiting:
    """A statement that waits for the lock of another session; awaited, it gives its answer."""
    pid = connection.info.backend_pid
    waiting = asyncio.create_task(connection.execute(text.encode(), parameters))  # noqa: TID251
    while not any(
        lock.session == pid and not lock.granted for lock in stack.driver.core.observe().locks
    ):
        assert not waiting.done(), f"{text}: it has not waited, {waiting}"
        await asyncio.sleep(0)
    return waiting


class GatedStash(MemoryStash):
    """Writes nothing while its gate is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.gate.set()

    async def transact(
        self, epoch: Epoch, writes: Sequence[Write], *, requires: Sequence[Require] = ()
    ) -> None:
        await self.gate.wait()
        await super().transact(epoch, writes, requires=requires)


async def waiting(stack: Stack, asking: Connection, count: int) -> None:
    """Wait until so many commits are on their way."""
    while stack.driver.waiting < count:
        await asking.execute("select 1")


async def cut(stack: Stack, connection: Connection) -> None:
    """Wait until every table is in files."""
    while any(state.tail or not state.versions for state in stack.driver.core.shards.values()):
        await connection.execute("select 1")
