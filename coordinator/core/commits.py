"""Commit transactions, from the request to the group's reply, and end them.

    CommitTransaction ─▶ queue ─▶ gathered, validated ─▶ CommitGroup ─▶ GroupCommitted ─▶ replies
                          │       ▲      └ refused     │             └▶ GroupPassed, GroupFailed
                  DelayGather ─▶ GatherDue      nothing durable: ConfirmGroup

Functions over the core's state; the invariants are those of `group_commit.py` and `core/core.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from coordinator.core.catalog import VersionedCatalog
from coordinator.core.change_streams.requests import end_altered
from coordinator.core.completions import GatherDue, GroupCommitted, GroupFailed, GroupPassed
from coordinator.core.effects import (
    CommitGroup,
    ConfirmGroup,
    DelayGather,
    Effect,
    PersistCeiling,
    PublishCatalog,
    RemoveStaged,
    Reply,
    WakeListeners,
    WakeViewCatchUp,
)
from coordinator.core.group_commit import GatheredMembers, Group
from coordinator.core.group_members import (
    GroupMember,
    PendingAttach,
    PendingChange,
    PendingCommit,
    PendingInsert,
    changed_tables,
)
from coordinator.core.locking.moved_rows import follow_replaced_rows
from coordinator.core.locking.requests import release_session_locks, serve_waiters
from coordinator.core.messages.catalog_changes import PutTable, RemoveTable
from coordinator.core.messages.identities import ConnectionId, RequestId, TransactionId
from coordinator.core.messages.replies import Blocked, Committed, Leased, Refused, RefusedReason
from coordinator.core.messages.requests import (
    CatalogPublished,
    ChangeByKey,
    CommitTransaction,
    Disconnected,
    InsertRows,
    TakeLease,
)
from coordinator.core.short_writes.by_key import NOTHING_CHANGED
from coordinator.core.sources.batches import PendingBatch
from coordinator.core.sources.steps import batch_committed, batch_refused, sources_altered
from coordinator.core.state import CoreState, refuse
from coordinator.core.transaction_buffers import orphaned_staged_files
from coordinator.core.transactions import Transaction
from coordinator.core.validation import concurrent_update_refusal
from coordinator.core.views.behind_marks import mark_views
from coordinator.core.views.deltas import AttachComputed
from coordinator.core.views.lane_steps import maintain_views, release_group
from sql.catalog.catalog import SYSTEM_TIMELINE, Table
from storage.batch import WriteBatch
from storage.shard import ShardState
from storage.types import ShardId, Timestamp, Token


def commit(core: CoreState, message: CommitTransaction, now: Timestamp) -> list[Effect]:
    """Queue a transaction for a group; one that has written nothing, and neither listens nor
    notifies, is answered at once.
    """
    txn = core.transactions[message.txn]
    if txn.misfit is not None:
        words = f"a definition does not fit the transaction's own catalog: {txn.misfit}"
        return [refuse(message.request, "XX000", words), *end_transaction(core, txn, now)]
    if txn.doomed:
        lost = Reply(message.request, concurrent_update_refusal())
        return [lost, *end_transaction(core, txn, now)]
    if message.notifying is not None:
        if not core.notifications.reserve(message.notifying.nbytes):
            return [_queue_full(message.request), *end_transaction(core, txn, now)]
        txn.notifying = message.notifying
    elif not txn.is_write():
        ts = txn.snapshot.ts if txn.snapshot is not None else core.oracle.read_ts()
        return [Reply(message.request, Committed(ts)), *end_transaction(core, txn, now)]
    if len(core.groups) >= core.settings.queue_max:
        return [_too_many(message.request), *end_transaction(core, txn, now)]
    txn.committing = True
    core.leases.settle(txn.id, [*txn.written_tables_of_all(), *changed_tables(txn.changes)])
    txn.settle_reads()
    core.groups.enqueue(
        PendingCommit(message.request, txn, core.leases.ticket(), single=message.single)
    )
    return start_group(core, now) + grant_leases(core)


def write_alone(core: CoreState, message: InsertRows | ChangeByKey, now: Timestamp) -> list[Effect]:
    """Queue a write that is its whole transaction for a group."""
    if len(core.groups) >= core.settings.queue_max:
        return [_too_many(message.request)]
    request, owner, ticket = message.request, message.owner, core.leases.ticket()
    pending: PendingInsert | PendingChange
    if isinstance(message, InsertRows):
        pending = PendingInsert(request, owner, message.insertion, ticket)
    else:
        pending = PendingChange(request, owner, message.change, ticket)
    core.groups.enqueue(pending)
    if core.groups.holding is None and core.groups.lanes.is_maintaining(pending.tables()):
        # It would wait for its lane, as all do that came before it since: as if it came later.
        return persist_ceiling(core, now)
    return start_group(core, now)


def attach_computed(core: CoreState, message: AttachComputed, now: Timestamp) -> list[Effect]:
    """Queue a view that is behind for a unit of its lane."""
    if len(core.groups) >= core.settings.queue_max:
        return [_too_many(message.request)]
    ticket = core.leases.ticket()
    core.groups.enqueue(PendingAttach(message.request, message.oid, message.rows, ticket))
    return start_group(core, now)


def _too_many(request: RequestId) -> Effect:
    return refuse(request, "53000", "too many transactions wait to commit")


def _queue_full(request: RequestId) -> Effect:
    """As PostgreSQL's (PreCommit_Notify)."""
    return refuse(request, "54000", "too many notifications in the NOTIFY queue")


