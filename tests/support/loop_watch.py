"""Measure the CPU time of each callback of the loops of servers in this process.

    Handle._run ─▶ thread_time before and after ─▶ more than CPU_MAX_S: noted ─▶ the test fails

A callback that computes lets nobody else be answered. CPU time is measured, so a busy machine fails
no test. What is not the callback's own work does not count: collections of garbage, and imports,
which a server has behind it when it has started.

`LOOP_CPU=1 pytest ..` looks at every test; otherwise those with the fixture `bounded_callbacks`.
Servers that are processes of their own have `coordinator/server/watchdog.py`.
"""

import asyncio
import gc
import importlib._bootstrap as bootstrap  # type: ignore[import-not-found]
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.support.time_limit import FRAMES

EVERY_LOOP: Final = bool(os.environ.get("LOOP_CPU"))
"""Whether every test fails in which a callback computes for too long."""
CPU_MAX_S: Final = 0.25
_OURS: Final = "coordinator."
_Run = Callable[[asyncio.Handle], None]


class _OfThread(threading.local):
    """CPU time that does not count, of the thread's callback."""

    uncounted_s = 0.0
    collecting_since = 0.0
    imports = 0


class LoopWatch:
    """See the module."""

    def __init__(self) -> None:
        self._of_thread = _OfThread()
        self._slow: list[str] = []
        self._installed = False

    def install(self) -> None:
        """Measure from now on, in all threads of the process."""
        if self._installed:
            return
        self._installed = True
        run: _Run = asyncio.Handle._run  # type: ignore[attr-defined]
        load = bootstrap._find_and_load

        def measured(handle: asyncio.Handle) -> None:
            of_thread = self._of_thread
            of_thread.uncounted_s = 0.0
            began = time.thread_time()
            run(handle)
            spent = time.thread_time() - began - of_thread.uncounted_s
            if spent > CPU_MAX_S:
                self._note(handle, spent)

        def loaded(*args: Any) -> Any:
            of_thread = self._of_thread
            began = time.thread_time()
            of_thread.imports += 1
            try:
                return load(*args)
            finally:
                of_thread.imports -= 1
                if not of_thread.imports:
                    of_thread.uncounted_s += time.thread_time() - began

        asyncio.Handle._run = measured  # type: ignore[attr-defined]
        bootstrap._find_and_load = loaded
        gc.callbacks.append(self._collecting)

    def clear(self) -> None:
        """Forget what was noted."""
        self._slow.clear()

    def check(self) -> None:
        """Fail if a callback has computed for too long since `clear`."""
        slow, self._slow = self._slow, []
        if slow:
            pytest.fail("\n".join(slow), pytrace=False)

    def _collecting(self, phase: str, _info: object) -> None:
        of_thread = self._of_thread
        if of_thread.imports:
            return  # counted with the import
        now = time.thread_time()
        if phase == "start":
            of_thread.collecting_since = now
        else:
            of_thread.uncounted_s += now - of_thread.collecting_since

    def _note(self, handle: asyncio.Handle, spent: float) -> None:
        told = _whose(handle)
        if told is not None:
            self._slow.append(f"{told} computed for {1000 * spent:.0f} ms in one callback")


def _whose(handle: asyncio.Handle) -> str | None:
    """What of a server's runs in a callback; None if it is the test's own."""
    callback = handle._callback  # type: ignore[attr-defined]
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        frame = getattr(owner.get_coro(), "cr_frame", None)
        code = getattr(owner.get_coro(), "cr_code", None)
        module = None if frame is None else frame.f_globals.get("__name__")
        if code is None or (module is not None and not module.startswith(_OURS)):
            return None
        return f"{code.co_qualname}, now at {_innermost(owner)}," if module else None
    protocol = getattr(owner, "_protocol", owner)
    if type(protocol).__module__.startswith(_OURS):
        return f"{type(protocol).__qualname__} after {getattr(callback, '__name__', callback)}"
    return None


def _innermost(task: "asyncio.Task[Any]") -> str:
    """Where a task waits after its callback."""
    waiting: Any = task.get_coro()
    found: list[str] = []
    while waiting is not None and len(found) < FRAMES:
        frame = getattr(waiting, "cr_frame", None) or getattr(waiting, "ag_frame", None)
        if frame is not None:
            found.append(f"{frame.f_code.co_qualname}:{frame.f_lineno}")
        waiting = getattr(waiting, "cr_await", None) or getattr(waiting, "ag_await", None)
    return found[-1] if found else "its end"


WATCH: Final = LoopWatch()
assert sys.implementation.name == "cpython", "callbacks are asyncio's own, in Python"
