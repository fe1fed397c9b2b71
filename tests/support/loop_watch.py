"""Measure the CPU time of each callback of the loops of servers in this process.

    Handle._run ─▶ thread_time before and after ─▶ more than CPU_MAX_S: noted ─▶ the test fails

A callback that computes lets nobody else be answered. CPU time is measured, so a busy machine fails
no test. What is not the callback's own work does not count: imports, which a server has behind it
when it has started, and collections of garbage, which wait for the callback's end.

`LOOP_CPU=1 pytest ..` looks at every test; otherwise those with the fixture `bounded_callbacks`.
Servers that are processes of their own have `coordinator/server/watchdog.py`.
"""

import asyncio
import contextlib
import gc
import importlib._bootstrap as bootstrap  # type: ignore[import-not-found]
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
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
    imports = 0


class LoopWatch:
    """See the module."""

    def __init__(self) -> None:
        self._of_thread = _OfThread()
        self._slow: list[str] = []

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Measure until the block ends, in all threads of the process."""
        run: _Run = asyncio.Handle._run  # type: ignore[attr-defined]
        load = bootstrap._find_and_load
        asyncio.Handle._run = self._measured(run)  # type: ignore[attr-defined]
        bootstrap._find_and_load = self._loaded(load)
        self._slow.clear()
        try:
            yield
        finally:
            asyncio.Handle._run = run  # type: ignore[attr-defined]
            bootstrap._find_and_load = load

    def _measured(self, run: _Run) -> _Run:
        def measured(handle: asyncio.Handle) -> None:
            of_thread, collects = self._of_thread, gc.isenabled()
            of_thread.uncounted_s = 0.0
            gc.disable()
            began = time.thread_time()
            try:
                run(handle)
            finally:
                spent = time.thread_time() - began - of_thread.uncounted_s
                if collects:
                    gc.enable()
            if spent > CPU_MAX_S:
                self._note(handle, spent)

        return measured

    def _loaded(self, load: Callable[..., Any]) -> Callable[..., Any]:
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

        return loaded

    def check(self) -> None:
        """Fail if a callback has computed for too long."""
        slow, self._slow = self._slow, []
        if slow:
            pytest.fail("\n".join(slow), pytrace=False)

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
