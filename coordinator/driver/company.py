"""Wait for those who commit at the same time: turns of the loop, then somebody who comes back.

    wait ─▶ turns ─ one brings no message ─▶ due
    wait until somebody comes ─┬─ a message ─▶ turns
                               └─ PATIENCE_S later ─▶ due, and late

The invariants are those of `core/group_pacing.py`.
"""

import asyncio
from collections.abc import Callable
from typing import Final

TURNS_MAX: Final = 8
"""A turn handles all sockets that are ready. Larger: a commit waits longer beside others who do
something else. Smaller: smaller groups."""

PATIENCE_S: Final = 0.001
"""The least that timers of uvloop can do. Larger: who is left alone waits longer."""


class Company:
    """See the module. `over` is told whether it is late."""

    def __init__(self, over: Callable[[bool], None]) -> None:
        self._over = over
        self._heard = 0
        self._seen = 0
        self._left = 0
        self._waits = False
        self._is_idle = False
        """Whether somebody is waited for."""
        self._is_late = False
        self._timer: asyncio.TimerHandle | None = None

    def heard(self) -> None:
        """A message has come."""
        self._heard += 1
        if self._is_idle:
            self._is_idle = False
            self._look()

    def wait(self, *, until_heard: bool) -> None:
        """Look at the next turns, perhaps once a message has come; one wait at a time."""
        self._waits = True
        if not until_heard:
            self._look()
            return
        self._is_idle = True
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PATIENCE_S, self._late)

    def _look(self) -> None:
        self._seen, self._left = self._heard, TURNS_MAX
        asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        """What was ready has been handled since the turn before."""
        self._left -= 1
        if self._heard == self._seen or self._left == 0:
            self._due()
            return
        self._seen = self._heard
        asyncio.get_running_loop().call_soon(self._turn)

    def _late(self) -> None:
        self._is_late = True
        if self._is_idle:
            self._is_idle = False
            self._due()

    def _due(self) -> None:
        self._waits = False
        self._over(self._is_late)
        if not self._waits and self._timer is not None:
            self._timer.cancel()
            self._timer, self._is_late = None, False
