"""Read holds and history: how far back every shard stays readable.

    since ───────────┬──────────────── upper
                     └ oldest hold: pruning may come this far and no further

A timeline keeps `history` behind its frontier; a table may keep more or less. Holds belong to open
transactions and to subscriptions, which move theirs along, or have a name and live in the catalog.

INVARIANTS
  H1  since never passes the oldest hold, of any shard.
  H2  a hold is taken in the same step that chooses its timestamp, so the choice stays readable.
  H3  since only advances, also if a table's history is made longer.
  H5  since is never below what the catalog knows, though a server before this one has kept less.
  H4  since never passes the present: it follows the clock, and a clock that was ahead for a while
      must not leave a timeline that nobody can read.

Not here: choosing timestamps (`timestamps.py`); what pruning means (`storage/shard.py`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from coordinator.core.change_streams.steps import SubscriptionId
from coordinator.core.messages.identities import TransactionId
from sql.catalog.catalog import Catalog, Table
from storage.types import ShardId, Timestamp

NIL: Final = Timestamp(0)


@dataclass(frozen=True, slots=True)
class Hold:
    """A hold and who has it: a transaction, or the name of a hold in the catalog."""

    owner: TransactionId | str
    ts: Timestamp


class ReadHolds:
    """All holds of a timeline, and the since of the timeline and of its shards.

    `frontier` is the present of the timeline: to it everything is committed and readable.
    `beginning`: from when on the catalog is known (H5).
    """

    def __init__(
        self,
        catalog: Catalog,
        *,
        frontier: Timestamp,
        history_us: int,
        timeline: str,
        beginning: Timestamp = NIL,
    ) -> None:
        self._history_us = history_us
        self._timeline = timeline
        self._since = beginning
        self._default_since = beginning
        self._holds: dict[TransactionId, list[Timestamp]] = {}
        self._followers: dict[SubscriptionId, Timestamp] = {}
        self._named: dict[str, Timestamp] = {}
        # Shards whose since is not the default: by their table's history, or because it was
        # different a while ago.
        self._histories: Mapping[ShardId, int] = {}
        self._sinces: dict[ShardId, Timestamp] = {}
        self.defined(catalog)
        self.advance(frontier)

    @property
    def since(self) -> Timestamp:
        """The least timestamp at which some shard is readable."""
        return self._since

    def since_of(self, shard: ShardId) -> Timestamp:
        """The least timestamp at which a shard is readable; at or after the timeline's."""
        return self._sinces.get(shard, self._default_since)

    def history_of(self, shard: ShardId) -> int:
        """How far back a shard stays readable without holds."""
        return self._histories.get(shard, self._history_us)

    def begin_at(self, shard: ShardId, ts: Timestamp) -> None:
        """A shard was found readable from `ts` on only, whatever its table's history says: it was
        shorter when its log was cleaned (H3).
        """
        self._sinces[shard] = max(self.since_of(shard), ts)

    def holds(self) -> Iterable[Hold]:
        """All holds, for observation."""
        for name, ts in self._named.items():
            yield Hold(name, ts)
        for owner, held in self._holds.items():
            for ts in held:
                yield Hold(owner, ts)

    def acquire(self, owner: TransactionId, ts: Timestamp) -> None:
        """Hold `ts` until the owner releases (H2)."""
        assert ts >= self._since, "H2: a hold below since holds nothing"
        self._holds.setdefault(owner, []).append(ts)

    def release(self, owner: TransactionId) -> None:
        """Drop all holds of a transaction; it may have none."""
        self._holds.pop(owner, None)

    def follow(self, owner: SubscriptionId, ts: Timestamp) -> None:
        """Hold `ts` for a subscription in place of what it held before."""
        assert ts >= self._since, "H2: a hold below since holds nothing"
        assert ts >= self._followers.get(owner, ts), "H1: since may have passed what it held"
        self._followers[owner] = ts

    def unfollow(self, owner: SubscriptionId) -> None:
        """Drop the hold of a subscription."""
        del self._followers[owner]

    def defined(self, catalog: Catalog) -> None:
        """Take histories and named holds from a new version of the catalog."""
        self._named = {
            hold.name: Timestamp(hold.ts)
            for hold in catalog.read_holds.values()
            if hold.timeline == self._timeline
        }
        self._histories = _histories(catalog.named_tables.with_history.values(), self._timeline)
        for shard in self._histories:
            self._sinces.setdefault(shard, self._default_since)

    def advance(self, frontier: Timestamp, *, present: Timestamp | None = None) -> Timestamp:
        """Move every since as far as holds and histories allow (H1, H3); the timeline's.

        `present`: what reads of now read at (H4), if that is not `frontier`.
        """
        limit = self._least_hold(frontier if present is None else min(frontier, present))
        default = Timestamp(min(frontier - self._history_us, limit))
        self._default_since = max(self._default_since, default)
        for shard, since in list(self._sinces.items()):
            history = self.history_of(shard)
            moved = max(since, Timestamp(min(frontier - history, limit)))
            if shard in self._histories or moved > self._default_since:
                self._sinces[shard] = moved
            else:
                del self._sinces[shard]
        self._since = min([self._default_since, *self._sinces.values()])
        return self._since

    def _least_hold(self, frontier: Timestamp) -> Timestamp:
        held = [min(held) for held in self._holds.values()]
        return min([frontier, *held, *self._named.values(), *self._followers.values()])


def _histories(tables: Iterable[Table], timeline: str) -> Mapping[ShardId, int]:
    return {
        ShardId(table.shard): table.history_us
        for table in tables
        if table.timeline == timeline and table.history_us is not None
    }
