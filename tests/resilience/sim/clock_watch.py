"""A judge of time: no timestamp follows a clock that has jumped by days, nor does `since`.

    start: the clock is believed ─▶ steps: no more than half a day ahead of it

INVARIANTS
  W1  `since` and the read timestamp of a timeline with a clock are at most A_WHILE_US ahead of what
      the clock said when the process began, or when the clock was accepted, and the time since.

What smaller jumps do to them is for the other judges: they are believed, or not.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from coordinator.core.core import Core
from coordinator.core.effects import Effect
from coordinator.core.messages.requests import Message
from storage.clock import DoubtingClock
from storage.types import Timestamp

A_WHILE_US: Final = 43_200_000_000
"""Half a day: between jumps by hours, some of which are believed, and those by days."""


class BootTime:
    """The loop's virtual time: it counts whatever is done to a wall clock."""

    def now(self) -> Timestamp:
        """Microseconds."""
        return Timestamp(int(asyncio.get_running_loop().time() * 1_000_000))


class ClockWatch:
    """What one process may take for the time. Made when its clock is."""

    def __init__(self, clock: DoubtingClock, found: Callable[[str, str], None]) -> None:
        self._clock = clock
        self._found = found
        self._told = False
        self.believe()

    def believe(self) -> None:
        """The clock is right as it is now: the process begins, or somebody has accepted it."""
        self._believed_us = self._clock.now() - BootTime().now()

    def watch(self, core: Core) -> None:
        """Look after every step of a core from now on (W1)."""
        if core.timeline.manual:
            return
        # What was there at the start is of another process, whose clock may have been ahead.
        ahead_us = max(0, core.read_ts - self._clock.now())
        step = core.step

        def look(message: Message, now: Timestamp) -> list[Effect]:
            effects = step(message, now)
            latest = BootTime().now() + self._believed_us + ahead_us + A_WHILE_US
            if max(core.since, core.read_ts) > latest and not self._told:
                self._told = True
                why = f"since {core.since}, read_ts {core.read_ts}, and it is before {latest}"
                self._found("ahead of time", why)
            return effects

        core.step = look  # type: ignore[method-assign]
