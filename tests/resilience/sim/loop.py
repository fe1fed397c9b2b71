"""An event loop whose time jumps: whenever nothing is ready, the clock moves to the next timer.

INVARIANTS
  Q1  callbacks run in the order asyncio promises; the seed decides delays, never the order of
      callbacks.
  Q2  no real time passes in a sleep; a loop with nothing ready and no timer is a deadlock and
      raises.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

from tests.resilience.sim.process import make_task

T = TypeVar("T")

END_S = 1_000.0
"""Far beyond the end of every run and of what it leaves behind."""


class Deadlock(AssertionError):
    """Everybody waits and nothing can ever happen."""


class Endless(AssertionError):
    """What was told to end goes on for ever."""


class _JumpingSelector(selectors.BaseSelector):
    """Never waits: tells the loop's clock to jump by the time-out instead."""

    def __init__(self) -> None:
        self.now = 0.0
        self._keys: dict[int, selectors.SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = selectors.SelectorKey(fileobj, 0, events, data)
        self._keys[id(fileobj)] = key
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(id(fileobj))

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Deadlock("nothing is ready and no timer runs")
        self.now += max(timeout, 0.0)
        if self.now > END_S:
            raise Endless(f"something still runs after {END_S} s of virtual time")
        return []

    def get_map(self) -> dict[int, selectors.SelectorKey]:  # type: ignore[override]
        return self._keys


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """See the module. `time()` starts at zero."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)
        self.set_task_factory(make_task)
        # Sessions whose client has gone end with errors that nobody fetches.
        self.set_exception_handler(lambda loop, context: None)

    def time(self) -> float:
        return self._jumping.now


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on virtual time."""
    loop = VirtualTimeLoop()
    try:
        return loop.run_until_complete(main)
    finally:
        try:
            pending = asyncio.all_tasks(loop)
            for task in pending:
                task.cancel()
            if pending:
                loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
        finally:
            loop.close()
