"""What a session sees of the coordinator: transactions, snapshots, scans, commits.

The driver implements it over the core (`driver.py`). Methods without `async` never wait; `await`
marks where the world may change. What is refused arrives as `RequestRefused`, a `SqlError` that
says whether a statement may start again from scratch. When the server ends, requests raise 57P01 or
are cancelled, and the other methods do nothing.
"""

from collections.abc import Sequence
from typing import Protocol

from coordinator.core.messages import (
    CatalogChange,
    ConnectionId,
    Isolation,
    Refused,
    RefusedReason,
    Snapshot,
    TransactionId,
)
from sql.catalog import Table
from sql.errors import SqlError
from storage.batch import ShardView, WriteBatch
from storage.types import ShardId, Timestamp


class RequestRefused(SqlError):
    """The core said no. `reason` is conflict or stale: a statement nobody saw yet may start
    again.
    """

    reason: RefusedReason = RefusedReason.OTHER

    @classmethod
    def from_reply(cls, refused: Refused) -> "RequestRefused":
        """The error for a Refused reply."""
        error = cls(refused.sqlstate, refused.message, None, refused.detail, refused.hint)
        error.reason = refused.reason
        return error


class Coordination(Protocol):
    """See the module. Every transaction that was begun must end in `commit` or `abort`."""

    def begin(
        self,
        owner: ConnectionId,
        *,
        isolation: Isolation = Isolation.STRICT_SERIALIZABLE,
        read_only: bool = False,
    ) -> TransactionId:
        """Open a transaction; cheap, nothing is held before the first snapshot."""
        ...

    async def snapshot(
        self, txn: TransactionId, *, as_of: Timestamp | None = None, at_least: bool = False
    ) -> Snapshot:
        """The timestamp and catalog to bind and read a statement with. Raises 72000, 22023."""
        ...

    async def scan(
        self, txn: TransactionId, ts: Timestamp, tables: Sequence[Table]
    ) -> Sequence[ShardView]:
        """Pinned views, one per table; at the transaction's own timestamp they enter its read
        set.
        """
        ...

    def write(self, txn: TransactionId, table: Table, batch: WriteBatch) -> None:
        """Buffer rows into the transaction."""
        ...

    def change_catalog(self, txn: TransactionId, changes: Sequence[CatalogChange]) -> None:
        """Buffer DDL into the transaction."""
        ...

    async def lease(self, txn: TransactionId, tables: Sequence[Table]) -> None:
        """Wait until this transaction alone may commit writes to these tables (before its
        snapshot).
        """
        ...

    async def commit(self, txn: TransactionId) -> Timestamp:
        """Validate, make durable, acknowledge. Raises RequestRefused; the transaction is over."""
        ...

    def abort(self, txn: TransactionId) -> None:
        """Drop the transaction; never fails, may be called twice."""
        ...

    def disconnected(self, owner: ConnectionId) -> None:
        """Abort everything that a connection left behind."""
        ...

    async def new_table_id(self) -> tuple[int, ShardId]:
        """An oid and a shard for a table about to be created."""
        ...
