"""`Clock`: a Protocol for wall time, and the system's clock; nothing else reads the time."""

import time
from typing import Protocol

from storage.types import Timestamp


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
