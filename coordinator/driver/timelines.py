"""All timelines of a server behind one `Coordination`: a driver and a core for each.

    session ─▶ Timelines ─┬─▶ driver of `system`: DDL, tables of the wall clock
                          └─▶ driver of `line` ..: rows of its tables; gets DDL from `system`

A session begins a transaction in `system`, where its names are looked up. At its first row of a
table of another timeline the transaction gets a part there, and stays there.

INVARIANTS
  L1  a transaction reads and writes rows of one timeline; mixing two is refused (25000). DDL is of
      `system`, so it does not mix with rows of another timeline either.
  L2  a timeline is served before a catalog shows it. A read with bounded staleness does not wait
      for that, and is refused there until then.
  L4  a transaction that reads in a timeline when it is dropped reads on; after it nothing is left.
  L3  all timelines share the epoch: a coordinator that is fenced in one is fenced in all.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import pyarrow as pa

from coordinator.core.change_streams.steps import SubscriptionRequest
from coordinator.core.effects import PublishCatalog
from coordinator.core.locking.modes import LockMode, LockTag, LockWait
from coordinator.core.messages.catalog_changes import CatalogChange, PutTimeline, RemoveTimeline
from coordinator.core.messages.identities import ConnectionId, Isolation, TransactionId
from coordinator.core.messages.locks import RowsToLock
from coordinator.core.messages.replies import ChangedByKey, LockAnswered, Snapshot
from coordinator.core.messages.requests import CatalogPublished, Insertion
from coordinator.core.notifications.changes import NotificationChanges, TakenNotifications
from coordinator.core.observation import ObservedTimeline, TimestampExplained
from coordinator.core.predicates import ReadPredicate
from coordinator.core.short_writes.by_key import WriteByKey
from coordinator.core.snapshots import too_stale
from coordinator.driver.change_streams import ChangeStream
from coordinator.driver.coordination import NOTHING_SKIPPED, LockBlocks, RequestRefused
from coordinator.driver.driver import Driver
from coordinator.driver.open_requests import OnReply
from coordinator.driver.sequences import SequenceState
from coordinator.driver.timeline_parts import (
    TimelinePart,
    TransactionOrigin,
    begin_part,
    mixed_timelines,
    tables_as_changes,
)
from sql.catalog.catalog import SYSTEM_TIMELINE, Catalog, NameDependency, Table, Timeline
from sql.catalog.objects import SequenceDefinition
from sql.errors import SqlError
from storage.batch import DataFile, ShardView, WriteBatch
from storage.errors import Fatal, StorageError
from storage.known_rows import OldRows
from storage.types import Epoch, ShardId, Timestamp

SYSTEM: Final = SYSTEM_TIMELINE.name

OPEN_PAUSE_S: Final = 0.5
"""Between two attempts to open a new timeline on a stash that has failed."""

CLOSE_PAUSE_S: Final = 0.5
"""Between two looks whether somebody still reads in a timeline that is dropped."""

TimelineOpener: TypeAlias = Callable[[Timeline, Catalog], Awaitable[Driver]]


class Timelines:
    """Implements `coordination.Coordination`; `run` must be running for anything to end."""

    def __init__(
        self,
        system: Driver,
        lines: Sequence[Driver],
        open_line: TimelineOpener,
        remove: Callable[[Timeline], Awaitable[None]],
    ) -> None:
        self._system = system
        self._lines = {driver.core.timeline.name: driver for driver in lines}
        self._open_line = open_line
        self._remove = remove
        self._stopping = False
        self._runs: dict[Timeline, asyncio.Task[None]] = {}
        self._opening: dict[str, asyncio.Task[None]] = {}
        self._tasks: asyncio.TaskGroup | None = None
        self._begun: dict[TransactionId, TransactionOrigin] = {}
        # L1: transactions with rows or DDL in `system`, and those with a part elsewhere.
        self._touched: set[TransactionId] = set()
        self._parts: dict[TransactionId, TimelinePart] = {}
        # What keeps the timestamps of read holds readable that a transaction is about to create.
        self._holders: dict[TransactionId, list[tuple[Driver, TransactionId]]] = {}
        self.notifications = system.notifications
        self.followed_views = system.followed_views
        system.on_catalog = self._published

    @property
    def system(self) -> Driver:
        """The driver of the wall clock's timeline; for observation."""
        return self._system

    @property
    def epoch(self) -> Epoch:
        """The coordinator's, for what it keeps in the stash beside timelines (L3)."""
        return self._system.epoch

    @property
    def lines(self) -> Sequence[Driver]:
        """All drivers, that of `system` first; for observation."""
        return (self._system, *self._lines.values())

    # --- life --------------------------------------------------------------------------------

    async def run(self) -> None:
        """Serve until `stop` has finished. Raises what ended it otherwise."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            for driver in self.lines:
                self._runs[driver.core.timeline] = tasks.create_task(driver.run())

    async def stop(self) -> None:
        """Flush everything and end `run`. Sessions must be gone."""
        self._stopping = True
        for driver in (*self._lines.values(), self._system):
            await driver.stop()

    def behind(self) -> Sequence[str]:
        """The tables that could not be flushed, though they are not fenced."""
        return [
            shard.table.qualified
            for line in self.observe()
            for shard in line.shards
            if shard.state.dirty and not shard.state.fenced
        ]

    def _published(self, published: PublishCatalog) -> None:
        """A new catalog, before anybody hears of it: open and close what it says (L2)."""
        for change in published.changes:
            match change:
                case PutTimeline(timeline=timeline):
                    self._open(timeline)
                case RemoveTimeline(name=name):
                    self._close(name)
                case _:
                    pass
        for driver in self._lines.values():
            driver.deliver(CatalogPublished(published.changes, published.catalog))

    def _open(self, timeline: Timeline) -> None:
        assert self._tasks is not None, "DDL commits only while `run` does"
        self._opening[timeline.name] = self._tasks.create_task(self._opened(timeline))

    async def _opened(self, timeline: Timeline) -> None:
        driver = await self._try_open(timeline)
        while driver is None:
            if _is_cancelled():
                raise asyncio.CancelledError
            if self._stopping:
                return
            await asyncio.sleep(OPEN_PAUSE_S)
            driver = await self._try_open(timeline)
        if self._opening[timeline.name] is asyncio.current_task():
            del self._opening[timeline.name]
        catalog = self._system.core.catalog
        if catalog.timelines.get(timeline.name) != timeline or self._tasks is None:
            return
        if self._stopping:
            return  # those that run were told to stop, and nobody would tell this one
        self._lines[timeline.name] = driver
        # What was published while it was opened.
        driver.deliver(CatalogPublished(tables_as_changes(catalog, timeline.name), catalog))
        self._runs[timeline] = self._tasks.create_task(driver.run())

    async def _try_open(self, timeline: Timeline) -> Driver | None:
        try:
            return await self._open_line(timeline, self._system.core.catalog)
        except Fatal:
            raise
        except StorageError:
            return None

    def _close(self, name: str) -> None:
        driver = self._lines.pop(name, None)
        if driver is not None and self._tasks is not None:
            self._tasks.create_task(self._closed(driver))

    async def _closed(self, driver: Driver) -> None:
        """End a timeline that is dropped, and remove what it leaves (L4)."""
        while True:
            if self._stopping or not driver.core.open_transactions:
                break
            await asyncio.sleep(CLOSE_PAUSE_S)
        await driver.stop()
        await self._runs.pop(driver.core.timeline)
        await self._remove(driver.core.timeline)

    # --- transactions ------------------------------------------------------------------------

    def begin(
        self,
        owner: ConnectionId,
        *,
        isolation: Isolation = Isolation.STRICT_SERIALIZABLE,
        read_only: bool = False,
        staleness_us: int | None = None,
    ) -> TransactionId:
        """See Coordination."""
        begun = TransactionOrigin(owner, isolation, read_only, staleness_us)
        txn = begin_part(self._system, begun)
        self._begun[txn] = begun
        return txn

    async def snapshot(
        self,
        txn: TransactionId,
        *,
        as_of: Timestamp | None = None,
        at_least: bool = False,
        timeline: str = SYSTEM,
    ) -> Snapshot:
        """See Coordination."""
        if self._opening and self._begun[txn].staleness_us is None:
            await asyncio.wait(self._opening.values())
        if timeline == SYSTEM:
            return await self._system.snapshot(txn, as_of=as_of, at_least=at_least)
        part = self._join(txn, timeline)
        return await part.driver.snapshot(part.txn, as_of=as_of, at_least=at_least)

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
        driver, own = self._place(txn, tables)
        return await driver.scan(own, ts, tables, predicates, locked, skipped)

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
        driver, own = self._place(txn, [table])
        driver.write(own, table, batch, old, keeps_keys=keeps_keys)

    async def subscribe(self, txn: TransactionId, wanted: SubscriptionRequest) -> ChangeStream:
        """See Coordination."""
        driver, own = self._place(txn, wanted.tables)
        return await driver.subscribe(own, wanted)

    def change_catalog(self, txn: TransactionId, changes: Sequence[CatalogChange]) -> None:
        """See Coordination."""
        part = self._parts.get(txn)
        if part is not None:
            raise mixed_timelines(part.timeline, SYSTEM)
        self._touched.add(txn)
        self._system.change_catalog(txn, changes)

    def advance(self, txn: TransactionId, timeline: str, ts: Timestamp) -> None:
        """See Coordination."""
        part = self._join(txn, timeline)
        part.driver.advance(part.txn, timeline, ts)

    async def adopt(self, txn: TransactionId, exporter: TransactionId, ts: Timestamp) -> Snapshot:
        """See Coordination."""
        other = self._parts.get(exporter)
        if other is None or not other.driver.reads_at(other.txn, ts):
            # L1: other timelines have nothing that is of this moment.
            self._touched.add(txn)
            return await self._system.adopt(txn, exporter, ts)
        part = self._join(txn, other.timeline)
        return await part.driver.adopt(part.txn, other.txn, ts)

    def looked_up(self, txn: TransactionId, names: Collection[NameDependency]) -> None:
        """See Coordination."""
        part = self._parts.get(txn)
        if part is not None:
            part.driver.looked_up(part.txn, names)
            return
        self._begun[txn].names.update(names)
        self._system.looked_up(txn, names)

    async def hold(
        self, txn: TransactionId, timeline: str, ts: Timestamp | None = None
    ) -> Timestamp:
        """See Coordination."""
        if timeline == SYSTEM:
            return await self._system.hold(txn, timeline, ts)
        driver = self._line(timeline)
        # A transaction there of its own: it reads no rows, so L1 does not mind it.
        own = begin_part(driver, self._begun[txn])
        self._holders.setdefault(txn, []).append((driver, own))
        return await driver.hold(own, timeline, ts)

    async def examine(self, views: Collection[ShardView]) -> None:
        """See Coordination."""
        for driver in self.lines:
            await driver.examine(views)

    def explain_timestamp(
        self,
        txn: TransactionId,
        tables: Sequence[Table],
        *,
        as_of: Timestamp | None = None,
        at_least: bool = False,
    ) -> TimestampExplained:
        """See Coordination."""
        part = self._parts.get(txn)
        wanted = list(dict.fromkeys(table.timeline for table in tables))
        if len(wanted) > 1:
            raise mixed_timelines(wanted[0], wanted[1])
        if part is not None and wanted in ([], [part.timeline]):
            explain = part.driver.explain_timestamp
            return explain(part.txn, tables, as_of=as_of, at_least=at_least)
        if wanted in ([], [SYSTEM]):
            explain = self._system.explain_timestamp
            return explain(txn, tables, as_of=as_of, at_least=at_least)
        # As if it were the first to read there: to look is not to join (L1).
        driver = self._line(wanted[0])
        own = begin_part(driver, self._begun[txn])
        try:
            return driver.explain_timestamp(own, tables, as_of=as_of, at_least=at_least)
        finally:
            driver.abort(own)

    def newest_view(self, table: Table) -> ShardView | None:
        """See Coordination."""
        if self._opening or table.timeline != SYSTEM:
            return None
        return self._system.newest_view(table)

    async def await_load(self, source: int) -> None:
        """See Coordination."""
        await self._system.await_load(source)

    async def await_upstreams(self, sources: Sequence[int], timeout_us: int) -> None:
        """See Coordination."""
        await self._system.await_upstreams(sources, timeout_us)

    def observe(self) -> Sequence[ObservedTimeline]:
        """See Coordination."""
        return [seen for driver in self.lines for seen in driver.observe()]

    async def optimize(self, tables: Sequence[Table]) -> None:
        """See Coordination."""
        for driver in self.lines:
            mine = [table for table in tables if table.timeline == driver.core.timeline.name]
            if mine:
                await driver.optimize(mine)

    async def vacuum(self, tables: Sequence[Table] | None) -> None:
        """See Coordination."""
        for driver in self.lines:
            name = driver.core.timeline.name
            mine = None if tables is None else [t for t in tables if t.timeline == name]
            if mine is None or mine:
                await driver.vacuum(mine)

    def savepoint(self, txn: TransactionId, number: int) -> None:
        """See Coordination."""
        self._begun[txn].savepoints.append(number)
        for driver, own in self._everywhere(txn):
            driver.savepoint(own, number)

    def release(self, txn: TransactionId, number: int) -> None:
        """See Coordination."""
        open_ones = self._begun[txn].savepoints
        open_ones[:] = [known for known in open_ones if known < number]
        for driver, own in self._everywhere(txn):
            driver.release(own, number)

    def rollback_to(self, txn: TransactionId, number: int, *, keeps_locks: bool = False) -> None:
        """See Coordination."""
        open_ones = self._begun[txn].savepoints
        open_ones[:] = [known for known in open_ones if known <= number]
        for driver, own in self._everywhere(txn):
            driver.rollback_to(own, number, keeps_locks=keeps_locks)

    async def inline_rows(self, txn: TransactionId) -> Mapping[ShardId, pa.Table]:
        """See Coordination."""
        driver, own = self._rows(txn)
        return await driver.inline_rows(own)

    def spilled(self, txn: TransactionId, files: Mapping[ShardId, tuple[DataFile, ...]]) -> None:
        """See Coordination."""
        driver, own = self._rows(txn)
        driver.spilled(own, files)

    async def lease(self, txn: TransactionId, tables: Sequence[Table]) -> None:
        """See Coordination."""
        driver, own = self._place(txn, tables) if tables else (self._system, txn)
        await driver.lease(own, tables)

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
        timeline: str = SYSTEM,
    ) -> LockAnswered:
        """See Coordination."""
        driver, own = self._system, txn
        if timeline != SYSTEM:
            part = self._join(txn, timeline)
            driver, own = part.driver, part.txn
        return await driver.lock(
            own, tag, mode, wait=wait, by_session=by_session, ticket=ticket, single=single
        )

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
        driver, own = self._place(txn, [rows.table])
        return await driver.lock_rows(
            own, rows, mode, wait=wait, ticket=ticket, implicit=implicit, limit=limit
        )

    def begin_statement(self, txn: TransactionId) -> None:
        """See Coordination."""
        for driver, own in self._everywhere(txn):
            driver.begin_statement(own)

    def pin_snapshot(self, txn: TransactionId) -> None:
        """See Coordination."""
        for driver, own in self._everywhere(txn):
            driver.pin_snapshot(own)

    async def unlock(self, owner: ConnectionId, tag: LockTag, mode: LockMode) -> bool:
        """See Coordination."""
        return await self._system.unlock(owner, tag, mode)

    def unlock_all(self, owner: ConnectionId) -> None:
        """See Coordination."""
        self._system.unlock_all(owner)

    async def refresh(self, txn: TransactionId, timeline: str = SYSTEM) -> Snapshot:
        """See Coordination."""
        if timeline == SYSTEM:
            return await self._system.refresh(txn)
        part = self._join(txn, timeline)
        return await part.driver.refresh(part.txn)

    @property
    def newest_catalog(self) -> Catalog:
        """See Coordination."""
        return self._system.newest_catalog

    def begin_write(
        self, owner: ConnectionId, write: Insertion | WriteByKey, on_reply: OnReply
    ) -> None:
        """See Coordination."""
        assert write.table.timeline == SYSTEM, "L1: the caller has looked"
        self._system.begin_write(owner, write, on_reply)

    def locks_are_sure(self, txn: TransactionId) -> bool:
        """See Coordination."""
        return self._system.locks_are_sure(txn)

    async def confirm_locks(self, txn: TransactionId) -> None:
        """See Coordination."""
        await self._system.confirm_locks(txn)

    def change_in_block(self, txn: TransactionId, change: WriteByKey) -> ChangedByKey:
        """See Coordination."""
        driver, own = self._place(txn, [change.table])
        return driver.change_in_block(own, change)

    def read_in_block(
        self,
        txn: TransactionId,
        table: Table,
        predicate: ReadPredicate | None,
        names: Collection[NameDependency],
    ) -> ShardView | None:
        """See Coordination."""
        driver, own = self._place(txn, [table])
        return driver.read_in_block(own, table, predicate, names)

    def snapshot_now(self, txn: TransactionId) -> Snapshot | None:
        """See Coordination."""
        return None if self._opening else self._system.snapshot_now(txn)

    async def take_notifications(self, owner: ConnectionId) -> TakenNotifications:
        """See Coordination."""
        return await self._system.take_notifications(owner)

    async def commit(
        self,
        txn: TransactionId,
        notifying: NotificationChanges | None = None,
        *,
        single: bool = False,
    ) -> Timestamp:
        """See Coordination."""
        origin, part = self._begun.get(txn), self._forgotten(txn)
        try:
            if part is None:
                ts = await self._system.commit(txn, notifying, single=single)
            else:
                ts = await part.driver.commit(part.txn, notifying, single=single)
        except LockBlocks:
            # The transaction is open still, to wait.
            assert origin is not None, "who commits has begun"
            self._begun[txn] = origin
            if part is not None:
                self._parts[txn] = part
            raise
        except BaseException:
            self._ended(txn, part)
            raise
        self._ended(txn, part)
        return ts

    def begin_commit(self, txn: TransactionId, on_reply: OnReply) -> bool:
        """See Coordination."""
        if txn in self._parts or txn in self._holders:
            return False  # something is to be done when it has committed
        self._system.begin_commit(txn, on_reply)
        self._forgotten(txn)
        return True

    def _ended(self, txn: TransactionId, part: TimelinePart | None) -> None:
        """By now the catalog is published that has the holds of the transaction."""
        if part is not None:
            # In `system` it has only looked up names.
            self._system.abort(txn)
        self._let_go(txn)

    def abort(self, txn: TransactionId) -> None:
        """See Coordination."""
        part = self._forgotten(txn)
        self._let_go(txn)
        self._system.abort(txn)
        if part is not None:
            part.driver.abort(part.txn)

    def disconnected(self, owner: ConnectionId) -> None:
        """See Coordination."""
        for txn in [txn for txn, begun in self._begun.items() if begun.owner == owner]:
            self._forgotten(txn)
            self._let_go(txn)
        for driver in self.lines:
            driver.disconnected(owner)

    async def next_values(self, sequence: SequenceDefinition, count: int) -> Sequence[int]:
        """See Coordination."""
        return await self._system.next_values(sequence, count)

    def values_at_hand(self, sequence: SequenceDefinition, count: int) -> Sequence[int] | None:
        """See Coordination."""
        return self._system.values_at_hand(sequence, count)

    def take_at_hand(self, sequence: SequenceDefinition, count: int) -> None:
        """See Coordination."""
        self._system.take_at_hand(sequence, count)

    async def sequence_state(self, sequence: SequenceDefinition) -> SequenceState:
        """See Coordination."""
        return await self._system.sequence_state(sequence)

    async def set_value(self, sequence: SequenceDefinition, value: int, *, called: bool) -> None:
        """See Coordination."""
        await self._system.set_value(sequence, value, called=called)

    def new_transaction_number(self) -> int:
        """See Coordination."""
        return self._system.new_transaction_number()

    async def new_table_id(self) -> tuple[int, ShardId]:
        """See Coordination."""
        return await self._system.new_table_id()

    # --- parts -------------------------------------------------------------------------------

    def _place(self, txn: TransactionId, tables: Sequence[Table]) -> tuple[Driver, TransactionId]:
        """Where the rows of these tables are read and written (L1)."""
        names = list(dict.fromkeys(table.timeline for table in tables))
        if len(names) > 1:
            raise mixed_timelines(names[0], names[1])
        if names and names[0] != SYSTEM:
            part = self._join(txn, names[0])
            return part.driver, part.txn
        known = self._parts.get(txn)
        if known is not None:
            raise mixed_timelines(known.timeline, SYSTEM)
        self._touched.add(txn)
        return self._system, txn

    def _everywhere(self, txn: TransactionId) -> Iterable[tuple[Driver, TransactionId]]:
        yield self._system, txn
        part = self._parts.get(txn)
        if part is not None:
            yield part.driver, part.txn

    def _rows(self, txn: TransactionId) -> tuple[Driver, TransactionId]:
        """Where the transaction has its rows, if it has any."""
        part = self._parts.get(txn)
        return (self._system, txn) if part is None else (part.driver, part.txn)

    def _join(self, txn: TransactionId, timeline: str) -> TimelinePart:
        """The transaction's part in a timeline; begun now if there is none (L1)."""
        known = self._parts.get(txn)
        if known is not None and known.timeline == timeline:
            return known
        if known is not None or txn in self._touched:
            raise mixed_timelines(SYSTEM if known is None else known.timeline, timeline)
        driver = self._line(timeline)
        own = begin_part(driver, self._begun[txn])
        if self._begun[txn].names:
            driver.looked_up(own, self._begun[txn].names)
        part = self._parts[txn] = TimelinePart(timeline, driver, own)
        return part

    def _let_go(self, txn: TransactionId) -> None:
        for driver, own in self._holders.pop(txn, ()):
            driver.abort(own)

    def _line(self, timeline: str) -> Driver:
        driver = self._lines.get(timeline)
        if driver is None and timeline in self._opening:
            # Only who asks for bounded staleness has not waited for it.
            raise RequestRefused.from_reply(too_stale())
        if driver is None:
            raise SqlError("42704", f'timeline "{timeline}" does not exist')
        return driver

    def _forgotten(self, txn: TransactionId) -> TimelinePart | None:
        self._begun.pop(txn, None)
        self._touched.discard(txn)
        return self._parts.pop(txn, None)


def _is_cancelled() -> bool:
    """True if this task was told to end: a group inside, one of whose tasks failed just then, has
    told its failure instead.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
