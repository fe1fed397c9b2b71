"""Until when the stored rows of a view that is behind were exact, for who brings it up to date.

    attach ─▶ exact ─▶ LeaveView at c ─▶ behind: the rows are still those of the query at c - 1

INVARIANTS
  B1  a LeftView is only told if the stored rows are those of `exact_at`, and the query means the
      same as then: nobody has written rows of the view since, and no definition has changed.
"""

from dataclasses import dataclass

from coordinator.core.messages.catalog_changes import AttachView, LeaveView
from coordinator.core.state import CoreState
from coordinator.core.views.exactness import changed_definitions
from storage.types import FIRST_TIMESTAMP, ShardId, Timestamp


@dataclass(frozen=True, slots=True)
class LeftView:
    """The last timestamp at which a view was exact."""

    exact_at: Timestamp


def left_view(core: CoreState, oid: int) -> LeftView | None:
    """See B1; None: its rows have to be computed anew. Changes nothing."""
    table = core.catalog.current.by_oid(oid)
    if table is None or oid in core.catalog.current.exact_views:
        return None
    left_at = _left_at(core, oid)
    if left_at is None:
        return None
    exact_at = Timestamp(left_at - 1)
    exact = core.catalog.at(exact_at).exact_views.get(oid)
    state = core.shards.get(ShardId(table.shard))
    if exact is None or state is None or state.last_write > exact_at:
        return None
    since = [change for _, some in core.catalog.changes_after(exact_at) for change in some]
    changed, any_type = changed_definitions(since)
    if any_type or oid in changed or not exact.definitions.isdisjoint(changed):
        return None
    return LeftView(exact_at)


def _left_at(core: CoreState, oid: int) -> Timestamp | None:
    """When the view was left behind, unless it was attached in the same commit."""
    for ts, changes in reversed([*core.catalog.changes_after(FIRST_TIMESTAMP)]):
        mine = [c for c in changes if isinstance(c, AttachView | LeaveView) and c.oid == oid]
        if mine:
            return ts if all(isinstance(change, LeaveView) for change in mine) else None
    return None
