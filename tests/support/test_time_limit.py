"""A test that waits for ever fails, and says where."""

import asyncio

import pytest

from tests.support.time_limit import time_limit


async def _waits_for_ever(event: asyncio.Event) -> None:
    await event.wait()


async def _with_a_task() -> None:
    event = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(_waits_for_ever(event))
        await event.wait()


def test_a_test_that_waits_for_ever_fails_and_says_where_its_tasks_stand() -> None:
    with pytest.raises(pytest.fail.Exception) as found, time_limit(0.2):
        asyncio.run(_with_a_task())
    told = str(found.value)
    assert told.startswith("not done after 0.2 s")
    assert "in _waits_for_ever" in told
    assert "in _with_a_task" in told


def test_who_is_done_in_time_hears_nothing() -> None:
    with time_limit(0.1):
        pass
    asyncio.run(asyncio.sleep(0.2))
