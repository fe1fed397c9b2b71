"""Of which timestamp the stored rows of a view that is behind are, for who brings it up to date.

    attach ─▶ exact ─▶ LeaveView at c ─▶ behind: the rows are still those of the query at c - 1
    catch-up writes what it has computed at t, and does not attach it ─▶ behind: those at t

INVARIANTS
  B1  a LeftView is only told if the stored rows are those of `exact_at`, and the query means the
      same as then: nobody has written rows of the view since, and no definition has changed.
"""

from dataclasses import dataclass

from coordinator.core.messages.catalog_changes import AttachView, LeaveView
from coordinator.core.state import CoreState
from coordinator.core.views.deltas import ComputedRows
from coordinator.core.views.exactness import has_same_meaning
from sql.catalog.objects import ExactView
from storage.types import FIRST_TIMESTAMP, ShardId, Timestamp


@dataclass(frozen=True, slots=True)
class LeftView:
    """The timestamp of the rows: the last at which the view was exact, or it was computed."""

    exact_at: Timestamp


def left_view(core: CoreState, oid: int, computed: ComputedRows | None = None) -> LeftView | None:
    """See B1; None: its rows have to be computed anew. Changes nothing. `computed`: what catch-up
    has written last.
    """
    table = core.catalog.current.by_oid(oid)
    state = None if table is None else core.shards.get(ShardId(table.shard))
    if state is None or oid in core.catalog.current.exact_views:
        return None
    for rows in (computed, _left_rows(core, oid)):
        if rows is None or state.last_write > rows.written_at:
            continue
        # Who wrote them has depended on the definitions until its commit, and may have been CREATE.
        if has_same_meaning(oid, rows.exact, core.catalog.made_after(rows.written_at)):
            return LeftView(Timestamp(rows.exact.computed_at))
    return None


def view_left_at(core: CoreState, oid: int) -> Timestamp | None:
    """Since when a view is behind; None: it is exact, or was left before all that is known."""
    return None if oid in core.catalog.current.exact_views else _left_at(core, oid)


def _left_rows(core: CoreState, oid: int) -> ComputedRows | None:
    """The rows at the end of the last exact interval."""
    left_at = _left_at(core, oid)
    if left_at is None:
        return None
    exact_at = Timestamp(left_at - 1)
    exact = core.catalog.at(exact_at).exact_views.get(oid)
    if exact is None:
        return None
    return ComputedRows(ExactView(exact.inputs, exact.definitions, exact_at), exact_at)


def _left_at(core: CoreState, oid: int) -> Timestamp | None:
    """When the view was left behind, unless it was attached in the same commit."""
    for ts, changes in reversed([*core.catalog.changes_after(FIRST_TIMESTAMP)]):
        mine = [c for c in changes if isinstance(c, AttachView | LeaveView) and c.oid == oid]
        if mine:
            return ts if all(isinstance(change, LeaveView) for change in mine) else None
    return None
