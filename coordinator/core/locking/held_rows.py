"""Which rows of a shard are locked, by identity: what a commit changes is known by identity alone.

    RowTag ─▶ identity: how the row is called now ─▶ a cut or compaction calls it otherwise
    deletes of a commit ─▶ is one of these rows locked? ─▶ the tag

INVARIANTS
  H1  a row that others can see is in here as long as somebody holds its tag, or waits for it. (Of a
      single statement that waits for what was in its way only the tag is known.)
  H2  rows have the names that they have now: cuts and compactions rename them (V2, V5 of
      `storage/shard.py`), in the step in which they land. In a table without a primary key the name
      is the tag, too.
"""

from collections.abc import Iterable, Iterator, Sequence

from pyroaring import BitMap64

from coordinator.core.locking.modes import RowTag
from storage.batch import Deletes, RowIdentity
from storage.shard import ShardState
from storage.types import ShardId, Source


class HeldRows:
    """See the module. One for the rows of a timeline."""

    def __init__(self) -> None:
        self._shards: dict[ShardId, dict[Source, dict[int, RowTag]]] = {}
        self._places: dict[RowTag, tuple[ShardId, RowIdentity]] = {}

    def add(self, shard: ShardId, identity: RowIdentity, tag: RowTag) -> None:
        """A row is locked; it is called so now."""
        self.forget(tag)
        self._places[tag] = shard, identity
        known = self._shards.setdefault(shard, {})
        known.setdefault(identity[0], {})[identity[1]] = tag

    def __contains__(self, shard: ShardId) -> bool:
        return shard in self._shards

    def rows_of(self, shard: ShardId) -> Iterator[tuple[RowIdentity, RowTag]]:
        """The locked rows of a shard."""
        for source, rows in self._shards.get(shard, {}).items():
            for index, tag in rows.items():
                yield (source, index), tag

    def tag_at(self, shard: ShardId, identity: RowIdentity) -> RowTag | None:
        """The tag of a row, which is called so now, if it is locked."""
        return self._shards.get(shard, {}).get(identity[0], {}).get(identity[1])

    def place(self, tag: RowTag) -> tuple[ShardId, RowIdentity] | None:
        """The row of a tag."""
        return self._places.get(tag)

    def forget(self, tag: RowTag) -> None:
        """Nobody holds the row any more."""
        place = self._places.pop(tag, None)
        if place is None:
            return
        shard, (source, index) = place
        known = self._shards.get(shard, {})
        rows = known.get(source, {})
        if rows.get(index) != tag:
            return  # Another tag has taken its name: then a key is not equal to itself.
        del rows[index]
        if not rows:
            del known[source]
            if not known:
                del self._shards[shard]

    def rename(self, state: ShardState) -> dict[RowTag, RowTag]:
        """A cut or a compaction has landed (H2); the tags that are other ones now."""
        if state.shard not in self._shards:
            return {}
        retagged: dict[RowTag, RowTag] = {}
        for identity, tag in list(self.rows_of(state.shard)):
            if state.is_current(identity[0]):
                continue
            # What is gone with its file keeps its name: it is not found among live rows.
            now = current_name(state, identity) or identity
            after = RowTag(tag.table, now, by_identity=True) if tag.by_identity else tag
            self.forget(tag)
            self.add(state.shard, now, after)
            if after != tag:
                retagged[tag] = after
        return retagged

    def among(self, state: ShardState, deletes: Deletes) -> Iterator[RowTag]:
        """The tags of locked rows among these, which are named as any view shows them (H2)."""
        known = self._shards.get(state.shard)
        if known is None:
            return
        for source, rows in state.surviving(deletes).items():
            held = known.get(source)
            if held is not None:
                yield from [tag for index, tag in held.items() if index in rows]


def current_name(state: ShardState, identity: RowIdentity) -> RowIdentity | None:
    """How a row is called now that a view called so; None: it is gone with its file."""
    source, index = identity
    if state.is_current(source):
        return identity
    found = state.surviving({source: BitMap64([index])})
    return next(((name, at) for name, rows in found.items() for at in rows), None)


def current_names(
    state: ShardState, identities: Sequence[RowIdentity]
) -> Sequence[RowIdentity | None]:
    """The same for many."""
    old = {source for source, _ in identities if not state.is_current(source)}
    if not old:
        return identities
    return [current_name(state, row) if row[0] in old else row for row in identities]


def as_deletes(rows: Iterable[RowIdentity]) -> Deletes:
    """Rows one by one, as bitmaps by source."""
    found: dict[Source, BitMap64] = {}
    for source, index in rows:
        found.setdefault(source, BitMap64()).add(index)
    return found


def is_among(identity: RowIdentity, others: Deletes) -> bool:
    """Whether a row is among others; all are called as they are now."""
    source, index = identity
    return source in others and index in others[source]
