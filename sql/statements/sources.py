"""Bound statements that create sources and the tables that they feed."""

from dataclasses import dataclass
from typing import TypeAlias

from sql.catalog.catalog import Column, Table
from sql.catalog.objects import ConnectionDefinition, SourceDefinition


@dataclass(frozen=True, slots=True)
class CreateSource:
    """CREATE SOURCE with the table of its errors; the session gives them oids, a shard and the name
    of what is upstream. `exists`: IF NOT EXISTS found one; notice only.
    """

    source: SourceDefinition
    errors: Table
    exists: bool = False
    connection: ConnectionDefinition | None = None
    """Where upstream is; it is looked at before the statement answers."""


@dataclass(frozen=True, slots=True)
class CreateFedTables:
    """CREATE TABLE or TABLES FROM SOURCE; the session gives each its oid and shard. `exists`: the
    name that IF NOT EXISTS found; notice only.
    """

    tag: str
    tables: tuple[Table, ...] = ()
    exists: str | None = None


@dataclass(frozen=True, slots=True)
class CreateUpstreamTables:
    """CREATE TABLE or TABLES FROM SOURCE of an upstream that is asked for their columns. `name`: of
    one table, with its `reference` upstream; empty: all that are not fed yet. `columns`: those that
    were given; None: as upstream has them, with these as texts, and without these.
    """

    tag: str
    source: SourceDefinition
    connection: ConnectionDefinition
    schema: str
    name: str = ""
    reference: str = ""
    columns: tuple[Column, ...] | None = None
    key: tuple[str, ...] | None = None
    text_columns: tuple[str, ...] = ()
    exclude_columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SkipRecord:
    """ALTER SOURCE .. SKIP RECORD: the one that the source is broken at, which the server knows."""

    source: SourceDefinition


FeedingStatement: TypeAlias = CreateSource | CreateFedTables | CreateUpstreamTables | SkipRecord
