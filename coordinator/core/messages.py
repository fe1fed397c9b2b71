"""Messages to the core: requests of sessions, completions of effects (`completions.py`), the tick.

Requests are imperative and carry the id that their reply names. Every message is a value;
`core.step` is the only reader.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NewType, TypeAlias

import pyarrow as pa

from coordinator.core.change_streams.steps import (
    ChangeStep,
    SubscriptionId,
    SubscriptionRequest,
)
from coordinator.core.completions import (
    CeilingFailed,
    CeilingPersisted,
    CutFlushed,
    FilesRewritten,
    Forgotten,
    GroupCommitted,
    GroupFailed,
    GroupPassed,
    ShardDamaged,
    Tidied,
    Vacuumed,
)
from coordinator.core.locking.modes import LockMode, LockTag, LockWait, RowTag
from coordinator.core.notifications.changes import NotificationChanges, TakenNotifications
from coordinator.core.predicates import ReadPredicate
from coordinator.core.short_writes.by_key import RowValues, WriteByKey
from coordinator.core.sources.completions import SourceMessage
from sql.catalog.acl import ObjectPrivileges
from sql.catalog.catalog import Catalog, NameDependency, ReadHold, Table, Timeline
from sql.catalog.objects import CatalogObject, Comment, ExactView, Subject
from sql.catalog.roles import Role
from sql.catalog.stored_settings import SettingScope
from storage.batch import DataFile, RowEncoder, ShardView, WriteBatch
from storage.known_rows import OldRows, equal_key
from storage.types import ShardId, Source, Timestamp

RequestId = NewType("RequestId", int)
TransactionId = NewType("TransactionId", int)
ConnectionId = NewType("ConnectionId", int)


class Isolation(StrEnum):
    """Isolation levels, as EXPLAIN TIMESTAMP names them; settings choose one (`isolation.py`)."""

    STRICT_SERIALIZABLE = "strict serializable"
    SERIALIZABLE = "serializable"
    """One total order, but reads may lag behind real time: no look whether we still lead."""
    REPEATABLE_READ = "repeatable read"
    """Snapshot isolation: of two who delete or replace one row, the first committer wins."""
    READ_COMMITTED = "read committed"
    """Every TakeSnapshot takes a timestamp of its own."""
    BOUNDED_STALENESS = "bounded staleness"
    """Read only, never waits; 40001 if the bound cannot be met."""


# --- catalog changes (DDL) ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PutTable:
    """Create a table, or replace its definition, its name and schema included."""

    table: Table


@dataclass(frozen=True, slots=True)
class RemoveTable:
    """Drop a table; its shard stays readable to those who read before."""

    table: Table


@dataclass(frozen=True, slots=True)
class PutSchema:
    """Create a schema."""

    name: str


@dataclass(frozen=True, slots=True)
class RemoveSchema:
    """Drop an empty schema."""

    name: str


@dataclass(frozen=True, slots=True)
class PutTimeline:
    """Create a timeline."""

    timeline: Timeline


@dataclass(frozen=True, slots=True)
class RemoveTimeline:
    """Drop a timeline that no table is in."""

    name: str


@dataclass(frozen=True, slots=True)
class PutReadHold:
    """Create a named read hold."""

    hold: ReadHold


@dataclass(frozen=True, slots=True)
class RemoveReadHold:
    """Drop a named read hold."""

    name: str


@dataclass(frozen=True, slots=True)
class PutObject:
    """Create a sequence, view, index or type, or replace its definition, its name included."""

    object: CatalogObject


@dataclass(frozen=True, slots=True)
class RemoveObject:
    """Drop it."""

    object: CatalogObject


@dataclass(frozen=True, slots=True)
class PutComment:
    """Say something about what is there, or nothing any more."""

    comment: Comment


@dataclass(frozen=True, slots=True)
class PutRole:
    """Create a role, or replace its definition, its name included."""

    role: Role


@dataclass(frozen=True, slots=True)
class RemoveRole:
    """Drop a role that nothing belongs to and nobody granted anything."""

    role: Role


@dataclass(frozen=True, slots=True)
class PutPrivileges:
    """Who owns something, and what was granted of it."""

    subject: Subject
    rights: ObjectPrivileges


@dataclass(frozen=True, slots=True)
class PutSettings:
    """What sessions of a scope start with, instead of what was `before`."""

    scope: SettingScope
    before: tuple[str, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AttachView:
    """The stored rows of a materialized view are exact from here on."""

    oid: int
    view: ExactView


@dataclass(frozen=True, slots=True)
class LeaveView:
    """They are not any more."""

    oid: int


CatalogChange: TypeAlias = (
    AttachView | LeaveView
    | PutObject | RemoveObject | PutTable | RemoveTable | PutSchema | RemoveSchema | PutTimeline
    | RemoveTimeline | PutReadHold | RemoveReadHold | PutComment
    | PutRole | RemoveRole | PutPrivileges | PutSettings
)  # fmt: skip


# --- requests ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Begin:
    """Open a transaction. Nothing is chosen or held yet. No reply."""

    txn: TransactionId
    owner: ConnectionId
    isolation: Isolation = Isolation.STRICT_SERIALIZABLE
    read_only: bool = False
    staleness_us: int | None = None
    """The bound of bounded staleness, and of nothing else."""


@dataclass(frozen=True, slots=True)
class TakeSnapshot:
    """Reply Snapshot. Without `as_of`: the transaction's timestamp, chosen at its first snapshot.

    At read committed it is chosen anew each time, and everything chosen before stays readable.
    With `as_of` (and `at_least`): a timestamp for one statement, held until the transaction ends
    and outside of validation. Below since: 72000; not closed yet: waits for the clock, beyond a
    bound 22023.
    """

    request: RequestId
    txn: TransactionId
    as_of: Timestamp | None = None
    at_least: bool = False


@dataclass(frozen=True, slots=True)
class AdoptSnapshot:
    """Reply Snapshot: the transaction reads where `exporter` does, or Refused if that is over."""

    request: RequestId
    txn: TransactionId
    exporter: TransactionId
    ts: Timestamp


@dataclass(frozen=True, slots=True)
class PinSnapshot:
    """The transaction's timestamp was told to its client: it moves no more. No reply."""

    txn: TransactionId