def start_group(core: CoreState, now: Timestamp) -> list[Effect]:
    """Launch the next group if none is in flight and a timestamp is to be had (G1). If others are
    expected, `gather_due` does so a moment later.
    """
    if core.groups.in_flight is not None or not len(core.groups):
        return []
    delay = core.groups.delay
    if delay.is_waiting:
        return []
    if delay.expects_siblings:
        delay.is_waiting = True
        return [DelayGather(), *persist_ceiling(core, now)]
    return _gather(core, now)


def gather_due(core: CoreState, message: GatherDue, now: Timestamp) -> list[Effect]:
    """Nobody else is at the door: gather, unless most of the last group are about to come back."""
    groups = core.groups
    if groups.delay.are_few(groups.sessions, now):
        if not message.is_late:
            return [DelayGather(until_heard=True)]
        groups.delay.nobody_came()
    groups.delay.is_waiting = False
    return _gather(core, now) if len(groups) else []


def _gather(core: CoreState, now: Timestamp) -> list[Effect]:
    gathered = core.groups.gather(
        core.catalog.current,
        core.shards,
        core.leases,
        core.locks,
        core.schema_of,
        core.catalog.made_after,
    )
    effects: list[Effect] = []
    if gathered.members:
        core.groups.delay.gathered(len({m.owner for m in gathered.members if m.owner >= 0}))
        effects += _launch(core, gathered, now)
    if gathered.formed:
        effects += maintain_views(core, gathered.formed, now)
    for pending, refused in gathered.refused:
        effects += _refused(core, pending, refused, now)
    for pending, blocked in gathered.blocked:
        effects += _blocked(core, pending, blocked)
    if core.groups.give_up_passed() or (core.groups.lanes.over and core.groups.holding is None):
        effects += release_group(core)
    if gathered.refused or gathered.blocked:
        effects += _release_left(core) + _go_on(core, now)
    return effects + persist_ceiling(core, now)


def _refused(
    core: CoreState, member: GroupMember, refused: Refused, now: Timestamp
) -> list[Effect]:
    """A member will not be written."""
    if isinstance(member, PendingBatch):
        return batch_refused(core, member, refused, now)
    return [Reply(member.request, refused), *_release_member(core, member)]


def _launch(core: CoreState, gathered: GatheredMembers, now: Timestamp) -> list[Effect]:
    """Send a group on its way; back to the queue if there is no timestamp for it."""
    durable = gathered.is_durable
    ts: Timestamp | None = core.oracle.read_ts()
    if durable:
        ts = core.oracle.write_ts(_write_clock(core, gathered.members, now))
    if ts is None:
        core.groups.put_back(gathered)
        return []
    core.commits += 1
    token = Token(f"{core.epoch}-{core.commits}")
    group = gathered.at(ts, token, _to_register(core, gathered), is_durable=durable)
    core.groups.launch(group)
    return [CommitGroup(group.commit) if durable else ConfirmGroup(token)]


