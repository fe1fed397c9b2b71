"""A session's transaction as a state machine: implicit or in a block, healthy or failed.

           BEGIN ┌──────────── COMMIT, ROLLBACK ───────────┐
    I idle ──────┴▶ T in a block ── error ──▶ E failed ────┴──▶ I
      │                  ▲─────── ROLLBACK TO ──────┘
      └─ statement ─▶ implicit ── end of the string, Sync ─▶ I

INVARIANTS
  X1  a transaction of the coordinator is begun at the first statement that needs one, never by
      BEGIN: its timestamp is chosen when it first reads. (BEGIN .. AS OF names its timestamp.)
  X2  every transaction that was begun ends in `commit` or `abort`, once; variables follow it.
  X3  a failed transaction reads and writes nothing more. Without a savepoint it is aborted at once;
      with one, everything after the innermost savepoint is undone at once.
  X4  a commit is not interrupted: `committing` is true as long as one is in flight. Who has tried
      meanwhile is heard if the statement must wait or begin again.
  X6  BEGIN .. AS OF counts in the timeline of the first table that the transaction names: a number
      may be of a timeline without a clock. Where there is only `system` it is refused at once.
  X7  deferred constraints are checked before the commit, in the transaction; a failure ends it.
  X5  a savepoint from before the coordinator's transaction is its beginning, number 0.
  X8  a transaction that listens or notifies commits in the coordinator, also if it has done nothing
      else: what it sends has a place in the order of the commits.
  X9  a statement that begins again leaves nothing behind but its locks. Most have written nothing
      when they meet one; others go back to a savepoint of their own.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from coordinator import session_errors as wrong
from coordinator.core.locking.modes import (
    AdvisoryTag,
    LockMode,
    LockTag,
    LockWait,
    RowTag,
    TableTag,
)
from coordinator.core.messages.identities import ConnectionId, Isolation, TransactionId
from coordinator.core.messages.locks import RowsToLock
from coordinator.core.messages.replies import Committed, LockAnswered, ReplyValue, Snapshot
from coordinator.core.messages.requests import Insertion
from coordinator.core.short_writes.by_key import WriteByKey
from coordinator.driver.coordination import (
    Coordination,
    LockBlocks,
    RequestRefused,
    reply_in_kind,
)
from coordinator.driver.open_requests import OnReply
from coordinator.driver.sequences import SessionSequences
from coordinator.pgwire.messages import TransactionStatus
from coordinator.session_errors import read_only_transaction
from coordinator.statistics.relation_counts import DatabaseCounts
from coordinator.transaction.deferral import Deferral
from coordinator.transaction.following import Following
from coordinator.transaction.inline_rows import CountedInlineRows
from coordinator.transaction.lock_calls import LockCalls
from coordinator.transaction.new_tables import NewTables
from coordinator.transaction.notifications import NOTHING_PENDING, PendingNotifications
from coordinator.transaction.savepoints import Savepoint, savepoint_index
from coordinator.transaction.statement_waits import StatementWaits
from coordinator.variables.isolation import parse_snapshot_id, snapshot_id, unknown_snapshot
from coordinator.variables.transaction_modes import check_mode
from coordinator.variables.variables import Modes, Variables
from sql.catalog.catalog import SYSTEM_TIMELINE, Table
from sql.catalog.temporary import is_temporary_schema
from sql.errors import SqlError
from sql.statements.session import TransactionControl
from sql.types.sql_type import Value
from storage.clock import Clock
from storage.types import Timestamp


class StatementRestart(Exception):
    """The statement begins again: what it is about has changed since its snapshot was taken."""


class SessionTransaction(StatementWaits):
    """See the module."""

    last_write: Timestamp | None = None
    """Of the session's last commit that wrote: meridian.last_commit_timestamp()."""

    def __init__(
        self, coordination: Coordination, clock: Clock, owner: ConnectionId, variables: Variables
    ) -> None:
        super().__init__(clock, variables)
        self._coordination = coordination
        self._owner = owner
        self._id: TransactionId | None = None
        self._snapshot: Snapshot | None = None
        self._chosen = False
        self._line: Snapshot | None = None
        self._line_of = SYSTEM_TIMELINE.name
        self._as_of: tuple[Timestamp, bool] | None = None
        self._not_of_system: RequestRefused | None = None
        self._past_settled = False
        self._in_block = False
        self._failed = False
        self._now = 0
        self._savepoints: list[Savepoint] = []
        self._changed_catalog = False
        self.sequences = SessionSequences()
        self.deferral = Deferral()
        self.fresh = NewTables(self._savepoints)
        self.notifications = PendingNotifications(coordination.notifications.queue.bytes_max)
        self.lock_calls, self.following = LockCalls(), Following()
        self.named_rows: Callable[[], Mapping[str, Sequence[Mapping[str, Value]]]] | None = None
        """Rows of catalogs that show the session's statements and portals."""
        self.settle: Callable[[], Awaitable[None]] | None = None
        """Looks at deferred constraints (X7)."""
        self.number: int | None = None  # what txid_current() answers, once somebody asks
        self.serial = self.rolled_back_to = self.ends = 0
        self.committed = False
        self.commit_ts: Timestamp | None = None
        """Of the last transaction that was committed with an id."""
        self.statements = 0
        self.grouped = self.analyzed = self.refused_shortly = False
        """`analyzed`: one was prepared or bound; `refused_shortly`: the short way has failed."""
        self.wrote = False
        self.inline = CountedInlineRows()
        self.counts = DatabaseCounts()
        """Where its ends are counted: of its session's database."""
        self.committing = False
        self.interrupted: SqlError | None = None
        """What would have ended the statement while it was committing (X4)."""
        self.waited = False
        """A statement has got a lock: the next one reads what those before it have left."""
        self._refreshes = False
        self._ticket = 0
        """The statement's place in the line for locks, kept while it begins again."""
        self._undo: Savepoint | None = None
        """To where a statement goes back that has written and begins again (X9)."""
        self._notified = NOTHING_PENDING
        """What was pending before the statement, which may begin again."""

    # --- state ----------------------------------------------------------------------------------

    @property
    def status(self) -> TransactionStatus:
        """The status that ReadyForQuery reports."""
        if not self._in_block:
            return TransactionStatus.IDLE
        return TransactionStatus.FAILED if self._failed else TransactionStatus.IN_TRANSACTION

    @property
    def in_block(self) -> bool:
        """Between BEGIN and its end."""
        return self._in_block

    @property
    def warns_outside(self) -> bool:
        """Whether a statement runs alone: commands that need a block warn or fail then."""
        return not self._in_block and not self.grouped

    @property
    def has_begun(self) -> bool:
        """Whether a statement has come before, so that the next one is not the whole of it."""
        return self._in_block or self.statements > 0 or bool(self.notifications)

    @property
    def is_open(self) -> bool:
        """Whether anything would be lost if the session ended now."""
        begun = self._in_block or self._id is not None or self.committing
        return begun or bool(self.notifications)

    @property
    def only_follows(self) -> bool:
        """Whether its block has subscriptions, and nothing else."""
        return self._id is None and self.following.open > 0 and self._in_block

    @property
    def failed(self) -> bool:
        """Waiting for ROLLBACK."""
        return self._failed

    @property
    def listening_channels(self) -> tuple[str, ...]:
        """What the session listens to; LISTEN of an open transaction does not count yet."""
        return self._coordination.notifications.queue.channels(self._owner)

    @property
    def id(self) -> TransactionId:
        """The coordinator's transaction, begun now if there was none (X1)."""
        if self._id is None:
            assert not self._failed, "X3: a failed transaction does nothing more"
            isolation, staleness_us = self._variables.level
            self._id = self._coordination.begin(
                self._owner,
                isolation=isolation,
                read_only=self.read_only,
                staleness_us=staleness_us,
            )
        return self._id

    @property
    def owner(self) -> ConnectionId:
        """The session, as the coordinator knows it."""
        return self._owner

    @property
    def _queried(self) -> bool:
        """Whether it is too late for its modes."""
        return self._id is not None or self.analyzed

    @property
    def isolation(self) -> Isolation:
        """Its isolation level."""
        return self._variables.level[0]

    @property
    def read_only(self) -> bool:
        """Whether writes are refused."""
        return self._variables.flag("transaction_read_only")

    @property
    def changed_catalog(self) -> bool:
        """Whether it has DDL of its own, so that its catalog is nobody else's."""
        return self._changed_catalog

    @changed_catalog.setter
    def changed_catalog(self, changed: bool) -> None:
        self._changed_catalog = changed
        self._snapshot = None

    @property
    def portals_since(self) -> int:
        """The serial of the portals that an error ends, and of all later ones."""
        return self._savepoints[-1].serial if self._savepoints else 0

    def now(self) -> int:
        """Microseconds: the start of the transaction, one value for all of its statements."""
        if self._now == 0:
            self._now = self._clock.now()
        return self._now

    @property
    def started_at(self) -> int | None:
        """The start of a transaction that is open, if anything has asked for it."""
        return self._now if self._now and self.is_open else None

    # --- snapshots ------------------------------------------------------------------------------

    def begin_reads(self) -> None:
        """A statement of a block reads from here on; until the next one it may begin again."""
        self._coordination.begin_statement(self.id)

    def pin_snapshot(self) -> None:
        """A statement tells where the transaction reads: no lock moves that any more."""
        if self._id is not None:
            self._coordination.pin_snapshot(self._id)

    def begin_statement(self, *, again: bool = False) -> None:
        """At read committed a statement reads at a timestamp of its own; at other levels, one after
        a lock at the newest, if what was read before is still true there.
        """
        if self._as_of is None and self._variables.level[0] is Isolation.READ_COMMITTED:
            self._snapshot = self._line = None
        self._refreshes, self.waited = self.waited and self._as_of is None, False
        if again:
            self.notifications.rewind(self._notified)
            self.lock_calls.begin_again()
        else:
            self.lock_calls.begin()
            self._ticket, self._notified = 0, self.notifications.mark()

    async def snapshot(self) -> Snapshot:
        """The transaction's timestamp and catalog, its own DDL included."""
        if self._refreshes:
            self._refreshes = False
            await self._refresh()
        if self._snapshot is None:
            self._snapshot = await self._coordination.snapshot(self.id)
            self._chosen = True
        return self._snapshot

    @property
    def has_chosen(self) -> bool:
        """Whether its timestamp is chosen, for all that it will read."""
        return self._chosen or self._snapshot is not None

    def snapshot_now(self) -> Snapshot | None:
        """The same as `snapshot`, if nothing has to be waited for."""
        if self._as_of is not None or self.waited or self._refreshes or self._line is not None:
            return None
        if self._variables.level[0] in (Isolation.READ_COMMITTED, Isolation.BOUNDED_STALENESS):
            return None
        if self._snapshot is None:
            self._snapshot = self._coordination.snapshot_now(self.id)
            self._chosen = self._snapshot is not None
        return self._snapshot

    async def _refresh(self) -> None:
        if self._snapshot is not None:
            self._snapshot = await self._coordination.refresh(self.id)
        if self._line is not None:
            self._line = await self._coordination.refresh(self.id, self._line_of)

    async def timestamp(self, tables: Sequence[Table]) -> Timestamp:
        """Where it reads these tables, which may be of another timeline than its catalog."""
        timeline = next((table.timeline for table in tables), SYSTEM_TIMELINE.name)
        if timeline == SYSTEM_TIMELINE.name:
            if self._not_of_system is not None:
                raise self._not_of_system
            return (await self.snapshot()).ts
        if self._line is None:
            ts, at_least = self._as_of or (None, False)
            self._line = await self._coordination.snapshot(
                self.id, as_of=ts, at_least=at_least, timeline=timeline
            )
            self._line_of = timeline
        return self._line.ts

    def pinned(self, tables: Sequence[Table]) -> Timestamp | None:
        """Where BEGIN .. AS OF lets it read these tables; None without."""
        if self._as_of is None:
            return None
        elsewhere = any(table.timeline != SYSTEM_TIMELINE.name for table in tables)
        chosen = self._line if elsewhere else self._snapshot
        return self._as_of[0] if chosen is None else chosen.ts

    @property
    def past_is_open(self) -> bool:
        """Whether the timeline of BEGIN .. AS OF is not determined yet (X6)."""
        return self._as_of is not None and not self._past_settled

    async def settle_past(self, timeline: str) -> None:
        """Determine the timeline of BEGIN .. AS OF (X6); only `system` has catalogs of the past."""
        self._past_settled = True
        if timeline != SYSTEM_TIMELINE.name:
            self._snapshot = await self._coordination.snapshot(self.id)

    async def present(self) -> Snapshot:
        """A catalog to describe statements with: chooses no timestamp for the transaction."""
        if self._snapshot is not None or self._chosen:
            return await self.snapshot()
        return await self.glance()

    async def glance(self, as_of: Timestamp | None = None, *, at_least: bool = False) -> Snapshot:
        """A snapshot of what is committed now, or was then; independent of the transaction."""
        glance = self._coordination.begin(self._owner, read_only=True)
        try:
            return await self._coordination.snapshot(glance, as_of=as_of, at_least=at_least)
        finally:
            self._coordination.abort(glance)

    @property
    def exported(self) -> str | None:
        """What pg_export_snapshot() answers; None in a subtransaction or without a snapshot.

        Of a transaction in another timeline it is where it reads there.
        """
        snapshot = self._snapshot if self._line is None else self._line
        if snapshot is None or self._id is None or self._savepoints:
            return None
        return snapshot_id(self._id, snapshot.ts)

    async def adopt(self, name: str) -> None:
        """SET TRANSACTION SNAPSHOT."""
        if self._snapshot is not None or self._queried or self._savepoints:
            raise wrong.required_before_any_query("SET TRANSACTION SNAPSHOT")
        if self._variables.level[0] in (Isolation.READ_COMMITTED, Isolation.BOUNDED_STALENESS):
            raise wrong.snapshot_import_not_supported()
        exporter, ts = parse_snapshot_id(name)
        try:
            self._snapshot = await self._coordination.adopt(self.id, exporter, ts)
        except RequestRefused:
            raise unknown_snapshot(name) from None

    # --- control --------------------------------------------------------------------------------

    def begin_block(self, control: TransactionControl) -> None:
        """BEGIN; in a block it sets the modes, as PostgreSQL does. If it cannot, none begins."""
        if self._in_block:
            self.set_modes(control)
            return
        # Fixed now: a later change of the defaults is for later transactions.
        self.begin_chained(self._variables.modes)
        try:
            self.set_modes(control)
        except SqlError:
            self.rollback()  # of all that was before it in its pipeline, too
            raise

    async def begin_as_of(
        self, control: TransactionControl, ts: Timestamp, *, at_least: bool
    ) -> None:
        """BEGIN .. AS OF: read only, at a timestamp that is not its own choice."""
        if self._in_block or self._id is not None:
            raise wrong.required_before_any_query("BEGIN AS OF")
        self.begin_block(control)
        try:
            self._variables.set("transaction_read_only", "on", local=True)
            await self._take_past(ts, at_least=at_least)
        except BaseException:
            self.rollback()  # what could not begin is no failed block either
            raise
        self._as_of = (ts, at_least)

    async def _take_past(self, ts: Timestamp, *, at_least: bool) -> None:
        """The past of `system`, unless it is that of another timeline (X6)."""
        self._past_settled = len((await self.glance()).catalog.timelines) == 1
        try:
            self._snapshot = await self._coordination.snapshot(self.id, as_of=ts, at_least=at_least)
        except RequestRefused as refused:
            if self._past_settled:
                raise
            self._not_of_system = refused

    def set_modes(self, control: TransactionControl) -> None:
        """SET TRANSACTION, and what BEGIN says."""
        if control.isolation is not None:
            self.set_mode("transaction_isolation", control.isolation)
        if control.read_only is not None:
            self.set_mode("transaction_read_only", "on" if control.read_only else "off")
        if control.deferrable is not None:
            self.set_mode("transaction_deferrable", "on" if control.deferrable else "off")

    def set_mode(
        self, name: str, value: str | None, *, local: bool = True, alone: bool = False
    ) -> None:
        """Set a mode by PostgreSQL's rules. Raises 25001, 0A000. `local`: of this transaction only;
        `alone`: the transaction ends with this statement.
        """
        self.fix_modes()
        before = self._variables.get(name)
        after = self._variables.checked(name, value)
        stale = self._variables.level[0] is Isolation.BOUNDED_STALENESS
        check_mode(
            name,
            before=before,
            after=after,
            queried=self._queried and not (alone and name == "consistency"),
            nested=bool(self._savepoints),
            read_only=self._as_of is not None or stale,
            stale=stale,
        )
        self._variables.set(name, after, local=local)

    def fix_modes(self) -> None:
        """Before a setting changes: an implicit transaction keeps its modes, too (V5).

        As in PostgreSQL it has them from its first statement on, whatever its string sets later.
        """
        if not self._in_block:
            self._variables.begin(self._variables.modes)

    def check_writable(self, command: str, tables: Sequence[Table] = ()) -> None:
        """Raises 25006 in a read-only transaction, unless all that is written is temporary."""
        if self.read_only and not (tables and all(is_temporary_schema(t.schema) for t in tables)):
            raise read_only_transaction(command)

    def fail(self, *, has_ended: bool = False) -> None:
        """A statement failed: the block waits for its end, an implicit transaction is over (X3).
        `has_ended`: the statement has ended one already, which is counted.
        """
        self.grouped = False  # nothing more of its string, or of its pipeline
        self._undo = None
        if not self._in_block:
            self._drop()
            self._end(committed=False, has_run=not has_ended)
            return
        self._failed = True
        if self._savepoints:
            self._undo_to(self._savepoints[-1])
        else:
            self._drop()
            self._variables.failed()

    # --- savepoints -----------------------------------------------------------------------------

    def savepoint(self, name: str) -> None:
        """SAVEPOINT."""
        self._require_block("SAVEPOINT")
        self._savepoints.append(self._mark(name))

    def _mark(self, name: str) -> Savepoint:
        self.serial += 1
        number = 0
        if self._id is not None:
            number = self.serial
            self._coordination.savepoint(self._id, number)
        return Savepoint(
            name,
            number,
            self.serial,
            self._variables.mark(),
            self.deferral.mark(),
            self.notifications.mark(),
            self._changed_catalog,
            self.wrote,
        )

    def mark_statement(self) -> None:
        """The statement is about to write, and may meet a lock behind that (X9)."""
        assert self._id is not None, "X9: a statement that writes has a snapshot"
        if self._undo is None:
            self._undo = self._mark("")

    def undo_statement(self) -> None:
        """The statement begins again: what it has written is undone, but its locks stay (X9)."""
        if self._undo is not None:
            self._undo_to(self._undo, keeps_locks=True)
            self.keep_statement()

    def keep_statement(self) -> None:
        """The statement is done, and stays unless its block is undone (X9)."""
        undo, self._undo = self._undo, None
        if undo is not None and self._id is not None:
            self._coordination.release(self._id, undo.number)

    def release(self, name: str) -> None:
        """RELEASE: savepoints from it on are forgotten; their work stays, but not READ ONLY."""
        self._require_block("RELEASE SAVEPOINT")
        place = savepoint_index(self._savepoints, name)
        if self._id is not None:
            self._coordination.release(self._id, self._savepoints[place].number)
        self._variables.modes = self._savepoints[place].variables.modes
        del self._savepoints[place:]
        self.fresh.released()

    def rollback_to(self, name: str) -> None:
        """ROLLBACK TO: everything after it is undone, portals too; the savepoint stays."""
        self._require_block("ROLLBACK TO SAVEPOINT")
        place = savepoint_index(self._savepoints, name)
        savepoint = self._savepoints[place]
        self._undo_to(savepoint)
        del self._savepoints[place + 1 :]
        self.fresh.undone()
        self._failed = False
        self.rolled_back_to = savepoint.serial

    def _require_block(self, command: str) -> None:
        if not self._in_block:
            raise wrong.only_in_block(command)

    def _undo_to(self, savepoint: Savepoint, *, keeps_locks: bool = False) -> None:
        if self._id is not None:
            number = savepoint.number
            self._coordination.rollback_to(self._id, number, keeps_locks=keeps_locks)
        self._variables.rewind(savepoint.variables)
        self.deferral.rewind(savepoint.deferral)
        self.notifications.rewind(savepoint.notifications)
        self._changed_catalog = savepoint.changed_catalog
        self.wrote = savepoint.wrote
        if self._as_of is None:
            # What has failed may have moved the transaction without a word to us.
            self._snapshot = self._line = None

    # --- the end --------------------------------------------------------------------------------

    def begin_write(self, write: Insertion | WriteByKey, on_reply: OnReply) -> None:
        """Ask for a write that is the whole transaction, and for its commit; then `end_write`."""
        assert not self.is_open, "X1: nothing has begun that would have to end"
        self.committing, self.interrupted = True, None
        try:
            self._coordination.begin_write(self._owner, write, on_reply)
        except BaseException:
            self.committing = False
            raise

    def end_write(self, reply: ReplyValue | None) -> Committed:
        """What has become of it. Raises RequestRefused, and LockBlocks."""
        self.committing = False
        done = reply_in_kind(reply, Committed, SYSTEM_TIMELINE.name)
        self.last_write = done.ts
        self._end(committed=True, has_run=True)
        return done

    def begin_commit(self, on_reply: OnReply) -> bool:
        """Ask for the commit of a block that only reads and writes rows; then `end_commit`. False:
        there is more to do, or nothing, and nothing has happened. Raises 57P01.
        """
        txn = self._id
        if txn is None or self._failed or self._as_of is not None or self._changed_catalog:
            return False
        if self.notifications or self.deferral.waiting:
            return False
        self._id, self.committing, self.interrupted = None, True, None
        begun = False
        try:
            begun = self._coordination.begin_commit(txn, on_reply)
        finally:
            if not begun:
                self._id, self.committing = txn, False
        return begun

    def end_commit(self, reply: ReplyValue | None) -> Committed:
        """What has become of it: the transaction has ended. Raises RequestRefused."""
        self.committing = False
        try:
            done = reply_in_kind(reply, Committed, SYSTEM_TIMELINE.name)
        except BaseException:
            self._end(committed=False, has_run=True)
            raise
        self._committed_at(done.ts)
        return done

    def _committed_at(self, ts: Timestamp) -> None:
        self.commit_ts = ts
        if self.wrote or self._changed_catalog:
            self.last_write = ts
        self._end(committed=True)

    async def commit(self, *, single: bool = False) -> bool:
        """Commit. False: it had failed and was rolled back instead. Raises RequestRefused.

        `single`: it is of one statement that nobody has seen. Raises LockBlocks, too; then
        `wait_for` goes on.
        """
        if self._failed:
            self.rollback()
            return False
        notifying = self.notifications.changes()
        reads = self._as_of is not None or (not self._in_block and not self.wrote)
        if reads and notifying is None:
            # A query alone, at one timestamp: there is nothing to validate.
            self._drop()
        await self._settle()
        txn = self._id if notifying is None else self.id  # X8
        self._id = self.interrupted = None
        if txn is None:
            self._end(committed=True)
            return True
        self.committing = True
        try:
            ts = await self._coordination.commit(txn, notifying, single=single)
        except LockBlocks:
            self._id = txn
            raise
        except BaseException:
            self._end(committed=False, has_run=True)
            raise
        finally:
            self.committing = False
        self._committed_at(ts)
        return True

    async def _settle(self) -> None:
        """Do what COMMIT does; if a deferred constraint objects, everything is dropped (X7)."""
        if not self.deferral.waiting and not self._changed_catalog:
            return
        assert self.settle is not None, "X7: who writes has a session"
        self.begin_statement()
        try:
            await self.settle()
        except BaseException:
            self.rollback()
            raise

    def rollback(self) -> None:
        """Drop everything and leave the block."""
        self._drop()
        self._end(committed=False)

    def begin_chained(self, modes: Modes) -> None:
        """AND CHAIN: a block with the modes of the one before."""
        self._in_block = True
        self.now()
        self._variables.begin(modes)

    def let_go(self) -> None:
        """A subscription goes on by itself: hold nothing if it is all that was done so far."""
        others = self.statements > self.following.statements or self._savepoints or self.wrote
        if not others and not self.notifications and self._as_of is None:
            self._drop()

    def restart(self) -> None:
        """Forget an attempt of an implicit transaction; the next one starts from scratch."""
        assert not self._in_block, "a block is never started again: the client has seen its reads"
        self._drop()
        self._now = 0

    async def lease(self, tables: tuple[Table, ...]) -> None:
        """Wait until nobody else may commit writes to these tables. Raises 55P03."""
        await self.in_lock_time(self._coordination.lease(self.id, tables), TableTag)

    async def lock(
        self,
        tag: LockTag,
        mode: LockMode,
        *,
        wait: LockWait = LockWait.UNTIL_GRANTED,
        by_session: bool = False,
        timeline: str = SYSTEM_TIMELINE.name,
    ) -> LockAnswered:
        """Take a lock; not granted: it is not free, and not to be waited for. Raises 40001, 40P01,
        55P03; and StatementRestart if what it protects has changed since the statement began.
        """
        is_advisory = isinstance(tag, AdvisoryTag)
        answer = await self.in_lock_time(
            self._coordination.lock(
                self.id,
                tag,
                mode,
                wait=wait,
                by_session=by_session,
                # The statement goes on after it, and stands at the end of the next line.
                ticket=0 if is_advisory else self._ticket,
                timeline=timeline,
            ),
            type(tag),
        )
        if is_advisory:
            self.waited = self.waited or answer.granted
            return answer
        return self._locked(answer)

    async def lock_rows(
        self,
        rows: RowsToLock,
        mode: LockMode,
        *,
        wait: LockWait = LockWait.UNTIL_GRANTED,
        implicit: bool = False,
        limit: int | None = None,
    ) -> LockAnswered:
        """The same for rows of a table; `implicit`: the statement changes them. `limit`: only the
        first that are free, so many.
        """
        answer = await self.in_lock_time(
            self._coordination.lock_rows(
                self.id,
                rows,
                mode,
                wait=wait,
                ticket=self._ticket,
                implicit=implicit,
                limit=limit,
            ),
            RowTag,
        )
        return self._locked(answer)

    def _locked(self, answer: LockAnswered) -> LockAnswered:
        self._ticket = answer.ticket
        if answer.again:
            # The coordinator has moved the transaction, or will with the next snapshot.
            self._snapshot = self._line = None
            raise StatementRestart
        return answer

    def heed_interrupt(self) -> None:
        """Raises what wanted to end the statement while it was committing (X4)."""
        if self.interrupted is not None:
            raise self.interrupted

    async def wait_for(self, blocks: LockBlocks) -> None:
        """A single statement waits for what was in the way of its commit, and holds it when it
        begins again. Raises 40P01, 55P03, and what has interrupted it.
        """
        self.heed_interrupt()
        self._forget()
        self._now = 0
        answer = await self.in_lock_time(
            self._coordination.lock(
                self.id,
                blocks.tag,
                blocks.mode,
                ticket=self._ticket,
                single=True,
                timeline=blocks.timeline,
            ),
            type(blocks.tag),
        )
        self._ticket = answer.ticket

    def _drop(self) -> None:
        txn, self._id = self._id, None
        if txn is not None:
            self._coordination.abort(txn)
        self._forget()

    def _end(self, *, committed: bool, has_run: bool = False) -> None:
        self.ends += 1
        if has_run or self._now or self._in_block:
            # Without a time nothing was bound in it.
            self.counts.commits += committed
            self.counts.rollbacks += not committed
        self.number, self.committed = None, committed
        self._forget()
        self._in_block = self._failed = self.analyzed = False
        self._savepoints.clear()
        self._now = self._ticket = self.statements = self.following.statements = 0
        if committed:
            self._variables.committed()
        else:
            self._variables.rolled_back()

    def _forget(self) -> None:
        self._snapshot = self._undo = self._line = self._as_of = self._not_of_system = None
        self._chosen = self.waited = self._refreshes = False
        self._past_settled = self._changed_catalog = False
        self.deferral.forget()
        self.notifications.forget()
        self.fresh.clear()
        self.wrote = False
        self.inline.left(0)
