"""Replies to requests: one of `ReplyValue` for each request that says so."""

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeAlias

import pyarrow as pa

from coordinator.core.change_streams.steps import ChangeStep, SubscriptionId
from coordinator.core.locking.modes import LockMode, LockTag
from coordinator.core.messages.locks import LockRows
from coordinator.core.notifications.changes import TakenNotifications
from coordinator.core.short_writes.by_key import RowValues
from sql.catalog.catalog import Catalog, Table
from storage.batch import ShardView
from storage.fast_dataclass import fast_dataclass
from storage.types import ShardId, Timestamp


@fast_dataclass(frozen=True, slots=True)
class Snapshot:
    """A timestamp and the catalog true at it (with the transaction's own DDL, at its own
    timestamp).
    """

    ts: Timestamp
    catalog: Catalog


@fast_dataclass(frozen=True, slots=True)
class Views:
    """One view per table, in the order asked for."""

    views: tuple[ShardView, ...]


@fast_dataclass(frozen=True, slots=True)
class InlineRows:
    """Rows that a transaction has in memory, by shard; the order is that of their names."""

    rows: Mapping[ShardId, pa.Table]


@fast_dataclass(frozen=True, slots=True)
class Leased:
    """The lease is held."""


@fast_dataclass(frozen=True, slots=True)
class LoadAwaited:
    """A source has loaded something, or stands."""


@fast_dataclass(frozen=True, slots=True)
class UpstreamsReached:
    """All that upstreams had committed at the request is readable."""


@fast_dataclass(frozen=True, slots=True)
class LockAnswered:
    """The lock is held, unless it was not free and the request was not to wait.

    `again`: what it protects has changed since the transaction's timestamp: the statement begins
    again, at the transaction's newest snapshot.
    """

    granted: bool
    ticket: int
    again: bool = False
    taken: tuple[int, ...] = ()


@fast_dataclass(frozen=True, slots=True)
class Blocked:
    """A single statement does not commit now: somebody holds what it would change. Nothing of it is
    left, but its transaction is open, to wait for the lock and to begin again.
    """

    tag: LockTag
    mode: LockMode


@fast_dataclass(frozen=True, slots=True)
class Released:
    """Whether the session had the lock."""

    held: bool


@fast_dataclass(frozen=True, slots=True)
class Committed:
    """Durable and visible. `ts`: the commit timestamp (the read timestamp if nothing was
    written). `affected`: how many rows a ChangeByKey has changed; `returned`: what RETURNING shows.
    """

    ts: Timestamp
    affected: int = 0
    returned: tuple[RowValues, ...] = ()


@fast_dataclass(frozen=True, slots=True)
class ChangedByKey:
    """How many rows a ChangeInBlock has changed, and about what the new ones take; None: nothing
    has happened, and the general way is to be taken (I1 of `short_writes/in_block.py`).
    """

    affected: int | None
    nbytes: int = 0
    returned: tuple[RowValues, ...] = ()
    """What RETURNING shows."""
    in_the_way: LockRows | None = None
    """Rows that are not free, or have changed: who has locked them may come again."""


@fast_dataclass(frozen=True, slots=True)
class Subscribed:
    """The subscription is known."""

    id: SubscriptionId


@fast_dataclass(frozen=True, slots=True)
class TableId:
    """A fresh oid and shard."""

    oid: int
    shard: ShardId


@fast_dataclass(frozen=True, slots=True)
class Maintained:
    """OPTIMIZE or VACUUM is done."""


@fast_dataclass(frozen=True, slots=True)
class Stopped:
    """Nothing is in flight any more."""


class RefusedReason(StrEnum):
    """Why something was refused; `conflict` and `stale` may be tried again from scratch, and
    `not loaded` after AwaitLoad.
    """

    CONFLICT = "conflict"
    STALE = "stale"
    NOT_LOADED = "not loaded"
    OTHER = "other"


@fast_dataclass(frozen=True, slots=True)
class Refused:
    """The request did not happen. `source`: the oid of the one that is to load something."""

    reason: RefusedReason
    sqlstate: str
    message: str
    detail: str | None = None
    hint: str | None = None
    table: Table | None = None
    constraint: str | None = None
    source: int = 0


ReplyValue: TypeAlias = (
    Snapshot | InlineRows | Views | Leased | LockAnswered | Released | Blocked | Committed
    | ChangedByKey | LoadAwaited | UpstreamsReached
    | TakenNotifications | Subscribed | ChangeStep | TableId | Maintained | Stopped | Refused
)  # fmt: skip
