"""Sources of the catalog, the tables that they feed, and the tables of a generator.

A generator's tables are known without asking anybody. `ingest/generator.py` makes their rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from sql.catalog.catalog import Catalog, Column, Key, Table
from sql.catalog.objects import ConnectionDefinition, SourceDefinition
from sql.types.sql_type import BYTEA, INT4, INT8, JSONB, TEXT, TIMESTAMPTZ, SqlType

GENERATOR: Final = "generator"
POSTGRES: Final = "postgres"

ERROR_COLUMNS: Final = (
    Column("at", TIMESTAMPTZ),
    Column("table_name", TEXT),
    Column("place", JSONB),
    Column("key", BYTEA),
    Column("value", BYTEA),
    Column("code", TEXT),
    Column("message", TEXT),
    Column("resolved", TIMESTAMPTZ),
)
"""Of the table with the records of a source that no column could take."""


def _columns(**types: SqlType) -> tuple[Column, ...]:
    return tuple([Column(name, type_, not_null=True) for name, type_ in types.items()])


GENERATOR_TABLES: Final[Mapping[str, Mapping[str, tuple[Column, ...]]]] = {
    "counter": {"counter": _columns(id=INT8, at=TIMESTAMPTZ)},
    "auction": {
        "persons": _columns(id=INT8, name=TEXT, city=TEXT, at=TIMESTAMPTZ),
        "auctions": _columns(
            id=INT8, seller=INT8, item=TEXT, category=INT4, initial_bid=INT8, at=TIMESTAMPTZ
        ),
        "bids": _columns(auction=INT8, bidder=INT8, price=INT8, at=TIMESTAMPTZ),
    },
}
"""By what is generated, and by the table's name there."""


def sources_of(catalog: Catalog) -> Iterator[SourceDefinition]:
    """All sources."""
    return (o for o in catalog.objects.values() if isinstance(o, SourceDefinition))


def source_by_oid(catalog: Catalog, oid: int) -> SourceDefinition | None:
    """The source with this oid."""
    return next((found for found in sources_of(catalog) if found.oid == oid), None)


def connections_of(catalog: Catalog) -> Iterator[ConnectionDefinition]:
    """All connections."""
    return (o for o in catalog.objects.values() if isinstance(o, ConnectionDefinition))


def connection_by_oid(catalog: Catalog, oid: int) -> ConnectionDefinition | None:
    """The connection with this oid."""
    return next((found for found in connections_of(catalog) if found.oid == oid), None)


def tables_of_source(catalog: Catalog, source: int) -> tuple[Table, ...]:
    """The tables that a source feeds, that of its errors among them, by oid."""
    fed = catalog.named_tables.fed.values()
    found = [table for table in fed if table.feed is not None and table.feed.source == source]
    return tuple(sorted(found, key=lambda table: table.oid))


def sources_of_tables(tables: Sequence[Table], catalog: Catalog) -> dict[int, None]:
    """The oids of the sources that feed tables, or inputs of materialized views; in order."""
    found: dict[int, None] = {}
    for table in tables:
        if table.feed is not None and table.feed.reference:
            found[table.feed.source] = None
        view = table.materialized_view
        if view is not None:
            inputs = (catalog.by_oid(oid) for _, _, oid, _, _ in view.relations)
            found |= sources_of_tables([one for one in inputs if one is not None], catalog)
    return found


def errors_name(source: str) -> str:
    """How the table of a source's errors is called."""
    return f"{source}_errors"


def errors_of_source(catalog: Catalog, source: int) -> Table:
    """The table of a source's errors."""
    return next(filter(is_table_of_errors, tables_of_source(catalog, source)))


def is_table_of_errors(table: Table) -> bool:
    """Whether a source writes its errors to it."""
    return table.feed is not None and not table.feed.reference


def upstream_tables(source: SourceDefinition) -> Mapping[str, tuple[Column, ...]]:
    """The tables that can be fed, with their columns, by their names upstream."""
    assert source.connector == GENERATOR, "only a generator's tables are known"
    return GENERATOR_TABLES[dict(source.options)["kind"]]


def upstream_columns(table: Table) -> tuple[str, ...]:
    """The names upstream of the columns of a fed table."""
    assert table.feed is not None, "it is fed"
    return table.feed.columns or tuple([column.name for column in table.columns])


def feed_key(table: Table) -> Key | None:
    """The key by which the source of a table knows its rows; None: by all their values."""
    assert table.feed is not None, "it is fed"
    names = upstream_columns(table)
    ordinals = tuple([names.index(name) for name in table.feed.key])
    return Key(f"{table.name}_pkey", ordinals, primary=True) if ordinals else None


def has_snapshot(source: SourceDefinition) -> bool:
    """Whether rows were there before the source began: its tables have to be loaded first."""
    return source.connector != GENERATOR
