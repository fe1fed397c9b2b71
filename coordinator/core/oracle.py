"""The timestamp oracle of one timeline: hands out read and write timestamps that respect real time.

    read_ts ──────── last handed out ───────────── ceiling (durable)
       │                  │                            │
       └ every acknowledged write <= read_ts           └ a restart begins here

INVARIANTS
  O1  read_ts >= every write applied (acknowledged) before.
  O2  every write timestamp is greater than every timestamp handed out before, read or write.
  O3  nothing at or past the durable ceiling is handed out; a restart begins at the ceiling.
  O4  nobody can push a timeline into the future: what a user asks for is closed only once the clock
      has passed it (`timestamps.py`).
  O5  the clock may step back, timestamps do not.

The ceiling is raised ahead of need (Percolator, §2.2): one durable write buys many timestamps.
After a crash timestamps run ahead of the clock by at most one step, and the clock catches up.

A timeline without a clock (`clockless`) needs no ceiling: it stands where its last durable write or
ADVANCE left it, so nothing is ever read above what is durable, and a write takes the timestamp
after the last one.

Not here: persisting the ceiling (the driver), choosing a timestamp for a query (`timestamps.py`).
"""

from typing import Final

from storage.types import Timestamp

NO_CEILING: Final = Timestamp((1 << 63) - 1)
"""Beyond every timestamp of a clockless timeline."""


class Oracle:
    """See the module. `ceiling` is the one found in the stash; the first one must be persisted
    first. Of a clockless timeline it is the upper of the txns shard.
    """

    def __init__(self, *, ceiling: Timestamp, step_us: int, clockless: bool = False) -> None:
        self._read = Timestamp(ceiling - 1)
        self._last = Timestamp(ceiling - 1)
        self._clockless = clockless
        self._ceiling = NO_CEILING if clockless else ceiling
        self._requested: Timestamp | None = None
        self._step_us = step_us
        self._demand = True

    @property
    def ceiling(self) -> Timestamp:
        """The durable ceiling."""
        return self._ceiling

    @property
    def persisting(self) -> bool:
        """True while a ceiling is on its way to the stash."""
        return self._requested is not None

    def read_ts(self) -> Timestamp:
        """The timestamp of a strict read that arrives now (O1)."""
        return self._read

    def write_ts(self, now: Timestamp) -> Timestamp | None:
        """Allocate a write timestamp (O2, O5); None: the ceiling must be raised first (O3).

        `now` of a clockless timeline is what an ADVANCE asks for, 0 without one.
        """
        self._demand = True
        ts = Timestamp(max(now, self._last + 1))
        # Timestamps below the ceiling but behind the clock would be free, and wrong: a commit must
        # not land at a time of day that AS OF readers take for the past.
        if ts >= self._ceiling:
            return None
        self._last = ts
        return ts

    def apply_write(self, ts: Timestamp) -> None:
        """The write at `ts` is durable: reads from now on see it (O1)."""
        assert ts <= self._last, "O2: only a timestamp that was handed out is applied"
        self._read = max(self._read, ts)

    def ensure_at_least(self, ts: Timestamp) -> bool:
        """Close `[.., ts]`: no later write is at or below it, reads are at or above it.

        False, and nothing changes, if the ceiling is in the way (O3). The caller knows that no
        write at or below `ts` is still on its way, and that no user has pushed it ahead (O4).
        """
        self._demand = True
        if ts >= self._ceiling:
            return False
        self._last = max(self._last, ts)
        self._read = max(self._read, ts)
        return True

    def skip_to(self, upper: Timestamp) -> None:
        """Hand out nothing below `upper`: the txns shard is there already."""
        self._last = max(self._last, Timestamp(upper - 1))

    def wanted_ceiling(self, now: Timestamp) -> Timestamp | None:
        """The ceiling to persist now; None: room enough, nobody asks for time, or one is on its
        way.
        """
        frontier = max(now, self._last)
        if self._clockless or not self._demand or self._requested is not None:
            return None
        if self._ceiling - frontier > self._step_us // 2:
            return None
        self._requested = Timestamp(frontier + self._step_us)
        return self._requested

    def ceiling_persisted(self, ceiling: Timestamp) -> None:
        """The ceiling is durable (O3)."""
        assert ceiling >= self._ceiling, "O3: a ceiling never comes down while we serve"
        self._ceiling = ceiling
        self._requested = None
        self._demand = False

    def ceiling_failed(self) -> None:
        """The ceiling was not written; `wanted_ceiling` will ask again."""
        self._requested = None

    def final_ceiling(self) -> Timestamp:
        """Hand the unused timestamps back at an orderly stop: the next start is on time."""
        assert self._requested is None, "O3: the last ceiling written must be this one"
        assert not self._clockless, "O3: without a clock there is no ceiling"
        self._ceiling = Timestamp(self._last + 1)
        return self._ceiling
