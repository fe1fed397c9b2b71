"""Requests for locks (`coordinator.core.locking`), and what follows from having waited."""

from collections.abc import Hashable, Sequence

from coordinator.core.locking.modes import LockMode, LockTag, LockWait, RowTag
from coordinator.core.messages.identities import ConnectionId, RequestId, TransactionId
from sql.catalog.catalog import Table
from storage.fast_dataclass import fast_dataclass
from storage.known_rows import equal_key
from storage.types import Source


@fast_dataclass(frozen=True, slots=True)
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


@fast_dataclass(frozen=True, slots=True)
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


@fast_dataclass(frozen=True, slots=True)
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


@fast_dataclass(frozen=True, slots=True)
class CancelLock:
    """Nobody waits for the reply to AcquireLock any more, or knows of it: leave the line. A lock of
    the session that was granted meanwhile is given back. No reply.
    """

    wanted: AcquireLock | LockRows


@fast_dataclass(frozen=True, slots=True)
class ReleaseLock:
    """Reply Released: give back a lock that the session holds by itself, once."""

    request: RequestId
    owner: ConnectionId
    tag: LockTag
    mode: LockMode


@fast_dataclass(frozen=True, slots=True)
class ReleaseSessionLocks:
    """Give back all locks that the session holds by itself. No reply."""

    owner: ConnectionId


@fast_dataclass(frozen=True, slots=True)
class DropLocks:
    """For the simulation alone, no session sends it: all row and table locks are lost, and their
    sessions do not know (K6 of `locking`). `guards`: others rely on these locks at weaker levels,
    also on those of serializable transactions. No reply.
    """

    guards: bool = False


@fast_dataclass(frozen=True, slots=True)
class RefreshSnapshot:
    """Reply Snapshot: the newest, if nothing that the transaction has read or written has changed
    since its own; else its own.
    """

    request: RequestId
    txn: TransactionId
