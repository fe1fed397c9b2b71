"""The watchdog says where a loop stands, and how much of that was computing."""

import asyncio
import logging
import threading
import time

import pytest

from coordinator.server.watchdog import Watchdog, stack_of

CPU_S = 0.05


class Told(logging.Handler):
    """What was logged; `stands` is set by the first record, from the watchdog's thread."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[str] = []
        self.stands = threading.Event()
        self.stood = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record.getMessage())
        (self.stood if "stood" in self.records[-1] else self.stands).set()


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture(autouse=True)
def _listen(told: Told, caplog: pytest.LogCaptureFixture) -> object:
    logger = logging.getLogger("meridian.loop")
    logger.addHandler(told)
    yield
    logger.removeHandler(told)


def computes_until(told: threading.Event) -> None:
    while not told.is_set():
        pass
    end = time.thread_time() + CPU_S
    while time.thread_time() < end:
        pass


def test_a_callback_that_computes(told: Told) -> None:
    async def story() -> Watchdog:
        watchdog = Watchdog(asyncio.get_running_loop())
        watchdog.start()
        asyncio.get_running_loop().call_soon(computes_until, told.stands)
        await asyncio.to_thread(told.stood.wait)
        watchdog.stop()
        return watchdog

    stalls = asyncio.run(story()).stalls
    assert stalls.count >= 1
    assert stalls.longest_s >= stalls.cpu_s >= CPU_S
    assert f"computes_until {__name__}:" in told.records[0]


def test_a_callback_that_waits(told: Told) -> None:
    """It stands as well, and computes nothing: the log tells the two apart."""

    async def story() -> Watchdog:
        watchdog = Watchdog(asyncio.get_running_loop())
        watchdog.start()
        asyncio.get_running_loop().call_soon(told.stands.wait)
        await asyncio.to_thread(told.stood.wait)
        watchdog.stop()
        return watchdog

    stalls = asyncio.run(story()).stalls
    assert stalls.count >= 1
    assert "wait threading:" in told.records[0]


def test_it_ends_with_its_loop() -> None:
    async def story() -> threading.Thread:
        watchdog = Watchdog(asyncio.get_running_loop())
        watchdog.start()
        return next(t for t in threading.enumerate() if t.name == "loop-watchdog")

    asyncio.run(story()).join()


def test_stacks_are_short() -> None:
    def deep(levels: int) -> str:
        return deep(levels - 1) if levels else stack_of(None)

    assert deep(3) == "nowhere"
