"""Lock modes, what they conflict with, and the tags of what is locked.

    table      PostgreSQL's eight modes        (its manual, 13.3.1)
    row        FOR KEY SHARE .. FOR UPDATE     (13.3.2)
    advisory   shared, exclusive               (13.3.5)

A tag names what is locked, as PostgreSQL's LOCKTAG does. A row is named by its primary key; in a
table without one, by the identity that it has in its shard.

Not here: who holds and who waits (`lock_table.py`).
"""

from collections.abc import Hashable, Mapping
from enum import Enum, IntFlag
from typing import Final, TypeAlias

from sql.catalog.oids import DATABASE_OID
from storage.fast_dataclass import fast_dataclass


class LockMode(IntFlag):
    """All modes; those of one kind are only compared with each other."""

    ACCESS_SHARE = 1 << 0
    ROW_SHARE = 1 << 1
    ROW_EXCLUSIVE = 1 << 2
    SHARE_UPDATE_EXCLUSIVE = 1 << 3
    SHARE = 1 << 4
    SHARE_ROW_EXCLUSIVE = 1 << 5
    EXCLUSIVE = 1 << 6
    ACCESS_EXCLUSIVE = 1 << 7

    ROW_KEY_SHARE = 1 << 8
    ROW_SHARED = 1 << 9
    ROW_NO_KEY_UPDATE = 1 << 10
    ROW_UPDATE = 1 << 11

    ADVISORY_SHARED = 1 << 12
    ADVISORY_EXCLUSIVE = 1 << 13

    @property
    def shown(self) -> str:
        """The name in pg_locks."""
        return _SHOWN[self]

    # Locks are compared many times a statement, and the operators of `enum` cost a microsecond.
    def __and__(self, other: int) -> "LockMode":
        return _modes[int.__and__(self, other)]

    def __or__(self, other: int) -> "LockMode":
        return _modes[int.__or__(self, other)]

    __bool__ = int.__bool__
    __hash__ = int.__hash__


class _Modes(dict[int, LockMode]):
    """The mode or modes of a number."""

    def __missing__(self, value: int) -> LockMode:
        self[value] = found = LockMode(value)
        return found


_modes: Final = _Modes()


_M = LockMode
_SHARE_AND_UP: Final = _M.SHARE | _M.SHARE_ROW_EXCLUSIVE | _M.EXCLUSIVE | _M.ACCESS_EXCLUSIVE

MODE_CONFLICTS: Final[Mapping[LockMode, LockMode]] = {
    _M.ACCESS_SHARE: _M.ACCESS_EXCLUSIVE,
    _M.ROW_SHARE: _M.EXCLUSIVE | _M.ACCESS_EXCLUSIVE,
    _M.ROW_EXCLUSIVE: _SHARE_AND_UP,
    _M.SHARE_UPDATE_EXCLUSIVE: _M.SHARE_UPDATE_EXCLUSIVE | _SHARE_AND_UP,
    _M.SHARE: _M.ROW_EXCLUSIVE | _M.SHARE_UPDATE_EXCLUSIVE | (_SHARE_AND_UP & ~_M.SHARE),
    _M.SHARE_ROW_EXCLUSIVE: _M.ROW_EXCLUSIVE | _M.SHARE_UPDATE_EXCLUSIVE | _SHARE_AND_UP,
    _M.EXCLUSIVE: _M.ROW_SHARE | _M.ROW_EXCLUSIVE | _M.SHARE_UPDATE_EXCLUSIVE | _SHARE_AND_UP,
    _M.ACCESS_EXCLUSIVE: _M.ACCESS_SHARE
    | _M.ROW_SHARE
    | _M.ROW_EXCLUSIVE
    | _M.SHARE_UPDATE_EXCLUSIVE
    | _SHARE_AND_UP,
    _M.ROW_KEY_SHARE: _M.ROW_UPDATE,
    _M.ROW_SHARED: _M.ROW_NO_KEY_UPDATE | _M.ROW_UPDATE,
    _M.ROW_NO_KEY_UPDATE: _M.ROW_SHARED | _M.ROW_NO_KEY_UPDATE | _M.ROW_UPDATE,
    _M.ROW_UPDATE: _M.ROW_KEY_SHARE | _M.ROW_SHARED | _M.ROW_NO_KEY_UPDATE | _M.ROW_UPDATE,
    _M.ADVISORY_SHARED: _M.ADVISORY_EXCLUSIVE,
    _M.ADVISORY_EXCLUSIVE: _M.ADVISORY_SHARED | _M.ADVISORY_EXCLUSIVE,
}
"""For each mode, those that another session must not hold."""

