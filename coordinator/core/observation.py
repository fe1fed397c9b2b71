"""Observe a core's state as values, for the relations of schema `meridian` and for people.

INVARIANTS
  V1  looking changes nothing: no hold is taken, no timestamp handed out.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from coordinator.core.change_streams.steps import SubscriptionId
from coordinator.core.change_streams.subscriptions import Subscription, Subscriptions
from coordinator.core.group_commit import GroupCommit
from coordinator.core.locking.lock_table import LockTable
from coordinator.core.locking.modes import LockMode, LockTag
from coordinator.core.messages.identities import ConnectionId, TransactionId
from coordinator.core.oracle import Oracle
from coordinator.core.own_writes import OwnWrites
from coordinator.core.read_holds import ReadHolds
from coordinator.core.sources.observed import ObservedSource, observed_sources
from coordinator.core.sources.running import RunningSources
from coordinator.core.timestamps import Determination
from coordinator.core.transactions import Transaction
from coordinator.core.validation import ValidationCounts
from sql.catalog.catalog import Catalog, Table, Timeline
from storage.shard import ShardState
from storage.types import ClockState, ShardId, Timestamp


@dataclass(frozen=True, slots=True)
class ObservedShard:
    """A table, and its shard as it is: a value (V3 of `storage/shard.py`)."""

    table: Table
    since: Timestamp
    state: ShardState


HOLD_KINDS: Final = ("transaction", "subscription", "named")


@dataclass(frozen=True, slots=True)
class ObservedHold:
    """A read hold: of a transaction, of a subscription, or a named one."""

    ts: Timestamp
    name: str | None = None
    txn: TransactionId | None = None
    owner: ConnectionId | None = None
    subscription: SubscriptionId | None = None

    @property
    def kind(self) -> str:
        """One of HOLD_KINDS."""
        if self.name is not None:
            return "named"
        return "transaction" if self.subscription is None else "subscription"


@dataclass(frozen=True, slots=True)
class ObservedSubscription:
    """A subscription: what it follows, and how far it has told."""

    id: SubscriptionId
    owner: ConnectionId
    tables: tuple[Table, ...]
    as_of: Timestamp
    up_to: Timestamp | None
    position: Timestamp
    is_behind: bool
    """Whether there is something that it has not told yet."""


@dataclass(frozen=True, slots=True)
class ObservedTransaction:
    """An open transaction."""

    id: TransactionId
    owner: ConnectionId
    committing: bool
    isolation: str
    read_only: bool
    read_ts: Timestamp | None
    tables_read: tuple[str, ...]
    tables_written: tuple[str, ...]
    bytes_written: int


@dataclass(frozen=True, slots=True)
class ObservedLock:
    """A lock that a session holds or waits for. `txn`: None: it is the session's own."""

    tag: LockTag
    mode: LockMode
    session: ConnectionId
    txn: TransactionId | None
    granted: bool
    blocked_by: tuple[ConnectionId, ...] = ()


@dataclass(frozen=True, slots=True)
class ObservedMaintenance:
    """The job in flight: VACUUM or OPTIMIZE of a shard."""

    verb: str
    shard: ShardId


@dataclass(frozen=True, slots=True)
class ObservedTimeline:
    """One timeline, all of it at one moment. Everything in it is readable up to `read_ts`."""

    timeline: Timeline
    since: Timestamp
    read_ts: Timestamp
    ceiling: Timestamp
    shards: tuple[ObservedShard, ...]
    holds: tuple[ObservedHold, ...]
    transactions: tuple[ObservedTransaction, ...]
    conflicts: ValidationCounts
    locks: tuple[ObservedLock, ...] = ()
    lock_waits: int = 0
    """Requests for locks that had to wait, since the start."""
    subscriptions: tuple[ObservedSubscription, ...] = ()
    sources: tuple[ObservedSource, ...] = ()
    commits_waiting: int = 0
    """Commits that wait for their turn or for the stash."""
    clock: ClockState = field(default_factory=ClockState)
    """The driver's, which it feeds the core's time from."""
    flushing: bool = False
    """Whether a cut is in flight."""
    maintaining: ObservedMaintenance | None = None

    @property
    def upper(self) -> Timestamp:
        """The logical upper of every table: idle or not, all is known below it."""
        return Timestamp(self.read_ts + 1)


