"""Whether a view that is behind may be attached by a unit of its lane (N9 of `lane_gathering.py`).

    rows computed at t, written at w ─▶ the unit adds (t, now] and its own changes ─▶ exact

Functions over what a gather sees. They are asked when the unit is formed, and again when its deltas
have come: DDL, a REFRESH or an ALTER may have gone before.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from coordinator.core.group_members import PendingAttach
from coordinator.core.messages.catalog_changes import CatalogChange
from coordinator.core.messages.replies import Refused, RefusedReason
from coordinator.core.views.deltas import MaintainedView, ViewPrograms
from coordinator.core.views.exactness import has_same_meaning
from sql.catalog.catalog import Catalog, Table
from storage.changes import changes_since
from storage.shard import ShardState
from storage.types import ShardId, Timestamp

ChangesAfter = Callable[[Timestamp], Iterable[CatalogChange]]
"""All changes of the catalog that were committed after a timestamp."""


@dataclass(frozen=True, slots=True)
class AttachableViews:
    """What it takes to attach a view: how it is followed, and that nothing else has changed."""

    programs: ViewPrograms
    shards: Mapping[ShardId, ShardState]
    changes_after: ChangesAfter

    def find(self, pending: PendingAttach, catalog: Catalog) -> MaintainedView | Refused:
        """The view as it would be exact, or why it cannot be."""
        exact = pending.rows.exact
        table = catalog.by_oid(pending.oid)
        program = self.programs.get((pending.oid, exact.computed_at))
        if program is None:
            return attach_refusal("nobody knows how commits maintain the view")
        if table is None or table.query is None or not table.query.on_commit:
            return attach_refusal("the view does not follow its inputs any more")
        if pending.oid in catalog.exact_views:
            return attach_refusal("the view is exact already")
        since = self.changes_after(Timestamp(exact.computed_at))
        if not has_same_meaning(pending.oid, exact, since):
            return attach_refusal("a definition has changed since the view was computed")
        state = self.shards.get(ShardId(table.shard))
        if state is None or state.fenced or state.last_write > pending.rows.written_at:
            return attach_refusal("the rows of the view have changed since they were computed")
        if not all(
            self._is_known_since(catalog.by_oid(oid), exact.computed_at) for oid in exact.inputs
        ):
            return attach_refusal("the history of an input does not go back so far")
        return MaintainedView(table, exact, program)

    def _is_known_since(self, table: Table | None, at: int) -> bool:
        """Whether an input's rows of that time are there, and all changes since."""
        state = None if table is None else self.shards.get(ShardId(table.shard))
        if state is None or state.fenced:
            return False
        return max(state.since, changes_since(state)) <= at


def attach_refusal(why: str) -> Refused:
    """The view stays behind."""
    return Refused(RefusedReason.CONFLICT, "40001", why)
