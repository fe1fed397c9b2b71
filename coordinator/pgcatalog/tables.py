"""Rows of pg_catalog about tables, their columns, constraints, indexes and sequences.

A row names the columns it has (W2 of `pgcatalog/relations.py`).
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from coordinator.pgcatalog.attributes import element_types, table_attributes
from coordinator.pgcatalog.definition_texts import DefinitionTexts
from coordinator.pgcatalog.definitions import (
    action_code,
    check_numbers,
    column_number,
    constraints_of,
    index_flags,
    index_numbers,
    index_orders,
    is_user_view,
    key_numbers,
    referenced_key,
    user_tables,
    views_as_tables,
    views_with_defaults,
)
from coordinator.pgcatalog.named_row import NamedRow
from coordinator.pgcatalog.privileges import PrivilegeColumns
from coordinator.pgcatalog.server import BTREE, HEAP, METHODS
from coordinator.pgcatalog.system_indexes import (
    of_system_catalog,
    system_constraint_rows,
    system_index_attributes,
    system_index_classes,
    system_index_rows,
    system_index_texts,
)
from coordinator.pgcatalog.types import (
    domain_constraints,
    index_collation,
    opclass_oid,
)
from sql.binder.resolve.unpopulated_views import is_unpopulated
from sql.binder.state import BindContext
from sql.catalog.catalog import Table
from sql.catalog.constraint_names import not_null_name
from sql.catalog.extension_relations import extension_views, is_extension_view
from sql.catalog.meridian_schema import (
    SYSTEM_RELATIONS,
    SYSTEM_SCHEMA,
    is_server_state,
    system_view_definition,
)
from sql.catalog.objects import DomainDefinition, IndexDefinition, SequenceDefinition
from sql.catalog.oids import constraint_oid, derived_oid, index_oid, row_type_oid, schema_oid
from sql.catalog.ownership import owned_schema
from sql.catalog.sequence_relation import sequence_relation
from sql.catalog.system_catalogs import (
    CATALOG_SCHEMAS,
    PG_CATALOG,
    is_catalog_view,
    system_catalogs,
)
from sql.catalog.system_indexes import shared_catalogs
from sql.catalog.temporary import is_temporary_schema
from sql.types.sql_type import TYPE_OIDS, Value, quoted_name


def all_tables(context: BindContext) -> Iterator[Table]:
    """System relations and views, too."""
    yield from system_catalogs().values()
    yield from SYSTEM_RELATIONS.values()
    yield from extension_views(context.catalog)
    yield from user_tables(context.catalog)
    yield from views_as_tables(context)


def is_shown_as_view(table: Table) -> bool:
    """Whether users see a view, whatever it is made of."""
    if table.schema in CATALOG_SCHEMAS:
        return is_catalog_view(table)
    return table.schema == SYSTEM_SCHEMA or is_extension_view(table) or is_user_view(table)


def _pg_namespace(context: BindContext) -> Iterator[NamedRow]:
    shown = PrivilegeColumns(context)
    names = {*CATALOG_SCHEMAS, SYSTEM_SCHEMA, *context.catalog.schemas}
    for name in sorted(names):
        owner, acl = shown.of(owned_schema(name))
        yield {"oid": schema_oid(name), "nspname": name, "nspowner": owner, "nspacl": acl}


def _pg_class(context: BindContext) -> Iterator[NamedRow]:
    yield from system_index_classes()
    shown = PrivilegeColumns(context)
    referred = {key.table for t in context.catalog.tables.values() for key in t.foreign_keys}
    for sequence in context.catalog.sequences():
        yield _sequence_class(sequence) | shown.named(sequence, "rel")
    for table in all_tables(context):
        view = is_shown_as_view(table)
        rights = shown.named(table, "rel")
        yield (
            _class_row(table.schema)
            | rights
            | {
                "oid": table.oid,
                "reltype": 0
                if is_server_state(table) and not is_user_view(table)
                else (row_type_oid(table.oid)),
                "relname": table.name,
                "relkind": _kind(table),
                "relam": 0 if view else HEAP,
                "relnatts": max(map(table.number_of, range(len(table.columns))), default=0),
                "relchecks": len(table.checks),
                "relhasindex": bool(table.keys) or any(context.catalog.indexes(table.oid)),
                "relhasrules": is_user_view(table) or table.query is not None,
                "relispopulated": not is_unpopulated(table),
                # In PostgreSQL foreign keys are triggers of both tables: psql shows none without.
                "relhastriggers": bool(table.foreign_keys) or table.oid in referred,
                "relreplident": "n" if view or table.schema == PG_CATALOG else "d",
                "reloptions": _options(context, table),
            }
            | of_system_catalog(table.oid)
            | ({"relpersistence": "u"} if table.unlogged else {})
        )
        owner = {"relowner": rights["relowner"]}
        if table.unlogged:
            owner["relpersistence"] = "u"
        for index in context.catalog.indexes(table.oid):
            yield _index_class(index) | owner
        for key in table.keys:
            yield (
                _class_row(table.schema)
                | owner
                | {
                    "oid": index_oid(table, key),
                    "relname": key.name,
                    "relkind": "i",
                    "relam": BTREE,
                    "relnatts": len((*key.columns, *key.include)),
                    "relreplident": "n",
                    "reloptions": key.parameters or None,
                }
            )


def _kind(table: Table) -> str:
    if table.query is not None:
        return "m"
    return "v" if is_shown_as_view(table) else "r"


def _options(context: BindContext, table: Table) -> Value:
    if not is_user_view(table):
        return table.parameters or None
    view = next(view for view in context.catalog.views() if view.oid == table.oid)
    return (f"check_option={view.check_option}",) if view.check_option else None


def _index_class(index: IndexDefinition) -> dict[str, Value]:
    return _class_row(index.schema) | {
        "oid": index.oid,
        "relname": index.name,
        "relkind": "i",
        "relam": METHODS.get(index.method, 0),
        "relnatts": len(index.elements) + len(index.include),
        "relreplident": "n",
        "reloptions": index.parameters or None,
    }


def _sequence_class(sequence: SequenceDefinition) -> dict[str, Value]:
    return _class_row(sequence.schema) | {
        "oid": sequence.oid,
        "relname": sequence.name,
        "relkind": "S",
        "relnatts": 3,
        "reltuples": 1.0,
        "relpages": 1,
        "relreplident": "n",
    }


def _class_row(schema: str) -> dict[str, Value]:
    return {
        "relnamespace": schema_oid(schema),
        "relpersistence": "t" if is_temporary_schema(schema) else "p",
        "relispopulated": True,
        "reltuples": -1.0,
    }


def _pg_attribute(context: BindContext) -> Iterator[NamedRow]:
    shown, texts = PrivilegeColumns(context), DefinitionTexts(context)
    sequences = map(sequence_relation, context.catalog.sequences())
    for table in (*all_tables(context), *sequences):
        yield from table_attributes(context, shown, texts, table)
    yield from system_index_attributes()


def _with_defaults(context: BindContext) -> Iterator[Table]:
    """Tables, and those views whose columns have defaults of their own."""
    yield from user_tables(context.catalog)
    yield from views_with_defaults(context)


def _pg_attrdef(context: BindContext) -> Iterator[NamedRow]:
    texts = DefinitionTexts(context)
    for table in _with_defaults(context):
        for place, column in enumerate(table.columns, 1):
            text = texts.default(table, column)
            if text is not None:
                number = column_number(column, place)
                yield {
                    "oid": derived_oid("default", table.oid, number),
                    "adrelid": table.oid,
                    "adnum": number,
                    "adbin": text,
                }


def _pg_sequence(context: BindContext) -> Iterator[NamedRow]:
    for sequence in context.catalog.sequences():
        yield {
            "seqrelid": sequence.oid,
            "seqtypid": TYPE_OIDS[sequence.type],
            "seqstart": sequence.start,
            "seqincrement": sequence.increment,
            "seqmax": sequence.greatest,
            "seqmin": sequence.least,
            "seqcache": sequence.cache,
            "seqcycle": sequence.cycle,
        }


def _pg_constraint(context: BindContext) -> Iterator[NamedRow]:
    yield from system_constraint_rows()
    owners: list[Table | DomainDefinition] = [
        *context.catalog.tables.values(),
        *context.catalog.domains(),
    ]
    for table in sorted(owners, key=lambda owner: owner.oid):
        if isinstance(table, DomainDefinition):
            yield from domain_constraints(context, table)
            continue
        common: dict[str, Value] = {
            "connamespace": schema_oid(table.schema),
            "conrelid": table.oid,
            "convalidated": True,
            "conenforced": True,
            "conislocal": True,
            "confupdtype": " ",
            "confdeltype": " ",
            "confmatchtype": " ",
        }
        yield from (common | row for row in _constraints(context, table))


def _constraints(context: BindContext, table: Table) -> Iterator[dict[str, Value]]:
    for key in constraints_of(table):
        yield {
            "oid": constraint_oid(table, key.name),
            "conname": key.name,
            "contype": "p" if key.primary else "u",
            "conindid": index_oid(table, key),
            "conkey": key_numbers(table, key),
            "connoinherit": True,
            "condeferrable": key.deferrable,
            "condeferred": key.deferred,
        }
    for foreign in table.foreign_keys:
        yield {
            "oid": constraint_oid(table, foreign.name),
            "conname": foreign.name,
            "contype": "f",
            "conindid": index_oid(*referenced_key(context, foreign)),
            "confrelid": foreign.table,
            "confupdtype": action_code(foreign.on_update),
            "confdeltype": action_code(foreign.on_delete),
            "confmatchtype": "f" if foreign.match_full else "s",
            "confdelsetcols": tuple(
                table.number_of(foreign.columns[at]) for at in foreign.set_columns
            )
            or None,
            "conkey": tuple(map(table.number_of, foreign.columns)),
            "confkey": foreign.references,
            "connoinherit": True,
            "condeferrable": foreign.deferrable,
            "condeferred": foreign.deferred,
            "convalidated": foreign.validated,
        }
    for check in table.checks:
        yield {
            "oid": constraint_oid(table, check.name),
            "conname": check.name,
            "contype": "c",
            "conkey": check_numbers(table, check),
            "conbin": DefinitionTexts(context).condition(table, check.expression),
            "convalidated": check.validated,
            "connoinherit": check.no_inherit,
        }
    for place, column in enumerate(table.columns, 1):
        if column.not_null:
            name = not_null_name(table, column)
            yield {
                "oid": constraint_oid(table, name),
                "conname": name,
                "contype": "n",
                "conkey": (column_number(column, place),),
            }


def _pg_index(context: BindContext) -> Iterator[NamedRow]:
    yield from system_index_rows()
    for table in user_tables(context.catalog):
        yield from (
            _plain_index(context, table, index) for index in context.catalog.indexes(table.oid)
        )
        for key in table.keys:
            count = len(key.columns)
            columns, orders = [table.columns[at] for at in key.columns], index_orders(key)
            yield {
                "indexrelid": index_oid(table, key),
                "indrelid": table.oid,
                "indnatts": count + len(key.include),
                "indnkeyatts": count,
                "indisunique": True,
                "indnullsnotdistinct": not key.nulls_distinct,
                "indisprimary": key.primary,
                "indimmediate": not key.deferrable,
                "indisvalid": True,
                "indisready": True,
                "indislive": True,
                "indkey": index_numbers(table, key),
                "indcollation": tuple(
                    index_collation(column.type, column.collation, order)
                    for column, order in zip(columns, orders, strict=True)
                ),
                "indclass": tuple(opclass_oid(column.type) for column in columns),
                "indoption": index_flags(orders),
            }


def _plain_index(context: BindContext, table: Table, index: IndexDefinition) -> NamedRow:
    """An index of CREATE INDEX."""
    numbers = {quoted_name(c.name): column_number(c, at) for at, c in enumerate(table.columns, 1)}
    columns = {quoted_name(c.name): c for c in table.columns}
    of_columns = [columns.get(element) for element in index.elements]
    found = [None if column is None else column.type for column in of_columns]
    types = element_types(context, table, index) if None in found else found
    options = index.options or ("",) * len(index.elements)
    count = len(index.elements)
    return {
        "indexrelid": index.oid,
        "indrelid": table.oid,
        "indnatts": count + len(index.include),
        "indnkeyatts": count,
        "indisunique": index.unique,
        "indnullsnotdistinct": not index.nulls_distinct,
        "indimmediate": True,
        "indisvalid": True,
        "indisready": True,
        "indislive": True,
        "indkey": tuple(numbers.get(name, 0) for name in (*index.elements, *index.include)),
        "indcollation": tuple(
            index_collation(type_, column.collation if column else "", option) if type_ else 0
            for column, type_, option in zip(of_columns, types, options, strict=True)
        ),
        "indclass": tuple(
            opclass_oid(type_, option, index.method) if type_ else 0
            for type_, option in zip(types, options, strict=True)
        ),
        "indoption": index_flags(options),
        "indexprs": None
        if None not in found
        else ", ".join(
            DefinitionTexts(context).index_element(table, element)
            for element, type_ in zip(index.elements, found, strict=True)
            if type_ is None
        ),
        "indpred": DefinitionTexts(context).condition(table, index.predicate)
        if index.predicate
        else None,
    }


def _pg_views(context: BindContext) -> Iterator[NamedRow]:
    shown = PrivilegeColumns(context)
    for view in context.catalog.views():
        yield {
            "schemaname": view.schema,
            "viewname": view.name,
            "viewowner": shown.owner(view),
            "definition": DefinitionTexts(context).view(view),
        }
    for table in SYSTEM_RELATIONS.values():
        yield {
            "schemaname": table.schema,
            "viewname": table.name,
            "viewowner": shown.owner(table),
            "definition": system_view_definition(table),
        }


def _pg_matviews(context: BindContext) -> Iterator[NamedRow]:
    shown, texts = PrivilegeColumns(context), DefinitionTexts(context)
    for table in user_tables(context.catalog):
        view = table.materialized_view
        if view is not None:
            yield {
                "schemaname": table.schema,
                "matviewname": table.name,
                "matviewowner": shown.owner(table),
                "hasindexes": bool(table.keys) or any(context.catalog.indexes(table.oid)),
                "ispopulated": not is_unpopulated(table),
                "definition": texts.view(view),
            }


def _pg_rewrite(context: BindContext) -> Iterator[NamedRow]:
    for view in context.catalog.defined_views():
        yield {
            "oid": derived_oid("rule", view.oid),
            "rulename": "_RETURN",
            "ev_class": view.oid,
            "ev_type": "1",
            "ev_enabled": "O",
            "is_instead": True,
        }


def _pg_tables(context: BindContext) -> Iterator[NamedRow]:
    shown = PrivilegeColumns(context)
    for table in (*system_catalogs().values(), *user_tables(context.catalog)):
        if _kind(table) == "r":
            yield {
                "schemaname": table.schema,
                "tablename": table.name,
                "tableowner": shown.owner(table),
                "hasindexes": bool(table.keys)
                or any(context.catalog.indexes(table.oid))
                or table.oid in shared_catalogs(),
                "tablespace": "pg_global" if shared_catalogs().get(table.oid) else None,
                "hasrules": False,
                "hastriggers": False,
                "rowsecurity": False,
            }


def _pg_indexes(context: BindContext) -> Iterator[NamedRow]:
    yield from system_index_texts()
    for table in user_tables(context.catalog):
        for key in table.keys:
            yield {
                "schemaname": table.schema,
                "tablename": table.name,
                "indexname": key.name,
                "indexdef": DefinitionTexts(context).key_index(table, key),
            }
        for index in context.catalog.indexes(table.oid):
            yield {
                "schemaname": table.schema,
                "tablename": table.name,
                "indexname": index.name,
                "indexdef": DefinitionTexts(context).index(table, index),
            }


TABLE_ROWS: Final[Mapping[str, Callable[[BindContext], Iterator[NamedRow]]]] = {
    "pg_attrdef": _pg_attrdef,
    "pg_attribute": _pg_attribute,
    "pg_class": _pg_class,
    "pg_constraint": _pg_constraint,
    "pg_index": _pg_index,
    "pg_indexes": _pg_indexes,
    "pg_matviews": _pg_matviews,
    "pg_namespace": _pg_namespace,
    "pg_rewrite": _pg_rewrite,
    "pg_sequence": _pg_sequence,
    "pg_tables": _pg_tables,
    "pg_views": _pg_views,
}
