"""The interface of the coordinator to sessions: transactions, snapshots, scans, writes, commits.

The driver implements it over the core (`driver.py`). Methods without `async` never wait; `await`
marks where the world may change. A refused request raises `RequestRefused`, a `SqlError` that says
whether a statement may start again from scratch. When the server ends, requests raise 57P01 or are
cancelled, and the other methods do nothing.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Final, Protocol, TypeVar

import pyarrow as pa

from coordinator.core.change_streams.steps import SubscriptionRequest
from coordinator.core.locking.modes import LockMode, LockTag, LockWait
from coordinator.core.messages.catalog_changes import CatalogChange
from coordinator.core.messages.identities import ConnectionId, Isolation, TransactionId
from coordinator.core.messages.locks import RowsToLock
from coordinator.core.messages.replies import (
    Blocked,
    ChangedByKey,
    LockAnswered,
    Refused,
    RefusedReason,
    ReplyValue,
    Snapshot,
)
from coordinator.core.messages.requests import Insertion
from coordinator.core.notifications.changes import NotificationChanges, TakenNotifications
from coordinator.core.observation import ObservedTimeline, TimestampExplained
from coordinator.core.predicates import ReadPredicate
from coordinator.core.short_writes.by_key import WriteByKey
from coordinator.driver.change_streams import ChangeStream
from coordinator.driver.followed_views import FollowedViews
from coordinator.driver.notifications import SessionNotifications
from coordinator.driver.open_requests import OnReply
from coordinator.driver.sequences import SequenceState
from sql.catalog.catalog import SYSTEM_TIMELINE, Catalog, NameDependency, Table
from sql.catalog.objects import SequenceDefinition
from sql.errors import SqlError
from storage.batch import DataFile, ShardView, WriteBatch
from storage.known_rows import OldRows
from storage.types import ShardId, Timestamp

R = TypeVar("R", bound=ReplyValue)


class RequestRefused(SqlError):
    """The core refused a request. With `reason` conflict or stale a statement may start again, if
    the client has seen nothing of it.
    """

    reason: RefusedReason = RefusedReason.OTHER
    source: int = 0
    """Of a source that has not loaded what was to be read."""

    @classmethod
    def from_reply(cls, refused: Refused) -> "RequestRefused":
        """The error for a Refused reply."""
        error = cls(refused.sqlstate, refused.message, None, refused.detail, refused.hint)
        error.reason, error.source = refused.reason, refused.source
        error.constraint = refused.constraint
        if refused.table is not None:
            error.schema, error.table = refused.table.schema, refused.table.name
        return error


NOTHING_SKIPPED: Final[Mapping[int, LockMode]] = {}


class LockBlocks(Exception):
    """A single statement did not commit: somebody holds a lock on what it would change.

    Nothing of it is left. Its transaction, if it has one, is open: to wait for the lock, and to
    begin again.
    """

    def __init__(self, blocked: Blocked, timeline: str) -> None:
        super().__init__(blocked)
        self.tag = blocked.tag
        self.mode = blocked.mode
        self.timeline = timeline


def reply_in_kind(value: ReplyValue | None, expected: type[R], timeline: str) -> R:
    """The reply to a request. Raises what it says otherwise; CancelledError if there is none."""
    if isinstance(value, expected):
        return value
    if value is None:
        raise asyncio.CancelledError
    if isinstance(value, Refused):
        raise RequestRefused.from_reply(value)
    assert isinstance(value, Blocked), "R4: a request is answered in kind"
    raise LockBlocks(value, timeline)


class Coordination(Protocol):
    """See the module. Every transaction that was begun must end in `commit` or `abort`."""

    def begin(
        self,
        owner: ConnectionId,
        *,
        isolation: Isolation = Isolation.STRICT_SERIALIZABLE,
        read_only: bool = False,
        staleness_us: int | None = None,
    ) -> TransactionId:
        """Open a transaction; cheap, nothing is held before the first snapshot."""
        ...

    async def snapshot(
        self,
        txn: TransactionId,
        *,
        as_of: Timestamp | None = None,
        at_least: bool = False,
        timeline: str = SYSTEM_TIMELINE.name,
    ) -> Snapshot:
        """The timestamp and catalog to bind and read a statement with. Raises 72000, 22023.

        In another timeline than `system` the timestamp is that timeline's, and the catalog the
        present one; the transaction is in that timeline from then on. Raises 25000, 42704.
        """
        ...

    def advance(self, txn: TransactionId, timeline: str, ts: Timestamp) -> None:
        """The transaction's commit brings a timeline without a clock to `ts` at least.

        Raises 25000, 42704, and 55000 if the timeline follows a clock or is past `ts` already.
        """
        ...

    async def adopt(self, txn: TransactionId, exporter: TransactionId, ts: Timestamp) -> Snapshot:
        """Read where another open transaction does, instead of taking a snapshot. Raises 22023."""
        ...

    async def subscribe(self, txn: TransactionId, wanted: SubscriptionRequest) -> ChangeStream:
        """Follow a table from a timestamp on that the transaction holds; the transaction may end
        then. Nobody else leads, as for a strict read (D4 of `driver.py`). Raises 72000.
        """
        ...

    def savepoint(self, txn: TransactionId, number: int) -> None:
        """Remember writes and DDL under a number; numbers ascend from 1, none comes again."""
        ...

    def release(self, txn: TransactionId, number: int) -> None:
        """Forget a savepoint and those after it; its writes stay."""
        ...

    def rollback_to(self, txn: TransactionId, number: int, *, keeps_locks: bool = False) -> None:
        """Undo writes and DDL since a savepoint; 0: all of them. The read set stays. What was
        locked since is free, unless a statement begins again, and `keeps_locks`.
        """
        ...

    async def inline_rows(self, txn: TransactionId) -> Mapping[ShardId, pa.Table]:
        """The rows that the transaction keeps in memory; the next write comes after `spilled`."""
        ...

    def spilled(self, txn: TransactionId, files: Mapping[ShardId, tuple[DataFile, ...]]) -> None:
        """The inline rows of these shards are in these staged files now, in order."""
        ...

    async def scan(
        self,
        txn: TransactionId,
        ts: Timestamp,
        tables: Sequence[Table],
        predicates: Sequence[ReadPredicate | None] = (),
        locked: frozenset[int] = frozenset(),
        skipped: Mapping[int, LockMode] = NOTHING_SKIPPED,
    ) -> Sequence[ShardView]:
        """Pinned views, one per table; at the transaction's own timestamp they enter its read
        set, each with its predicate (None, or none given: the whole table). `locked`: by oid, the
        tables whose rows must be the same when it commits, at every level. `skipped`: by oid,
        tables without the rows that other sessions hold against a mode, and not in the read set.
        """
        ...

    def write(
        self,
        txn: TransactionId,
        table: Table,
        batch: WriteBatch,
        old: OldRows | None = None,
        *,
        keeps_keys: bool = False,
    ) -> None:
        """Buffer rows into the transaction; `old`: the values of rows that it deletes, if known.
        `keeps_keys`: these come again with the same primary key.
        """
        ...

    def change_catalog(self, txn: TransactionId, changes: Sequence[CatalogChange]) -> None:
        """Buffer DDL into the transaction."""
        ...

    def looked_up(self, txn: TransactionId, names: Collection[NameDependency]) -> None:
        """Names that the transaction rests on: if it writes, it commits only if they still mean
        the same (A6 of `coordinator/core/validation.py`).
        """
        ...

    async def hold(
        self, txn: TransactionId, timeline: str, ts: Timestamp | None = None
    ) -> Timestamp:
        """The timestamp of a named read hold about to be created, readable until the transaction
        ends: `ts`, or the present of the timeline. Raises 72000, 22023.

        It may be another timeline than that of the transaction's rows and DDL: a hold reads none.
        """
        ...

    async def optimize(self, tables: Sequence[Table]) -> None:
        """Rewrite small and half-deleted files of these tables; returns when it is done."""
        ...

    async def vacuum(self, tables: Sequence[Table] | None) -> None:
        """Remove files that nobody can read any more, of some tables or all."""
        ...

    def explain_timestamp(
        self,
        txn: TransactionId,
        tables: Sequence[Table],
        *,
        as_of: Timestamp | None = None,
        at_least: bool = False,
    ) -> TimestampExplained:
        """How the timestamp would be chosen for a query over these tables; chooses nothing."""
        ...

    def newest_view(self, table: Table) -> ShardView | None:
        """A table of the newest catalog as a strict read finds it that begins and ends before
        anything else happens. None: only a transaction can tell.
        """
        ...

    async def await_upstreams(self, sources: Sequence[int], timeout_us: int) -> None:
        """Wait until all that the upstreams of these sources have committed by now is readable by a
        strict read that begins then. Raises 57014.
        """
        ...

    async def await_load(self, source: int) -> None:
        """Wait until a source has loaded something, or stands: it may have happened already."""
        ...

    def observe(self) -> Sequence[ObservedTimeline]:
        """All timelines as they are at this moment."""
        ...

    async def lease(self, txn: TransactionId, tables: Sequence[Table]) -> None:
        """Wait until this transaction alone may commit writes to these tables (before its
        snapshot).
        """
        ...

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
        timeline: str = SYSTEM_TIMELINE.name,
    ) -> LockAnswered:
        """Hold a lock until the transaction ends, or by the session itself. Raises 40P01, 40001.

        `ticket`: of an earlier answer, to keep the place in the line. `single`: for a statement
        that is its whole transaction. A cancelled wait holds nothing.
        """
        ...

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
        """Hold rows of one table until the transaction ends, in the order of their keys: all, or up
        to the first that was not free; then, or if one of them has changed, the answer is `again`.

        `implicit`: because the statement changes them. `limit`: only the first that are free, so
        many; it is not granted if there are fewer. Raises 40P01, 40001.
        """
        ...

    def begin_statement(self, txn: TransactionId) -> None:
        """Another statement of a block begins: until the next one it may begin again, and what it
        has read is forgotten then.
        """
        ...

    def pin_snapshot(self, txn: TransactionId) -> None:
        """The client has been told the transaction's timestamp: it moves no more."""
        ...

    async def unlock(self, owner: ConnectionId, tag: LockTag, mode: LockMode) -> bool:
        """Give back a lock that the session holds by itself, once; whether it had it."""
        ...

    def unlock_all(self, owner: ConnectionId) -> None:
        """Give back all locks that the session holds by itself."""
        ...

    async def refresh(self, txn: TransactionId, timeline: str = SYSTEM_TIMELINE.name) -> Snapshot:
        """Move the transaction to the newest timestamp of a timeline that it has a snapshot of, if
        nothing that it has read or written has changed; else it stays where it is.
        """
        ...

    @property
    def newest_catalog(self) -> Catalog:
        """The newest durable catalog; the commit validates what was bound to it."""
        ...

    async def examine(self, views: Collection[ShardView]) -> None:
        """An engine could not read these views, which are pinned: if their files are damaged, fence
        their tables. Raises RequestRefused for a table that is fenced.
        """
        ...

    def begin_write(
        self, owner: ConnectionId, write: Insertion | WriteByKey, on_reply: OnReply
    ) -> None:
        """A whole transaction: insert rows into a table of timeline `system`, or change rows of one
        by key, and commit. `on_reply` hears what has become of it, perhaps at once: Committed, or
        what `reply_in_kind` raises. RequestRefused with STALE: the general way says what to do.

        An insertion reads nothing, so it conflicts with nobody, except with DDL.
        """
        ...

    def snapshot_now(self, txn: TransactionId) -> Snapshot | None:
        """The same as `snapshot`, if it need not wait; not for bounded staleness."""
        ...

    def locks_are_sure(self, txn: TransactionId) -> bool:
        """Whether a lock that a step of the core has given counts at once (D9 of `driver.py`)."""
        ...

    async def confirm_locks(self, txn: TransactionId) -> None:
        """The others count from now on. Raises SqlError: nobody knows whether they do."""
        ...

    def change_in_block(self, txn: TransactionId, change: WriteByKey) -> ChangedByKey:
        """A statement of a transaction: change rows of a table of timeline `system` by key. Raises
        RequestRefused.
        """
        ...

    def read_in_block(
        self,
        txn: TransactionId,
        table: Table,
        predicate: ReadPredicate | None,
        names: Collection[NameDependency],
    ) -> ShardView | None:
        """A statement of a transaction: read a table of timeline `system` at its timestamp. None:
        the general way is to be taken. Raises RequestRefused.
        """
        ...

    async def next_values(self, sequence: SequenceDefinition, count: int) -> Sequence[int]:
        """`count` values that no other caller ever gets. Raises 2200H."""
        ...

    def values_at_hand(self, sequence: SequenceDefinition, count: int) -> Sequence[int] | None:
        """What `next_values` would answer without waiting; None if it would have to wait. Nothing
        is taken yet.
        """
        ...

    def take_at_hand(self, sequence: SequenceDefinition, count: int) -> None:
        """Take the values that `values_at_hand` has just answered, before anybody else runs."""
        ...

    async def sequence_state(self, sequence: SequenceDefinition) -> SequenceState:
        """Where a sequence stands now."""
        ...

    async def set_value(self, sequence: SequenceDefinition, value: int, *, called: bool) -> None:
        """Let a sequence stand at a value; `called`: it was handed out. Raises 22003."""
        ...

    async def commit(
        self,
        txn: TransactionId,
        notifying: NotificationChanges | None = None,
        *,
        single: bool = False,
    ) -> Timestamp:
        """Validate, make durable, acknowledge. Raises RequestRefused; the transaction is over.

        `notifying`: its LISTEN, UNLISTEN and NOTIFY. Raises 54000 if the queue has no room.
        `single`: it is of one statement that nobody has seen; raises LockBlocks, too.
        """
        ...

    def begin_commit(self, txn: TransactionId, on_reply: OnReply) -> bool:
        """The same as `commit`, and `on_reply` hears what has become of it, as in `begin_write`.
        False: nothing has happened, and only `commit` can do it.
        """
        ...

    @property
    def followed_views(self) -> FollowedViews:
        """What commits and catch-up tell each other of views that follow their inputs."""
        ...

    @property
    def notifications(self) -> SessionNotifications:
        """Whom to wake when there is something to hear; the queue, for observation."""
        ...

    async def take_notifications(self, owner: ConnectionId) -> TakenNotifications:
        """What a session hears next; it must be idle."""
        ...

    def abort(self, txn: TransactionId) -> None:
        """Drop the transaction; never fails, may be called twice."""
        ...

    def disconnected(self, owner: ConnectionId) -> None:
        """Abort everything that a connection left behind."""
        ...

    def new_transaction_number(self) -> int:
        """A transaction number for txid_current(), which no other transaction ever has."""
        ...

    async def new_table_id(self) -> tuple[int, ShardId]:
        """An oid and a shard for a table about to be created."""
        ...
