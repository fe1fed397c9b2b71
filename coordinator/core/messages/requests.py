"""Requests of sessions, what the core is told, and `Message`: all that `core.step` takes.

Requests are imperative and carry the id that their reply names. Every message is a value;
`core.step` is the only reader. Completions of effects are in `core/completions.py`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from coordinator.core.change_streams.steps import SubscriptionId, SubscriptionRequest
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
from coordinator.core.locking.modes import LockMode
from coordinator.core.messages.catalog_changes import CatalogChange
from coordinator.core.messages.identities import ConnectionId, Isolation, RequestId, TransactionId
from coordinator.core.messages.locks import (
    AcquireLock,
    CancelLock,
    DropLocks,
    LockRows,
    RefreshSnapshot,
    ReleaseLock,
    ReleaseSessionLocks,
)
from coordinator.core.notifications.changes import NotificationChanges
from coordinator.core.predicates import ReadPredicate
from coordinator.core.short_writes.by_key import WriteByKey
from coordinator.core.sources.completions import AsideMessage, SourceMessage, UpstreamReleased
from coordinator.core.views.deltas import AttachComputed, PutViewProgram, ViewsMaintained
from sql.catalog.catalog import Catalog, NameDependency, Table
from storage.batch import DataFile, WriteBatch
from storage.fast_dataclass import fast_dataclass
from storage.known_rows import OldRows
from storage.types import ShardId, Timestamp
from storage.unencoded_rows import RowEncoder


@fast_dataclass(frozen=True, slots=True)
class Begin:
    """Open a transaction. Nothing is chosen or held yet. No reply."""

    txn: TransactionId
    owner: ConnectionId
    isolation: Isolation = Isolation.STRICT_SERIALIZABLE
    read_only: bool = False
    staleness_us: int | None = None
    """The bound of bounded staleness, and of nothing else."""


@fast_dataclass(frozen=True, slots=True)
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


@fast_dataclass(frozen=True, slots=True)
class AdoptSnapshot:
    """Reply Snapshot: the transaction reads where `exporter` does, or Refused if that is over."""

    request: RequestId
    txn: TransactionId
    exporter: TransactionId
    ts: Timestamp


@fast_dataclass(frozen=True, slots=True)
class PinSnapshot:
    """The transaction's timestamp was told to its client: it moves no more. No reply."""

    txn: TransactionId


@fast_dataclass(frozen=True, slots=True)
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


@fast_dataclass(frozen=True, slots=True)
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


@fast_dataclass(frozen=True, slots=True)
class ChangeCatalog:
    """Buffer DDL into the transaction: visible in its own later snapshots. No reply."""

    txn: TransactionId
    changes: tuple[CatalogChange, ...]


@fast_dataclass(frozen=True, slots=True)
class RecordLookUps:
    """Names that the transaction rests on: if it writes, they must still mean the same (A6 of
    `validation.py`). No reply.
    """

    txn: TransactionId
    names: Collection[NameDependency]


@fast_dataclass(frozen=True, slots=True)
class BeginStatement:
    """Another statement of a block: what it reads can be forgotten until the next one, should it
    begin again. No reply.
    """

    txn: TransactionId


@fast_dataclass(frozen=True, slots=True)
class Savepoint:
    """Remember the transaction's writes and DDL under a number that ascends from 1. No reply."""

    txn: TransactionId
    number: int


@fast_dataclass(frozen=True, slots=True)
class ReleaseSavepoint:
    """Forget a savepoint and those after it; what was written since stays. No reply."""

    txn: TransactionId
    number: int


@fast_dataclass(frozen=True, slots=True)
class RollbackTo:
    """Undo writes and DDL since a savepoint, 0: all of them. What was read stays read. No reply.

    `keeps_locks`: a statement begins again, and keeps what it has locked.
    """

    txn: TransactionId
    number: int
    keeps_locks: bool = False


@fast_dataclass(frozen=True, slots=True)
class TakeInlineRows:
    """Reply InlineRows: all rows that the transaction keeps in memory; they stay until Spilled."""

    request: RequestId
    txn: TransactionId


@fast_dataclass(frozen=True, slots=True)
class Spilled:
    """The inline rows of these shards are in these staged files now, in order. No reply."""

    txn: TransactionId
    files: Mapping[ShardId, tuple[DataFile, ...]]


@fast_dataclass(frozen=True, slots=True)
class TakeLease:
    """Reply Leased when the transaction alone may commit writes to these tables, until it ends, and
    no change of definitions is ahead; there may be no table.
    """

    request: RequestId
    txn: TransactionId
    tables: tuple[Table, ...]


@fast_dataclass(frozen=True, slots=True)
class CommitTransaction:
    """Reply Committed or Refused; the transaction is over either way. `single`: it is of one
    statement that nobody has seen, and may be answered Blocked.
    """

    request: RequestId
    txn: TransactionId
    notifying: NotificationChanges | None = None
    """LISTEN, UNLISTEN and NOTIFY, if there were any."""
    single: bool = False


@fast_dataclass(frozen=True, slots=True)
class Insertion:
    """Rows for a table, by a transaction that does nothing else and reads nothing.

    `rows` become a batch with those of others, by `encoder`; `nbytes`: about what they take.
    `names`: those that it rests on (A6 of `validation.py`).
    """

    table: Table
    rows: Sequence[tuple[object, ...]]
    nbytes: int
    encoder: RowEncoder
    names: Collection[NameDependency]


