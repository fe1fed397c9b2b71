"""Rows of information_schema, computed from the catalog that a statement is bound with.

A row names the columns it has (W2 of `pgcatalog/relations.py`). Numbers of precision are
PostgreSQL's.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from coordinator.pgcatalog.definition_texts import DefinitionTexts
from coordinator.pgcatalog.definitions import (
    DELETED,
    EVERYTHING,
    INSERTED,
    UPDATED,
    base_tables,
    column_number,
    constraints_of,
    is_user_view,
    key_numbers,
    referenced_key,
    supported_view_events,
    user_tables,
    views_as_tables,
)
from coordinator.pgcatalog.named_row import NamedRow
from sql.binder.resolve.role_names import roles_of
from sql.binder.state import BindContext
from sql.catalog.catalog import Column, ForeignKey, Key, Table
from sql.catalog.constraint_names import not_null_name
from sql.catalog.extension_relations import extension_views, is_extension_view
from sql.catalog.meridian_schema import SYSTEM_RELATIONS, SYSTEM_SCHEMA
from sql.catalog.ownership import object_privileges, owned_schema
from sql.catalog.system_catalogs import (
    CATALOG_SCHEMAS,
    columns_as_shown,
    is_catalog_view,
    system_catalogs,
)
from sql.catalog.temporary import is_temporary_schema
from sql.types.datetime.typmods import seconds_precision
from sql.types.enums import enum_of, is_enum
from sql.types.sql_type import SqlType, Value, format_type

_BITS: Final = {"int2": 16, "int4": 32, "int8": 64, "float4": 24, "float8": 53}
_TIMES: Final = frozenset({"timestamp", "timestamptz", "time", "timetz", "interval"})


def yes_or_no(condition: bool, /) -> str:
    """How information_schema writes a boolean."""
    return "YES" if condition else "NO"


def _relations(context: BindContext) -> Iterator[Table]:
    yield from system_catalogs().values()
    yield from SYSTEM_RELATIONS.values()
    yield from extension_views(context.catalog)
    yield from base_tables(context.catalog)
    yield from views_as_tables(context)


def is_base_table(table: Table) -> bool:
    """Whether it is a table, and no view of users or of the system."""
    if table.schema in CATALOG_SCHEMAS:
        return not is_catalog_view(table)
    is_system = table.schema == SYSTEM_SCHEMA or is_extension_view(table)
    return not is_system and not is_user_view(table)


def _schemata(context: BindContext) -> Iterator[NamedRow]:
    roles = roles_of(context)
    for name in sorted({*CATALOG_SCHEMAS, SYSTEM_SCHEMA, *context.catalog.schemas}):
        yield {
            "catalog_name": context.database,
            "schema_name": name,
            "schema_owner": roles.name(
                object_privileges(context.catalog, owned_schema(name)).owner
            ),
        }


def _tables(context: BindContext) -> Iterator[NamedRow]:
    for table in _relations(context):
        yield {
            "table_catalog": context.database,
            "table_schema": table.schema,
            "table_name": table.name,
            "table_type": _table_type(table),
            "is_insertable_into": yes_or_no(bool(_events(context, table)[0] & INSERTED)),
            "is_typed": "NO",
        }


def _events(context: BindContext, table: Table) -> tuple[int, Sequence[int]]:
    """What can be done to a relation's rows, and to each of its columns."""
    view = next((view for view in context.catalog.views() if view.oid == table.oid), None)
    if view is not None:
        return supported_view_events(context, view)
    events = EVERYTHING if table.schema not in CATALOG_SCHEMAS and is_base_table(table) else 0
    return events, [events] * len(table.columns)


def _table_type(table: Table) -> str:
    if not is_base_table(table):
        return "VIEW"
    return "LOCAL TEMPORARY" if is_temporary_schema(table.schema) else "BASE TABLE"


def _columns(context: BindContext) -> Iterator[NamedRow]:
    texts = DefinitionTexts(context)
    for table in _relations(context):
        events = _events(context, table)[1]
        for place, column in enumerate(columns_as_shown(table), 1):
            yield _measures(column.type) | {
                "table_catalog": context.database,
                "table_schema": table.schema,
                "table_name": table.name,
                "column_name": column.name,
                "ordinal_position": column_number(column, place),
                "column_default": None if column.generated else texts.default(table, column),
                "is_nullable": yes_or_no(_nullable(column)),
                "data_type": _data_type(column.type),
                "udt_catalog": context.database,
                **underlying_type(column.type),
                **_domain_of(context, column),
                **_collation_of(context, column),
                "dtd_identifier": str(column_number(column, place)),
                "is_self_referencing": "NO",
                **_identity(context, column),
                "is_generated": "NEVER" if column.generated is None else "ALWAYS",
                "generation_expression": texts.default(table, column) if column.generated else None,
                "is_updatable": yes_or_no(events[place - 1] == EVERYTHING),
            }


