"""The seconds of a stream are those in which its consumer waited, also if it ends early."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pyarrow as pa
import pytest

from coordinator import streams
from coordinator.streams import closing_batches, timed_batches


class _Clock:
    now = 0.0


async def _batches(clock: _Clock, *, fails: bool) -> AsyncIterator[pa.RecordBatch]:
    for _ in range(3):
        clock.now += 1.0
        yield pa.record_batch({"a": [1]})
    clock.now += 10.0
    if fails:
        raise ValueError


@pytest.mark.parametrize(
    ("batches", "fails", "seconds"), [(9, False, 13.0), (9, True, 13.0), (2, False, 2.0)]
)
def test_seconds_of_a_stream(
    monkeypatch: pytest.MonkeyPatch, batches: int, fails: bool, seconds: float
) -> None:
    clock, noted = _Clock(), list[float]()
    monkeypatch.setattr(streams, "perf_counter", lambda: clock.now)

    async def consume() -> None:
        timed = timed_batches(_batches(clock, fails=fails), noted.append)
        left = batches
        async with closing_batches(timed) as found:
            async for _ in found:
                clock.now += 100.0  # the client's own time
                left -= 1
                if not left:
                    break

    with contextlib.suppress(ValueError):
        asyncio.run(consume())
    assert noted == [seconds]
