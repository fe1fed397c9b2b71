"""What waits in the queue of commits: transactions, and writes that are their whole transaction.

Each says which tables it writes, and which lock of another session is in its way. The queue is in
`group_commit.py`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from coordinator.core.locking.lock_table import LockRequest, LockTable
from coordinator.core.locking.modes import LockMode, RowTag, TableTag
from coordinator.core.messages.catalog_changes import (
    CatalogChange,
    PutObject,
    PutTable,
    RemoveTable,
)
from coordinator.core.messages.identities import ConnectionId, RequestId, TransactionId
from coordinator.core.messages.replies import Blocked
from coordinator.core.messages.requests import Insertion
from coordinator.core.own_writes import deletes_of_others
from coordinator.core.short_writes.by_key import WriteByKey
from coordinator.core.sources.batches import PendingBatch
from coordinator.core.transactions import Transaction
from coordinator.core.views.deltas import ComputedRows
from sql.catalog.objects import IndexDefinition
from storage.fast_dataclass import fast_dataclass
from storage.shard import ShardState
from storage.types import ShardId


def changed_tables(changes: Iterable[CatalogChange]) -> dict[int, LockMode]:
    """The tables that changes alter, drop or give an index, by oid, and the modes they need."""
    found: dict[int, LockMode] = {}
    for change in changes:
        match change:
            case PutTable(table=table) if table.version:
                found[table.oid] = LockMode.ACCESS_EXCLUSIVE
            case RemoveTable(table=table):
                found[table.oid] = LockMode.ACCESS_EXCLUSIVE
            case PutObject(object=IndexDefinition(table=oid)):
                found.setdefault(oid, LockMode.SHARE)
            case _:
                pass
    return found


@fast_dataclass(frozen=True, slots=True)
class PendingCommit:
    """A transaction that waits for its commit, the request to answer, its place in the line.

    `single`: it is of one statement, and may be told to wait for a lock and begin again.
    """

    request: RequestId
    txn: Transaction
    ticket: int
    single: bool = False

    @property
    def owner(self) -> ConnectionId:
        """Whose it is."""
        return self.txn.owner

    @property
    def holder(self) -> TransactionId:
        """Who may hold leases."""
        return self.txn.id

    def tables(self) -> Sequence[int]:
        """The oids of the tables that it writes rows to."""
        return self.txn.written_tables()

    def lock_in_the_way(
        self, locks: LockTable, shards: Mapping[ShardId, ShardState]
    ) -> Blocked | None:
        """A lock of another session on what it would change."""
        if not self.single or not len(locks):
            return None
        session = self.txn.owner
        wanted = dict.fromkeys(self.tables(), LockMode.ROW_EXCLUSIVE)
        wanted.update(changed_tables(self.txn.changes))
        wanted.update(dict.fromkeys(self.truncated(), LockMode.ACCESS_EXCLUSIVE))
        for oid, mode in wanted.items():
            if locks.is_against(session, TableTag(oid), mode):
                return Blocked(TableTag(oid), mode)
        for tag, mode in self.locked_rows(locks, shards):
            if locks.is_against(session, tag, mode):
                return Blocked(tag, mode)
        return None

    def truncated(self) -> frozenset[int]:
        """The oids of the tables of which it relies on every row at every level: TRUNCATE does,
        and in a block LOCK TABLE, which holds its table anyway.
        """
        tables = self.txn.tables.values()
        return frozenset(t.oid for t in tables if self.txn.locks(ShardId(t.shard)))

    def locked_rows(
        self, locks: LockTable, shards: Mapping[ShardId, ShardState]
    ) -> Iterator[tuple[RowTag, LockMode]]:
        """The rows that it changes and that somebody has locked, and the mode that it needs."""
        for shard, own in self.txn.writes.items():
            if shard in locks.rows:
                deletes = deletes_of_others(own.merged())
                keeps = shard not in self.txn.changed_keys
                mode = LockMode.ROW_NO_KEY_UPDATE if keeps else LockMode.ROW_UPDATE
                for tag in locks.rows.among(shards[shard], deletes):
                    yield tag, mode

    def is_row_held(self, locks: LockTable, shards: Mapping[ShardId, ShardState]) -> bool:
        """K2: whether another session holds a row that it changes and has not locked itself."""
        owner, changes = self.txn.owner, LockMode.ROW_NO_KEY_UPDATE | LockMode.ROW_UPDATE
        return any(
            not locks.holds(owner, tag) & changes
            and locks.is_held_against(
                LockRequest(self.request, owner, None, tag, mode, single=self.single)
            )
            for tag, mode in self.locked_rows(locks, shards)
        )


_NOBODY: Final = TransactionId(0)


@fast_dataclass(frozen=True, slots=True)
class PendingInsert:
    """An insert that is its whole transaction and reads nothing (G5)."""

    request: RequestId
    owner: ConnectionId
    insertion: Insertion
    ticket: int

    @property
    def holder(self) -> TransactionId:
        """It never holds a lease."""
        return _NOBODY

    def tables(self) -> Sequence[int]:
        """The oid of its table."""
        return (self.insertion.table.oid,)

    def truncated(self) -> frozenset[int]:
        """It relies on no row."""
        return frozenset()

    def lock_in_the_way(
        self, locks: LockTable, _shards: Mapping[ShardId, ShardState]
    ) -> Blocked | None:
        """A lock of another session on its table."""
        tag = TableTag(self.insertion.table.oid)
        if not len(locks) or not locks.is_against(self.owner, tag, LockMode.ROW_EXCLUSIVE):
            return None
        return Blocked(tag, LockMode.ROW_EXCLUSIVE)


@fast_dataclass(frozen=True, slots=True)
class PendingChange:
    """A short write, to be evaluated when its turn comes (E1 of `short_writes`)."""

    request: RequestId
    owner: ConnectionId
    change: WriteByKey
    ticket: int

    @property
    def holder(self) -> TransactionId:
        """It never holds a lease."""
        return _NOBODY

    def tables(self) -> Sequence[int]:
        """The oid of its table."""
        return (self.change.table.oid,)

    def truncated(self) -> frozenset[int]:
        """It relies on no row but those that it finds."""
        return frozenset()

    def lock_in_the_way(
        self, locks: LockTable, _shards: Mapping[ShardId, ShardState]
    ) -> Blocked | None:
        """A lock of another session on its table; its rows are known later (E6)."""
        tag = TableTag(self.change.table.oid)
        if not len(locks) or not locks.is_against(self.owner, tag, LockMode.ROW_EXCLUSIVE):
            return None
        return Blocked(tag, LockMode.ROW_EXCLUSIVE)


@fast_dataclass(frozen=True, slots=True)
class PendingAttach:
    """A view that is behind, to be attached by a unit of its lane (N9 of `views`)."""

    request: RequestId
    oid: int
    rows: ComputedRows
    ticket: int

    @property
    def owner(self) -> ConnectionId:
        """No session's."""
        return ConnectionId(-self.oid)

    @property
    def holder(self) -> TransactionId:
        """It never holds a lease."""
        return _NOBODY

    def tables(self) -> Sequence[int]:
        """It writes to no table: the rows of the view are its unit's."""
        return ()

    def truncated(self) -> frozenset[int]:
        """It relies on no row."""
        return frozenset()

    def lock_in_the_way(
        self, locks: LockTable, _shards: Mapping[ShardId, ShardState]
    ) -> Blocked | None:
        """A lock of a session on the view."""
        tag = TableTag(self.oid)
        if not len(locks) or not locks.is_against(self.owner, tag, LockMode.ROW_EXCLUSIVE):
            return None
        return Blocked(tag, LockMode.ROW_EXCLUSIVE)


GroupMember: TypeAlias = (
    PendingCommit | PendingInsert | PendingChange | PendingBatch | PendingAttach
)


def changes_definitions(member: GroupMember) -> bool:
    """Whether it has DDL (L4 of `leases.py`)."""
    return isinstance(member, PendingCommit) and bool(member.txn.changes)


def changed_by(member: GroupMember) -> Sequence[int]:
    """The oids of the tables whose rows or definitions it changes (L1 of `leases.py`)."""
    if isinstance(member, PendingCommit) and member.txn.changes:
        return [*member.tables(), *changed_tables(member.txn.changes)]
    return member.tables()
