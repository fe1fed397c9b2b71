"""Open, reopen, crash and open twice each implementation of Stash."""

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import asyncpg

from storage.memory import MemoryStash
from storage.stash import Require, Stash, Write
from storage.stash_postgres import PostgresStash
from storage.stash_sqlite import SqliteStash
from storage.types import Epoch
from tests.resilience.sim.faults import FaultyStash


class Place(Protocol):
    """Where a stash lives, so that it can be opened, opened again, and opened after a crash."""

    async def open(self) -> Stash: ...

    async def reopen(self, stash: Stash) -> Stash:
        """After an orderly close."""
        ...

    async def crash(self, stash: Stash) -> Stash:
        """What the next process finds if this one dies now."""
        ...

    async def second(self, stash: Stash) -> Stash:
        """Another coordinator's stash on the same data, while the first is open."""
        ...


class MemoryPlace:
    async def open(self) -> Stash:
        return MemoryStash()

    async def reopen(self, stash: Stash) -> Stash:
        await stash.close()
        return await self.crash(stash)

    async def crash(self, stash: Stash) -> Stash:
        assert isinstance(stash, MemoryStash)
        return stash.crash()

    async def second(self, stash: Stash) -> Stash:
        return stash


class SqlitePlace:
    def __init__(self, root: Path) -> None:
        self._root = root
        self._number = 0

    async def open(self) -> Stash:
        return await SqliteStash.open(self._root / "stash.db")

    async def reopen(self, stash: Stash) -> Stash:
        await stash.close()
        return await self.open()

    async def crash(self, stash: Stash) -> Stash:
        """A copy of the files as they are: the page cache, as kill -9 leaves it."""
        self._number += 1
        copy = self._root / f"crash-{self._number}"
        copy.mkdir()
        for path in self._root.glob("stash.db*"):
            shutil.copy(path, copy / path.name)
        await stash.close()
        return await SqliteStash.open(copy / "stash.db")

    async def second(self, stash: Stash) -> Stash:
        return await SqliteStash.open(self._root / "stash.db", lock=False)


class PromptSqliteStash(SqliteStash):
    """Every transaction is handed over (PromptStash)."""

    async def transact(
        self, epoch: Epoch, writes: Sequence[Write], *, requires: Sequence[Require] = ()
    ) -> None:
        done: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

        def ended(failure: Exception | None) -> None:
            if not done.cancelled():
                done.set_result(failure)

        self.hand_over(epoch, writes, requires, ended)
        if (failure := await done) is not None:
            raise failure


class PromptSqlitePlace(SqlitePlace):
    async def open(self) -> Stash:
        return await PromptSqliteStash.open(self._root / "stash.db")


class SharedSqlitePlace(SqlitePlace):
    """Without the lock, as several processes would share one file."""

    async def open(self) -> Stash:
        return await SqliteStash.open(self._root / "stash.db", lock=False)


class FaultyPlace(MemoryPlace):
    """The fault-injecting wrapper without faults is a stash, too."""

    def __init__(self) -> None:
        self._inner = MemoryStash()

    async def open(self) -> Stash:
        async def no_fault(operation: str) -> None:
            await asyncio.sleep(0)

        return FaultyStash(self._inner, no_fault)

    async def reopen(self, stash: Stash) -> Stash:
        await stash.close()
        return await self.crash(stash)

    async def crash(self, stash: Stash) -> Stash:
        self._inner = self._inner.crash()
        return await self.open()


class PostgresPlace:
    """A database of its own on a real server."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn

    async def open(self) -> PostgresStash:
        return await PostgresStash.open(self._dsn)

    async def reopen(self, stash: Stash) -> Stash:
        await stash.close()
        return await self.open()

    async def crash(self, stash: Stash) -> Stash:
        """The server lives on; what this process had open there is cut."""
        administrator = await asyncpg.connect(self._dsn)
        try:
            await administrator.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND datname = current_database()"
            )
        finally:
            await administrator.close()
        return await self.open()

    async def second(self, stash: Stash) -> Stash:
        return await self.open()
