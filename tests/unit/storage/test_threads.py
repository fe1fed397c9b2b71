"""Exceptions that a Future cannot hold (StopIteration ..) still reach the awaiting task."""

import asyncio
from concurrent.futures import CancelledError

import pytest

from storage.threads import Threads


@pytest.mark.parametrize(
    "error", [StopIteration(), CancelledError(), KeyboardInterrupt(), GeneratorExit()]
)
def test_who_waits_hears_of_a_failure(error: BaseException) -> None:
    def failing() -> None:
        raise error

    async def waited() -> None:
        with Threads(1) as threads:
            await asyncio.wait_for(asyncio.wrap_future(threads.submit(failing)), 30)

    with pytest.raises(AssertionError) as failed:
        asyncio.run(waited())
    assert failed.value.__cause__ is error


def test_ordinary_failures_stay_what_they_are() -> None:
    with Threads(1) as threads, pytest.raises(KeyError):
        threads.submit({}.__getitem__, "a").result()
