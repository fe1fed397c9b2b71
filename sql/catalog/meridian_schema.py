"""The relations of schema `pg_meridian`: the server's own state, readable like tables.

The schema has a name of PostgreSQL's system schemas, so that tools do not take it for a user's.
Statements may call it `meridian`, as it was called before.

They belong to no timeline and can be joined with tables of any. They show the present moment, also
to a transaction that reads at an earlier one. Nobody writes to them. Their rows come from the
coordinator (`coordinator/pgcatalog/meridian_schema.py`); this module has their columns for the
binder.

INVARIANTS
  Y1  oids of system relations are below PostgreSQL's first oid for objects of users, and stay.
  Y2  columns are only ever added, at the end.
"""

from collections.abc import Mapping
from typing import Final

from sql.catalog.catalog import Column, Table
from sql.plan.nodes import RelationId
from sql.types.sql_type import BOOL, INT4, INT8, JSONB, OID, TEXT, TIMESTAMPTZ, SqlType

SYSTEM_SCHEMA: Final = "pg_meridian"
SYSTEM_SCHEMA_ALIAS: Final = "meridian"
SYSTEM_SCHEMA_NAMES: Final = (SYSTEM_SCHEMA, SYSTEM_SCHEMA_ALIAS)

_FIRST_OID: Final = 15_000


def _relation(number: int, name: str, /, **columns: SqlType) -> Table:
    made = tuple(Column(column, type_) for column, type_ in columns.items())
    shard = f"{SYSTEM_SCHEMA}.{name}"
    return Table(_FIRST_OID + number, SYSTEM_SCHEMA, name, shard, made, timeline="")


TIMELINES: Final = _relation(
    0, "timelines",
    name=TEXT, clock=TEXT, since=INT8, read_ts=INT8, upper=INT8, ceiling=INT8,
    since_at=TIMESTAMPTZ, read_at=TIMESTAMPTZ, clock_jumps=INT8, clock_doubted=BOOL,
)  # fmt: skip
FRONTIERS: Final = _relation(
    1, "frontiers",
    table_schema=TEXT, table_name=TEXT, timeline=TEXT, since=INT8, upper=INT8, cut=INT8,
    since_at=TIMESTAMPTZ, upper_at=TIMESTAMPTZ, cut_at=TIMESTAMPTZ,
    tail_rows=INT8, tail_bytes=INT8, fenced=BOOL, fence=TEXT,
)  # fmt: skip
READ_HOLDS: Final = _relation(
    2, "read_holds",
    kind=TEXT, name=TEXT, pid=INT4, transaction=INT8, timeline=TEXT, ts=INT8, held_at=TIMESTAMPTZ,
)  # fmt: skip
TRANSACTIONS: Final = _relation(
    3, "transactions",
    transaction=INT8, pid=INT4, timeline=TEXT, state=TEXT, isolation=TEXT, read_only=BOOL,
    read_ts=INT8, read_at=TIMESTAMPTZ, tables_read=TEXT, tables_written=TEXT, bytes_written=INT8,
)  # fmt: skip
CUTS: Final = _relation(
    4, "cuts",
    timeline=TEXT, cut=INT8, cut_at=TIMESTAMPTZ, table_schema=TEXT, table_name=TEXT, shard=TEXT,
    version=INT8, files=INT8, rows=INT8, bytes=INT8,
)  # fmt: skip

CONFLICT_STATISTICS: Final = _relation(
    5, "conflicts",
    timeline=TEXT, validated=INT8, by_predicate=INT8, by_table=INT8, by_row=INT8, by_key=INT8,
    avoided=INT8,
)  # fmt: skip

TABLE_OPTIONS: Final = _relation(
    6, "table_options",
    table_schema=TEXT, table_name=TEXT, timeline=TEXT, options=TEXT, definition=TEXT,
)  # fmt: skip

STATEMENT_ENGINES: Final = _relation(
    7, "statement_engines",
    userid=OID, dbid=OID, queryid=INT8, engine=TEXT, calls=INT8,
)  # fmt: skip

SUBSCRIPTIONS: Final = _relation(
    8, "subscriptions",
    id=INT8, pid=INT4, table_schema=TEXT, table_name=TEXT, timeline=TEXT, state=TEXT,
    as_of=INT8, up_to=INT8, position=INT8, as_of_at=TIMESTAMPTZ, position_at=TIMESTAMPTZ,
)  # fmt: skip

SOURCES: Final = _relation(
    9, "sources",
    source_schema=TEXT, source_name=TEXT, kind=TEXT, timeline=TEXT, state=TEXT,
    since_at=TIMESTAMPTZ, attempt=INT8, waiting=TEXT, code=TEXT, reason=TEXT, hint=TEXT,
    position=JSONB, acknowledged=JSONB, last_commit=INT8, last_commit_at=TIMESTAMPTZ,
    rows=INT8, errors=INT8, connection=TEXT, place=JSONB, upstream=JSONB, lag_bytes=INT8,
)  # fmt: skip

SOURCE_TABLES: Final = _relation(
    10, "source_tables",
    source_schema=TEXT, source_name=TEXT, table_schema=TEXT, table_name=TEXT, reference=TEXT,
    rows_inserted=INT8, hydrated_at=TIMESTAMPTZ,
)  # fmt: skip

MATERIALIZED_VIEWS: Final = _relation(
    11, "materialized_views",
    table_schema=TEXT, table_name=TEXT, refresh=TEXT, state=TEXT,
    computed_ts=INT8, computed_at=TIMESTAMPTZ, inputs=TEXT,
    tried=INT8, attached=INT8, last_error=TEXT,
    strategy=TEXT, reason=TEXT, maintained=INT8, given_up=INT8, last_ms=INT8,
    given_up_because=TEXT, by_changes=INT8, delta_rows=INT8, behind_since=INT8,
)  # fmt: skip

CONNECTIONS: Final = _relation(
    12, "connections",
    connection_schema=TEXT, connection_name=TEXT, kind=TEXT, host=TEXT, port=INT4, database=TEXT,
    username=TEXT, password_from=TEXT, ssl_mode=TEXT, ca_file=TEXT, owner=TEXT, comment=TEXT,
)  # fmt: skip

SYSTEM_RELATIONS: Final[Mapping[str, Table]] = {
    table.name: table
    for table in (
        TIMELINES,
        FRONTIERS,
        READ_HOLDS,
        TRANSACTIONS,
        CUTS,
        CONFLICT_STATISTICS,
        TABLE_OPTIONS,
        STATEMENT_ENGINES,
        SUBSCRIPTIONS,
        SOURCES,
        SOURCE_TABLES,
        MATERIALIZED_VIEWS,
        CONNECTIONS,
    )
}


STATEMENT_VIEWS: Final = frozenset({"pg_stat_statements", STATEMENT_ENGINES.name})
"""Names of relations with a row for each statement that was counted."""


def system_view_definition(table: Table) -> str:
    """The text that pg_get_viewdef() shows: a function of the server yields the rows."""
    names = [column.name for column in table.columns]
    targets = ",\n    ".join(names)
    return f" SELECT {targets}\n   FROM pg_observed_{table.name}() o({', '.join(names)});"


def is_system_relation(relation: RelationId) -> bool:
    """Whether an input of a plan is a system relation: only their names contain a dot."""
    return "." in relation


def is_server_state(table: Table) -> bool:
    """Whether a relation shows the server's present state: a system relation (Y1) or a sequence."""
    return not table.timeline
