"""Effects of sources side by side: what one does upstream and another takes away."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pyarrow as pa
import pytest

from compute.arrow import table_schema
from coordinator.core.sources.completions import (
    AsideFailed,
    SourceFailed,
    SourceStarted,
    UpstreamReleased,
)
from coordinator.core.sources.effects import CopyAside, ReleaseUpstream, StartSource
from coordinator.core.sources.records import Leftover
from coordinator.driver import upstream_slots
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
from storage.errors import Fenced
from storage.types import Epoch, Timestamp

SOURCE = SourceDefinition(30_000, "public", "s", connector="scripted", feed_id="one")


OURS, SUCCESSORS = "one.1", "one.2"
START = StartSource(SOURCE, None, 1, None, ())
COPY = CopyAside(SOURCE, None, 1, (), (), Timestamp(0), joins=False)


class SlowUpstream:
    """A slot is made when somebody says so. It makes readers, and is its only one, of epoch 1."""

    def __init__(self) -> None:
        self.slots: set[str] = set()
        self.may_read = asyncio.Event()
        self.may_read.set()
        self.asked = asyncio.Event()
        self.may_make = asyncio.Event()
        self.fails = False
        self.reachable = True
        self.unreachable_for = 0
        """So many times that the reader does not take back what it has made."""

    async def reader(
        self,
        _source: SourceDefinition,
        _connection: ConnectionDefinition | None,
        *,
        joins: bool = False,
        epoch: int = 0,
    ) -> "SlowUpstream":
        await self.may_read.wait()
        return self

    async def inspect(self) -> Upstream:
        return Upstream({}, ())

    async def prepare(self, _tables: Sequence[UpstreamTable]) -> SourceProgress:
        self.asked.set()
        try:
            await self.may_make.wait()
        finally:
            # Upstream has been asked, whoever waits for it.
            self.slots.add(OURS)
        if self.fails:
            raise ReaderFailure("08006", "the connection is lost")
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
        if source is not None:
            self.slots.clear()
            return
        if self.unreachable_for:
            self.unreachable_for -= 1
            raise ReaderFailure("08001", "nobody answers")
        self.slots.discard(OURS)


class Ground:
    def __init__(self) -> None:
        self.upstream = SlowUpstream()
        self.forgotten: list[str] = []
        self.leads = True
        self.effects = SourceEffects(
            SourceComponents(self.upstream), _schema_of, self._forget, self._leading, Epoch(1)
        )

    async def _forget(self, name: str) -> None:
        assert not self.upstream.slots, "F8: the record goes after what it names"
        self.forgotten.append(name)

    async def _leading(self) -> None:
        if not self.leads:
            raise Fenced("epoch 2 leads")

    def depose(self) -> None:
        """A successor takes over, drops the source, and makes it again."""
        self.leads = False
        self.upstream.slots = {SUCCESSORS}


def _schema_of(table: Table) -> pa.Schema:
    return table_schema(table.columns)


def test_what_a_start_makes_is_not_left_behind_by_a_drop_below_it() -> None:
    async def scenario() -> None:
        ground = Ground()
        async with asyncio.TaskGroup() as tasks:
            start = tasks.create_task(ground.effects.run(START))
            await ground.upstream.asked.wait()
            release = tasks.create_task(ground.effects.run(ReleaseUpstream(Leftover(SOURCE, None))))
            await asyncio.sleep(0)
            ground.upstream.may_make.set()
        assert isinstance(start.result(), SourceStarted)
        assert release.result() == UpstreamReleased("one.1", done=True)
        assert not ground.upstream.slots
        assert ground.forgotten == ["one.1"]

    asyncio.run(asyncio.wait_for(scenario(), 10))


def test_the_record_stays_until_upstream_was_reached() -> None:
    async def scenario() -> None:
        ground = Ground()
        ground.upstream.slots.add(OURS)
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

    asyncio.run(asyncio.wait_for(scenario(), 10))


@pytest.mark.parametrize("effect", [START, COPY], ids=["start", "copy"])
@pytest.mark.parametrize("fails", [False, True], ids=["made", "made, and the reply is lost"])
def test_who_was_deposed_while_it_made_a_slot_takes_that_one_back(
    effect: StartSource | CopyAside, *, fails: bool
) -> None:
    async def scenario() -> None:
        ground = Ground()
        ground.upstream.fails = fails
        async with asyncio.TaskGroup() as tasks:
            making = tasks.create_task(ground.effects.run(effect))
            await ground.upstream.asked.wait()
            ground.depose()
            ground.upstream.may_make.set()
        ended = making.result()
        assert isinstance(ended, SourceFailed | AsideFailed)
        assert ended.code == "57P01"
        assert ground.upstream.slots == {SUCCESSORS}

    asyncio.run(asyncio.wait_for(scenario(), 10))


@pytest.mark.parametrize("effect", [START, COPY], ids=["start", "copy"])
def test_a_coordinator_that_ends_while_it_makes_a_slot_takes_it_back(
    effect: StartSource | CopyAside,
) -> None:
    async def scenario() -> None:
        ground = Ground()
        async with asyncio.TaskGroup() as tasks:
            making = tasks.create_task(ground.effects.run(effect))
            await ground.upstream.asked.wait()
            ground.depose()
            making.cancel()
        assert making.cancelled()
        assert ground.upstream.slots == {SUCCESSORS}

    asyncio.run(asyncio.wait_for(scenario(), 10))


def test_a_slot_is_taken_back_when_upstream_answers_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream_slots, "_TAKE_BACK_AGAIN_S", 0.0)

    async def scenario() -> None:
        ground = Ground()
        ground.upstream.unreachable_for = 3
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(ground.effects.run(START))
            await ground.upstream.asked.wait()
            ground.depose()
            ground.upstream.may_make.set()
        assert ground.upstream.slots == {SUCCESSORS}

    asyncio.run(asyncio.wait_for(scenario(), 10))


def test_a_leader_whose_slot_fails_leaves_it_to_the_next_attempt() -> None:
    """Its source names it (F8); upstream, which has failed, is not asked twice."""

    async def scenario() -> None:
        ground = Ground()
        ground.upstream.fails = True
        ground.upstream.may_make.set()
        ended = await ground.effects.run(START)
        assert isinstance(ended, SourceFailed)
        assert ended.code == "08006"
        assert ground.upstream.slots == {OURS}

    asyncio.run(asyncio.wait_for(scenario(), 10))


def test_nothing_is_made_for_a_source_that_was_released() -> None:
    async def scenario() -> None:
        ground = Ground()
        ground.upstream.may_read.clear()
        ground.upstream.may_make.set()
        async with asyncio.TaskGroup() as tasks:
            copy = tasks.create_task(ground.effects.run(COPY))
            await asyncio.sleep(0)
            left = Leftover(SOURCE, None)
            released = await ground.effects.run(ReleaseUpstream(left))
            assert released == UpstreamReleased(left.name, done=True)
            ground.upstream.may_read.set()
        assert isinstance(copy.result(), AsideFailed)
        assert not ground.upstream.slots

    asyncio.run(asyncio.wait_for(scenario(), 10))
