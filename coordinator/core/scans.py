"""Scans of a transaction: pinned views of shards at a timestamp that it holds.

Functions over the core's state; the invariants (R3, H2) are those of `core/core.py` and
`read_holds.py`.
"""

from coordinator.core.effects import Effect, Reply
from coordinator.core.fences import fenced_table_refusal
from coordinator.core.locking.requests import locked_by_others
from coordinator.core.messages.identities import Isolation
from coordinator.core.messages.replies import Refused, RefusedReason, Views
from coordinator.core.messages.requests import AdoptSnapshot, PinSnapshot, Scan
from coordinator.core.refresh import advance_look_ups
from coordinator.core.sources.loading import is_loaded, not_loaded, not_made
from coordinator.core.state import CoreState, refuse
from coordinator.core.transactions import Transaction
from coordinator.core.validation import RecentHistory, WritesAhead, lost_write_refusal
from sql.catalog.catalog import Table
from storage.batch import Deletes, ShardView
from storage.shard import ShardState
from storage.types import ShardId, Timestamp


def share_snapshot(core: CoreState, message: AdoptSnapshot | PinSnapshot) -> list[Effect]:
    """Somebody else knows the transaction's timestamp, or has chosen it: it moves no more."""
    if isinstance(message, AdoptSnapshot):
        return _adopt_snapshot(core, message)
    core.transactions[message.txn].pinned = True
    return []


def _adopt_snapshot(core: CoreState, message: AdoptSnapshot) -> list[Effect]:
    txn = core.transactions[message.txn]
    exporter = core.transactions.get(message.exporter)
    assert txn.snapshot is None, "X1: a snapshot is adopted before any is taken"
    if exporter is None or message.ts not in exporter.timestamps:
        return [refuse(message.request, "22023", "the snapshot is not exported any more")]
    core.snapshots.hold(txn, message.ts)
    snapshot = txn.take_snapshot(message.ts, core.catalog.at(message.ts))
    txn.pinned = exporter.pinned = True
    return [Reply(message.request, snapshot)]


def scan(core: CoreState, message: Scan) -> list[Effect]:
    """Pin views of shards; at the own timestamp they enter the read set."""
    txn = core.transactions[message.txn]
    assert message.ts in txn.timestamps, "H2: only a held timestamp is read"
    current = txn.snapshot is not None and message.ts == txn.snapshot.ts
    views = []
    predicates = message.predicates or (None,) * len(message.tables)
    for table, predicate in zip(message.tables, predicates, strict=True):
        shard = ShardId(table.shard)
        refused = (
            fenced_table_refusal(table, core.shards)
            or _too_old(core, table, message.ts, txn)
            or not_loaded(core, table, message.ts, is_chosen=not current)
            or not_made(core, table, txn.changes)
        )
        if refused is None and current and txn.isolation is Isolation.READ_COMMITTED:
            refused = lost_write_refusal(txn, shard, _recent(core))
        if refused is not None:
            return [Reply(message.request, refused)]
        if current:
            if txn.isolation is Isolation.READ_COMMITTED:
                advance_look_ups(core, txn, shard)
            if table.oid in message.skipped:
                txn.tables[table.oid] = table
                txn.skips_locked = True
            else:
                txn.read(table, predicate, locked=table.oid in message.locked)
        state = shard_of(core, txn, table)
        own = txn.own(shard) if current else None
        hidden: Deletes = {}
        if table.oid in message.skipped:
            hidden = locked_by_others(core, txn, state, message.skipped[table.oid])
        # Who has bound the table knows its fields; asked for only if there were ever others.
        schema = core.schema_of(table) if state.definitions or txn.changes else None
        views.append(state.view(message.ts, own, schema, hidden))
    return [Reply(message.request, Views(tuple(views)))]


def newest_view(core: CoreState, table: Table) -> ShardView | None:
    """A table where a strict read that begins now is served, for who is done with it before the
    next step: it needs no hold, and enters no read set. None: a transaction hears why not.
    """
    ts = core.oracle.read_ts()
    state = core.shards.get(ShardId(table.shard))
    if state is None or state.fenced or ts < max(core.holds.since_of(state.shard), state.since):
        return None
    if table.feed is not None and not is_loaded(core, table, ts):
        return None
    return state.view(ts, schema=core.schema_of(table) if state.definitions else None)


def _recent(core: CoreState) -> RecentHistory:
    """What is committed; a group on its way is seen by nobody yet."""
    return RecentHistory(core.shards, core.groups.writes, core.groups.counts, WritesAhead())


def _too_old(core: CoreState, table: Table, ts: Timestamp, txn: Transaction) -> Refused | None:
    """72000 for a table whose history is shorter than the timeline's."""
    since = core.holds.since_of(ShardId(table.shard))
    state = core.shards.get(ShardId(table.shard))
    if state is not None:
        # Its log may begin later, if history was shorter in a life before.
        since = max(since, state.since)
    # A table that was dropped long ago may be forgotten already (M9 of `core/maintenance.py`).
    known = state is not None or ShardId(table.shard) in txn.created()
    if ts >= since and known:
        return None
    detail = f'The oldest readable timestamp of table "{table.name}" is {since}.'
    return Refused(RefusedReason.OTHER, "72000", "timestamp is too old", detail)


def shard_of(core: CoreState, txn: Transaction, table: Table) -> ShardState:
    """The shard of a table; one that only a transaction knows so far is empty."""
    shard = ShardId(table.shard)
    state = core.shards.get(shard)
    if state is None:
        assert shard in txn.created(), f"R3: {shard} is committed, so its rows are known"
        created = core.oracle.read_ts()
        state = ShardState(shard, core.schema_of(table), created, ticks_per_ms=core.unit)
    return state
