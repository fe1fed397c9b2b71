"""Wait for those who commit at the same time: turns of the loop, then somebody who comes back.

    wait ─▶ turns ─ one brings no message ─▶ due
    wait until somebody comes ─┬─ a message ─▶ turns
                               └─ PATIENCE_S later ─▶ due, and late
    WAIT_S after the first wait for a group ─▶ due, and late

The invariants are those of `core/commit_delay.py`.
"""

import asyncio
from collections.abc import Callable
from typing import Final

TURNS_MAX: Final = 8
"""A turn handles all sockets that are ready, and may be long. As WAIT_S."""

PATIENCE_S: Final = 0.001
"""For somebody; the least that timers of uvloop can do. Larger: who is left alone waits longer."""

WAIT_S: Final = 0.005
"""In all. Larger: a commit waits longer beside others who keep the loop busy. Smaller: smaller
groups of blocks, whose other statements keep it busy, too."""


class GatherDelay:
    """See the module. `over` is told whether it is late."""

    def __init__(self, over: Callable[[bool], None]) -> None:
        self._over = over
        self._heard = 0
        self._seen = 0
        self._left = 0
        self._waits = False
        self._deadline: float | None = None
        """On the loop's clock, from the first wait for a group on."""
        self._timer: asyncio.TimerHandle | None = None
        """While somebody is waited for."""

    def heard(self) -> None:
        """A message has come."""
        self._heard += 1
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._look()

    def wait(self, *, until_heard: bool) -> None:
        """Look at the next turns, perhaps once a message has come; one wait at a time."""
        self._waits = True
        loop = asyncio.get_running_loop()
        if self._deadline is None:
            self._deadline = loop.time() + WAIT_S
        if until_heard:
            self._timer = loop.call_later(PATIENCE_S, self._late)
        else:
            self._look()

    def _look(self) -> None:
        self._seen, self._left = self._heard, TURNS_MAX
        asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        """What was ready has been handled since the turn before."""
        loop = asyncio.get_running_loop()
        assert self._deadline is not None, "P2: a wait has an end"
        if loop.time() >= self._deadline:
            self._due(is_late=True)
            return
        self._left -= 1
        if self._heard == self._seen or self._left == 0:
            self._due(is_late=False)
            return
        self._seen = self._heard
        loop.call_soon(self._turn)

    def _late(self) -> None:
        self._timer = None
        self._due(is_late=True)

    def _due(self, *, is_late: bool) -> None:
        self._waits = False
        self._over(is_late)
        if not self._waits:
            self._deadline = None
