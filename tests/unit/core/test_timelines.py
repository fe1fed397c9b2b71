"""The life of timelines, without a session."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from coordinator.core.messages.catalog_changes import PutTimeline
from coordinator.core.messages.identities import ConnectionId, Isolation
from coordinator.driver.coordination import RequestRefused
from coordinator.driver.driver import Driver
from coordinator.driver.timelines import Timelines
from sql.catalog.catalog import Catalog, Timeline
from storage.errors import Indeterminate
from tests.unit.core.test_driver import started

LINE = Timeline("line")
OWNER = ConnectionId(1)
BOUNDED = Isolation.BOUNDED_STALENESS


class Opening:
    """Opens nothing: waits, and when it is cancelled it tells something else, as a group may."""

    def __init__(self) -> None:
        self.attempts = 0
        self.began = asyncio.Event()

    async def __call__(self, timeline: Timeline, catalog: Catalog) -> Driver:
        self.attempts += 1
        self.began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if self.attempts > 1:
                raise
            raise Indeterminate("the store failed just then") from None
        raise AssertionError("nobody sets it")


class Late(Opening):
    """Opens when it is told to; `fails`: it never can."""

    def __init__(self, *, fails: bool) -> None:
        super().__init__()
        self.go_on = asyncio.Event()
        self._fails = fails

    async def __call__(self, timeline: Timeline, catalog: Catalog) -> Driver:
        self.began.set()
        await self.go_on.wait()
        if self._fails:
            raise Indeterminate("the store is away")
        return await started()


async def nothing_left(_timeline: Timeline) -> None:
    """Who removes what a dropped timeline leaves."""


@asynccontextmanager
async def opening_for_ever(
    opening: Opening | None = None,
) -> AsyncGenerator[tuple[Timelines, Opening, asyncio.Task[None]]]:
    """A server that is about to open a timeline."""
    opening = opening or Opening()
    timelines = Timelines(await started(), [], opening, nothing_left)
    # Not in a group: one that is told to end a second time does not tell its tasks again.
    running = asyncio.get_running_loop().create_task(timelines.run())
    async with asyncio.timeout(20):
        for _ in range(3):
            await asyncio.sleep(0)  # the server, its timelines, their loops
        txn = timelines.begin(OWNER)
        await timelines.snapshot(txn)
        timelines.change_catalog(txn, [PutTimeline(LINE)])
        await timelines.commit(txn)
        await opening.began.wait()
        yield timelines, opening, running
        running.cancel()
        await asyncio.wait({running})


def test_an_opening_that_is_told_to_end_ends() -> None:
    async def story() -> None:
        async with opening_for_ever() as (_, opening, running):
            running.cancel()
            await asyncio.wait({running})
            assert opening.attempts == 1

    asyncio.run(story())


def test_a_stale_read_does_not_wait_for_an_opening() -> None:
    async def story() -> None:
        async with opening_for_ever() as (timelines, _, _):
            txn = timelines.begin(OWNER, isolation=BOUNDED, staleness_us=10**9)
            snapshot = await timelines.snapshot(txn)
            assert LINE.name in snapshot.catalog.timelines
            with pytest.raises(RequestRefused) as refused:
                await timelines.snapshot(txn, timeline=LINE.name)
            assert refused.value.sqlstate == "40001"

    asyncio.run(story())


@pytest.mark.parametrize("fails", [False, True])
def test_a_server_that_stops_while_it_opens_a_timeline_ends(*, fails: bool) -> None:
    async def story() -> None:
        late = Late(fails=fails)
        async with opening_for_ever(late) as (timelines, _, running):
            stopping = asyncio.get_running_loop().create_task(timelines.stop())
            await asyncio.sleep(0)
            late.go_on.set()
            await stopping
            await running

    asyncio.run(story())
