"""Effects of sources side by side: what one does upstream and another takes away."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pyarrow as pa

from compute.arrow import table_schema
from coordinator.core.sources.completions import SourceStarted, UpstreamReleased
from coordinator.core.sources.effects import ReleaseUpstream, StartSource
from coordinator.core.sources.records import Leftover
from coordinator.driver.sources import SourceComponents, SourceEffects
from ingest.reader import (
    Position,
    ReaderFailure,
    ReadLimits,
    SnapshotPart,
    SourceBatch,
    SourceProgress,
    Upstream,
    UpstreamIdentity,
    UpstreamTable,
)
from sql.catalog.catalog import Table
from sql.catalog.objects import ConnectionDefinition, SourceDefinition
from storage.types import Epoch

SOURCE = SourceDefinition(30_000, "public", "s", connector="scripted", feed_id="one")


class SlowUpstream:
    """A slot is made when somebody says so. It makes readers, and is its only one."""

    def __init__(self) -> None:
        self.slots: set[str] = set()
        self.asked = asyncio.Event()
        self.may_make = asyncio.Event()
        self.reachable = True

    async def reader(
        self,
        _source: SourceDefinition,
        _connection: ConnectionDefinition | None,
        *,
        joins: bool = False,
        epoch: int = 0,
    ) -> "SlowUpstream":
        return self

    async def inspect(self) -> Upstream:
        return Upstream({}, ())

    async def prepare(self, _tables: Sequence[UpstreamTable]) -> SourceProgress:
        self.asked.set()
        await self.may_make.wait()
        self.slots.add("one")
        return SourceProgress({"offset": 0}, {})

    async def snapshot(self) -> AsyncIterator[SnapshotPart]:
        nothing: tuple[SnapshotPart, ...] = ()
        for part in nothing:
            yield part

    async def start(self, _p: SourceProgress, _t: Sequence[UpstreamTable]) -> UpstreamIdentity:
        return {}

    async def read(self, _limits: ReadLimits) -> SourceBatch:
        return SourceBatch({})

    async def acknowledge(self, upto: Position) -> None:
        pass

    async def newest(self) -> Position:
        return {}

    async def close(self) -> None:
        pass

    async def release(
        self,
        source: SourceDefinition | None = None,
        connection: ConnectionDefinition | None = None,
    ) -> None:
        if not self.reachable:
            raise ReaderFailure("08001", "nobody answers")
        self.slots.discard("one")


class Ground:
    def __init__(self) -> None:
        self.upstream = SlowUpstream()
        self.forgotten: list[str] = []
        self.effects = SourceEffects(
            SourceComponents(self.upstream), _schema_of, self._forget, self._leading, Epoch(1)
        )

    async def _forget(self, name: str) -> None:
        assert not self.upstream.slots, "F8: the record goes after what it names"
        self.forgotten.append(name)

    async def _leading(self) -> None:
        pass


def _schema_of(table: Table) -> pa.Schema:
    return table_schema(table.columns)


def test_what_a_start_makes_is_not_left_behind_by_a_drop_below_it() -> None:
    async def scenario() -> None:
        ground = Ground()
        async with asyncio.TaskGroup() as tasks:
            start = tasks.create_task(ground.effects.run(StartSource(SOURCE, None, 1, None, ())))
            await ground.upstream.asked.wait()
            release = tasks.create_task(ground.effects.run(ReleaseUpstream(Leftover(SOURCE, None))))
            await asyncio.sleep(0)
            ground.upstream.may_make.set()
        assert isinstance(start.result(), SourceStarted)
        assert release.result() == UpstreamReleased("one.1", done=True)
        assert not ground.upstream.slots
        assert ground.forgotten == ["one.1"]

    asyncio.run(scenario())


def test_the_record_stays_until_upstream_was_reached() -> None:
    async def scenario() -> None:
        ground = Ground()
        ground.upstream.slots.add("one")
        ground.upstream.reachable = False
        left = Leftover(SOURCE, None)
        assert await ground.effects.run(ReleaseUpstream(left)) == UpstreamReleased(
            "one.1", done=False
        )
        assert ground.forgotten == []
        ground.upstream.reachable = True
        assert await ground.effects.run(ReleaseUpstream(left)) == UpstreamReleased(
            "one.1", done=True
        )
        assert ground.forgotten == ["one.1"]

    asyncio.run(scenario())
