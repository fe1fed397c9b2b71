"""How far a subscription to views with `refresh = 'on commit'` may be told.

    ── exact: rows of the view ──┐ behind: its rows stand still ┌ attach: one step ── exact ──▶
                     the limit ──┘                              └── the limit is the frontier again

A subscriber is told stored rows. They are those of the query only where the view is exact (V1 of
`coordinator/core/views`), so each limit is a timestamp at which all of its views are. All that is
committed in a gap is told with its end: catch-up may have written rows of the view in between.
"""

from collections.abc import Sequence, Set

from coordinator.core.catalog import VersionedCatalog
from coordinator.core.change_streams.steps import StreamEnd, SubscriptionRequest
from coordinator.core.messages.catalog_changes import (
    AttachView,
    CatalogChange,
    LeaveView,
    PutTable,
    RemoveTable,
)
from coordinator.core.messages.replies import Refused, RefusedReason
from sql.catalog.view_reads import BEHIND_HINT
from storage.types import Timestamp


def last_exact(
    catalogs: VersionedCatalog, views: Set[int], after: Timestamp, upto: Timestamp
) -> Timestamp:
    """The last timestamp in [after, upto] at which all these views are exact; they are at `after`.

    `views`: oids. Makes no version of the catalog but those that change exactness of one of them.
    """
    if catalogs.at(upto).exact_views.keys() >= views:
        return upto
    for ts, changes in reversed([*catalogs.changes_after(after)]):
        if ts <= upto and _concerns(changes, views):
            before = Timestamp(ts - 1)
            if catalogs.at(before).exact_views.keys() >= views:
                return before
    return after


def gaps(
    catalogs: VersionedCatalog, views: Set[int], after: Timestamp, upto: Timestamp
) -> tuple[tuple[Timestamp, Timestamp], ...]:
    """From when on one of these views was behind, and when all were exact again; all within
    (after, upto], at both of which they are.
    """
    found: list[tuple[Timestamp, Timestamp]] = []
    left: Timestamp | None = None
    for ts, changes in catalogs.changes_after(after) if views else ():
        if ts > upto:
            break
        if not _concerns(changes, views):
            continue
        is_exact = catalogs.at(ts).exact_views.keys() >= views
        if is_exact and left is not None:
            found.append((left, ts))
        left = None if is_exact else left or ts
    return tuple(found)


def _concerns(changes: Sequence[CatalogChange], views: Set[int]) -> bool:
    for change in changes:
        match change:
            case AttachView(oid=oid) | LeaveView(oid=oid):
                if oid in views:
                    return True
            case PutTable(table=table) | RemoveTable(table=table):
                if table.oid in views:
                    return True
            case _:
                pass
    return False


def behind_at(catalogs: VersionedCatalog, wanted: SubscriptionRequest) -> Refused | None:
    """Refuse to begin at a timestamp at which stored rows are not those of the query."""
    exact = catalogs.at(wanted.as_of).exact_views
    for table in wanted.exact_tables:
        if table.oid not in exact:
            message = f'materialized view "{table.name}" is behind its inputs'
            return Refused(RefusedReason.OTHER, "55000", message, hint=BEHIND_HINT)
    return None


def gap_end(wanted: SubscriptionRequest, exact_at: Timestamp) -> StreamEnd:
    """UP TO lies where a view was behind: nobody knows its rows there."""
    names = " or ".join(f'"{table.name}"' for table in wanted.exact_tables)
    message = f"UP TO lies where materialized view {names} was behind its inputs"
    return StreamEnd("55000", message, f"All changes up to {exact_at} were told.")
