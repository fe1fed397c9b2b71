"""Statements and parts of statements that lock: LOCK TABLE, SELECT FOR UPDATE and its kin."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from sql.catalog.catalog import Table
from sql.plan.nodes import Expr, Plan, RelationId

CANDIDATES: Final = 16
"""Rows beyond LIMIT that SKIP LOCKED may choose from. Larger: more rows are computed. Smaller: more
workers at one queue begin again, since they have all found the same row."""


class RowLockStrength(IntEnum):
    """FOR KEY SHARE to FOR UPDATE, from weak to strong."""

    KEY_SHARE = 1
    SHARE = 2
    NO_KEY_UPDATE = 3
    UPDATE = 4


class LockPolicy(IntEnum):
    """What happens at a row that is not free; of several clauses the greatest counts."""

    WAIT = 0
    SKIP = 1
    ERROR = 2


@dataclass(frozen=True, slots=True)
class LockedRows:
    """The rows of one table that a locking query yields: where its columns have their identity
    (text source, int8 index, at `place`) and the values of the primary key, if there is one.
    """

    table: Table
    strength: RowLockStrength
    policy: LockPolicy
    place: int
    keys: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LockingQuery:
    """SELECT FOR UPDATE and its kin: it runs before the rest of its statement, which reads the
    first `shown` of its columns as `relation`. `tables`: those that it reads. `limit`: of SKIP
    LOCKED; the plan yields some rows more, to choose free ones from.
    """

    relation: RelationId
    plan: Plan
    shown: int
    rows: tuple[LockedRows, ...]
    tables: tuple[Table, ...] = ()
    limit: int | None = None
    as_of: Expr | None = None
    """It locks nothing, has no `rows`, and reads at this time."""
    as_of_at_least: bool = False


@dataclass(frozen=True, slots=True)
class LockTables:
    """LOCK TABLE. `mode`: 1 (ACCESS SHARE) to 8 (ACCESS EXCLUSIVE), as PostgreSQL numbers them.
    `from_writers`: it conflicts with concurrent writes.
    """

    tables: tuple[Table, ...]
    mode: int
    nowait: bool
    from_writers: bool