@dataclass(frozen=True, slots=True)
class Scan:
    """Reply Views of the tables' shards at `ts`, which TakeSnapshot gave this transaction.

    At the transaction's own timestamp the views hold its own writes, and the tables enter its read
    set, each with its predicate: which rows the scan depends on. None, or none given: all.
    `locked`: by oid, the tables whose part of the read set is validated at every isolation level.
    `skipped`: by oid, tables that are shown without the rows that other sessions hold against a
    mode; what is shown of them enters no read set, for only the rows that are locked count.
    """

    request: RequestId
    txn: TransactionId
    ts: Timestamp
    tables: tuple[Table, ...]
    predicates: tuple[ReadPredicate | None, ...] = ()
    locked: frozenset[int] = frozenset()
    skipped: Mapping[int, LockMode] = field(default_factory=dict[int, LockMode])


@dataclass(frozen=True, slots=True)
class WriteRows:
    """Buffer writes into the transaction: visible to its own later scans. No reply.

    `old`: the values of rows that it deletes, as far as they are known; not made durable.
    `keeps_keys`: rows that it deletes come again with the same primary key.
    """

    txn: TransactionId
    table: Table
    batch: WriteBatch
    old: OldRows | None = None
    keeps_keys: bool = False


@dataclass(frozen=True, slots=True)
class ChangeCatalog:
    """Buffer DDL into the transaction: visible in its own later snapshots. No reply."""

    txn: TransactionId
    changes: tuple[CatalogChange, ...]


@dataclass(frozen=True, slots=True)
class RecordLookUps:
    """Names that the transaction rests on: if it writes, they must still mean the same (A6 of
    `validation.py`). No reply.
    """

    txn: TransactionId
    names: Collection[NameDependency]


@dataclass(frozen=True, slots=True)
class BeginStatement:
    """Another statement of a block: what it reads can be forgotten until the next one, should it
    begin again. No reply.
    """

    txn: TransactionId


@dataclass(frozen=True, slots=True)
class Savepoint:
    """Remember the transaction's writes and DDL under a number that ascends from 1. No reply."""

    txn: TransactionId
    number: int