@dataclass(frozen=True, slots=True)
class TimestampExplained:
    """How the timestamp of a query is chosen, and the frontiers of what it reads."""

    timeline: Timeline
    isolation: str
    read_ts: Timestamp
    determination: Determination
    inputs: tuple[ObservedShard, ...]


def observed_timeline(
    timeline: Timeline,
    catalog: Catalog,
    oracle: Oracle,
    holds: ReadHolds,
    shards: Mapping[ShardId, ShardState],
    transactions: Mapping[TransactionId, Transaction],
    groups: GroupCommit,
    locks: LockTable,
    subscriptions: Subscriptions,
    sources: RunningSources,
    *,
    flushing: bool,
    job: tuple[str, ShardId] | None,
) -> ObservedTimeline:
    """A timeline as it is (V1). `job`: of maintenance, in flight."""
    tables = sorted(catalog.tables.values(), key=lambda table: (table.schema, table.name))
    return ObservedTimeline(
        timeline,
        holds.since,
        oracle.read_ts(),
        oracle.ceiling,
        tuple(
            observed_shard(table, shards[ShardId(table.shard)], holds)
            for table in tables
            if ShardId(table.shard) in shards
        ),
        (*_holds(holds, transactions), *_subscriptions_holds(subscriptions)),
        tuple(_transaction(transactions[txn]) for txn in sorted(transactions)),
        replace(groups.counts),
        tuple(_locks(locks)),
        locks.waits,
        tuple(map(_subscription, subscriptions)),
        observed_sources(sources),
        commits_waiting=groups.waiting,
        flushing=flushing,
        maintaining=None if job is None else ObservedMaintenance(*job),
    )


def observed_shard(table: Table, state: ShardState, holds: ReadHolds) -> ObservedShard:
    """A table as it is (V1)."""
    return ObservedShard(table, holds.since_of(state.shard), state)


def _holds(
    holds: ReadHolds, transactions: Mapping[TransactionId, Transaction]
) -> Iterable[ObservedHold]:
    for hold in holds.holds():
        if isinstance(hold.owner, str):
            yield ObservedHold(hold.ts, name=hold.owner)
        else:
            txn = transactions.get(hold.owner)
            owner = None if txn is None else txn.owner
            yield ObservedHold(hold.ts, txn=hold.owner, owner=owner)


def _subscriptions_holds(subscriptions: Subscriptions) -> Iterable[ObservedHold]:
    for known in subscriptions:
        yield ObservedHold(known.position, owner=known.owner, subscription=known.id)


def _subscription(known: Subscription) -> ObservedSubscription:
    wanted = known.request
    return ObservedSubscription(
        known.id,
        known.owner,
        wanted.tables,
        wanted.as_of,
        wanted.up_to,
        known.position,
        not known.asleep,
    )


def _locks(locks: LockTable) -> Iterable[ObservedLock]:
    for queue in locks.queues():
        for held in queue.held:
            yield ObservedLock(queue.tag, held.mode, held.session, held.txn, True)
        for waiter in queue.waiting:
            blockers = tuple(locks.graph.blockers(waiter.session))
            yield ObservedLock(queue.tag, waiter.mode, waiter.session, waiter.txn, False, blockers)


def _transaction(txn: Transaction) -> ObservedTransaction:
    tables = txn.tables.values()
    return ObservedTransaction(
        txn.id,
        txn.owner,
        txn.committing,
        txn.isolation.value,
        txn.read_only,
        None if txn.snapshot is None else txn.snapshot.ts,
        tuple(table.name for table in tables if ShardId(table.shard) in txn.reads),
        tuple(table.name for table in tables if ShardId(table.shard) in txn.writes),
        sum(_size(own) for own in txn.writes.values()),
    )


def _size(own: OwnWrites) -> int:
    rows = own.rows
    staged = sum(file.size_bytes for file in own.staged)
    return staged + (0 if rows is None else int(rows.nbytes))
