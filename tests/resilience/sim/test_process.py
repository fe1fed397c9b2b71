"""A paused process runs nothing, a killed one never again, and nobody's `finally` gives it away."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from tests.resilience.sim.loop import run
from tests.resilience.sim.process import Process


def told(story: Coroutine[Any, Any, list[str]]) -> list[str]:
    return run(story)


async def steps(said: list[str], name: str, pause_s: float) -> None:
    try:
        for number in range(3):
            said.append(f"{name}{number}")
            await asyncio.sleep(pause_s)
    finally:
        said.append(f"{name} ends")


def test_a_paused_process_goes_on_where_it_stood() -> None:
    async def story() -> list[str]:
        said: list[str] = []
        process = Process("a")
        task = process.start(steps(said, "a", 1.0))
        await asyncio.sleep(0.5)
        process.pause()
        await asyncio.sleep(10.0)
        said.append("resumed")
        process.resume()
        await task
        return said

    assert told(story()) == ["a0", "resumed", "a1", "a2", "a ends"]


def test_a_cancellation_waits_until_the_process_runs() -> None:
    async def story() -> list[str]:
        said: list[str] = []
        process = Process("a")
        task = process.start(steps(said, "a", 1.0))
        await asyncio.sleep(0.5)
        process.pause()
        task.cancel()
        await asyncio.sleep(1.0)
        said.append("resumed")
        process.resume()
        await asyncio.wait({task})
        assert task.cancelled()
        return said

    assert told(story()) == ["a0", "resumed", "a ends"]


def test_a_killed_process_runs_no_finally() -> None:
    async def story() -> list[str]:
        said: list[str] = []
        process = Process("a")
        process.start(steps(said, "a", 1.0))
        other = Process("b").start(steps(said, "b", 1.0))
        await asyncio.sleep(0.5)
        process.kill()
        await other
        seen = list(said)
        process.tear_down()
        return seen

    assert told(story()) == ["a0", "b0", "b1", "b2", "b ends"]


def test_tasks_made_by_a_task_belong_to_its_process() -> None:
    async def story() -> list[str]:
        said: list[str] = []
        process = Process("a")

        async def parent() -> None:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(steps(said, "x", 1.0))

        process.start(parent())
        await asyncio.sleep(0.5)
        process.pause()
        await asyncio.sleep(5.0)
        seen = list(said)
        process.tear_down()
        return seen

    assert told(story()) == ["x0"]
