"""The core: one plain function from messages and time to effects, which owns all shared state.

    sessions ──requests──▶ step(message, now) ──effects──▶ driver ──completions──▶ step ..

INVARIANTS
  R1  state changes only inside `step`; a step never waits and never fails for a client's fault.
  R2  effects come in the order they must happen; effects that make something durable come before
      replies.
  R3  a strict read is served at the oracle's read_ts of the moment it asks; everything acknowledged
      before is at or below it, and everything at or below it is in the shards' views.
  R4  every request is answered once, unless its transaction is aborted first.
  R5  a core is one timeline. DDL belongs to `system`, which publishes every new catalog
      to the others; they know tables, and commit rows.

The logic lives in the siblings that own the state: oracle, read_holds, timestamps, transactions,
validation, group_commit, leases, cutting, catalog. Here they are only put together.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import assert_never

import pyarrow as pa

from coordinator.core import commits, cuts
from coordinator.core import scans as reading
from coordinator.core.catalog import StaleCatalog
from coordinator.core.change_streams.requests import (
    change_subscription,
    subscribers_tick,
    wake_subscribers,
)
from coordinator.core.completions import (
    CeilingFailed,
    CeilingPersisted,
    CutFlushed,
    FilesRewritten,
    Forgotten,
    GatherDue,
    GroupCommitted,
    GroupFailed,
    GroupPassed,
    ShardDamaged,
    Tidied,
    Vacuumed,
)
from coordinator.core.effects import Effect, PersistCeiling, Reply
from coordinator.core.fences import fenced_table_refusal
from coordinator.core.locking.requests import change_locks
from coordinator.core.locking.wait_graph import WaitGraph
from coordinator.core.messages.identities import (
    BEHIND_REAL_TIME,
    Isolation,
    RequestId,
    TransactionId,
)
from coordinator.core.messages.locks import (
    AcquireLock,
    CancelLock,
    DropLocks,
    LockRows,
    RefreshSnapshot,
    ReleaseLock,
    ReleaseSessionLocks,
)
from coordinator.core.messages.replies import Refused, Stopped, TableId
from coordinator.core.messages.requests import (
    AbortTransaction,
    AdoptSnapshot,
    Advance,
    Begin,
    BeginStatement,
    BeginSubscription,
    CatalogPublished,
    ChangeByKey,
    ChangeCatalog,
    ChangeInBlock,
    CommitTransaction,
    Disconnected,
    InsertRows,
    Message,
    MoveSubscription,
    NewTableId,
    Optimize,
    PinSnapshot,
    ReadInBlock,
    RecordLookUps,
    ReleaseSavepoint,
    RollbackTo,
    Savepoint,
    Scan,
    ShutDown,
    SourceRequest,
    Spilled,
    TakeInlineRows,
    TakeLease,
    TakeNotifications,
    TakeSnapshot,
    TakeStep,
    Tick,
    Unsubscribe,
    Vacuum,
    WriteRows,
)
from coordinator.core.notifications.queue import NotificationQueue
from coordinator.core.observation import (
    ObservedTimeline,
    TimestampExplained,
    observed_shard,
    observed_timeline,
)
from coordinator.core.refresh import refresh_snapshot
from coordinator.core.settings import CoreSettings
from coordinator.core.short_writes.in_block import answer_in_block
from coordinator.core.sources.completions import SourceCompletion, UpstreamReleased
from coordinator.core.sources.steps import advance_sources, step_sources, stop_sources
from coordinator.core.state import CoreState, RecoveredState
from coordinator.core.timestamps import InputSince, determine
from coordinator.core.transaction_buffers import change_buffers
from coordinator.core.transactions import Transaction
from coordinator.core.validation import ValidationCounts
from coordinator.core.views.deltas import (
    AttachComputed,
    ComputedRows,
    PutViewProgram,
    ViewCounts,
    ViewsMaintained,
)
from coordinator.core.views.left_views import LeftView, left_view, view_left_at
from sql.catalog.catalog import Catalog, Table, Timeline
from storage.batch import ShardView
from storage.shard import ShardState
from storage.types import ShardId, Timestamp


class Core:
    """See the module."""

    def __init__(
        self,
        recovered: RecoveredState,
        settings: CoreSettings,
        schema_of: Callable[[Table], pa.Schema],
        now: Timestamp,
        waits: WaitGraph | None = None,
        notifications: NotificationQueue | None = None,
    ) -> None:
        waits = WaitGraph() if waits is None else waits
        if notifications is None:
            notifications = NotificationQueue(settings.notification_bytes_max)
        self._state = CoreState(recovered, settings, schema_of, now, waits, notifications)

    @property
    def view_counts(self) -> Mapping[int, ViewCounts]:
        """By view, what lanes have done; for observation."""
        return self._state.groups.lanes.counts

    @property
    def validation(self) -> ValidationCounts:
        """How conflicts were decided; for observation."""
        return self._state.groups.counts

    def refusal(self, shard: ShardId) -> Refused | None:
        """What the users of a fenced table hear."""
        found = (t for t in self._state.catalog.current.tables.values() if t.shard == shard)
        table = next(found, None)
        return None if table is None else fenced_table_refusal(table, self._state.shards)

    @property
    def shards(self) -> Mapping[ShardId, ShardState]:
        """The shards as they are; for observation and tests."""
        return self._state.shards

    @property
    def open_transactions(self) -> int:
        """How many there are, those that commit among them; for observation."""
        return len(self._state.transactions)

    @property
    def notifications(self) -> NotificationQueue:
        """The queue of notifications; for observation."""
        return self._state.notifications

    @property
    def inline_bytes(self) -> int:
        """Rows that open transactions have in memory; for observation."""
        return sum(txn.inline_bytes() for txn in self._state.transactions.values())

    @property
    def since(self) -> Timestamp:
        """The least timestamp that AS OF may name."""
        return self._state.holds.since

    @property
    def catalog(self) -> Catalog:
        """The newest catalog."""
        return self._state.catalog.current

    @property
    def read_ts(self) -> Timestamp:
        """Where a strict read is served now."""
        return self._state.oracle.read_ts()

    def is_strict(self, txn: TransactionId) -> bool:
        """Whether it is serialized in real time; a transaction that is over counts as that."""
        known = self._state.transactions.get(txn)
        return known is None or known.isolation is Isolation.STRICT_SERIALIZABLE

    def follows_real_time(self, txn: TransactionId) -> bool:
        """Whether it reads all that was acknowledged before its timestamp was taken."""
        known = self._state.transactions.get(txn)
        return known is None or known.isolation not in BEHIND_REAL_TIME

    def reads_at(self, txn: TransactionId, ts: Timestamp) -> bool:
        """Whether an open transaction keeps this timestamp readable."""
        known = self._state.transactions.get(txn)
        return known is not None and ts in known.timestamps

    def observe(self) -> ObservedTimeline:
        """All of it at this moment, as a value."""
        return observed_timeline(
            self._state.timeline,
            self._state.catalog.current,
            self._state.oracle,
            self._state.holds,
            self._state.shards,
            self._state.transactions,
            self._state.groups,
            self._state.locks,
            self._state.subscriptions,
            self._state.sources,
            flushing=self._state.cutting.in_flight is not None,
            job=self._state.maintenance.job,
        )

    def explain(
        self,
        txn: TransactionId,
        tables: Sequence[Table],
        now: Timestamp,
        *,
        as_of: Timestamp | None,
        at_least: bool,
    ) -> TimestampExplained:
        """How the timestamp would be chosen for a query over these tables; changes nothing."""
        transaction = self._state.transactions[txn]
        states = [(table, reading.shard_of(self._state, transaction, table)) for table in tables]
        inputs = tuple(observed_shard(table, state, self._state.holds) for table, state in states)
        question = self._state.snapshots.question(
            transaction,
            now,
            as_of=as_of,
            at_least=at_least,
            inputs=[InputSince(item.table.qualified, item.since) for item in inputs],
        )
        level = transaction.isolation.value
        found = determine(question)
        return TimestampExplained(self._state.timeline, level, question.read_ts, found, inputs)

    def newest_view(self, table: Table) -> ShardView | None:
        """See `scans.py`; changes nothing."""
        return reading.newest_view(self._state, table)

    def left_view(self, oid: int, computed: ComputedRows | None = None) -> LeftView | None:
        """See `views/left_views.py`; changes nothing."""
        return left_view(self._state, oid, computed)

    @property
    def view_rows_max(self) -> int:
        """Rows of inputs that a unit of a lane may change."""
        return self._state.groups.lanes.rows_max

    def view_left_at(self, oid: int) -> Timestamp | None:
        """See `views/left_views.py`; changes nothing."""
        return view_left_at(self._state, oid)

    @property
    def timeline(self) -> Timeline:
        """Whose core this is (R5)."""
        return self._state.timeline

    # A case costs as much as a few attributes: what every transaction does comes first.
    def step(self, message: Message, now: Timestamp) -> list[Effect]:
        """Handle one message; the caller runs the returned effects in order (R1, R2)."""
        match message:
            case InsertRows() | ChangeByKey():
                return commits.write_alone(self._state, message, now)
            case Begin():
                return self._begin(message)
            case TakeSnapshot():
                return self._take_snapshot(message, now)
            case RecordLookUps():
                self._state.transactions[message.txn].looked_up(message.names)
                return []
            case WriteRows():
                self._state.transactions[message.txn].write(message)
                return []
            case CommitTransaction():
                return commits.commit(self._state, message, now)
            case Scan():
                return reading.scan(self._state, message)
            case ChangeInBlock() | ReadInBlock():
                return answer_in_block(self._state, message)
            case BeginStatement() | Advance():
                return self._go_on(message)
            case AbortTransaction():
                return commits.abort(self._state, message.txn, now)
            case GroupCommitted() | GroupPassed() | GroupFailed() | GatherDue():
                return self._group_goes_on(message, now)
            case (
                AcquireLock() | LockRows() | CancelLock() | ReleaseLock() | ReleaseSessionLocks()
                | DropLocks()
            ):  # fmt: skip
                return change_locks(self._state, message) + self._leased(now)
            case AdoptSnapshot() | PinSnapshot():
                return reading.share_snapshot(self._state, message)
            case Savepoint() | ReleaseSavepoint() | RollbackTo() | TakeInlineRows() | Spilled():
                return change_buffers(self._state, message)
            case ChangeCatalog():
                return self._change_catalog(message)
            case CatalogPublished():
                return commits.catalog_published(self._state, message, now) + self._advance(now)
            case TakeLease():
                return commits.take_lease(self._state, message)
            case TakeNotifications():
                return [Reply(message.request, self._state.notifications.take(message.owner))]
            case BeginSubscription() | TakeStep() | MoveSubscription() | Unsubscribe():
                return change_subscription(self._state, message, now)
            case RefreshSnapshot():
                return refresh_snapshot(self._state, message)
            case NewTableId():
                return [self._new_table_id(message.request)]
            case Disconnected():
                return commits.disconnected(self._state, message, now)
            case CeilingPersisted() | CeilingFailed():
                return self._ceiling_answered(message, now)
            case CutFlushed():
                return cuts.cut_flushed(self._state, message, now)
            case ViewsMaintained() | PutViewProgram() | AttachComputed():
                return self._views_followed(message, now)
            case SourceCompletion() | UpstreamReleased() | SourceRequest():
                return step_sources(self._state, message, now) + self._advance(now)
            case Optimize() | Vacuum() | FilesRewritten() | Forgotten() | Vacuumed():
                return self._maintain(message, now)
            case ShardDamaged(shard=shard):
                return cuts.shard_damaged(self._state, shard) + self._advance(now)
            case Tidied() | Tick():
                return self._time_passes(message, now)
            case ShutDown():
                return self._shut_down(message, now)
            case _:
                assert_never(message)

    def _group_goes_on(
        self, message: GroupCommitted | GroupPassed | GroupFailed | GatherDue, now: Timestamp
    ) -> list[Effect]:
        if isinstance(message, GatherDue):
            effects = commits.gather_due(self._state, message, now)
            return effects + commits.grant_leases(self._state)
        return commits.group_ended(self._state, message, now) + self._advance(now)

    def _time_passes(self, message: Tidied | Tick, now: Timestamp) -> list[Effect]:
        if isinstance(message, Tidied):
            self._state.cutting.ended()
        return subscribers_tick(self._state, now) + self._advance(now)

    def _views_followed(
        self, message: ViewsMaintained | PutViewProgram | AttachComputed, now: Timestamp
    ) -> list[Effect]:
        if isinstance(message, AttachComputed):
            return commits.attach_computed(self._state, message, now)
        lanes = self._state.groups.lanes
        if isinstance(message, PutViewProgram):
            lanes.put_program(message)
            return []
        lanes.answered(message)
        return self._advance(now)

    def _maintain(
        self, message: Optimize | Vacuum | FilesRewritten | Forgotten | Vacuumed, now: Timestamp
    ) -> list[Effect]:
        maintenance = self._state.maintenance
        if isinstance(message, Optimize | Vacuum):
            return maintenance.asked(message) + self._advance(now)
        return maintenance.ended(message, now) + self._advance(now)

    def _shut_down(self, message: ShutDown, now: Timestamp) -> list[Effect]:
        self._state.stopping = message.request
        self._state.maintenance.stop()
        return stop_sources(self._state) + self._advance(now)

    # --- transactions ------------------------------------------------------------------------

    def _begin(self, message: Begin) -> list[Effect]:
        assert message.txn not in self._state.transactions, "X3: a transaction begins once"
        self._state.transactions[message.txn] = Transaction(
            message.txn, message.owner, message.isolation, message.read_only, message.staleness_us
        )
        return []

    def _go_on(self, message: BeginStatement | Advance) -> list[Effect]:
        txn = self._state.transactions[message.txn]
        if isinstance(message, BeginStatement):
            txn.begin_statement()
        else:
            txn.advance_to = message.ts
        return []

    def _take_snapshot(self, message: TakeSnapshot, now: Timestamp) -> list[Effect]:
        replies = self._state.snapshots.take(message, self._state.transactions[message.txn], now)
        # Who has to wait may wait for the ceiling.
        return [*replies] or commits.persist_ceiling(self._state, now)

    def _change_catalog(self, message: ChangeCatalog) -> list[Effect]:
        txn = self._state.transactions[message.txn]
        try:
            txn.change_catalog(message.changes)
        except StaleCatalog as error:
            # The binder and we disagree, which is our mistake: it costs this transaction alone.
            txn.misfit = txn.misfit or str(error)
        return []

    def _new_table_id(self, request: RequestId) -> Effect:
        oid = self._state.next_oid
        self._state.next_oid += 1
        # The epoch makes the shard's directory new even if an oid was lost with a crash.
        return Reply(request, TableId(oid, ShardId(f"t{self._state.epoch:08x}{oid:08x}")))

    # --- time, cuts, the end -----------------------------------------------------------------

    def _ceiling_answered(
        self, message: CeilingPersisted | CeilingFailed, now: Timestamp
    ) -> list[Effect]:
        match message:
            case CeilingPersisted(ceiling=ceiling):
                self._state.oracle.ceiling_persisted(ceiling)
                return self._advance(now)
            case CeilingFailed():
                # Asked again at the next tick, not at once: the stash needs time to recover.
                self._state.oracle.ceiling_failed()
                return []

    def _advance(self, now: Timestamp) -> list[Effect]:
        """Do what has become possible: a group, waiting snapshots, leases, a cut, the end."""
        effects = advance_sources(self._state, now)
        self._state.groups.lanes.give_up_overdue(now)
        effects += commits.start_group(self._state, now)
        effects += commits.grant_leases(self._state)
        effects += self._state.snapshots.wake(now)
        effects += commits.persist_ceiling(self._state, now)
        effects += self._state.maintenance.advance(now)
        effects += cuts.begin_cut_if_due(self._state, now)
        return effects + wake_subscribers(self._state, now) + self._stop()

    def _leased(self, now: Timestamp) -> list[Effect]:
        """Go on if a lease was given back by who waits for a lock."""
        if not len(self._state.groups) and not self._state.leases.is_waited_for:
            return []
        return commits.grant_leases(self._state) + commits.start_group(self._state, now)

    def _stop(self) -> list[Effect]:
        """Once nothing is in flight: hand unused timestamps back, then answer (R4)."""
        request = self._state.stopping
        if request is None or self._state.stopped:
            return []
        if (
            self._state.groups.in_flight is not None
            or len(self._state.groups)
            or self._state.oracle.persisting
        ):
            return []
        if self._state.cutting.in_flight is not None or self._state.cutting.dirty_since:
            return []
        self._state.stopped = True
        stopped = Reply(request, Stopped())
        if self._state.timeline.manual:
            return [stopped]
        return [PersistCeiling(self._state.oracle.final_ceiling()), stopped]
