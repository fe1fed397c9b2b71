"""What ends the driver, and what nobody waits for any more."""

import asyncio
import contextlib

import pytest

from compute.arrow import table_schema
from coordinator.core.core import Core
from coordinator.core.effects import Effect
from coordinator.core.messages.identities import ConnectionId
from coordinator.core.messages.requests import Message, NewTableId
from coordinator.core.settings import CoreSettings
from coordinator.driver.driver import Driver
from coordinator.server.recovery import recover_timelines
from sql.catalog.catalog import Table
from sql.errors import SqlError
from storage.clock import SystemClock
from storage.memory import MemoryObjectStore, MemoryStash
from storage.types import ShardId, Timestamp

OWNER = ConnectionId(1)
TABLE = Table(16_384, "public", "t", ShardId("t0"), ())


async def started() -> Driver:
    timelines = await recover_timelines(
        MemoryStash(),
        MemoryObjectStore(),
        SystemClock(),
        CoreSettings(),
        lambda table: table_schema(table.columns),
    )
    return timelines.system


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A core with a bug in one message of sessions."""
    step = Core.step

    def failing(self: Core, message: Message, now: Timestamp) -> list[Effect]:
        assert not isinstance(message, NewTableId), "the bug"
        return step(self, message, now)

    monkeypatch.setattr(Core, "step", failing)


async def failure(driver: Driver) -> str:
    with pytest.raises(BaseExceptionGroup) as ended:
        await driver.run()
    return str(ended.value.exceptions[0])


@pytest.mark.usefixtures("broken")
def test_a_bug_in_the_core_ends_the_driver_though_a_session_met_it() -> None:
    async def story() -> None:
        driver = await started()
        first, second = driver.begin(OWNER), driver.begin(OWNER)
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(failure(driver))
            await driver.lease(first, [TABLE])
            waiting = tasks.create_task(driver.lease(second, [TABLE]))
            await asyncio.sleep(0)
            with pytest.raises(AssertionError, match="the bug"):
                await driver.new_table_id()
            with pytest.raises(SqlError) as refused:
                await driver.snapshot(first)
            assert refused.value.sqlstate == "57P01"
        assert running.result().startswith("D3")
        assert waiting.cancelled()
        # The last words of sessions come later still, and must not fail.
        driver.abort(first)
        driver.disconnected(OWNER)

    asyncio.run(story())


def test_a_request_that_was_given_up_is_forgotten() -> None:
    async def story() -> None:
        driver = await started()
        first, second = driver.begin(OWNER), driver.begin(OWNER)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(driver.run())
            await driver.lease(first, [TABLE])
            waiting = tasks.create_task(driver.lease(second, [TABLE]))
            await asyncio.sleep(0)
            assert driver.waiting == 1
            waiting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await waiting
            driver.abort(second)
            driver.abort(first)
            assert driver.waiting == 0
            await driver.stop()

    asyncio.run(story())