ROW_MODES: Final = _M.ROW_KEY_SHARE | _M.ROW_SHARED | _M.ROW_NO_KEY_UPDATE | _M.ROW_UPDATE

_SHOWN: Final[Mapping[LockMode, str]] = {
    _M.ACCESS_SHARE: "AccessShareLock",
    _M.ROW_SHARE: "RowShareLock",
    _M.ROW_EXCLUSIVE: "RowExclusiveLock",
    _M.SHARE_UPDATE_EXCLUSIVE: "ShareUpdateExclusiveLock",
    _M.SHARE: "ShareLock",
    _M.SHARE_ROW_EXCLUSIVE: "ShareRowExclusiveLock",
    _M.EXCLUSIVE: "ExclusiveLock",
    _M.ACCESS_EXCLUSIVE: "AccessExclusiveLock",
    # As PostgreSQL's heap_lock_tuple maps them (tupleLockExtraInfo).
    _M.ROW_KEY_SHARE: "AccessShareLock",
    _M.ROW_SHARED: "RowShareLock",
    _M.ROW_NO_KEY_UPDATE: "ExclusiveLock",
    _M.ROW_UPDATE: "AccessExclusiveLock",
    _M.ADVISORY_SHARED: "ShareLock",
    _M.ADVISORY_EXCLUSIVE: "ExclusiveLock",
}


class LockWait(Enum):
    """How a request waits: until it is granted, or not at all (NOWAIT, try)."""

    UNTIL_GRANTED = "until granted"
    NO = "no"


@fast_dataclass(frozen=True, slots=True)
class TableTag:
    """A table, by oid."""

    table: int

    def describe(self) -> str:
        """As PostgreSQL's DescribeLockTag."""
        return f"relation {self.table} of database {DATABASE_OID}"


@fast_dataclass(frozen=True, slots=True)
class RowTag:
    """A row of a table: the values of its primary key, or its identity (source, index)."""

    table: int
    key: tuple[Hashable, ...]
    by_identity: bool = False

    def describe(self) -> str:
        """For errors and logs; values of keys are not shown."""
        return f"a row of relation {self.table} of database {DATABASE_OID}"


@fast_dataclass(frozen=True, slots=True)
class AdvisoryTag:
    """The key of an advisory lock; `two_keys`: it was given as two integers, not as one bigint."""

    high: int
    low: int
    two_keys: bool

    @classmethod
    def of_bigint(cls, key: int) -> "AdvisoryTag":
        """The lock of a bigint."""
        return cls((key >> 32) & _MASK, key & _MASK, two_keys=False)

    @classmethod
    def of_integers(cls, first: int, second: int) -> "AdvisoryTag":
        """The lock of two integers."""
        return cls(first & _MASK, second & _MASK, two_keys=True)

    def describe(self) -> str:
        """As PostgreSQL's DescribeLockTag."""
        form = 2 if self.two_keys else 1
        return f"advisory lock [{DATABASE_OID},{self.high},{self.low},{form}]"


_MASK: Final = 0xFFFFFFFF

LockTag: TypeAlias = TableTag | RowTag | AdvisoryTag

LOCK_WAIT_EVENTS: Final[Mapping[type[LockTag], str]] = {
    TableTag: "relation",
    RowTag: "transactionid",
    AdvisoryTag: "advisory",
}
"""What pg_stat_activity shows of who waits for such a tag."""
