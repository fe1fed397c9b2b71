"""A thread that looks whether the event loop turns, and logs what it does when it stands.

    watchdog ── call_soon_threadsafe ─▶ loop: a turn
        └── no turn within STALL_S ─▶ where the loop's thread stands, and its CPU time, to the log

The loop serves everybody: while one callback runs, nobody else is answered. CPU time tells a
callback that computes from a machine that gives the process no time.

INVARIANTS
  W1  it only looks: nothing is interrupted, and nobody waits for it.
"""

import asyncio
import logging
import sys
import threading
import time
import traceback
from dataclasses import dataclass, replace
from types import FrameType
from typing import Final

log = logging.getLogger("meridian.loop")

STALL_S: Final = 0.1
"""A loop that does not turn for so long stands."""
_INTERVAL_S: Final = 0.05
"""Between two looks. Longer: short stalls are missed. Shorter: an idle server works more."""
_FRAMES: Final = 12
"""Of a stack that is logged, the innermost ones."""


@dataclass(frozen=True, slots=True)
class LoopStalls:
    """What was seen so far. `cpu_s`: the most CPU time of the loop's thread in one stall."""

    count: int = 0
    longest_s: float = 0.0
    cpu_s: float = 0.0


class Watchdog:
    """See the module. Made and started on the loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._thread_of_loop = threading.get_ident()
        self._cpu_clock = time.pthread_getcpuclockid(self._thread_of_loop)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="loop-watchdog", daemon=True)
        self.stalls = LoopStalls()
        self.lag_s = 0.0
        """How long the loop took for its last turn that was looked at."""

    def start(self) -> None:
        """Watch from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Watch no more."""
        self._ended.set()

    def _watch(self) -> None:
        while not self._ended.wait(_INTERVAL_S):
            turned = threading.Event()
            began, cpu = time.monotonic(), self._cpu_s()
            try:
                self._loop.call_soon_threadsafe(turned.set)
            except RuntimeError:
                return  # the loop is closed
            if turned.wait(STALL_S):
                self.lag_s = time.monotonic() - began
                continue
            self.stalls = replace(self.stalls, count=self.stalls.count + 1)
            log.warning("the event loop stands; it is at %s", self._stack())
            while not turned.wait(_INTERVAL_S):
                if self._ended.is_set():
                    return
            self._stood(time.monotonic() - began, self._cpu_s() - cpu)

    def _stood(self, seconds: float, cpu_s: float) -> None:
        seen, self.lag_s = self.stalls, seconds
        self.stalls = LoopStalls(seen.count, max(seen.longest_s, seconds), max(seen.cpu_s, cpu_s))
        log.warning(
            "the event loop stood for %.0f ms, %.0f ms of them computing; %d times so far",
            1000 * seconds, 1000 * cpu_s, seen.count,
        )  # fmt: skip

    def _cpu_s(self) -> float:
        """CPU time of the loop's thread, in seconds."""
        return time.clock_gettime(self._cpu_clock)

    def _stack(self) -> str:
        """Where the loop's thread stands, the innermost call first."""
        frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage]
        return stack_of(frames.get(self._thread_of_loop))


def stack_of(frame: FrameType | None) -> str:
    """The innermost calls of a stack on one line: `function module:line < ..`."""
    if frame is None:
        return "nowhere"
    found: list[str] = []
    for each, line in traceback.walk_stack(frame):
        found.append(f"{each.f_code.co_name} {each.f_globals.get('__name__')}:{line}")
        if len(found) == _FRAMES:
            break
    return " < ".join(found)