def _blocked(core: CoreState, member: GroupMember, blocked: Blocked) -> list[Effect]:
    """A single statement leaves the queue, to wait for a lock and to begin again."""
    effects: list[Effect] = [Reply(member.request, blocked)]
    if isinstance(member, PendingCommit):
        _forget_notifications(core, member.txn)
        core.leases.release(member.txn.id)
        core.holds.release(member.txn.id)
        files = member.txn.reset()
        effects += [RemoveStaged(files)] if files else []
    return effects


def _to_register(core: CoreState, gathered: GatheredMembers) -> tuple[ShardId, ...]:
    """Shards that the txns shard hears of for the first time (T6 of `storage/txns.py`)."""
    created = {
        ShardId(change.table.shard)
        for change in gathered.changes
        if isinstance(change, PutTable) and change.table.timeline == core.timeline.name
    }
    # A table that the same transaction drops again never comes to be.
    created -= {ShardId(c.table.shard) for c in gathered.changes if isinstance(c, RemoveTable)}
    return tuple(sorted((created | gathered.batches.keys()) - core.registered))


def _write_clock(core: CoreState, members: Sequence[GroupMember], now: Timestamp) -> Timestamp:
    """What a write timestamp must reach: the clock, or the farthest ADVANCE of the group."""
    if not core.timeline.manual:
        return now
    wanted = (member.txn.advance_to or 0 for member in members if isinstance(member, PendingCommit))
    return Timestamp(max(wanted, default=0))


def group_ended(
    core: CoreState, message: GroupCommitted | GroupPassed | GroupFailed, now: Timestamp
) -> list[Effect]:
    """The fate of the group in flight is known."""
    match message:
        case GroupCommitted(token=token):
            core.groups.delay.landed(core.groups.sessions, now)
            effects = _group_committed(core, token, now)
        case GroupPassed():
            effects = _group_passed(core, message)
        case GroupFailed():
            effects = _group_failed(core, message, now)
    return effects + _release_left(core)


def _group_committed(core: CoreState, token: Token, now: Timestamp) -> list[Effect]:
    """The group is durable: apply it, then tell its members (G3)."""
    group = core.groups.landed(token)
    ts = group.commit.ts
    core.groups.counts.groups += 1
    core.groups.counts.committed += len(group.members)
    core.oracle.apply_write(ts)
    core.registered.update(group.commit.registers)
    core.groups.lanes.landed(group.units, group.changes, core.catalog.current)
    _create_shards(core, group.changes, ts, now)
    effects: list[Effect] = []
    if group.changes:
        core.catalog.put(ts, group.catalog, group.changes)
        core.maintenance.catalog_changed(len(group.changes))
        core.holds.defined(group.catalog)
        mark_views(core, group.changes, ts, now)
        end_altered(core, group.changes, ts)
        sources_altered(core, group.changes)
        effects.append(PublishCatalog(group.changes, group.catalog))
        if group.catalog.named_tables.materialized:
            effects.append(WakeViewCatchUp())
    for shard, batch in group.commit.batches.items():
        before = core.shards[shard]
        after = before.committed(ts, batch)
        core.shards[shard] = after
        core.groups.writes.committed(before, ts, group.interim[shard])
        core.subscriptions.wrote(shard, ts, group.interim[shard])
        follow_replaced_rows(core.locks, core.catalog.current, before, ts, batch)
        added = after.tail_bytes - before.tail_bytes
        core.cutting.wrote(shard, after, added=added, now=now)
    if group.notifying:
        effects += _notify(core, group.notifying)
    # Of what was launched, and of no earlier try (E3 of `short_writes`).
    effects += [
        Reply(m.request, _committed_reply(group, m, _reported_ts(m, ts)))
        for m in group.members
        if not isinstance(m, PendingBatch)
    ]
    for fed in group.fed:
        effects += batch_committed(core, fed, ts, now)
    for member in group.members:
        effects += _release_member(core, member, group.commit.batches)
    effects += release_group(core, group.units)
    _forget_writes(core)
    return effects


