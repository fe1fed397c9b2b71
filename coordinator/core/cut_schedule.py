"""Schedule cuts: which shards are dirty, and when all are flushed at one timestamp.

    dirty ──age, bytes or commits──▶ FlushCut(C) ──CutFlushed──▶ Tidy(C) ──Tidied──▶ idle

INVARIANTS
  C1  a cut lies on a millisecond (in a timeline without a clock: anywhere) and is greater than
      every cut before; without a clock a cut that failed for some shards may come again.
  C4  no commit at or below a cut is still on its way when the cut is chosen.
  C5  one cut at a time; what could not be flushed stays dirty; tidy stops short of it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from coordinator.core.settings import CoreSettings
from storage.shard import TICKS_PER_MS, ShardState
from storage.types import ShardId, Timestamp


def floor_to(ts: Timestamp, unit: int) -> Timestamp:
    """The last multiple of `unit` at or before `ts`."""
    return Timestamp(ts - ts % unit)


def ceil_to(ts: Timestamp, unit: int) -> Timestamp:
    """The first multiple of `unit` at or after `ts`."""
    return floor_to(Timestamp(ts + unit - 1), unit)


@dataclass(slots=True)
class CutSchedule:
    """The dirty shards and the cut in flight."""

    settings: CoreSettings
    last_cut: Timestamp
    unit: int = TICKS_PER_MS
    in_flight: Timestamp | None = None
    dirty_since: dict[ShardId, Timestamp] = field(default_factory=dict[ShardId, Timestamp])
    bytes: int = 0
    commits_max: int = 0

    def wrote(self, shard: ShardId, state: ShardState, *, added: int, now: Timestamp) -> None:
        """A commit reached this shard; `added`: bytes it brought to the tail."""
        self.dirty_since.setdefault(shard, now)
        self.bytes += added
        self.commits_max = max(self.commits_max, len(state.tail))

    def failed(self, shard: ShardId, now: Timestamp) -> None:
        """A shard could not be flushed: it is dirty still, and due by its age alone.

        By its bytes or commits it would be due at once, and a full disk tried without a pause.
        """
        self.dirty_since.setdefault(shard, now)

    def wanted(self, shard: ShardId, now: Timestamp) -> None:
        """Somebody waits for a cut of this shard: it is due at once."""
        self.dirty_since[shard] = Timestamp(now - self.settings.cut_age_us)

    def clean(self, shard: ShardId) -> None:
        """There is nothing to flush in this shard."""
        self.dirty_since.pop(shard, None)

    def due(self, now: Timestamp) -> bool:
        """True if a cut should be made now (C5)."""
        if self.in_flight is not None or not self.dirty_since:
            return False
        # A clock that stepped back must not put the cut off: an age below zero counts as due.
        age = now - min(self.dirty_since.values())
        return (
            not 0 <= age < self.settings.cut_age_us
            or self.bytes >= self.settings.cut_bytes_max
            or self.commits_max >= self.settings.cut_commits_max
        )

    def begin(self, cut: Timestamp, shards: Iterable[ShardId]) -> None:
        """Start a cut of these shards (C1); the other dirty ones wait for the next."""
        assert cut > self.last_cut or (cut == self.last_cut and self.unit == 1), "C1: cuts ascend"
        assert cut % self.unit == 0, "C1: a cut lies on a millisecond"
        self.in_flight = cut
        for shard in shards:
            del self.dirty_since[shard]
        self.bytes = 0
        self.commits_max = 0

    def ended(self) -> None:
        """The cut was flushed and tidied, as far as it could."""
        assert self.in_flight is not None, "C5: only a cut in flight ends"
        self.last_cut = self.in_flight
        self.in_flight = None