@dataclass(frozen=True, slots=True)
class ReleaseSavepoint:
    """Forget a savepoint and those after it; what was written since stays. No reply."""

    txn: TransactionId
    number: int


@dataclass(frozen=True, slots=True)
class RollbackTo:
    """Undo writes and DDL since a savepoint, 0: all of them. What was read stays read. No reply.

    `keeps_locks`: a statement begins again, and keeps what it has locked.
    """

    txn: TransactionId
    number: int
    keeps_locks: bool = False


@dataclass(frozen=True, slots=True)
class TakeInlineRows:
    """Reply InlineRows: all rows that the transaction keeps in memory; they stay until Spilled."""

    request: RequestId
    txn: TransactionId


@dataclass(frozen=True, slots=True)
class Spilled:
    """The inline rows of these shards are in these staged files now, in order. No reply."""

    txn: TransactionId
    files: Mapping[ShardId, tuple[DataFile, ...]]


@dataclass(frozen=True, slots=True)
class TakeLease:
    """Reply Leased when the transaction alone may commit writes to these tables, until it ends."""

    request: RequestId
    txn: TransactionId
    tables: tuple[Table, ...]


@dataclass(frozen=True, slots=True)
class AcquireLock:
    """Reply LockAnswered; or Refused: 40P01 if it would wait for ever, 40001 if the transaction has
    read what was changed meanwhile.

    The lock is held until the transaction ends, or by the session itself (`by_session`), counted.
    `ticket`: from an earlier LockAnswered of the same statement, to keep its place in the line.
    `single`: for a statement that is its whole transaction.
    """

    request: RequestId
    txn: TransactionId
    tag: LockTag
    mode: LockMode
    wait: LockWait = LockWait.UNTIL_GRANTED
    by_session: bool = False
    ticket: int = 0
    single: bool = False


@dataclass(frozen=True, slots=True)
class RowsToLock:
    """Rows of a table as a scan of the transaction showed them. `keys`: the values of the primary
    key, row by row; None: the table has none.
    """

    table: Table
    sources: Sequence[Source]
    indexes: Sequence[int]
    keys: Sequence[tuple[Hashable, ...]] | None

    def tags(self) -> Sequence[RowTag]:
        """What locks them, row by row."""
        oid = self.table.oid
        if self.keys is not None:
            return [RowTag(oid, equal_key(key)) for key in self.keys]
        rows = zip(self.sources, self.indexes, strict=True)
        return [RowTag(oid, row, by_identity=True) for row in rows]


@dataclass(frozen=True, slots=True)
class LockRows:
    """Reply LockAnswered once the transaction holds all of these rows, or `again` once it holds the
    first that was not free; or Refused, as for AcquireLock.

    `implicit`: the statement changes the rows; beyond a number of them they are not locked, and
    validation alone decides. `limit`: take the first rows that are free and unchanged, so many;
    the answer has their places, and is not granted if there are fewer.
    """

    request: RequestId
    txn: TransactionId
    rows: RowsToLock
    mode: LockMode
    wait: LockWait = LockWait.UNTIL_GRANTED
    ticket: int = 0
    implicit: bool = False
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class CancelLock:
    """Nobody waits for the reply to AcquireLock any more, or knows of it: leave the line. A lock of
    the session that was granted meanwhile is given back. No reply.
    """

    wanted: AcquireLock | LockRows


@dataclass(frozen=True, slots=True)
class ReleaseLock:
    """Reply Released: give back a lock that the session holds by itself, once."""

    request: RequestId
    owner: ConnectionId
    tag: LockTag
    mode: LockMode


@dataclass(frozen=True, slots=True)
class ReleaseSessionLocks:
    """Give back all locks that the session holds by itself. No reply."""

    owner: ConnectionId


@dataclass(frozen=True, slots=True)
class DropLocks:
    """For the simulation alone, no session sends it: all row and table locks are lost, and their
    sessions do not know (K6 of `locking`). No reply.
    """


@dataclass(frozen=True, slots=True)
class RefreshSnapshot:
    """Reply Snapshot: the newest, if nothing that the transaction has read or written has changed
    since its own; else its own.
    """

    request: RequestId
    txn: TransactionId


