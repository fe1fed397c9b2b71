"""Tables whose rows are not here yet: an empty answer would be a lie, so reading waits, or fails.

    Scan ─▶ not loaded ─▶ a statement alone: AwaitLoad ─▶ loaded, or the source stands ─▶ again
                       └▶ in a block, or in the past: 55000

INVARIANTS
  N1  a table of an upstream that had rows before is read only at timestamps at which it has all of
      them, up to the position that its source has there.
"""

from collections.abc import Iterable

from coordinator.core.effects import Effect, Reply
from coordinator.core.messages.catalog_changes import CatalogChange, PutObject
from coordinator.core.messages.identities import RequestId
from coordinator.core.messages.replies import LoadAwaited, Refused, RefusedReason
from coordinator.core.messages.requests import AwaitLoad
from coordinator.core.sources.running import STANDING, RunningSource
from coordinator.core.state import CoreState
from sql.catalog.catalog import Table
from sql.catalog.objects import SourceDefinition
from sql.catalog.sources import has_snapshot, source_by_oid
from storage.types import Timestamp


def is_loaded(core: CoreState, table: Table, ts: Timestamp) -> bool:
    """Whether a table has all of its rows at `ts` (N1)."""
    feed = table.feed
    if feed is None or not feed.reference:
        return True
    since = core.sources.loaded_since(feed.source, table.oid)
    if since is not None and since <= ts:
        return True
    source = source_by_oid(core.catalog.current, feed.source)
    if source is None:
        # Who reads it knows an older catalog, or has made it himself.
        return since is None
    return not has_snapshot(source)


def not_loaded(core: CoreState, table: Table, ts: Timestamp, *, is_chosen: bool) -> Refused | None:
    """Why a table cannot be read at `ts`. `is_chosen`: it has to be this timestamp."""
    if is_loaded(core, table, ts):
        return None
    assert table.feed is not None, "only fed tables are loaded"
    oid = table.feed.source
    hint = "Begin the transaction again, when meridian.source_tables says that it is loaded."
    if core.sources.loaded_since(oid, table.oid) is not None:
        if not is_chosen:
            # It was loaded after the timestamp was taken.
            message = f'table "{table.name}" is not loaded yet'
            return Refused(RefusedReason.NOT_LOADED, "55000", message, None, hint, source=oid)
        message = f'table "{table.name}" was not loaded at that time'
        return Refused(RefusedReason.OTHER, "55000", message)
    message = f'table "{table.name}" is not loaded yet'
    source = core.sources.get(oid)
    if source is not None and source.state in STANDING:
        detail = f'Source "{source.definition.name}" is {source.state}.'
        if source.reason:
            detail = f"{detail[:-1]}: {source.reason}."
        hint = source.hint or "ALTER SOURCE .. RESUME goes on."
        return Refused(RefusedReason.OTHER, "55000", message, detail, hint)
    return Refused(RefusedReason.NOT_LOADED, "55000", message, None, hint, source=oid)


def not_made(core: CoreState, table: Table, changes: Iterable[CatalogChange]) -> Refused | None:
    """Why a table cannot be read by the transaction that has just made its source."""
    feed = table.feed
    if feed is None or not feed.reference:
        return None
    if source_by_oid(core.catalog.current, feed.source) is not None:
        return None
    for change in changes:
        source = change.object if isinstance(change, PutObject) else None
        if isinstance(source, SourceDefinition) and source.oid == feed.source:
            if not has_snapshot(source):
                return None
            message = f'table "{table.name}" is not loaded yet'
            hint = "It is loaded after the transaction that makes its source is committed."
            return Refused(RefusedReason.OTHER, "55000", message, None, hint)
    return None


def await_load(core: CoreState, message: AwaitLoad) -> list[Effect]:
    """Answer when it is worth to look again."""
    source = core.sources.get(message.source)
    if source is None or source.state in STANDING or _has_loaded(source):
        return [_answer(message.request)]
    source.awaiting.append(message.request)
    return []


def tell_awaiting(source: RunningSource) -> list[Effect]:
    """Something has changed: who waits looks again."""
    told, source.awaiting = source.awaiting, []
    return [_answer(request) for request in told]


def _has_loaded(source: RunningSource) -> bool:
    record = source.record
    return record is not None and all(table.oid in record.loaded for table in source.tables)


def _answer(request: RequestId) -> Effect:
    return Reply(request, LoadAwaited())
