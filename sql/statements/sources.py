"""Bound statements that create sources and the tables that they feed."""

from dataclasses import dataclass

from sql.catalog.catalog import Table
from sql.catalog.objects import SourceDefinition


@dataclass(frozen=True, slots=True)
class CreateSource:
    """CREATE SOURCE with the table of its errors; the session gives them oids, a shard and the name
    of what is upstream. `exists`: IF NOT EXISTS found one; notice only.
    """

    source: SourceDefinition
    errors: Table
    exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateFedTables:
    """CREATE TABLE or TABLES FROM SOURCE; the session gives each its oid and shard. `exists`: the
    name that IF NOT EXISTS found; notice only.
    """

    tag: str
    tables: tuple[Table, ...] = ()
    exists: str | None = None
