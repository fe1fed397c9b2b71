"""A PostgreSQL stash under observation: its backends, locks of others, connections that are cut."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import asyncpg

from storage.errors import Locked, StorageError
from storage.stash import Put
from storage.stash_postgres import PostgresStash
from storage.types import Epoch

Story = Callable[[PostgresStash, str], Awaitable[None]]


def tell(story: Story, dsn: str) -> None:
    async def whole() -> None:
        stash = await PostgresStash.open(dsn)
        try:
            await story(stash, dsn)
        finally:
            await stash.close()

    asyncio.run(whole())


async def put(stash: PostgresStash, epoch: Epoch, key: str, value: bytes) -> None:
    await stash.transact(epoch, [Put("c", key, value)])


async def outcome(work: Awaitable[object]) -> type[BaseException] | None:
    try:
        await work
    except StorageError as error:
        return type(error)
    return None


@asynccontextmanager
async def blocked(dsn: str, sql: str) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Locks held by somebody else; the value lets go of them."""
    blocker = await asyncpg.connect(dsn)
    try:
        await blocker.execute(f"BEGIN; {sql}")

        async def release() -> None:
            await blocker.execute("COMMIT")

        yield release
    finally:
        await blocker.close()


async def backends(dsn: str, name: str, *, waiting: int = 0) -> list[int]:
    """The processes that serve our connections of a name, once so many wait for a lock."""
    administrator = await asyncpg.connect(dsn)
    try:
        while True:
            rows = await administrator.fetch(
                "SELECT pid, wait_event_type = 'Lock' AS waits FROM pg_stat_activity"
                " WHERE application_name = $1 AND datname = current_database()",
                name,
            )
            if sum(bool(row["waits"]) for row in rows) >= waiting:
                return [row["pid"] for row in rows]
    finally:
        await administrator.close()


async def until(there: Callable[[], bool]) -> None:
    """Let the loop run until something has happened."""
    while not there():  # noqa: ASYNC110 - nobody tells us
        await asyncio.sleep(0)


async def terminate(dsn: str, pids: list[int]) -> None:
    administrator = await asyncpg.connect(dsn)
    try:
        await administrator.fetch(
            "SELECT pg_terminate_backend(p, 10000) FROM unnest($1::int[]) p", pids
        )
    finally:
        await administrator.close()


# The key must be there: a lock on the whole table would be met before the statement begins.
A_WAITS = "SELECT FROM meridian.entries WHERE key = 'a' FOR UPDATE"
EPOCH_WAITS = "SELECT FROM meridian.stash FOR UPDATE"


async def until_led(stash: PostgresStash) -> None:
    """Wait until the leader's lock is seen."""
    while await outcome(stash.refuse_if_led()) is not Locked:
        pass
