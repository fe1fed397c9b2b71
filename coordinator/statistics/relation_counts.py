"""What was counted of tables, indexes and databases since the last reset.

INVARIANTS
  R1  at most RELATIONS_COUNTED_MAX tables, and as many indexes, are remembered: the oldest go
      first.
"""

from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

RELATIONS_COUNTED_MAX: Final = 20_000
"""Larger: more memory after many tables came and went. Smaller: counts of old tables are lost."""


@dataclass(slots=True)
class IndexCounts:
    """Of the index of a key, or of one of CREATE INDEX. `last_at`: microseconds; 0: never."""

    scans: int = 0
    fetched: int = 0
    last_at: int = 0


@dataclass(slots=True)
class TableCounts:
    """Of a table. `scans`: those of all its rows. `reset_at`: microseconds; 0: never."""

    scans: int = 0
    last_at: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    index_scans: int = 0
    index_fetched: int = 0
    last_index_at: int = 0
    reset_at: int = 0


@dataclass(slots=True)
class DatabaseCounts:
    """Of all sessions that have connected to a database by one of its names."""

    commits: int = 0
    rollbacks: int = 0
    returned: int = 0
    fetched: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    conflicts: int = 0
    deadlocks: int = 0
    sessions: int = 0
    abandoned: int = 0
    fatal: int = 0
    killed: int = 0
    session_s: float = 0.0
    """Of sessions that are over."""
    active_s: float = 0.0
    reset_at: int = 0


_Counts = TypeVar("_Counts")


@dataclass(slots=True)
class RelationCounts:
    """Counts by oid (R1)."""

    tables: dict[int, TableCounts] = field(default_factory=dict[int, TableCounts])
    indexes: dict[int, IndexCounts] = field(default_factory=dict[int, IndexCounts])

    def table(self, oid: int) -> TableCounts:
        """Where a table is counted."""
        found = self.tables.get(oid)
        return _kept(self.tables, oid, TableCounts()) if found is None else found

    def index(self, oid: int) -> IndexCounts:
        """Where an index is counted."""
        found = self.indexes.get(oid)
        return _kept(self.indexes, oid, IndexCounts()) if found is None else found

    def copy(self) -> "RelationCounts":
        """As they are now."""
        return RelationCounts(
            {oid: replace(counts) for oid, counts in self.tables.items()},
            {oid: replace(counts) for oid, counts in self.indexes.items()},
        )


def _kept(counts: dict[int, _Counts], oid: int, made: _Counts) -> _Counts:
    if len(counts) >= RELATIONS_COUNTED_MAX:
        del counts[next(iter(counts))]
    counts[oid] = made
    return made
