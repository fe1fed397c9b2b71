"""Read holds: keep every shard readable at a timestamp while someone may still read there.

    since ───────────┬──────────────── upper
                     └ oldest hold: pruning may come this far and no further

INVARIANTS
  H1  since never passes the oldest hold.
  H2  a hold is taken in the same step that chooses its timestamp, so the choice stays readable.
  H3  since only advances; dropping a hold never moves it by itself, `advance` does.

Not here: choosing timestamps (`timestamps.py`); what pruning means (`storage/shard.py`).
"""

from coordinator.core.messages import TransactionId
from storage.types import Timestamp


class ReadHolds:
    """All holds, by the transaction that owns them."""

    def __init__(self, *, since: Timestamp, history_us: int) -> None:
        self._since = since
        self._history_us = history_us
        self._holds: dict[TransactionId, list[Timestamp]] = {}

    @property
    def since(self) -> Timestamp:
        """The least timestamp at which everything is readable."""
        return self._since

    def acquire(self, owner: TransactionId, ts: Timestamp) -> None:
        """Hold `ts` until the owner releases (H2)."""
        assert ts >= self._since, "H2: a hold below since holds nothing"
        self._holds.setdefault(owner, []).append(ts)

    def release(self, owner: TransactionId) -> None:
        """Drop all holds of a transaction; it may have none."""
        self._holds.pop(owner, None)

    def advance(self, frontier: Timestamp) -> Timestamp:
        """Move since to `frontier - history` as far as holds allow (H1, H3); returns it."""
        least = min((min(held) for held in self._holds.values()), default=frontier)
        self._since = max(self._since, Timestamp(min(frontier - self._history_us, least)))
        return self._since
