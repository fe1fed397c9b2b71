"""`Clock`: a Protocol for wall time, and the system's clocks; nothing else reads the time.

    wall clock ─┐
    boot clock ─┴─▶ DoubtingClock ─▶ what all of a server takes for the time

INVARIANTS
  J1  the wall clock is not believed while it is further ahead of what was believed before than
      `jump_max_us`, measured by the boot clock: one wrong moment would take history away for good.
  J2  while it is not, time goes on by the boot clock, from where it was believed last.
  J3  a wall clock that steps back is believed, and believed again when it comes forth: timestamps
      do not go back with it (O5 of `coordinator/core/oracle.py`).

The boot clock counts while a laptop is suspended and while a process is stopped, so neither is a
jump. A start believes the wall clock whatever it says: a server may have been off for days.
"""

import logging
import time
from datetime import timedelta
from typing import Final, Protocol

from storage.types import ClockState, Timestamp

log = logging.getLogger("meridian.clock")

_BOOT_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Where there is no such clock, the monotonic one counts while the machine is suspended, too."""


class Clock(Protocol):
    """A wall clock. It may step back and forward; who needs order asks the oracle."""

    def now(self) -> Timestamp:
        """Microseconds since the Unix epoch."""
        ...


class SystemClock:
    """The machine's wall clock."""

    def now(self) -> Timestamp:
        """Microseconds since the Unix epoch."""
        return Timestamp(time.time_ns() // 1_000)


class BootClock:
    """The time since the machine was started, with the time that it was suspended."""

    def now(self) -> Timestamp:
        """Microseconds since the machine was started."""
        return Timestamp(time.clock_gettime_ns(_BOOT_CLOCK) // 1_000)


class DoubtingClock:
    """A wall clock whose jumps ahead are not believed; see the module."""

    def __init__(self, wall: Clock, boot: Clock, jump_max_us: int) -> None:
        self._wall = wall
        self._boot = boot
        self._jump_max_us = jump_max_us
        self._offset_us, _ = self._read()
        self._highest_us = self._offset_us
        self._jumps = 0
        self._doubted = False

    @property
    def state(self) -> ClockState:
        """For observation."""
        return ClockState(self._jumps, self._doubted)

    def now(self) -> Timestamp:
        """Microseconds since the Unix epoch, as far as the wall clock is believed (J1-J3)."""
        offset_us, boot = self._read()
        ahead_us = offset_us - self._highest_us
        if ahead_us <= 0 and not self._doubted:
            # Asked for many times a statement: nearly always this is all.
            self._offset_us = offset_us
        elif ahead_us <= self._jump_max_us:
            self._believe(offset_us)
        elif not self._doubted:
            self._doubted = True
            self._jumps += 1
            log.warning(
                "the clock has jumped ahead by %s and is not believed; SELECT"
                " meridian.accept_clock() or a restart accepts it",
                timedelta(microseconds=ahead_us),
            )
        return Timestamp(boot + self._offset_us)

    def accept(self) -> bool:
        """Believe the wall clock as it is now; whether it was doubted."""
        # A jump is one also when nobody has asked for the time since.
        self.now()
        doubted = self._doubted
        self._believe(self._read()[0])
        return doubted

    def _believe(self, offset_us: int) -> None:
        if self._doubted:
            log.warning("the clock is believed again")
        self._doubted = False
        self._offset_us = offset_us
        self._highest_us = max(self._highest_us, offset_us)

    def _read(self) -> tuple[int, Timestamp]:
        """How far the wall clock is ahead of the boot clock, and the latter.

        The boot clock is read last: a process that is stopped between the two sees no jump ahead.
        """
        wall = self._wall.now()
        boot = self._boot.now()
        return wall - boot, boot


def clock_state(clock: Clock) -> ClockState:
    """What is observed of a clock; others than a DoubtingClock are always believed."""
    return clock.state if isinstance(clock, DoubtingClock) else ClockState()


def accept_clock(clock: Clock) -> bool:
    """Believe a clock as it is; whether it was doubted."""
    return isinstance(clock, DoubtingClock) and clock.accept()
