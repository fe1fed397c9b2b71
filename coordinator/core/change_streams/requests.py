"""What subscribers ask of the core, what DDL and time do to them, and whom a step wakes.

Functions over the core's state; the invariants are those of `subscriptions.py`.
"""

from collections.abc import Iterable

from coordinator.core.change_streams.definitions import (
    definition_end,
    first_definition_end,
    may_concern,
)
from coordinator.core.change_streams.followed_views import behind_at
from coordinator.core.change_streams.steps import SubscriptionRequest
from coordinator.core.effects import Effect, Reply, StopSubscribers, WakeSubscribers
from coordinator.core.fences import fenced_table_refusal
from coordinator.core.messages.catalog_changes import AttachView, CatalogChange
from coordinator.core.messages.replies import Refused, RefusedReason, Subscribed
from coordinator.core.messages.requests import (
    BeginSubscription,
    MoveSubscription,
    TakeStep,
    Unsubscribe,
)
from coordinator.core.sources.loading import not_loaded
from coordinator.core.state import CoreState, refuse
from coordinator.core.transactions import Transaction
from sql.catalog.catalog import Table
from storage.changes import changes_since
from storage.types import ShardId, Timestamp


def change_subscription(
    core: CoreState,
    message: BeginSubscription | TakeStep | MoveSubscription | Unsubscribe,
    now: Timestamp,
) -> list[Effect]:
    """Answer a subscriber."""
    match message:
        case BeginSubscription():
            return [_subscribe(core, message, now)]
        case TakeStep():
            return [_take(core, message, now)]
        case MoveSubscription():
            core.subscriptions.move(message.subscription, message.ts)
        case Unsubscribe():
            core.subscriptions.forget(message.subscription)
    return []


def _subscribe(core: CoreState, message: BeginSubscription, now: Timestamp) -> Effect:
    txn, wanted = core.transactions[message.txn], message.wanted
    assert wanted.as_of in txn.timestamps, "S2: the transaction holds the timestamp"
    refused = _own_definition(txn, wanted) or _refusal(core, wanted)
    if refused is not None:
        return Reply(message.request, refused)
    known = core.subscriptions.accept(txn.owner, wanted, now)
    found = first_definition_end(wanted, core.catalog, wanted.as_of)
    if found is not None:
        core.subscriptions.end_at(known, *found)
    return Reply(message.request, Subscribed(known.id))


def _refusal(core: CoreState, wanted: SubscriptionRequest) -> Refused | None:
    for table in wanted.tables:
        refused = fenced_table_refusal(table, core.shards) or _unknown(core, table)
        refused = refused or _too_old(core, table, wanted.as_of)
        refused = refused or not_loaded(core, table, wanted.as_of, is_chosen=True)
        if refused is not None:
            return refused
    return behind_at(core.catalog, wanted)


def _own_definition(txn: Transaction, wanted: SubscriptionRequest) -> Refused | None:
    """Rows that are told are of committed definitions: no others are stored so."""
    if not txn.changes or not may_concern(txn.changes, wanted):
        return None
    if definition_end(wanted, txn.base, wanted.as_of) is None:
        return None
    message = "SUBSCRIBE to what the same transaction has defined is not supported"
    return Refused(RefusedReason.OTHER, "0A000", message)


def _unknown(core: CoreState, table: Table) -> Refused | None:
    """A table that only the transaction itself knows has no changes that anybody may see."""
    if ShardId(table.shard) in core.shards:
        return None
    message = "SUBSCRIBE to a table of the same transaction is not supported yet"
    return Refused(RefusedReason.OTHER, "0A000", message)


def _too_old(core: CoreState, table: Table, ts: Timestamp) -> Refused | None:
    """72000 if the changes since `ts` are not known any more."""
    state = core.shards[ShardId(table.shard)]
    since = max(core.holds.since_of(state.shard), state.since, changes_since(state))
    if ts >= since:
        return None
    detail = f'The oldest readable timestamp of table "{table.name}" is {since}.'
    return Refused(RefusedReason.OTHER, "72000", "timestamp is too old", detail)


def _take(core: CoreState, message: TakeStep, now: Timestamp) -> Effect:
    known = core.subscriptions.find(message.subscription)
    if known is None:
        return refuse(message.request, "08006", "the subscription has ended with its connection")
    for table in known.request.tables:
        refused = fenced_table_refusal(table, core.shards)
        if refused is not None:
            return Reply(message.request, refused)
    return Reply(message.request, core.subscriptions.take(message.subscription, now))


def end_altered(core: CoreState, changes: Iterable[CatalogChange], ts: Timestamp) -> None:
    """DDL is true from `ts` on: who follows what it has changed is told nothing from there (S3). A
    view that is attached is told again, also if nothing was written to it now (S10).
    """
    changes = tuple(changes)
    attached = {change.oid for change in changes if isinstance(change, AttachView)}
    for known in core.subscriptions:
        if not known.views.isdisjoint(attached):
            core.subscriptions.attached(known)
        if may_concern(changes, known.request):
            end = definition_end(known.request, core.catalog.current, ts)
            if end is not None:
                core.subscriptions.end_at(known, ts, end)


def subscribers_tick(core: CoreState, now: Timestamp) -> list[Effect]:
    """Time passes: subscribers that ask for it hear how far it has come (S5), and who is too far
    behind is ended (S7).
    """
    if not len(core.subscriptions):
        return []
    wanted = core.subscriptions.wants_time(now)
    if wanted is not None:
        core.snapshots.close(wanted, now)
        core.subscriptions.closed(now)
    late = tuple(core.subscriptions.end_late())
    return [StopSubscribers(late)] if late else []


def wake_subscribers(core: CoreState, now: Timestamp) -> list[Effect]:
    """Those who have something to hear now (S4)."""
    if not len(core.subscriptions):
        return []
    woken = tuple(core.subscriptions.wake(now))
    return [WakeSubscribers(woken)] if woken else []
