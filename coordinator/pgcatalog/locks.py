"""Rows of pg_locks, and of the relation that pg_blocking_pids() reads: sessions at this moment.

A row names the columns it has (W2 of `pgcatalog/relations.py`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from coordinator.core.locking.modes import AdvisoryTag, RowTag, TableTag
from coordinator.core.observation import ObservedLock, ObservedTimeline
from coordinator.pgcatalog.named_row import NamedRow
from sql.types.sql_type import Value


def _pg_locks(observed: Sequence[ObservedTimeline]) -> Iterator[NamedRow]:
    """All but the database, which is the reader's."""
    for lock in _all(observed):
        yield {
            **_named(lock),
            "virtualtransaction": f"{lock.session}/{lock.txn or 0}",
            "pid": lock.session,
            "mode": lock.mode.shown,
            "granted": lock.granted,
            "fastpath": False,
        }


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


def _blocking(observed: Sequence[ObservedTimeline]) -> Iterator[NamedRow]:
    for lock in _all(observed):
        for place, blocker in enumerate(lock.blocked_by):
            yield {"pid": lock.session, "blocked_by": blocker, "place": place}


def _all(observed: Sequence[ObservedTimeline]) -> Iterator[ObservedLock]:
    return (lock for line in observed for lock in line.locks)


LOCK_ROWS: Final[Mapping[str, Callable[[Sequence[ObservedTimeline]], Iterator[NamedRow]]]] = {
    "meridian_blocking": _blocking,
    "pg_locks": _pg_locks,
}
