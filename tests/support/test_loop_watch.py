"""A callback of a server's that computes for long fails its test; whatever else does, does not."""

import asyncio
import gc
import time
from typing import Any

import pytest

from tests.support import loop_watch
from tests.support.loop_watch import CPU_MAX_S, WATCH


def computes() -> None:
    end = time.thread_time() + CPU_MAX_S + 0.02
    while time.thread_time() < end:
        pass


class OfServer(asyncio.Protocol):
    """A protocol as the server's are."""

    def data_received(self, data: bytes) -> None:
        computes()


async def of_a_task() -> None:
    await asyncio.sleep(0)
    computes()
    await asyncio.sleep(0)


def looked(watched: Any, *args: object) -> str:
    """What the watch has to say of a callback."""

    async def story() -> None:
        if asyncio.iscoroutine(watched):
            async with asyncio.TaskGroup() as group:
                group.create_task(watched)
        else:
            asyncio.get_running_loop().call_soon(watched, *args)
            await asyncio.sleep(0)

    with WATCH.watching():
        asyncio.run(story())
    try:
        WATCH.check()
    except pytest.fail.Exception as told:
        return str(told)
    return ""


def test_callbacks_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    assert looked(of_a_task()) == ""
    monkeypatch.setattr(loop_watch, "_OURS", __name__)
    assert "of_a_task" in looked(of_a_task())
    assert "OfServer after data_received" in looked(OfServer().data_received, b"")


def test_garbage_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_watch, "_OURS", __name__)

    async def allocates() -> None:
        before = gc.get_stats()[2]["collections"]
        heap = [[number] for number in range(200_000)]
        assert gc.get_stats()[2]["collections"] == before
        del heap

    assert looked(allocates()) == ""


def test_nothing_stays() -> None:
    run = asyncio.Handle._run  # type: ignore[attr-defined]
    # A loop that has ended while a large statement paused the collector has left it so.
    gc.enable()
    assert looked(of_a_task()) == ""
    assert asyncio.Handle._run is run  # type: ignore[attr-defined]
    assert gc.isenabled()
