"""A source whose upstream gives one transaction in parts, when the test says so: what is seen, what
is kept and what is removed meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import pytest

from coordinator.core.settings import CoreSettings
from coordinator.driver import large_transactions
from ingest.generator import OFFSET, GeneratorOptions, GeneratorReader
from ingest.reader import (
    ChangeKind,
    Position,
    ReaderFailure,
    ReadLimits,
    SourceBatch,
    UpstreamChange,
)
from sql.catalog.objects import ConnectionDefinition, SourceDefinition
from storage.errors import Determinate
from storage.memory import MemoryObjectStore, MemoryStash
from storage.stash import Require, Write
from storage.types import Epoch
from tests.support.connections import Connection, all_rows, connected, on_a_loop
from tests.support.stack import running

AWAY = ReaderFailure("08006", "upstream is away")
AT_ONCE = CoreSettings(source_retry_max_us=1, vacuum_age_us=1 << 60)


@pytest.fixture(autouse=True)
def all_staged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_transactions.OwnRowsBudget, "share", 0)


@dataclass
class Script:
    """What the upstream gives; `reads` and `acknowledged` are told of each call."""

    given: asyncio.Queue[SourceBatch | ReaderFailure] = field(default_factory=asyncio.Queue)
    reads: asyncio.Queue[None] = field(default_factory=asyncio.Queue)
    acknowledged: asyncio.Queue[int] = field(default_factory=asyncio.Queue)

    async def taken(self, *batches: SourceBatch) -> None:
        """These are given, and prepared: the next one is asked for."""
        for batch in batches:
            await self.reads.get()
            self.given.put_nowait(batch)
        await self.reads.get()
        self.reads.put_nowait(None)

    async def reader(
        self,
        source: SourceDefinition,
        _connection: ConnectionDefinition | None,
        *,
        joins: bool = False,
        epoch: int = 0,
    ) -> ScriptedCounter:
        assert not joins
        return ScriptedCounter(GeneratorOptions.of(dict(source.options)), self)

    async def release(
        self, source: SourceDefinition, connection: ConnectionDefinition | None
    ) -> None:
        pass


class ScriptedCounter(GeneratorReader):
    """Implements SourceReader."""

    def __init__(self, options: GeneratorOptions, script: Script) -> None:
        super().__init__(options)
        self._script = script
        self._waits = False

    async def read(self, limits: ReadLimits) -> SourceBatch:
        self._waits = True
        self._script.reads.put_nowait(None)
        found = await self._script.given.get()
        self._waits = False
        if isinstance(found, ReaderFailure):
            raise found
        return found

    async def acknowledge(self, upto: Position) -> None:
        self._script.acknowledged.put_nowait(upto[OFFSET])

    async def close(self) -> None:
        if self._waits:
            self._script.given.put_nowait(AWAY)


def part(first: int, end: int, *, upto: int = 0) -> SourceBatch:
    """New rows with these numbers; with `upto` the transaction ends."""
    changes = [UpstreamChange(ChangeKind.INSERT, new=(n, n)) for n in range(first, end)]
    return SourceBatch({OFFSET: upto}, {"counter": changes}, ends=bool(upto))


@contextlib.asynccontextmanager
async def fed(
    store: MemoryObjectStore, stash: MemoryStash | None = None
) -> AsyncIterator[tuple[Connection, Script]]:
    script = Script()
    async with (
        running(store=store, stash=stash, readers=script, core=AT_ONCE) as stack,
        connected(stack, 1) as (connection,),
    ):
        await connection.execute("create source s from generator counter")
        await connection.execute("create table t from source s (reference 'counter')")
        yield connection, script


async def staged(store: MemoryObjectStore) -> int:
    """How many files there are that were staged, whoever names them."""
    return sum("part-0000" in name for name in await store.list(""))


async def state(connection: Connection) -> tuple[object, ...]:
    (found,) = await all_rows(connection, "select state, waiting, code, rows from meridian.sources")
    return found


COUNT = "select count(*), count(distinct id) from t"


@on_a_loop
async def test_nothing_is_seen_before_the_end() -> None:
    async with fed(MemoryObjectStore()) as (connection, script):
        await script.taken(part(0, 10), part(10, 20))
        assert await all_rows(connection, COUNT) == [(0, 0)]
        assert await state(connection) == ("running", "transaction", None, 0)
        assert script.acknowledged.empty()
        await script.taken(part(20, 25, upto=25))
        assert await script.acknowledged.get() == 25
        assert await all_rows(connection, COUNT) == [(25, 25)]
        assert await state(connection) == ("running", None, None, 25)


@on_a_loop
async def test_vacuum_leaves_what_a_commit_will_name() -> None:
    """M7, also if it looks twice."""
    store = MemoryObjectStore()
    async with fed(store) as (connection, script):
        await script.taken(part(0, 10), part(10, 20))
        for _ in range(3):
            await connection.execute("vacuum t")
        assert await staged(store) == 2
        await script.taken(part(20, 25, upto=25))
        assert await all_rows(connection, COUNT) == [(25, 25)]


@on_a_loop
async def test_what_a_failed_attempt_has_staged_is_removed() -> None:
    store = MemoryObjectStore()
    async with fed(store) as (connection, script):
        await script.taken(part(0, 10), part(10, 20))
        assert await staged(store) == 2
        await script.reads.get()
        script.given.put_nowait(AWAY)
        await script.taken(part(0, 10))
        assert await staged(store) == 1
        await script.taken(part(10, 25, upto=25))
        assert await all_rows(connection, COUNT) == [(25, 25)]


@on_a_loop
async def test_what_a_killed_server_has_staged_is_an_orphan() -> None:
    """The next one reads the transaction again; vacuum removes what nobody names."""
    store, stash = MemoryObjectStore(), MemoryStash()
    async with fed(store, stash) as (connection, script):
        await script.taken(part(0, 10), part(10, 20))
        copy, later = store.crash(), stash.crash()
    script = Script()
    async with (
        running(store=copy, stash=later, readers=script, core=AT_ONCE) as stack,
        connected(stack, 1) as (connection,),
    ):
        assert await all_rows(connection, COUNT) == [(0, 0)]
        assert await staged(copy) == 2
        await script.taken(part(0, 25, upto=25))
        assert await all_rows(connection, COUNT) == [(25, 25)]
        for _ in range(2):
            await connection.execute("vacuum t")
        assert await staged(copy) == 0


class FullStore(MemoryObjectStore):
    """Has no room for data files when it is told so."""

    is_full = False

    async def create(self, name: str, content: bytes, *, modified_ms: int | None = None) -> None:
        if self.is_full and "_delta_log" not in name:
            full = OSError(errno.ENOSPC, "No space left on device")
            raise Determinate(f"{name}: {full.strerror}") from full
        await super().create(name, content, modified_ms=modified_ms)


@on_a_loop
async def test_a_full_disk_stalls_the_source_alone() -> None:
    """It says so, leaves nothing there, and goes on by itself."""
    store = FullStore()
    async with fed(store) as (connection, script):
        await script.taken(part(0, 10))
        store.is_full = True
        await script.reads.get()
        script.given.put_nowait(part(10, 20))
        # The next attempt has begun.
        await script.reads.get()
        assert await staged(store) == 0
        assert (await state(connection))[0] in ("running", "starting")
        store.is_full = False
        script.reads.put_nowait(None)
        await script.taken(part(0, 10), part(10, 25, upto=25))
        assert await all_rows(connection, COUNT) == [(25, 25)]


class FullStash(MemoryStash):
    """Refuses the next commit of more than a few writes when it is told so."""

    refuses = 0

    async def transact(
        self, epoch: Epoch, writes: Sequence[Write], *, requires: Sequence[Require] = ()
    ) -> None:
        if self.refuses and any(write.collection == "feeds" for write in writes):
            self.refuses -= 1
            raise Determinate("disk full")
        await super().transact(epoch, writes, requires=requires)


@on_a_loop
async def test_what_a_refused_commit_has_named_is_removed() -> None:
    """Otherwise each try would leave as much on a disk that is full."""
    store, stash = MemoryObjectStore(), FullStash()
    async with fed(store, stash) as (connection, script):
        await script.taken(part(0, 10))
        stash.refuses = 1
        await script.reads.get()
        script.given.put_nowait(part(10, 25, upto=25))
        await script.reads.get()
        assert await staged(store) == 0
        assert await all_rows(connection, COUNT) == [(0, 0)]
        script.reads.put_nowait(None)
        await script.taken(part(0, 10), part(10, 25, upto=25))
        assert await all_rows(connection, COUNT) == [(25, 25)]
