"""Who asks for the values that a commit has brought or taken away: `WHERE column = constant`.

    commit ─ values of these columns ─▶ columns ─▶ value ─▶ subscriptions

INVARIANTS
  A1  a subscription is named with each commit that brought or took a row with one of its values. It
      is named, too, with a commit of which these values are not known: rows in files, very many
      rows, rows that were deleted by another column.
  A2  a commit costs as much as it has rows, times the sets of columns that are asked for, whatever
      the number of subscriptions.
"""

from collections.abc import Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet

from coordinator.core.change_streams.steps import SubscriptionId, SubscriptionRequest
from coordinator.core.recent_writes import CommittedWrites
from storage.known_rows import KnownRows, Points
from storage.types import ShardId

_Value = tuple[Hashable, ...]


class ValueDispatch:
    """See the module."""

    def __init__(self) -> None:
        self._shards: dict[ShardId, dict[tuple[int, ...], _ByValue]] = {}

    def add(self, id_: SubscriptionId, wanted: SubscriptionRequest) -> None:
        """It asks for these values from here on."""
        for shard, points in _asked(wanted):
            columns = self._shards.setdefault(shard, {})
            columns.setdefault(points.ordinals, _ByValue()).add(id_, points)

    def remove(self, id_: SubscriptionId, wanted: SubscriptionRequest) -> None:
        """It is over."""
        for shard, points in _asked(wanted):
            columns = self._shards[shard]
            if columns[points.ordinals].remove(id_, points):
                del columns[points.ordinals]
            if not columns:
                del self._shards[shard]

    def concerned(self, shard: ShardId, writes: Iterable[CommittedWrites]) -> set[SubscriptionId]:
        """The subscriptions that a commit may matter to (A1)."""
        found: set[SubscriptionId] = set()
        columns = self._shards.get(shard)
        if columns is not None:
            for entry in writes:
                for ordinals, asked in columns.items():
                    found |= asked.everybody if entry.coarse else asked.having(ordinals, entry.rows)
        return found


class _ByValue:
    """The subscriptions that ask for values of some columns."""

    def __init__(self) -> None:
        self.everybody: set[SubscriptionId] = set()
        self._values: dict[_Value, set[SubscriptionId]] = {}

    def add(self, id_: SubscriptionId, points: Points) -> None:
        self.everybody.add(id_)
        for value in points.keys:
            self._values.setdefault(value, set()).add(id_)

    def remove(self, id_: SubscriptionId, points: Points) -> bool:
        """Whether nobody is left. A table may be there twice: nothing happens the second time."""
        self.everybody.discard(id_)
        for value in points.keys:
            asking = self._values.get(value, set())
            asking.discard(id_)
            if not asking:
                self._values.pop(value, None)
        return not self.everybody

    def having(
        self, ordinals: tuple[int, ...], parts: Sequence[KnownRows]
    ) -> AbstractSet[SubscriptionId]:
        """Those who ask for a value of these rows."""
        found: set[SubscriptionId] = set()
        for rows in parts:
            if not all(at in rows.columns for at in ordinals):
                return self.everybody
            for value in zip(*(rows.values(at) for at in ordinals), strict=True):
                found |= self._values.get(value, _NOBODY)
        return found


_NOBODY: frozenset[SubscriptionId] = frozenset()


def _asked(wanted: SubscriptionRequest) -> Iterable[tuple[ShardId, Points]]:
    return zip(wanted.shards, wanted.asked, strict=True) if wanted.asked else ()
