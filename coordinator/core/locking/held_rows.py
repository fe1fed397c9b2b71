"""Which rows of a shard are locked, by identity: what a commit changes is known by identity alone.

    RowTag (a key) ─▶ identity of the row when it was locked ─▶ its name now, by the shard
    deletes of a commit ─▶ is one of these rows locked? ─▶ the tag

INVARIANTS
  H1  a row is in here as long as somebody holds its tag, or waits for it.
  H2  rows are compared by the names that they have now: cuts and compactions rename them (V2, V5 of
      `storage/shard.py`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pyroaring import BitMap64

from coordinator.core.locking.modes import RowTag
from storage.batch import Deletes, RowIdentity
from storage.shard import ShardState
from storage.types import ShardId, Source


@dataclass(slots=True)
class _ShardRows:
    """The locked rows of one shard, by the name that each had when it was locked."""

    rows: dict[Source, dict[int, RowTag]] = field(default_factory=dict[Source, dict[int, RowTag]])
    names: Deletes | None = None
    """The same rows as they are called now, found when somebody asks."""
    versions: object = None
    tags: dict[RowIdentity, RowTag] = field(default_factory=dict[RowIdentity, RowTag])
    """Their tags by these names, but for those in `unnamed`."""
    name_of: dict[RowTag, RowIdentity] = field(default_factory=dict[RowTag, RowIdentity])
    unnamed: dict[RowTag, RowIdentity] = field(default_factory=dict[RowTag, RowIdentity])
    named_versions: object = None

    def name_all(self, state: ShardState) -> None:
        """Find the names of now of those that have none, and after a cut of all."""
        if self.named_versions is not state.versions:
            self.tags, self.name_of, self.named_versions = {}, {}, state.versions
            self.unnamed = {
                tag: (source, index)
                for source, rows in self.rows.items()
                for index, tag in rows.items()
            }
        for tag, identity in self.unnamed.items():
            if (name := name_now(state, identity)) is not None:
                self.tags[name], self.name_of[tag] = tag, name
        self.unnamed = {}

    def unname(self, tag: RowTag) -> None:
        """It is locked no more."""
        self.unnamed.pop(tag, None)
        name = self.name_of.pop(tag, None)
        if name is not None and self.tags.get(name) == tag:
            del self.tags[name]


class HeldRows:
    """See the module. One for the rows of a timeline."""

    def __init__(self) -> None:
        self._shards: dict[ShardId, _ShardRows] = {}
        self._places: dict[RowTag, tuple[ShardId, RowIdentity]] = {}

    def add(self, shard: ShardId, identity: RowIdentity, tag: RowTag) -> None:
        """A row is locked."""
        self.forget(tag)
        self._places[tag] = shard, identity
        known = self._shards.setdefault(shard, _ShardRows())
        known.rows.setdefault(identity[0], {})[identity[1]] = tag
        known.unnamed[tag] = identity
        known.names = None

    def __contains__(self, shard: ShardId) -> bool:
        return shard in self._shards

    def rows_of(self, shard: ShardId) -> Iterator[tuple[RowIdentity, RowTag]]:
        """The locked rows of a shard, as they were called when they were locked."""
        known = self._shards.get(shard)
        for source, rows in () if known is None else known.rows.items():
            for index, tag in rows.items():
                yield (source, index), tag

    def place(self, tag: RowTag) -> tuple[ShardId, RowIdentity] | None:
        """The row of a tag, as it was called when it was locked."""
        return self._places.get(tag)

    def forget(self, tag: RowTag) -> None:
        """Nobody holds the row any more."""
        place = self._places.pop(tag, None)
        if place is None:
            return
        shard, (source, index) = place
        known = self._shards[shard]
        known.names = None
        known.unname(tag)
        rows = known.rows[source]
        del rows[index]
        if not rows:
            del known.rows[source]
            if not known.rows:
                del self._shards[shard]

    def tag_of(self, state: ShardState, identity: RowIdentity) -> RowTag | None:
        """The tag by which a row is locked, whatever name it had when it was locked (H2)."""
        known = self._shards.get(state.shard)
        if known is None:
            return None
        known.name_all(state)
        name = name_now(state, identity)
        return None if name is None else known.tags.get(name)

    def among(self, state: ShardState, deletes: Deletes) -> Iterator[RowTag]:
        """The tags of locked rows among these, which are named as any view shows them (H2)."""
        known = self._shards.get(state.shard)
        if known is None:
            return
        if known.names is None or known.versions is not state.versions:
            named = {source: BitMap64(rows) for source, rows in known.rows.items()}
            known.names, known.versions = state.surviving(named), state.versions
        wanted = state.surviving(deletes)
        if not meet(known.names, wanted):
            return
        for source, rows in known.rows.items():
            for index, tag in list(rows.items()):
                if meet(state.surviving({source: BitMap64([index])}), wanted):
                    yield tag


def name_now(state: ShardState, identity: RowIdentity) -> RowIdentity | None:
    """What a row is called now that some view has shown; None: it is gone."""
    source, index = identity
    found = state.surviving({source: BitMap64([index])})
    return next(((name, rows[0]) for name, rows in found.items() if rows), None)


def meet(some: Deletes, others: Deletes) -> bool:
    """Whether a row is in both."""
    return any(
        source in others and not rows.isdisjoint(others[source]) for source, rows in some.items()
    )


def as_deletes(rows: Iterable[RowIdentity]) -> Deletes:
    """Rows one by one, as bitmaps by source."""
    found: dict[Source, BitMap64] = {}
    for source, index in rows:
        found.setdefault(source, BitMap64()).add(index)
    return found


def is_row_among(state: ShardState, identity: RowIdentity, others: Deletes) -> bool:
    """Whether a row, named as a view showed it, is among others that are named as now."""
    source, index = identity
    return meet(state.surviving({source: BitMap64([index])}), others)
