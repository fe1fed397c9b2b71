"""A test that waits for ever fails, and tells where every thread and task of it stands.

    LIMIT seconds ─▶ the test fails with all stacks ─▶ the next one
    faulthandler_timeout (pyproject.toml) ─▶ not even that helped: the process ends with all stacks

Timing is not asserted: the limit is far beyond what a test takes on a busy machine.
"""

import asyncio
import contextlib
import io
import signal
import sys
import traceback
from collections.abc import Iterator
from types import FrameType

import pytest

SHARE = 5 / 6
"""The limit of a test, of the time after which the process ends."""
FRAMES = 20
"""Of a thread; what is further out is pytest's."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises a failure in the main thread after so many seconds."""

    def fail(_signal: int, frame: FrameType | None) -> None:
        pytest.fail(f"not done after {seconds:g} s\n{stacks()}", pytrace=False)

    before = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def stacks() -> str:
    """Where every thread of this process stands, and every task of the running event loop."""
    told = io.StringIO()
    for thread, frame in sys._current_frames().items():
        told.write(f"thread {thread}\n{''.join(traceback.format_stack(frame)[-FRAMES:])}")
    with contextlib.suppress(RuntimeError):
        for task in asyncio.all_tasks(asyncio.get_running_loop()):
            told.write(f"{task.get_name()}\n")
            for frame in _awaited(task):
                told.write("".join(traceback.format_stack(frame, 1)))
    return told.getvalue()


def _awaited(task: "asyncio.Task[object]") -> Iterator[FrameType]:
    """The frames of a task from the outside in; `Task.get_stack` knows the outermost alone."""
    waiting: object = task.get_coro()
    while waiting is not None:
        frame = getattr(waiting, "cr_frame", None) or getattr(waiting, "ag_frame", None)
        if frame is not None:
            yield frame
        waiting = getattr(waiting, "cr_await", None) or getattr(waiting, "ag_await", None)
