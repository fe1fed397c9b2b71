"""The driver: the one loop that feeds messages to the core and runs the effects that it returns.

    session ─request─▶ inbox ─▶ core.step ─▶ effects ─┬─ Reply: resolve the future
                         ▲                            └─ task: stash, Delta ─┐
                         └────────────── completion ─────────────────────────┘

INVARIANTS
  D1  messages are handled one at a time, in the order of their arrival; a step is never re-entered.
  D2  every effect ends in its completion, also on failure; an unknown commit is resolved by its
      token.
  D3  Fenced, a fatal storage failure or a bug in the core ends `run` with the exception: the
      process stops, and a restart recovers. A core that has failed is never stepped again, for any
      caller: its state may be half changed.
  D4  the timestamp of a read in real time leaves only after the stash has confirmed that no other
      coordinator leads. The question is asked after the timestamp was taken (`leadership.py`).
  D9  the same goes for a lock that a client has asked for below strict serializable: who holds it
      reads what the holder before has left, whoever led then. What DML locks is confirmed by its
      commit. LOCK TABLE and the short ways call `confirm_locks` for it.

The driver decides nothing, the core does; and it knows no SQL.
"""

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import pyarrow as pa

from coordinator.core.change_streams.steps import ChangeStep, SubscriptionRequest
from coordinator.core.completions import GatherDue, GroupCommitted, ShardDamaged
from coordinator.core.core import Core
from coordinator.core.effects import (
    CommitGroup,
    ConfirmGroup,
    DelayGather,
    Effect,
    FlushCut,
    ForgetShards,
    PersistCeiling,
    PublishCatalog,
    RemoveStaged,
    Reply,
    RewriteFiles,
    StopSubscribers,
    Tidy,
    VacuumShard,
    WakeListeners,
    WakeSubscribers,
    WakeViewCatchUp,
)
from coordinator.core.locking.modes import AdvisoryTag, LockMode, LockTag, LockWait
from coordinator.core.messages.catalog_changes import CatalogChange
from coordinator.core.messages.identities import ConnectionId, Isolation, RequestId, TransactionId
from coordinator.core.messages.locks import (
    AcquireLock,
    CancelLock,
    LockRows,
    RefreshSnapshot,
    ReleaseLock,
    ReleaseSessionLocks,
    RowsToLock,
)
from coordinator.core.messages.replies import (
    ChangedByKey,
    Committed,
    InlineRows,
    Leased,
    LoadAwaited,
    LockAnswered,
    Maintained,
    Released,
    ReplyValue,
    Snapshot,
    Stopped,
    Subscribed,
    TableId,
    UpstreamsReached,
    Views,
)
from coordinator.core.messages.requests import (
    AbortTransaction,
    AdoptSnapshot,
    Advance,
    AwaitLoad,
    AwaitUpstreams,
    Begin,
    BeginStatement,
    BeginSubscription,
    ChangeByKey,
    ChangeCatalog,
    ChangeInBlock,
    CommitTransaction,
    Disconnected,
    Insertion,
    InsertRows,
    LeaveUpstreams,
    Message,
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
    Spilled,
    TakeInlineRows,
    TakeLease,
    TakeNotifications,
    TakeSnapshot,
    TakeStep,
    Tick,
    Vacuum,
    WriteRows,
)
from coordinator.core.notifications.changes import NotificationChanges, TakenNotifications
from coordinator.core.observation import ObservedTimeline, TimestampExplained
from coordinator.core.predicates import ReadPredicate
from coordinator.core.short_writes.by_key import WriteByKey
from coordinator.core.views.deltas import MaintainViews, ViewsMaintained
from coordinator.driver.advance_timeline import check_advance
from coordinator.driver.change_streams import ChangeStream, SubscriptionWakers
from coordinator.driver.commit_effects import CommitEffects
from coordinator.driver.coordination import NOTHING_SKIPPED, R, reply_in_kind
from coordinator.driver.damage_check import DamageCheck
from coordinator.driver.followed_views import FollowedViews
from coordinator.driver.gather_delay import GatherDelay
from coordinator.driver.leadership import Leadership
from coordinator.driver.maintenance_effects import MaintenanceEffects, RunBlocking, in_thread
from coordinator.driver.notifications import SessionNotifications
from coordinator.driver.open_requests import OnReply, OpenRequests
from coordinator.driver.sequences import SequenceState, SequenceValues
from coordinator.driver.sources import SourceEffects
from coordinator.failures import admin_shutdown, storage_failure
from coordinator.server_counters import ServerCounters
from sql.catalog.catalog import SYSTEM_TIMELINE, Catalog, NameDependency, Table
from sql.catalog.objects import SequenceDefinition
from sql.errors import SqlError
from storage.batch import DataFile, ShardView, WriteBatch
from storage.clock import Clock, clock_state
from storage.errors import StorageError
from storage.known_rows import OldRows
from storage.object_store import ObjectStore
from storage.stash import Stash
from storage.txns import TxnsShard
from storage.types import Epoch, ShardId, Timestamp

