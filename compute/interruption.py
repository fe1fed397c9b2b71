"""Stop Python code that computes for a statement which nobody waits for any more.

    Computation.run(work) ─▶ result
           ▲ stop(), of another thread: an exception is raised in `work`, wherever it stands

The interpreter asks for us: PyThreadState_SetAsyncExc raises between two bytecodes, so that every
loop of every function stops, also inside of one call over one huge value. A token that loops ask
would cost each of them time, and would be forgotten in some. One call of C code is not stopped
inside; what such a call gets is bounded (`sql/types/limits.py`).

INVARIANTS
  I1  nothing is raised in a thread when it has left `run`.
  I2  only code without locks runs inside: the reference evaluator has none. What Python itself does
      under locks (imports, threads, logging) is not interrupted.
  I3  an exception may be lost, as in a finalizer: who stops a computation repeats it until its work
      has ended.
"""

import asyncio
import ctypes
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from types import FrameType
from typing import Final, TypeVar

from storage.threads import Threads

R = TypeVar("R")

STOP_AGAIN_S: Final = 0.05
"""Between two attempts to stop (I3)."""

_SHIELDED: Final = ("importlib", "threading", "logging", "concurrent")
"""Modules of Python's whose functions hold locks (I2)."""

_raise_in: Final = ctypes.pythonapi.PyThreadState_SetAsyncExc
_raise_in.argtypes = (ctypes.c_ulong, ctypes.py_object)
_forget_in: Final = ctypes.PyDLL(None).PyThreadState_SetAsyncExc
_forget_in.argtypes = (ctypes.c_ulong, ctypes.c_void_p)


class _Stop(BaseException):
    """Raised inside of `run`; no `except Exception` takes it."""


class ComputationStopped(Exception):
    """The work was stopped, and has no result."""


class Computation:
    """What is computed for one run of a statement, by any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads: set[int] = set()
        self._stopped = False

    @property
    def is_stopped(self) -> bool:
        """Whether nobody waits for it any more."""
        return self._stopped

    def run(self, work: Callable[[], R]) -> R:
        """The result of the work, unless it is stopped. Raises ComputationStopped, or what the work
        raises.
        """
        thread = threading.get_ident()
        try:
            try:
                self._enter(thread)
                return work()
            finally:
                self._leave(thread)
        except _Stop:
            # It may have been raised just before the thread had left.
            self._leave(thread)
            raise ComputationStopped from None

    def stop(self) -> None:
        """Raise in what runs, and begin nothing more. To be repeated while the work has not ended
        (I3).
        """
        with self._lock:
            self._stopped = True
            if not self._threads:
                return
            frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage]
            for thread in self._threads:
                if not _is_shielded(frames.get(thread)):
                    _raise_in(thread, _Stop)

    def _enter(self, thread: int) -> None:
        with self._lock:
            if self._stopped:
                raise _Stop
            self._threads.add(thread)

    def _leave(self, thread: int) -> None:
        with self._lock:
            self._threads.discard(thread)
            # What was to be raised and has not been is forgotten (I1).
            _forget_in(thread, None)


def _is_shielded(frame: FrameType | None) -> bool:
    """Whether a thread is in code that holds locks (I2), above its frame of `run`."""
    while frame is not None and frame.f_code is not Computation.run.__code__:
        if str(frame.f_globals.get("__name__")).partition(".")[0] in _SHIELDED:
            return True
        frame = frame.f_back
    return False


async def stoppable(threads: Threads, work: Callable[[], R]) -> R:
    """The result of work of a thread, which is stopped if the task that awaits it is cancelled."""
    computation = Computation()
    job = threads.submit(computation.run, work)
    try:
        return await asyncio.wrap_future(job)
    except asyncio.CancelledError:
        _stop(computation, job)
        raise


def _stop(computation: Computation, job: "Future[R]") -> None:
    if not job.done():
        computation.stop()
        asyncio.get_running_loop().call_later(STOP_AGAIN_S, _stop, computation, job)
