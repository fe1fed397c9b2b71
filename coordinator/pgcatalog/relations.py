"""Dispatch relations of pg_catalog and information_schema to their rows, as inputs of a plan.

    BindContext ─▶ rows per relation, by column name ─▶ ShardView, an input like any other

INVARIANTS
  W2  a column that a row does not name is NULL, or zero, false, empty where PostgreSQL has no NULL.
  W3  without ORDER BY, rows of one catalog come by oid, or by table and attnum; those of pg_opclass
      as in PostgreSQL's heap, which string_agg() of psql shows.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Final

from coordinator.core.observation import ObservedTimeline
from coordinator.pgcatalog.activity import ACTIVITY_ROWS, ObservedSession
from coordinator.pgcatalog.background import BACKGROUND_ROWS, background_activity
from coordinator.pgcatalog.comments import COMMENT_ROWS
from coordinator.pgcatalog.counts import COUNTED_ROWS
from coordinator.pgcatalog.extensions import EXTENSION_ROWS
from coordinator.pgcatalog.functions import FUNCTION_INFORMATION_ROWS, FUNCTION_ROWS
from coordinator.pgcatalog.information_schema import INFORMATION_SCHEMA_ROWS
from coordinator.pgcatalog.locks import LOCK_ROWS
from coordinator.pgcatalog.meridian_schema import Row, rows_as_view
from coordinator.pgcatalog.named_row import NamedRow
from coordinator.pgcatalog.names import NAME_ROWS
from coordinator.pgcatalog.pg_depend import pg_depend
from coordinator.pgcatalog.privileges import PRIVILEGE_INFORMATION_ROWS, PRIVILEGE_ROWS
from coordinator.pgcatalog.recorded import RECORDED_ROWS, STANDARD_ROWS
from coordinator.pgcatalog.roles import ROLE_ROWS
from coordinator.pgcatalog.server import SERVER_ROWS
from coordinator.pgcatalog.statistics import STATISTICS_ROWS
from coordinator.pgcatalog.syscache import SystemCache, with_catalog
from coordinator.pgcatalog.tables import TABLE_ROWS
from coordinator.pgcatalog.time_zones import TIME_ZONE_ROWS
from coordinator.pgcatalog.types import TYPE_ROWS
from coordinator.pgcatalog.usage import USAGE_ROWS
from coordinator.statistics.server_statistics import ObservedStatistics
from sql.binder.state import BindContext
from sql.catalog.catalog import Column, Table
from sql.catalog.oids import DATABASE_OIDS
from sql.catalog.system_catalogs import INFORMATION_SCHEMA, PG_CATALOG
from sql.catalog.temporary import is_temporary_schema
from sql.types.sql_type import Value
from storage.batch import ShardView
from storage.known_rows import Points

_ROWS: Final[Mapping[str, Mapping[str, Callable[[BindContext], Iterator[NamedRow]]]]] = {
    PG_CATALOG: {
        **SERVER_ROWS,
        **TYPE_ROWS,
        **TABLE_ROWS,
        **NAME_ROWS,
        **COMMENT_ROWS,
        **EXTENSION_ROWS,
        **PRIVILEGE_ROWS,
        **ROLE_ROWS,
        **FUNCTION_ROWS,
        **STATISTICS_ROWS,
        **RECORDED_ROWS,
        **TIME_ZONE_ROWS,
        "pg_depend": pg_depend,
    },
    INFORMATION_SCHEMA: {
        **INFORMATION_SCHEMA_ROWS,
        **PRIVILEGE_INFORMATION_ROWS,
        **STANDARD_ROWS,
        **USAGE_ROWS,
        **FUNCTION_INFORMATION_ROWS,
    },
}


_ORDER: Final[Mapping[str, Sequence[str]]] = {
    **dict.fromkeys(
        ("pg_class", "pg_type", "pg_namespace", "pg_proc", "pg_cast", "pg_language", "pg_am",
         "pg_authid", "pg_roles", "pg_database", "pg_collation", "pg_tablespace", "pg_operator",
         "pg_opfamily"),
        ("oid",),
    ),
    "pg_attribute": ("attrelid", "attnum"),
    "pg_attrdef": ("adrelid", "adnum"),
    "pg_enum": ("enumtypid", "enumsortorder"),
    "pg_index": ("indrelid",),
    "pg_sequence": ("seqrelid",),
}  # fmt: skip
"""Oids of what belongs to a table (constraints, indexes of keys ..) are derived from names: its
rows are in the order of the table's oid, and then as the table lists them (W3)."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What relations that show sessions are made of, all of one moment; `own`: rows of those that
    show only the session that asks.
    """

    timelines: Sequence[ObservedTimeline]
    sessions: Sequence[ObservedSession]
    own: Mapping[str, Sequence[NamedRow]]
    statistics: ObservedStatistics = field(default_factory=ObservedStatistics)


def observed_view(relation: Table, context: BindContext, observed: Observed) -> ShardView:
    """A relation that shows sessions (`shows_sessions`), as a view with rows in memory."""
    seen: Iterable[NamedRow]
    if relation.name in ACTIVITY_ROWS:
        seen = ACTIVITY_ROWS[relation.name](context, observed.sessions)
        if relation.name == "pg_stat_activity":
            seen = chain(seen, background_activity(context, observed.timelines))
    elif relation.name in BACKGROUND_ROWS:
        seen = BACKGROUND_ROWS[relation.name](context, observed.timelines)
    elif relation.name in COUNTED_ROWS:
        seen = COUNTED_ROWS[relation.name](
            context, observed.statistics, observed.timelines, observed.sessions
        )
    elif relation.name in observed.own:
        seen = observed.own[relation.name]
    else:
        seen = LOCK_ROWS[relation.name](observed.timelines, observed.sessions)
    here = {"database": DATABASE_OIDS[context.database]}
    return rows_as_view(relation, [_row(relation, {**here, **named}) for named in seen])


def catalog_view(
    relation: Table, context: BindContext, cache: SystemCache, points: Points | None = None
) -> ShardView:
    """A relation that shows the catalog, as a view with rows in memory; `points`: those that
    matter.
    """
    return cache.view(relation, context, partial(_rows, relation), points)


def _rows(relation: Table, context: BindContext) -> Sequence[Row]:
    make = _ROWS[relation.schema].get(relation.name)
    if make is None:
        return []
    if relation.schema == INFORMATION_SCHEMA:
        context = _without_others(context)
    rows = [_row(relation, named) for named in make(context)]
    return _in_order(relation, rows)


def _in_order(relation: Table, rows: list[Row]) -> list[Row]:
    """Rows in the order that everybody is used to from the heap: as things were created."""
    names = [column.name for column in relation.columns]
    keys = _ORDER.get(relation.name) if relation.schema == PG_CATALOG else None
    if keys is None:
        return rows
    return sorted(rows, key=itemgetter(*map(names.index, keys)))


def _without_others(context: BindContext) -> BindContext:
    """As information_schema sees it: without what is temporary in other sessions."""
    catalog = context.catalog
    temporary = {schema for schema in catalog.schemas if is_temporary_schema(schema)}
    others = temporary - {context.temporary} if temporary else temporary
    if not others:
        return context
    tables = {key: table for key, table in catalog.tables.items() if table.schema not in others}
    objects = {key: thing for key, thing in catalog.objects.items() if thing.schema not in others}
    return with_catalog(context, replace(catalog, tables=tables, objects=objects))


def _row(relation: Table, named: NamedRow) -> Row:
    return tuple(
        named[column.name] if column.name in named else _absent(column)
        for column in relation.columns
    )


def _absent(column: Column) -> Value:
    if not column.not_null:
        return None
    match column.type.category:
        case "B":
            return False
        case "N":
            return 0.0 if column.type.name.startswith("float") else 0
        case "A":
            return ()
        case _:
            return ""