def _notify(core: CoreState, members: Sequence[Transaction]) -> list[Effect]:
    """Let them listen and notify, in their order (B1, B2 of `notifications/queue.py`)."""
    woken: list[ConnectionId] = []
    for txn in members:
        assert txn.notifying is not None, "B1: only what a commit has sent is applied"
        woken += core.notifications.apply(txn.owner, txn.notifying)
    return [WakeListeners(tuple(woken))] if woken else []


def _committed_reply(group: Group, member: GroupMember, ts: Timestamp) -> Committed:
    answer = group.answers.get(member.request, NOTHING_CHANGED)
    return Committed(ts, answer.affected, answer.returned)


def _reported_ts(member: GroupMember, ts: Timestamp) -> Timestamp:
    """The timestamp of the group; of one that has written nothing, where it has read."""
    if not isinstance(member, PendingCommit) or member.txn.is_write():
        return ts
    snapshot = member.txn.snapshot
    return ts if snapshot is None else snapshot.ts


def _group_passed(core: CoreState, message: GroupPassed) -> list[Effect]:
    """The group was not written: its members go again, at a later timestamp (G4)."""
    group = core.groups.landed(message.token)
    core.oracle.skip_to(message.upper)
    core.groups.pass_over(group)
    return []


def _group_failed(core: CoreState, message: GroupFailed, now: Timestamp) -> list[Effect]:
    """The group was not written, and will not be: its members hear why."""
    group = core.groups.landed(message.token)
    effects: list[Effect] = []
    said = Refused(RefusedReason.OTHER, message.sqlstate, message.reason)
    for member in group.members:
        effects += _refused(core, member, said, now)
    return effects + release_group(core, group.units)


def _forget_writes(core: CoreState) -> None:
    """Drop what validation needs to know of commits that no open snapshot is before."""
    if core.groups.writes.wants_pruning:
        found = (txn.oldest_read for txn in core.transactions.values())
        open_at = [ts for ts in found if ts is not None]
        core.groups.writes.prune(min(open_at, default=core.oracle.read_ts()))


def catalog_published(core: CoreState, message: CatalogPublished, now: Timestamp) -> list[Effect]:
    """DDL of the system timeline: other timelines follow it (R5)."""
    core.catalog = VersionedCatalog.only(message.catalog)
    core.holds.defined(message.catalog)
    end_altered(core, message.changes, Timestamp(core.oracle.read_ts() + 1))
    _create_shards(core, message.changes, core.oracle.read_ts(), now)
    return []


def _create_shards(
    core: CoreState, changes: tuple[object, ...], ts: Timestamp, now: Timestamp
) -> None:
    removed = {ShardId(c.table.shard) for c in changes if isinstance(c, RemoveTable)}
    for shard in removed & core.shards.keys():
        # In another timeline a transaction of this very timestamp may still know the table.
        own = core.timeline == SYSTEM_TIMELINE
        core.maintenance.dropped(shard, ts if own else Timestamp(ts + 1))
    for change in changes:
        if isinstance(change, PutTable) and change.table.shard in removed:
            continue
        if isinstance(change, PutTable) and change.table.timeline == core.timeline.name:
            shard = ShardId(change.table.shard)
            if shard not in core.shards:
                schema = core.schema_of(change.table)
                history_us = change.table.history_us
                state = ShardState(
                    shard,
                    schema,
                    ts,
                    ticks_per_ms=core.unit,
                    retention_us=history_us or core.settings.history_us,
                )
                core.shards[shard] = state
                core.cutting.wrote(shard, state, added=0, now=now)
            else:
                _redefine(core, shard, change.table, ts, now)


