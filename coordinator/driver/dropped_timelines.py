"""Remove the stash keys and table files that a dropped timeline leaves behind.

    DROP TIMELINE ─▶ its driver ends ─▶ files of its tables ─▶ keys of its part ─▶ nothing
                                └ a crash between: the next start goes on from the catalog's history

INVARIANTS
  Z1  a timeline that is created again under the same name has another part of the stash
      (`Timeline.part`): it starts empty, however much of the old one is still there.
  Z2  the shards of a part are known until their files are removed, so that removal can be repeated.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from coordinator.core.messages.catalog_changes import CatalogChange, PutTimeline
from sql.catalog.catalog import Timeline
from storage.delta.vacuum import remove_table
from storage.errors import Fatal, Fenced, StorageError
from storage.object_store import ObjectStore
from storage.stash import Delete, Stash
from storage.stash_part import StashPart
from storage.txns import COLLECTIONS, SHARDS_OF_FILES
from storage.types import Epoch, ShardId, Timestamp

log = logging.getLogger("meridian.timelines")

PIECE_KEYS_MAX: Final = 128
"""Larger: longer transactions in the stash, which commits wait for."""


def dropped_timelines(
    history: Sequence[tuple[Timestamp, Sequence[CatalogChange]]], present: Iterable[Timeline]
) -> list[Timeline]:
    """Timelines of the catalog's history that do not exist any more; their parts may be left."""
    made = [c.timeline for _, changes in history for c in changes if isinstance(c, PutTimeline)]
    parts = {timeline.place for timeline in present}
    return [timeline for timeline in dict.fromkeys(made) if timeline.place not in parts]


@dataclass(frozen=True, slots=True)
class DroppedTimelines:
    """See the module."""

    stash: Stash
    store: ObjectStore
    epoch: Epoch

    async def remove(self, timeline: Timeline) -> None:
        """Remove the rest of a timeline; a failure is retried at the next start. Raises Fenced."""
        try:
            await self._remove(StashPart(self.stash, timeline.place))
        except (Fenced, Fatal):
            raise
        except StorageError as error:
            log.warning("timeline %s not removed yet: %s", timeline.name, error)

    async def _remove(self, part: StashPart) -> None:
        for collection in SHARDS_OF_FILES:
            for shard in await part.scan(collection):
                await remove_table(self.store, ShardId(shard))
        for collection in COLLECTIONS:
            keys = [Delete(collection, key) for key in await part.scan(collection)]
            for first in range(0, len(keys), PIECE_KEYS_MAX):
                await part.transact(self.epoch, keys[first : first + PIECE_KEYS_MAX])