log = logging.getLogger("meridian.driver")

TICK_S: Final = 0.05
"""Larger: later cuts, later AS OF in the near future. Smaller: an idle server wakes more often."""
TRANSACTION_NUMBER_BITS: Final = 40
"""Of a number, for the transactions of one start: 10^12; the rest is for 2^23 starts."""

MaintainEffect: TypeAlias = Callable[[MaintainViews], Coroutine[object, object, ViewsMaintained]]
"""Runs the programs of views."""


async def _given_up(effect: MaintainViews) -> ViewsMaintained:
    """Nobody maintains views here."""
    return ViewsMaintained(effect.attempt)


class Driver:
    """Implements `coordination.Coordination` over a core. `run` must be running for anything to
    end.
    """

    def __init__(
        self,
        core: Core,
        clock: Clock,
        stash: Stash,
        txns: TxnsShard,
        store: ObjectStore,
        epoch: Epoch,
        *,
        run_blocking: RunBlocking = in_thread,
        notifications: SessionNotifications | None = None,
        counters: ServerCounters | None = None,
        feeding: SourceEffects | None = None,
    ) -> None:
        self._core = core
        self._feeding = feeding
        self.notifications = notifications or SessionNotifications(core.notifications)
        self._clock = clock
        self._inbox: deque[Message] = deque()
        self._handling = False
        self._gather_delay = GatherDelay(lambda is_late: self._handle(GatherDue(is_late)))
        self._failure: Exception | None = None
        self._over = False
        self._transactions = 0
        self._open = OpenRequests()
        self._subscribers = SubscriptionWakers()
        self._tasks: asyncio.TaskGroup | None = None
        self._stopping = asyncio.Event()
        self.epoch = epoch
        self._leadership = Leadership(stash, epoch, self._spawn)
        self._committing = CommitEffects(
            core.timeline.name, stash, txns, store, epoch, run_blocking, self._leadership.confirm,
            (counters or ServerCounters()).stash,
        )  # fmt: skip
        confirm = self._leadership.confirm

        def damaged(shard: ShardId) -> None:
            self._handle(ShardDamaged(shard))

        self._examining = DamageCheck(store, run_blocking, confirm, damaged, core)
        self._maintaining = MaintenanceEffects(
            store,
            stash,
            txns,
            run_blocking,
            confirm,
            damaged,
            keeps_catalog=core.timeline == SYSTEM_TIMELINE,
        )
        self._sequences = SequenceValues(stash, epoch)
        self._numbers = itertools.count((epoch << TRANSACTION_NUMBER_BITS) + 1)
        self.on_catalog: Callable[[PublishCatalog], None] = lambda _: None
        self.on_views: Callable[[], None] = lambda: None
        """Told that definitions or exact intervals of materialized views have changed."""
        self.maintain_views: MaintainEffect = _given_up
        self.followed_views = FollowedViews(core, self._handle, self._request)

    @property
    def core(self) -> Core:
        """For observation; only `step` may change it."""
        return self._core

    @property
    def waiting(self) -> int:
        """How many requests are not answered yet; for observation."""
        return len(self._open)

    async def run(self) -> None:
        """Serve until `stop` has finished. Raises what ended it otherwise (D3)."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                self._handle(Tick())
                await self._tick()
        finally:
            self._over, self._tasks = True, None
            self._subscribers.wake_all()
            self._open.close()
            if self._feeding is not None:
                await self._feeding.close()

    async def _tick(self) -> None:
        while not self._stopping.is_set():
            await asyncio.sleep(TICK_S)
            if self._failure is not None:
                raise AssertionError("D3: the core has failed") from self._failure
            self._handle(Tick())
            self._leadership.tick()

    async def stop(self) -> None:
        """Flush, hand unused timestamps back, end `run`. Sessions must be gone."""
        await self._request(ShutDown, Stopped)
        self._stopping.set()

    # --- the loop ----------------------------------------------------------------------------

    def _handle(self, message: Message) -> None:
        """Feed one message; effects of a message may feed more (D1)."""
        if self._over:
            return  # `run` has ended, or is about to; it cancels whoever waits
        self._inbox.append(message)
        if self._handling or self._tasks is None:
            return  # a timeline that was just opened takes everything first as soon as it runs
        self._handling = True
        try:
            while self._inbox:
                self._gather_delay.heard()
                for effect in self._core.step(self._inbox.popleft(), self._clock.now()):
                    self._perform(effect)
        except Exception as error:
            # A session may have fed the message: its own boundary must not be the last word (D3).
            self._failure, self._over = error, True
            raise
        finally:
            self._handling = False
        self._open.tell()

    def _perform(self, effect: Effect) -> None:
        match effect:
            case Reply(request=request, value=value):
                self._open.answer(request, value)
            case PublishCatalog():
                self.on_catalog(effect)
            case PersistCeiling():
                self._spawn(self._committing.persist_ceiling(effect.ceiling))
            case CommitGroup():
                if not self._committing.begin_commit(effect.commit, self._handle, self._spawn_late):
                    self._spawn(self._committing.commit_group(effect.commit))
            case DelayGather():
                self._gather_delay.wait(until_heard=effect.until_heard)
            case FlushCut():
                self._spawn(self._flush_cut(effect))
            case Tidy():
                self._spawn(self._committing.tidy(effect))
            case ConfirmGroup():
                if self._leadership.is_certain:
                    asyncio.get_running_loop().call_soon(self._handle, GroupCommitted(effect.token))
                else:
                    self._spawn(self._committing.confirm_group(effect.token))
            case WakeListeners():
                self.notifications.wake(effect.owners)
            case WakeViewCatchUp():
                self.on_views()
            case MaintainViews():
                self._spawn(self.maintain_views(effect))
            case WakeSubscribers():
                self._subscribers.wake(effect.subscriptions)
            case StopSubscribers():
                self._subscribers.stop(effect.subscriptions)
            case RemoveStaged() | RewriteFiles() | VacuumShard() | ForgetShards():
                self._spawn(self._maintaining.run(effect))
            case _:
                assert self._feeding is not None, "a core with sources has readers"
                self._spawn(self._feeding.run(effect))

    def _spawn(self, work: Coroutine[object, object, Message | None]) -> None:
        assert self._tasks is not None, "D2: effects run only while `run` does"
        effect = self._effect(work)
        try:
            task = self._tasks.create_task(effect)
        except RuntimeError as error:  # the group ends, as another timeline of the server has
            effect.close()
            work.close()
            self._over = True
            raise admin_shutdown() from error
        # Cancelled before its first step, it would never come to await `work`.
        task.add_done_callback(lambda _: work.close())

    def _spawn_late(self, work: Coroutine[object, object, Message | None]) -> None:
        """The same, for what comes of an effect, perhaps after the end."""
        if self._over or self._tasks is None:
            work.close()
        else:
            self._spawn(work)

    async def _effect(self, work: Coroutine[object, object, Message | None]) -> None:
        try:
            message = await work
            if message is not None:
                self._handle(message)
        except BaseException:
            # `run` is about to end with it, and takes nothing on any more (D3).
            self._over = True
            raise

    async def _flush_cut(self, effect: FlushCut) -> None:
        flushed = await self._committing.flush_cut(effect)
        self._handle(flushed)
        await self._maintaining.after_flush(flushed.versions)

    # --- what sessions call ------------------------------------------------------------------

    def deliver(self, message: Message) -> None:
        """Feed a message that has no reply: news from another timeline's core."""
        self._handle(message)

    def _at_once(self, make: Callable[[RequestId], Message], expected: type[R]) -> R:
        """What the step itself answers."""
        if self._over:
            raise admin_shutdown()
        replies: list[ReplyValue | None] = []
        self._handle(make(self._open.heard_by(replies.append)))
        return reply_in_kind(replies[0], expected, self._core.timeline.name)

    async def _request(self, make: Callable[[RequestId], Message], expected: type[R]) -> R:
        if self._over:
            raise admin_shutdown()
        request, future = self._open.awaited()
        try:
            self._handle(make(request))
            return reply_in_kind(await future, expected, self._core.timeline.name)
        finally:
            # Who was cancelled may never be answered, e.g. a lease that is not wanted any more.
            self._open.forget(request)

    def begin(
        self,
        owner: ConnectionId,
        *,
        isolation: Isolation = Isolation.STRICT_SERIALIZABLE,
        read_only: bool = False,
        staleness_us: int | None = None,
    ) -> TransactionId:
        """See Coordination."""
        self._transactions += 1
        txn = TransactionId(self._transactions)
        self._handle(Begin(txn, owner, isolation, read_only, staleness_us))
        return txn

    async def snapshot(
        self,
        txn: TransactionId,
        *,
        as_of: Timestamp | None = None,
        at_least: bool = False,
        timeline: str | None = None,
    ) -> Snapshot:
        """See Coordination."""
        assert timeline in (None, self._core.timeline.name), "R5: a driver has one timeline"
        snapshot = await self._request(
            lambda request: TakeSnapshot(request, txn, as_of, at_least), Snapshot
        )
        if as_of is None and self._core.follows_real_time(txn):
            await self._confirm_leadership()
        return snapshot

    async def _confirm_leadership(self) -> None:
        """After a timestamp was taken: it was the newest at that moment (D4)."""
        if self._over:
            raise admin_shutdown()
        try:
            await self._leadership.confirm()
        except StorageError as error:
            raise storage_failure(error) from error

    async def adopt(self, txn: TransactionId, exporter: TransactionId, ts: Timestamp) -> Snapshot:
        """See Coordination."""
        snapshot = await self._request(
            lambda request: AdoptSnapshot(request, txn, exporter, ts), Snapshot
        )
        if self._core.is_strict(txn):  # below, the exporter's snapshot is what was asked for
            await self._confirm_leadership()
        return snapshot

    def reads_at(self, txn: TransactionId, ts: Timestamp) -> bool:
        """Whether an open transaction keeps this timestamp readable."""
        return self._core.reads_at(txn, ts)

    async def subscribe(self, txn: TransactionId, wanted: SubscriptionRequest) -> ChangeStream:
        """See Coordination."""
        reply = await self._request(
            lambda request: BeginSubscription(request, txn, wanted), Subscribed
        )
        stream = ChangeStream(
            reply.id,
            self._subscribers,
            lambda subscription: self._at_once(
                lambda request: TakeStep(request, subscription), ChangeStep
            ),
            self._handle,
        )
        try:
            await self._confirm_leadership()
        except BaseException:
            stream.close()
            raise
        return stream

    def begin_statement(self, txn: TransactionId) -> None:
        """See Coordination."""
        self._handle(BeginStatement(txn))

    def pin_snapshot(self, txn: TransactionId) -> None:
        """See Coordination."""
        self._handle(PinSnapshot(txn))

    def savepoint(self, txn: TransactionId, number: int) -> None:
        """See Coordination."""
        self._handle(Savepoint(txn, number))

    def release(self, txn: TransactionId, number: int) -> None:
        """See Coordination."""
        self._handle(ReleaseSavepoint(txn, number))

    def rollback_to(self, txn: TransactionId, number: int, *, keeps_locks: bool = False) -> None:
        """See Coordination."""
        self._handle(RollbackTo(txn, number, keeps_locks))

    async def inline_rows(self, txn: TransactionId) -> Mapping[ShardId, pa.Table]:
        """See Coordination."""
        reply = await self._request(lambda request: TakeInlineRows(request, txn), InlineRows)
        return reply.rows

    def spilled(self, txn: TransactionId, files: Mapping[ShardId, tuple[DataFile, ...]]) -> None:
        """See Coordination."""
        self._handle(Spilled(txn, files))

    async def scan(
        self,
        txn: TransactionId,
        ts: Timestamp,
        tables: Sequence[Table],
        predicates: Sequence[ReadPredicate | None] = (),
        locked: frozenset[int] = frozenset(),
        skipped: Mapping[int, LockMode] = NOTHING_SKIPPED,
    ) -> Sequence[ShardView]:
        """See Coordination."""
        reply = await self._request(
            lambda request: Scan(
                request, txn, ts, tuple(tables), tuple(predicates), locked, skipped
            ),
            Views,
        )
        return reply.views

    def write(
        self,
        txn: TransactionId,
        table: Table,
        batch: WriteBatch,
        old: OldRows | None = None,
        *,
        keeps_keys: bool = False,
    ) -> None:
        """See Coordination."""
        self._handle(WriteRows(txn, table, batch, old, keeps_keys))

    def advance(self, txn: TransactionId, timeline: str, ts: Timestamp) -> None:
        """See Coordination."""
        core = self._core
        assert timeline == core.timeline.name, "R5: a driver has one timeline"
        check_advance(core.timeline, core.read_ts, ts)
        self._handle(Advance(txn, ts))

    async def hold(
        self, txn: TransactionId, timeline: str, ts: Timestamp | None = None
    ) -> Timestamp:
        """See Coordination."""
        held = self._core.read_ts if ts is None else ts
        return (await self.snapshot(txn, as_of=held, timeline=timeline)).ts

    async def examine(self, views: Collection[ShardView]) -> None:
        """See Coordination."""
        await self._examining.examine(views)

    def explain_timestamp(
        self,
        txn: TransactionId,
        tables: Sequence[Table],
        *,
        as_of: Timestamp | None = None,
        at_least: bool = False,
    ) -> TimestampExplained:
        """See Coordination."""
        now = self._clock.now()
        return self._core.explain(txn, tables, now, as_of=as_of, at_least=at_least)

    def newest_view(self, table: Table) -> ShardView | None:
        """See Coordination."""
        if self._over or not self._leadership.is_certain:
            return None
        return self._core.newest_view(table)

    async def await_load(self, source: int) -> None:
        """See Coordination."""
        await self._request(lambda request: AwaitLoad(request, source), LoadAwaited)

    async def await_upstreams(self, sources: Sequence[int], timeout_us: int) -> None:
        """See Coordination."""
        asked: list[RequestId] = []

        def make(request: RequestId) -> AwaitUpstreams:
            asked.append(request)
            return AwaitUpstreams(request, tuple(sources), timeout_us)

        try:
            await self._request(make, UpstreamsReached)
        finally:
            # Nobody waits any more, whatever has happened.
            for request in asked:
                self._handle(LeaveUpstreams(request))

    def observe(self) -> Sequence[ObservedTimeline]:
        """See Coordination."""
        return [replace(self._core.observe(), clock=clock_state(self._clock))]

    def change_catalog(self, txn: TransactionId, changes: Sequence[CatalogChange]) -> None:
        """See Coordination."""
        self._handle(ChangeCatalog(txn, tuple(changes)))

    async def lease(self, txn: TransactionId, tables: Sequence[Table]) -> None:
        """See Coordination."""
        await self._request(lambda request: TakeLease(request, txn, tuple(tables)), Leased)

    async def lock(
        self,
        txn: TransactionId,
        tag: LockTag,
        mode: LockMode,
        *,
        wait: LockWait = LockWait.UNTIL_GRANTED,
        by_session: bool = False,
        ticket: int = 0,
        single: bool = False,
        timeline: str | None = None,
    ) -> LockAnswered:
        """See Coordination."""
        assert timeline in (None, self._core.timeline.name), "R5: a driver has one timeline"

        def make(request: RequestId) -> AcquireLock:
            return AcquireLock(request, txn, tag, mode, wait, by_session, ticket, single)

        return await self._locked(make, sure=not isinstance(tag, AdvisoryTag))

    async def lock_rows(
        self,
        txn: TransactionId,
        rows: RowsToLock,
        mode: LockMode,
        *,
        wait: LockWait = LockWait.UNTIL_GRANTED,
        ticket: int = 0,
        implicit: bool = False,
        limit: int | None = None,
    ) -> LockAnswered:
        """See Coordination."""
        return await self._locked(
            lambda request: LockRows(request, txn, rows, mode, wait, ticket, implicit, limit),
            sure=implicit or self.locks_are_sure(txn),
        )

    async def _locked(
        self, make: Callable[[RequestId], AcquireLock | LockRows], *, sure: bool
    ) -> LockAnswered:
        """Not `sure`: somebody else may lead, and would grant it, too (D9)."""
        asked: list[AcquireLock | LockRows] = []

        def ask(request: RequestId) -> AcquireLock | LockRows:
            asked.append(make(request))
            return asked[0]

        try:
            locked = await self._request(ask, LockAnswered)
            if locked.again or not sure:
                await self._confirm_leadership()
        except (asyncio.CancelledError, SqlError):
            # Nobody knows that he holds it: a lock of the session would stay.
            if asked:
                self._handle(CancelLock(asked[0]))
            raise
        return locked

    async def unlock(self, owner: ConnectionId, tag: LockTag, mode: LockMode) -> bool:
        """See Coordination."""
        released = await self._request(
            lambda request: ReleaseLock(request, owner, tag, mode), Released
        )
        return released.held

    def unlock_all(self, owner: ConnectionId) -> None:
        """See Coordination."""
        self._handle(ReleaseSessionLocks(owner))

    async def refresh(self, txn: TransactionId, timeline: str | None = None) -> Snapshot:
        """See Coordination."""
        assert timeline in (None, self._core.timeline.name), "R5: a driver has one timeline"
        snapshot = await self._request(lambda request: RefreshSnapshot(request, txn), Snapshot)
        if self._core.follows_real_time(txn):
            await self._confirm_leadership()
        return snapshot

    def looked_up(self, txn: TransactionId, names: Collection[NameDependency]) -> None:
        """See Coordination."""
        self._handle(RecordLookUps(txn, names))

    async def optimize(self, tables: Sequence[Table]) -> None:
        """See Coordination."""
        await self._request(lambda request: Optimize(request, tuple(tables)), Maintained)

    async def vacuum(self, tables: Sequence[Table] | None) -> None:
        """See Coordination."""
        wanted = None if tables is None else tuple(tables)
        await self._request(lambda request: Vacuum(request, wanted), Maintained)

    @property
    def newest_catalog(self) -> Catalog:
        """See Coordination."""
        return self._core.catalog

    def begin_write(
        self, owner: ConnectionId, write: Insertion | WriteByKey, on_reply: OnReply
    ) -> None:
        """See Coordination."""
        if self._over:
            raise admin_shutdown()
        request = self._open.heard_by(on_reply)
        if isinstance(write, Insertion):
            self._handle(InsertRows(request, owner, write))
        else:
            self._handle(ChangeByKey(request, owner, write))

    def locks_are_sure(self, txn: TransactionId) -> bool:
        """See Coordination."""
        return self._leadership.is_certain or self._core.is_strict(txn)

    async def confirm_locks(self, txn: TransactionId) -> None:
        """See Coordination."""
        if not self.locks_are_sure(txn):
            await self._confirm_leadership()

    def change_in_block(self, txn: TransactionId, change: WriteByKey) -> ChangedByKey:
        """See Coordination."""
        return self._at_once(lambda asked: ChangeInBlock(asked, txn, change), ChangedByKey)

    def read_in_block(
        self,
        txn: TransactionId,
        table: Table,
        predicate: ReadPredicate | None,
        names: Collection[NameDependency],
    ) -> ShardView | None:
        """See Coordination."""
        found = self._at_once(
            lambda request: ReadInBlock(request, txn, table, predicate, names), Views
        )
        return found.views[0] if found.views else None

    def snapshot_now(self, txn: TransactionId) -> Snapshot | None:
        """See Coordination."""
        if self._over or not self._leadership.is_certain:
            return None
        return self._at_once(lambda request: TakeSnapshot(request, txn, None, False), Snapshot)

    async def next_values(self, sequence: SequenceDefinition, count: int) -> Sequence[int]:
        """See Coordination."""
        return await self._sequences.take(sequence, count)

    def values_at_hand(self, sequence: SequenceDefinition, count: int) -> Sequence[int] | None:
        """See Coordination."""
        return self._sequences.at_hand(sequence, count)

    def take_at_hand(self, sequence: SequenceDefinition, count: int) -> None:
        """See Coordination."""
        self._sequences.take_at_hand(sequence, count)

    async def sequence_state(self, sequence: SequenceDefinition) -> SequenceState:
        """See Coordination."""
        return await self._sequences.state(sequence)

    async def set_value(self, sequence: SequenceDefinition, value: int, *, called: bool) -> None:
        """See Coordination."""
        await self._sequences.set(sequence, value, called=called)

    async def commit(
        self,
        txn: TransactionId,
        notifying: NotificationChanges | None = None,
        *,
        single: bool = False,
    ) -> Timestamp:
        """See Coordination."""
        reply = await self._request(
            lambda request: CommitTransaction(request, txn, notifying, single), Committed
        )
        return reply.ts

    def begin_commit(self, txn: TransactionId, on_reply: OnReply) -> bool:
        """See Coordination."""
        if self._over:
            raise admin_shutdown()
        self._handle(CommitTransaction(self._open.heard_by(on_reply), txn, None))
        return True

    async def take_notifications(self, owner: ConnectionId) -> TakenNotifications:
        """See Coordination."""
        return await self._request(lambda r: TakeNotifications(r, owner), TakenNotifications)

    def abort(self, txn: TransactionId) -> None:
        """See Coordination."""
        self._handle(AbortTransaction(txn))

    def disconnected(self, owner: ConnectionId) -> None:
        """See Coordination."""
        self.notifications.detach(owner)
        self._handle(Disconnected(owner))

    def new_transaction_number(self) -> int:
        """See Coordination. Every start has an epoch, and so numbers, of its own."""
        return next(self._numbers)

    async def new_table_id(self) -> tuple[int, ShardId]:
        """See Coordination."""
        reply = await self._request(NewTableId, TableId)
        return reply.oid, reply.shard