def _nullable(column: Column) -> bool:
    return not column.not_null and (column.domain is None or not column.domain.not_null)


def _domain_of(context: BindContext, column: Column) -> dict[str, Value]:
    if column.domain is None:
        return {}
    return {
        "domain_catalog": context.database,
        "domain_schema": column.domain.schema,
        "domain_name": column.domain.name,
    }


def _collation_of(context: BindContext, column: Column) -> dict[str, Value]:
    name = column.collation or ("C" if column.type.name in ("name", "_name") else "")
    if name in ("", "default"):
        return {}
    return {
        "collation_catalog": context.database,
        "collation_schema": "pg_catalog",
        "collation_name": name,
    }


def _domains(context: BindContext) -> Iterator[NamedRow]:
    for domain in context.catalog.domains():
        yield _measures(domain.type) | {
            "domain_catalog": context.database,
            "domain_schema": domain.schema,
            "domain_name": domain.name,
            "data_type": format_type(domain.type.bare()),
            "domain_default": DefinitionTexts(context).domain_default(domain),
            "udt_catalog": context.database,
            **underlying_type(domain.type),
            "dtd_identifier": "1",
        }


def _domain_constraints(context: BindContext) -> Iterator[NamedRow]:
    for domain in context.catalog.domains():
        names = [f"{domain.name}_not_null"] if domain.not_null else []
        for name in [*names, *(name for name, _ in domain.checks)]:
            yield {
                "constraint_catalog": context.database,
                "constraint_schema": domain.schema,
                "constraint_name": name,
                "domain_catalog": context.database,
                "domain_schema": domain.schema,
                "domain_name": domain.name,
                "is_deferrable": "NO",
                "initially_deferred": "NO",
            }


def _identity(context: BindContext, column: Column) -> dict[str, Value]:
    sequence = context.catalog.sequence_by_oid(column.sequence) if column.identity else None
    if sequence is None:
        return {"is_identity": "NO", "identity_cycle": "NO"}
    return {
        "is_identity": "YES",
        "identity_generation": column.identity.upper(),
        "identity_start": str(sequence.start),
        "identity_increment": str(sequence.increment),
        "identity_maximum": str(sequence.greatest),
        "identity_minimum": str(sequence.least),
        "identity_cycle": yes_or_no(sequence.cycle),
    }


def _sequences(context: BindContext) -> Iterator[NamedRow]:
    for sequence in context.catalog.sequences():
        if not sequence.identity:
            yield {
                "sequence_catalog": context.database,
                "sequence_schema": sequence.schema,
                "sequence_name": sequence.name,
                "data_type": format_type(SqlType(sequence.type)),
                "numeric_precision": _BITS[sequence.type],
                "numeric_precision_radix": 2,
                "numeric_scale": 0,
                "start_value": str(sequence.start),
                "minimum_value": str(sequence.least),
                "maximum_value": str(sequence.greatest),
                "increment": str(sequence.increment),
                "cycle_option": yes_or_no(sequence.cycle),
            }


def _data_type(type_: SqlType) -> str:
    if type_.element is not None:
        return "ARRAY"
    return "USER-DEFINED" if is_enum(type_.name) else format_type(type_.bare())


def underlying_type(type_: SqlType) -> dict[str, Value]:
    """The type's own name."""
    name = type_.name.removeprefix("_")
    if not is_enum(name):
        return {"udt_schema": "pg_catalog", "udt_name": type_.name}
    enum = enum_of(name)
    prefix = "_" if type_.element is not None else ""
    return {"udt_schema": enum.schema, "udt_name": f"{prefix}{enum.name}"}


def _measures(type_: SqlType) -> dict[str, Value]:
    """Lengths and precisions."""
    name = type_.name
    if name in ("varchar", "bpchar"):
        octets = None if type_.length is None else 4 * type_.length
        return {
            "character_maximum_length": type_.length,
            "character_octet_length": octets or 1 << 30,
        }
    if name == "text":
        return {"character_octet_length": 1 << 30}
    if name == "numeric" and type_.typmod >= 4:
        return {
            "numeric_precision": type_.precision,
            "numeric_precision_radix": 10,
            "numeric_scale": type_.scale,
        }
    if name == "numeric":
        return {"numeric_precision_radix": 10}
    if name in _BITS:
        scale = {"numeric_scale": 0} if name.startswith("int") else {}
        return {"numeric_precision": _BITS[name], "numeric_precision_radix": 2, **scale}
    if name in _TIMES:
        return {"datetime_precision": seconds_precision(type_)} | _fields(type_)
    return {"datetime_precision": 0} if name == "date" else {}


