"""Dispatch relations of pg_catalog and information_schema to their rows, as inputs of a plan.

    BindContext ─▶ rows per relation, by column name ─▶ ShardView, an input like any other

INVARIANTS
  W2  a column that a row does not name is NULL, or zero, false, empty where PostgreSQL has no NULL.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from coordinator.core.observation import ObservedTimeline
from coordinator.pgcatalog.comments import COMMENT_ROWS
from coordinator.pgcatalog.extensions import EXTENSION_ROWS
from coordinator.pgcatalog.functions import FUNCTION_INFORMATION_ROWS, FUNCTION_ROWS
from coordinator.pgcatalog.information_schema import INFORMATION_SCHEMA_ROWS, NamedRow
from coordinator.pgcatalog.locks import LOCK_ROWS
from coordinator.pgcatalog.meridian_schema import Row, rows_as_view
from coordinator.pgcatalog.names import NAME_ROWS
from coordinator.pgcatalog.pg_depend import pg_depend
from coordinator.pgcatalog.privileges import PRIVILEGE_INFORMATION_ROWS, PRIVILEGE_ROWS
from coordinator.pgcatalog.roles import ROLE_ROWS
from coordinator.pgcatalog.server import SERVER_ROWS
from coordinator.pgcatalog.statistics import STATISTICS_ROWS
from coordinator.pgcatalog.tables import TABLE_ROWS
from coordinator.pgcatalog.types import TYPE_ROWS
from sql.binder.state import BindContext
from sql.catalog.catalog import Column, Table
from sql.catalog.oids import DATABASE_OIDS
from sql.catalog.system_catalogs import INFORMATION_SCHEMA, OBSERVED_CATALOGS, PG_CATALOG
from sql.catalog.temporary import is_temporary_schema
from sql.types.sql_type import Value
from storage.batch import ShardView

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
        "pg_depend": pg_depend,
    },
    INFORMATION_SCHEMA: {
        **INFORMATION_SCHEMA_ROWS,
        **PRIVILEGE_INFORMATION_ROWS,
        **FUNCTION_INFORMATION_ROWS,
    },
}


def catalog_view(
    relation: Table, context: BindContext, observed: Sequence[ObservedTimeline]
) -> ShardView:
    """The relation as a view with rows in memory."""
    if relation.schema == PG_CATALOG and relation.name in OBSERVED_CATALOGS:
        seen = LOCK_ROWS[relation.name](observed)
        here = {"database": DATABASE_OIDS[context.database]}
        return rows_as_view(relation, [_row(relation, {**here, **named}) for named in seen])
    make = _ROWS[relation.schema].get(relation.name)
    if relation.schema == INFORMATION_SCHEMA:
        context = _without_others(context)
    rows = [] if make is None else [_row(relation, named) for named in make(context)]
    return rows_as_view(relation, rows)


def _without_others(context: BindContext) -> BindContext:
    """As information_schema sees it: without what is temporary in other sessions."""
    catalog = context.catalog
    others = {schema for schema in catalog.schemas if is_temporary_schema(schema)} - {
        context.temporary
    }
    if not others:
        return context
    tables = {key: table for key, table in catalog.tables.items() if table.schema not in others}
    objects = {key: thing for key, thing in catalog.objects.items() if thing.schema not in others}
    return replace(context, catalog=replace(catalog, tables=tables, objects=objects))


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