@dataclass(frozen=True, slots=True)
class CommitTransaction:
    """Reply Committed or Refused; the transaction is over either way. `single`: it is of one
    statement that nobody has seen, and may be answered Blocked.
    """

    request: RequestId
    txn: TransactionId
    notifying: NotificationChanges | None = None
    """LISTEN, UNLISTEN and NOTIFY, if there were any."""
    single: bool = False


@dataclass(frozen=True, slots=True)
class Insertion:
    """Rows for a table, by a transaction that does nothing else and reads nothing.

    `rows` become Arrow with those of others, by `encoder`; `nbytes`: about what they take.
    `names`: those that it rests on (A6 of `validation.py`).
    """

    table: Table
    rows: Sequence[tuple[object, ...]]
    nbytes: int
    encoder: RowEncoder
    names: Collection[NameDependency]


@dataclass(frozen=True, slots=True)
class InsertRows:
    """A whole transaction. Reply Committed, Blocked (then there is none) or Refused."""

    request: RequestId
    owner: ConnectionId
    insertion: Insertion


@dataclass(frozen=True, slots=True)
class ChangeByKey:
    """A whole transaction that changes rows by key. Reply Committed, Blocked (then there is none)
    or Refused; STALE if the general way has to say what becomes of it (E5 of `short_writes.py`).
    """

    request: RequestId
    owner: ConnectionId
    change: WriteByKey


@dataclass(frozen=True, slots=True)
class ChangeInBlock:
    """A statement of a transaction that changes rows by key. Reply ChangedByKey."""

    request: RequestId
    txn: TransactionId
    change: WriteByKey


@dataclass(frozen=True, slots=True)
class ReadInBlock:
    """A statement of a transaction that reads rows of a table. Reply Views, of that table; of none
    if the general way is to be taken. `names`: those that it rests on.
    """

    request: RequestId
    txn: TransactionId
    table: Table
    predicate: ReadPredicate | None
    names: Collection[NameDependency]


@dataclass(frozen=True, slots=True)
class AbortTransaction:
    """Forget the transaction, whatever it does; a commit under way is still resolved. No reply.

    A lease or a snapshot that it waits for is never answered.
    """

    txn: TransactionId


@dataclass(frozen=True, slots=True)
class Advance:
    """The transaction's commit brings its timeline, one without a clock, to `ts` at least."""

    txn: TransactionId
    ts: Timestamp


@dataclass(frozen=True, slots=True)
class CatalogPublished:
    """DDL has been committed in the system timeline; for the cores of the others."""

    changes: tuple[CatalogChange, ...]
    catalog: Catalog


@dataclass(frozen=True, slots=True)
class TakeNotifications:
    """Reply TakenNotifications: what the session hears next; it is idle."""

    request: RequestId
    owner: ConnectionId


@dataclass(frozen=True, slots=True)
class BeginSubscription:
    """Reply Subscribed: changes after a timestamp that the transaction holds are to be had by
    TakeStep; 72000 if they are not known that far back.
    """

    request: RequestId
    txn: TransactionId
    wanted: SubscriptionRequest


@dataclass(frozen=True, slots=True)
class TakeStep:
    """Reply ChangeStep, at once: what the subscription may tell next, perhaps nothing (S4 of
    `change_streams/subscriptions.py`).
    """

    request: RequestId
    subscription: SubscriptionId


@dataclass(frozen=True, slots=True)
class MoveSubscription:
    """Everything up to `ts` was told. No reply."""

    subscription: SubscriptionId
    ts: Timestamp


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """The subscription is over. No reply."""

    subscription: SubscriptionId


@dataclass(frozen=True, slots=True)
class NewTableId:
    """Reply TableId: an oid and a shard that were never used."""

    request: RequestId


@dataclass(frozen=True, slots=True)
class Optimize:
    """Rewrite small and half-deleted files of these tables. Reply Maintained when it is done."""

    request: RequestId
    tables: tuple[Table, ...]


@dataclass(frozen=True, slots=True)
class Vacuum:
    """Delete files that nobody can read any more, of these tables or all. Reply Maintained."""

    request: RequestId
    tables: tuple[Table, ...] | None


# --- told, not asked ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


@dataclass(frozen=True, slots=True)
class Disconnected:
    """A connection is gone: all its transactions are aborted."""

    owner: ConnectionId