def _fields(type_: SqlType) -> dict[str, Value]:
    """The fields of an interval, if it was declared with some."""
    if type_.name != "interval":
        return {}
    _, _, fields = format_type(type_).partition(" ")
    return {"interval_type": fields.upper()} if fields else {}


def _table_constraints(context: BindContext) -> Iterator[NamedRow]:
    for table in user_tables(context.catalog):
        for key in constraints_of(table):
            kind = "PRIMARY KEY" if key.primary else "UNIQUE"
            distinct = None if key.primary else yes_or_no(key.nulls_distinct)
            row = _constraint(context, table, key.name, kind) | _when(key)
            yield row | {"nulls_distinct": distinct}
        for foreign in table.foreign_keys:
            yield _constraint(context, table, foreign.name, "FOREIGN KEY") | _when(foreign)
        for check in table.checks:
            yield _constraint(context, table, check.name, "CHECK")
        for column in table.columns:
            if column.not_null:
                yield _constraint(context, table, not_null_name(table, column), "CHECK")


def _when(key: Key | ForeignKey) -> dict[str, Value]:
    return {
        "is_deferrable": yes_or_no(key.deferrable),
        "initially_deferred": yes_or_no(key.deferred),
    }


def _constraint(context: BindContext, table: Table, name: str, kind: str) -> dict[str, Value]:
    return {
        "constraint_catalog": context.database,
        "constraint_schema": table.schema,
        "constraint_name": name,
        "table_catalog": context.database,
        "table_schema": table.schema,
        "table_name": table.name,
        "constraint_type": kind,
        "is_deferrable": "NO",
        "initially_deferred": "NO",
        "enforced": "YES",
    }


def _key_column_usage(context: BindContext) -> Iterator[NamedRow]:
    for table in user_tables(context.catalog):
        for key in constraints_of(table):
            yield from _usage(context, table, key.name, [(at, None) for at in key.columns])
        for foreign in table.foreign_keys:
            other, unique = referenced_key(context, foreign)
            numbers = key_numbers(other, unique)
            places = [numbers.index(number) + 1 for number in foreign.references]
            used: list[tuple[int, int | None]] = list(zip(foreign.columns, places, strict=True))
            yield from _usage(context, table, foreign.name, used)


def _usage(
    context: BindContext, table: Table, name: str, columns: Sequence[tuple[int, int | None]]
) -> Iterator[NamedRow]:
    for place, (at, unique) in enumerate(columns, 1):
        yield {
            "constraint_catalog": context.database,
            "constraint_schema": table.schema,
            "constraint_name": name,
            "table_catalog": context.database,
            "table_schema": table.schema,
            "table_name": table.name,
            "column_name": table.columns[at].name,
            "ordinal_position": place,
            "position_in_unique_constraint": unique,
        }


def _referential_constraints(context: BindContext) -> Iterator[NamedRow]:
    for table in user_tables(context.catalog):
        for foreign in table.foreign_keys:
            other, key = referenced_key(context, foreign)
            yield {
                "constraint_catalog": context.database,
                "constraint_schema": table.schema,
                "constraint_name": foreign.name,
                "unique_constraint_catalog": context.database,
                "unique_constraint_schema": other.schema,
                "unique_constraint_name": key.name,
                "match_option": "FULL" if foreign.match_full else "NONE",
                "update_rule": foreign.on_update.upper(),
                "delete_rule": foreign.on_delete.upper(),
            }


def _views(context: BindContext) -> Iterator[NamedRow]:
    for view in context.catalog.views():
        events, _ = supported_view_events(context, view)
        yield {
            "table_catalog": context.database,
            "table_schema": view.schema,
            "table_name": view.name,
            "view_definition": DefinitionTexts(context).view(view),
            "check_option": view.check_option.upper() or "NONE",
            "is_updatable": yes_or_no(events & (UPDATED | DELETED) == UPDATED | DELETED),
            "is_insertable_into": yes_or_no(bool(events & INSERTED)),
            "is_trigger_updatable": "NO",
            "is_trigger_deletable": "NO",
            "is_trigger_insertable_into": "NO",
        }


INFORMATION_SCHEMA_ROWS: Final[Mapping[str, Callable[[BindContext], Iterator[NamedRow]]]] = {
    "columns": _columns,
    "domain_constraints": _domain_constraints,
    "domains": _domains,
    "key_column_usage": _key_column_usage,
    "referential_constraints": _referential_constraints,
    "schemata": _schemata,
    "sequences": _sequences,
    "table_constraints": _table_constraints,
    "tables": _tables,
    "views": _views,
}
