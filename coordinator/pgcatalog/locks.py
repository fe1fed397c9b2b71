"""Rows of pg_locks, and of the relation that pg_blocking_pids() reads: sessions at this moment.

A row names the columns it has (W2 of `pgcatalog/relations.py`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from coordinator.core.locking.modes import AdvisoryTag, LockMode, RowTag, TableTag
from coordinator.core.observation import ObservedLock, ObservedTimeline, ObservedTransaction
from coordinator.pgcatalog.activity import ObservedSession
from coordinator.pgcatalog.named_row import NamedRow
from sql.types.sql_type import Value


def _pg_locks(
    observed: Sequence[ObservedTimeline], sessions: Sequence[ObservedSession]
) -> Iterator[NamedRow]:
    """All but the database, which is the reader's where there is one."""
    began = {seen.pid: seen.wait_began for seen in sessions}
    for lock in _all(observed):
        yield {
            **_named(lock),
            "virtualtransaction": f"{lock.session}/{lock.txn or 0}",
            "pid": lock.session,
            "mode": lock.mode.shown,
            "granted": lock.granted,
            "fastpath": False,
            "waitstart": None if lock.granted else began.get(lock.session),
        }
    for line in observed:
        for txn in line.transactions:
            yield from _own_locks(txn)


def _own_locks(txn: ObservedTransaction) -> Iterator[NamedRow]:
    """A transaction holds its own name, and its number once it has written."""
    name = f"{txn.owner}/{txn.id}"
    held: NamedRow = {
        "database": None,
        "virtualtransaction": name,
        "pid": txn.owner,
        "mode": LockMode.EXCLUSIVE.shown,
        "granted": True,
    }
    yield {**held, "locktype": "virtualxid", "virtualxid": name, "fastpath": True}
    if txn.tables_written:
        number = txn.id % (1 << 32)
        yield {**held, "locktype": "transactionid", "transactionid": number, "fastpath": False}


def _named(lock: ObservedLock) -> dict[str, Value]:
    match lock.tag:
        case TableTag(table=table):
            return {"locktype": "relation", "relation": table}
        case RowTag(table=table):
            return {"locktype": "tuple", "relation": table}
        case AdvisoryTag() as tag:
            form = 2 if tag.two_keys else 1
            return {
                "locktype": "advisory", "classid": tag.high, "objid": tag.low, "objsubid": form
            }  # fmt: skip


def _blocking(
    observed: Sequence[ObservedTimeline], _sessions: Sequence[ObservedSession]
) -> Iterator[NamedRow]:
    for lock in _all(observed):
        for place, blocker in enumerate(lock.blocked_by):
            yield {"pid": lock.session, "blocked_by": blocker, "place": place}


def _all(observed: Sequence[ObservedTimeline]) -> Iterator[ObservedLock]:
    return (lock for line in observed for lock in line.locks)


_Rows: TypeAlias = Callable[
    [Sequence[ObservedTimeline], Sequence[ObservedSession]], Iterator[NamedRow]
]

LOCK_ROWS: Final[Mapping[str, _Rows]] = {
    "meridian_blocking": _blocking,
    "pg_locks": _pg_locks,
}