@dataclass(frozen=True, slots=True)
class ShutDown:
    """Flush what is dirty and hand the unused timestamps back. Reply Stopped when nothing is
    left.
    """

    request: RequestId


Message: TypeAlias = (
    Begin | BeginStatement | TakeSnapshot | AdoptSnapshot | PinSnapshot | RecordLookUps
    | Savepoint | ReleaseSavepoint | RollbackTo | TakeInlineRows | Spilled | Scan | Advance
    | CatalogPublished | WriteRows | ChangeCatalog | TakeLease | AcquireLock | LockRows
    | CancelLock | ReleaseLock | ReleaseSessionLocks | DropLocks | RefreshSnapshot
    | CommitTransaction | InsertRows | ChangeByKey | ChangeInBlock | ReadInBlock | TakeNotifications
    | AbortTransaction | NewTableId | CeilingPersisted | CeilingFailed | GroupCommitted
    | GroupPassed | GroupFailed | CutFlushed | Tidied | Tick | Disconnected | ShutDown | Optimize
    | Vacuum | FilesRewritten | Vacuumed | Forgotten | ShardDamaged
    | BeginSubscription | TakeStep | MoveSubscription | Unsubscribe | SourceMessage
)  # fmt: skip


# --- replies -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A timestamp and the catalog true at it (with the transaction's own DDL, at its own
    timestamp).
    """

    ts: Timestamp
    catalog: Catalog


@dataclass(frozen=True, slots=True)
class Views:
    """One view per table, in the order asked for."""

    views: tuple[ShardView, ...]


@dataclass(frozen=True, slots=True)
class InlineRows:
    """Rows that a transaction has in memory, by shard; the order is that of their names."""

    rows: Mapping[ShardId, pa.Table]


@dataclass(frozen=True, slots=True)
class Leased:
    """The lease is held."""


@dataclass(frozen=True, slots=True)
class LockAnswered:
    """The lock is held, unless it was not free and the request was not to wait.

    `again`: what it protects has changed since the transaction's timestamp: the statement begins
    again, at the transaction's newest snapshot.
    """

    granted: bool
    ticket: int
    again: bool = False
    taken: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Blocked:
    """A single statement does not commit now: somebody holds what it would change. Nothing of it is
    left, but its transaction is open, to wait for the lock and to begin again.
    """

    tag: LockTag
    mode: LockMode


@dataclass(frozen=True, slots=True)
class Released:
    """Whether the session had the lock."""

    held: bool


@dataclass(frozen=True, slots=True)
class Committed:
    """Durable and visible. `ts`: the commit timestamp (the read timestamp if nothing was
    written). `affected`: how many rows a ChangeByKey has changed; `returned`: what RETURNING shows.
    """

    ts: Timestamp
    affected: int = 0
    returned: tuple[RowValues, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangedByKey:
    """How many rows a ChangeInBlock has changed, and about what the new ones take; None: nothing
    has happened, and the general way is to be taken (I1 of `short_writes/in_block.py`).
    """

    affected: int | None
    nbytes: int = 0
    returned: tuple[RowValues, ...] = ()
    """What RETURNING shows."""


@dataclass(frozen=True, slots=True)
class Subscribed:
    """The subscription is known."""

    id: SubscriptionId


@dataclass(frozen=True, slots=True)
class TableId:
    """A fresh oid and shard."""

    oid: int
    shard: ShardId


@dataclass(frozen=True, slots=True)
class Maintained:
    """OPTIMIZE or VACUUM is done."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """Nothing is in flight any more."""


class RefusedReason(StrEnum):
    """Why something was refused; `conflict` and `stale` may be tried again from scratch."""

    CONFLICT = "conflict"
    STALE = "stale"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Refused:
    """The request did not happen."""

    reason: RefusedReason
    sqlstate: str
    message: str
    detail: str | None = None
    hint: str | None = None
    table: Table | None = None
    constraint: str | None = None


ReplyValue: TypeAlias = (
    Snapshot | InlineRows | Views | Leased | LockAnswered | Released | Blocked | Committed
    | ChangedByKey
    | TakenNotifications | Subscribed | ChangeStep | TableId | Maintained | Stopped | Refused
)  # fmt: skip