@fast_dataclass(frozen=True, slots=True)
class SourceRequest:
    """Of somebody who waits for sources."""

    request: RequestId


@fast_dataclass(frozen=True, slots=True)
class AwaitLoad(SourceRequest):
    """Wait until a source has loaded something, or cannot: what was not loaded is looked at again.
    Ends in LoadAwaited.
    """

    source: int


@fast_dataclass(frozen=True, slots=True)
class AwaitUpstreams(SourceRequest):
    """Wait until all that the upstreams of these sources have committed by now is readable. Ends in
    UpstreamsReached or Refused: 57014 after `timeout_us`, or if a source stands.
    """

    sources: tuple[int, ...]
    timeout_us: int


@fast_dataclass(frozen=True, slots=True)
class LeaveUpstreams(SourceRequest):
    """Nobody waits for the reply to AwaitUpstreams any more. No reply."""


@fast_dataclass(frozen=True, slots=True)
class InsertRows:
    """A whole transaction. Reply Committed, Blocked (then there is none) or Refused."""

    request: RequestId
    owner: ConnectionId
    insertion: Insertion


@fast_dataclass(frozen=True, slots=True)
class ChangeByKey:
    """A whole transaction that changes rows by key. Reply Committed, Blocked (then there is none)
    or Refused; STALE if the general way has to say what becomes of it (E5 of `short_writes`).
    """

    request: RequestId
    owner: ConnectionId
    change: WriteByKey


@fast_dataclass(frozen=True, slots=True)
class ChangeInBlock:
    """A statement of a transaction that changes rows by key. Reply ChangedByKey."""

    request: RequestId
    txn: TransactionId
    change: WriteByKey


@fast_dataclass(frozen=True, slots=True)
class ReadInBlock:
    """A statement of a transaction that reads rows of a table. Reply Views, of that table; of none
    if the general way is to be taken. `names`: those that it rests on.
    """

    request: RequestId
    txn: TransactionId
    table: Table
    predicate: ReadPredicate | None
    names: Collection[NameDependency]


@fast_dataclass(frozen=True, slots=True)
class AbortTransaction:
    """Forget the transaction, whatever it does; a commit under way is still resolved. No reply.

    A lease or a snapshot that it waits for is never answered.
    """

    txn: TransactionId


@fast_dataclass(frozen=True, slots=True)
class Advance:
    """The transaction's commit brings its timeline, one without a clock, to `ts` at least."""

    txn: TransactionId
    ts: Timestamp


@fast_dataclass(frozen=True, slots=True)
class CatalogPublished:
    """DDL has been committed in the system timeline; for the cores of the others."""

    changes: tuple[CatalogChange, ...]
    catalog: Catalog


@fast_dataclass(frozen=True, slots=True)
class TakeNotifications:
    """Reply TakenNotifications: what the session hears next; it is idle."""

    request: RequestId
    owner: ConnectionId


@fast_dataclass(frozen=True, slots=True)
class BeginSubscription:
    """Reply Subscribed: changes after a timestamp that the transaction holds are to be had by
    TakeStep; 72000 if they are not known that far back.
    """

    request: RequestId
    txn: TransactionId
    wanted: SubscriptionRequest


@fast_dataclass(frozen=True, slots=True)
class TakeStep:
    """Reply ChangeStep, at once: what the subscription may tell next, perhaps nothing (S4 of
    `change_streams/subscriptions.py`).
    """

    request: RequestId
    subscription: SubscriptionId


@fast_dataclass(frozen=True, slots=True)
class MoveSubscription:
    """Everything up to `ts` was told. No reply."""

    subscription: SubscriptionId
    ts: Timestamp


@fast_dataclass(frozen=True, slots=True)
class Unsubscribe:
    """The subscription is over. No reply."""

    subscription: SubscriptionId


@fast_dataclass(frozen=True, slots=True)
class NewTableId:
    """Reply TableId: an oid and a shard that were never used."""

    request: RequestId


@fast_dataclass(frozen=True, slots=True)
class Optimize:
    """Rewrite small and half-deleted files of these tables. Reply Maintained when it is done."""

    request: RequestId
    tables: tuple[Table, ...]


@fast_dataclass(frozen=True, slots=True)
class Vacuum:
    """Delete files that nobody can read any more, of these tables or all. Reply Maintained."""

    request: RequestId
    tables: tuple[Table, ...] | None


@fast_dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


@fast_dataclass(frozen=True, slots=True)
class Disconnected:
    """A connection is gone: all its transactions are aborted."""

    owner: ConnectionId


@fast_dataclass(frozen=True, slots=True)
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
    | AbortTransaction | NewTableId | CeilingPersisted | CeilingFailed | GatherDue | GroupCommitted
    | GroupPassed | GroupFailed | CutFlushed | Tidied | Tick | Disconnected | ShutDown | Optimize
    | Vacuum | FilesRewritten | Vacuumed | Forgotten | ShardDamaged
    | BeginSubscription | TakeStep | MoveSubscription | Unsubscribe | SourceMessage
    | ViewsMaintained | PutViewProgram | AttachComputed
    | AsideMessage | UpstreamReleased | AwaitLoad | AwaitUpstreams | LeaveUpstreams
)  # fmt: skip