def _redefine(core: CoreState, shard: ShardId, table: Table, ts: Timestamp, now: Timestamp) -> None:
    """A table was altered, perhaps its columns (V6 of `storage/shard.py`)."""
    state, schema = core.shards[shard], core.schema_of(table)
    if schema.equals(state.schema, check_metadata=True):
        return
    state = core.shards[shard] = state.redefined(ts, schema)
    if not core.timeline.manual:
        # Without a clock there may be no time for a cut of its own: it comes with the next rows.
        core.cutting.wrote(shard, state, added=0, now=now)


def abort(core: CoreState, txn_id: TransactionId, now: Timestamp) -> list[Effect]:
    """Drop a transaction, unless it is committing already."""
    txn = core.transactions.get(txn_id)
    if txn is None or txn.committing:
        return []
    return end_transaction(core, txn, now)


def disconnected(core: CoreState, message: Disconnected, now: Timestamp) -> list[Effect]:
    """Drop everything that a connection left behind."""
    effects: list[Effect] = []
    for txn in list(core.transactions.values()):
        if txn.owner == message.owner:
            if txn.notifying is not None:
                # It still commits, but nobody would hear (B5 of `notifications/queue.py`).
                txn.notifying = replace(txn.notifying, actions=())
            effects += abort(core, txn.id, now)
    core.notifications.forget(message.owner)
    core.subscriptions.forget_owner(message.owner)
    core.leaving.add(message.owner)
    return effects + _release_left(core)


def _release_left(core: CoreState) -> list[Effect]:
    """Give back what sessions hold that have left, unless a commit of theirs is on its way: whoever
    gets their locks reads what it has written.
    """
    over = [owner for owner in core.leaving if not core.groups.is_committing(owner)]
    core.leaving.difference_update(over)
    return [effect for owner in over for effect in release_session_locks(core, owner)]


def _release_member(
    core: CoreState, member: GroupMember, committed: Mapping[ShardId, WriteBatch] | None = None
) -> list[Effect]:
    """A member of a group is over; an insert has held nothing."""
    return _release(core, member.txn, committed) if isinstance(member, PendingCommit) else []


def end_transaction(core: CoreState, txn: Transaction, now: Timestamp) -> list[Effect]:
    """Release what the transaction held (X3 of `transactions.py`), and let others go on."""
    return _release(core, txn) + _go_on(core, now)


def _release(
    core: CoreState, txn: Transaction, committed: Mapping[ShardId, WriteBatch] | None = None
) -> list[Effect]:
    """Release what the transaction held, and serve those who wait for its locks (K3 of `locking`).

    Nobody is gathered into a group before the lines of all that have ended are served.
    """
    del core.transactions[txn.id]
    core.holds.release(txn.id)
    core.leases.release(txn.id)
    core.snapshots.forget(txn.id)
    _forget_notifications(core, txn)
    served = core.locks.release_transaction(txn.owner, txn.id)
    return [*orphaned_staged_files(txn, committed or {}), *serve_waiters(core, served)]


def _forget_notifications(core: CoreState, txn: Transaction) -> None:
    """They were applied, or will not be: the room that was reserved is free (B4)."""
    if txn.notifying is not None:
        core.notifications.release(txn.notifying.nbytes)
        txn.notifying = None


def _go_on(core: CoreState, now: Timestamp) -> list[Effect]:
    return grant_leases(core) + start_group(core, now)


def take_lease(core: CoreState, message: TakeLease) -> list[Effect]:
    """Stand in line for some tables."""
    oids = [table.oid for table in message.tables]
    core.leases.ask(message.request, message.txn, oids)
    return grant_leases(core)


def grant_leases(core: CoreState) -> list[Effect]:
    """Tell those whose lease has become free."""
    groups, leases = core.groups, core.leases
    granted = leases.grant(lambda tables, ticket: groups.delays_lease(tables, ticket, leases))
    return [Reply(request, Leased()) for request in granted]


def persist_ceiling(core: CoreState, now: Timestamp) -> list[Effect]:
    """Ask for a higher ceiling if it is needed."""
    ceiling = core.oracle.wanted_ceiling(now)
    return [] if ceiling is None or core.stopped else [PersistCeiling(ceiling)]
