"""Rows of information_schema about what uses what: constraints, domains, types, views, columns.

A row names the columns it has (W2 of `pgcatalog/relations.py`). As in PostgreSQL, most of these
views show only what a role of the session owns.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from coordinator.pgcatalog.definition_texts import DefinitionTexts
from coordinator.pgcatalog.definitions import (
    base_tables,
    check_numbers,
    column_number,
    constraints_of,
    key_numbers,
    referenced_key,
    user_tables,
    views_as_tables,
)
from coordinator.pgcatalog.functions import FUNCTION_INFORMATION_ROWS
from coordinator.pgcatalog.information_schema import INFORMATION_SCHEMA_ROWS, underlying_type
from coordinator.pgcatalog.named_row import NamedRow
from coordinator.pgcatalog.privileges import session_role_oids
from coordinator.pgcatalog.recorded import recorded_collations
from sql.binder.resolve.role_names import roles_of
from sql.binder.state import BindContext
from sql.binder.stored.column_expressions import parse_stored_expression, referenced_column_names
from sql.catalog.acl import OWNER
from sql.catalog.catalog import Column, Table
from sql.catalog.constraint_names import not_null_name
from sql.catalog.objects import CatalogObject, DomainDefinition
from sql.catalog.ownership import object_privileges, owned_object
from sql.catalog.system_catalogs import columns_as_shown, system_catalogs
from sql.types.sql_type import SqlType, format_type

_UTF8: Final = 6


class _Seen:
    """Whether the session's roles own a thing."""

    def __init__(self, context: BindContext) -> None:
        self._catalog = context.catalog
        self._roles = session_role_oids(context)

    def owned(self, thing: Table | CatalogObject) -> bool:
        return object_privileges(self._catalog, owned_object(thing)).owner in self._roles

    @property
    def system(self) -> bool:
        return OWNER in self._roles


def _named(context: BindContext, kind: str, schema: str, name: str) -> dict[str, str]:
    return {f"{kind}_catalog": context.database, f"{kind}_schema": schema, f"{kind}_name": name}


def _tables(context: BindContext) -> Iterator[Table]:
    seen = _Seen(context)
    return (table for table in user_tables(context.catalog) if seen.owned(table))


def _relations(context: BindContext) -> Iterator[Table]:
    yield from system_catalogs().values()
    yield from base_tables(context.catalog)
    yield from views_as_tables(context)


# --- constraints ---------------------------------------------------------------------------------


def _check_constraints(context: BindContext) -> Iterator[NamedRow]:
    texts = DefinitionTexts(context)
    for table in _tables(context):
        for check in table.checks:
            named = _named(context, "constraint", table.schema, check.name)
            yield named | {"check_clause": texts.condition(table, check.expression)}
        for column in table.columns:
            if column.not_null:
                name = not_null_name(table, column)
                named = _named(context, "constraint", table.schema, name)
                yield named | {"check_clause": f"{column.name} IS NOT NULL"}
    yield from _domain_checks(context)


def _domain_checks(context: BindContext) -> Iterator[NamedRow]:
    seen, texts = _Seen(context), DefinitionTexts(context)
    for domain in filter(seen.owned, context.catalog.domains()):
        for name, text in domain.checks:
            named = _named(context, "constraint", domain.schema, name)
            yield named | {"check_clause": texts.domain_condition(domain, text)}
        if domain.not_null:
            named = _named(context, "constraint", domain.schema, domain.not_null_name)
            yield named | {"check_clause": "VALUE IS NOT NULL"}


def _constraint_column_usage(context: BindContext) -> Iterator[NamedRow]:
    seen = _Seen(context)
    for table in user_tables(context.catalog):
        used: list[tuple[str, Table, str]] = []
        names = {column_number(c, at): c.name for at, c in enumerate(table.columns, 1)}
        for check in table.checks:
            used += ((check.name, table, names[n]) for n in check_numbers(table, check))
        for column in table.columns:
            if column.not_null:
                used.append((not_null_name(table, column), table, column.name))
        for key in constraints_of(table):
            used += ((key.name, table, names[number]) for number in key_numbers(table, key))
        for foreign in table.foreign_keys:
            other, _ = referenced_key(context, foreign)
            theirs = {column_number(c, at): c.name for at, c in enumerate(other.columns, 1)}
            used += ((foreign.name, other, theirs[number]) for number in foreign.references)
        for constraint, relation, column_name in used:
            if seen.owned(relation):
                yield (
                    _named(context, "table", relation.schema, relation.name)
                    | {"column_name": column_name}
                    | _named(context, "constraint", table.schema, constraint)
                )


def _constraint_table_usage(context: BindContext) -> Iterator[NamedRow]:
    seen = _Seen(context)
    for table in user_tables(context.catalog):
        used = [(key.name, table) for key in constraints_of(table)]
        used += ((f.name, referenced_key(context, f)[0]) for f in table.foreign_keys)
        for constraint, relation in used:
            if seen.owned(relation):
                yield _named(context, "table", relation.schema, relation.name) | _named(
                    context, "constraint", table.schema, constraint
                )


# --- views and columns ---------------------------------------------------------------------------


def _view_uses(context: BindContext) -> Iterator[tuple[NamedRow, NamedRow, str | None]]:
    """A view, a relation that it reads, and a column of it; None: the relation as such."""
    seen, texts = _Seen(context), DefinitionTexts(context)
    relations = {relation.oid: relation for relation in _relations(context)}
    for view in sorted(context.catalog.views(), key=lambda view: view.oid):
        shown = _named(context, "view", view.schema, view.name)
        for oid, number in texts.uses(view):
            relation = relations.get(oid)
            if relation is None or not _is_seen(seen, relation):
                continue
            columns = enumerate(relation.columns, 1)
            names = {column_number(column, place): column.name for place, column in columns}
            table = _named(context, "table", relation.schema, relation.name)
            yield shown, table, names.get(number) if number else None


def _is_seen(seen: _Seen, relation: Table) -> bool:
    return seen.system if relation.oid in _system_oids() else seen.owned(relation)


def _system_oids() -> frozenset[int]:
    return frozenset(table.oid for table in system_catalogs().values())


def _view_column_usage(context: BindContext) -> Iterator[NamedRow]:
    rows: dict[tuple[object, ...], NamedRow] = {}
    for view, table, column in _view_uses(context):
        if column is not None:
            row = {**view, **table, "column_name": column}
            rows[tuple(row.values())] = row
    yield from rows.values()


def _view_table_usage(context: BindContext) -> Iterator[NamedRow]:
    rows: dict[tuple[object, ...], NamedRow] = {}
    for view, table, _ in _view_uses(context):
        row = {**view, **table}
        rows[tuple(row.values())] = row
    yield from rows.values()


def _column_column_usage(context: BindContext) -> Iterator[NamedRow]:
    for table in _tables(context):
        for column in table.columns:
            if column.generated is None:
                continue
            tree = parse_stored_expression(column.generated)
            for name in dict.fromkeys(referenced_column_names(tree)):
                yield _named(context, "table", table.schema, table.name) | {
                    "column_name": name,
                    "dependent_column": column.name,
                }


def _columns(context: BindContext) -> Iterator[tuple[Table, int, Column]]:
    for table in _relations(context):
        for place, column in enumerate(columns_as_shown(table), 1):
            yield table, column_number(column, place), column


def _column_domain_usage(context: BindContext) -> Iterator[NamedRow]:
    seen = _Seen(context)
    for table, _, column in _columns(context):
        domain = _domain(context, column)
        if domain is not None and seen.owned(domain):
            yield (
                _named(context, "domain", domain.schema, domain.name)
                | _named(context, "table", table.schema, table.name)
                | {"column_name": column.name}
            )


def _domain(context: BindContext, column: Column) -> DomainDefinition | None:
    wanted = 0 if column.domain is None else column.domain.oid
    return next((found for found in context.catalog.domains() if found.oid == wanted), None)


def _type_is_seen(context: BindContext, seen: _Seen, type_: SqlType) -> bool:
    """Whether the session's roles own a type; those of PostgreSQL are the first role's."""
    oid = type_.oid if type_.element is None else type_.element.oid
    own = next((found for found in context.catalog.enums() if found.oid == oid), None)
    return seen.system if own is None else seen.owned(own)


def _column_udt_usage(context: BindContext) -> Iterator[NamedRow]:
    seen = _Seen(context)
    for table, _, column in _columns(context):
        if _type_is_seen(context, seen, column.type):
            yield {
                "udt_catalog": context.database,
                **underlying_type(column.type),
                **_named(context, "table", table.schema, table.name),
                "column_name": column.name,
            }


def _domain_udt_usage(context: BindContext) -> Iterator[NamedRow]:
    seen = _Seen(context)
    for domain in context.catalog.domains():
        if _type_is_seen(context, seen, domain.type):
            yield {
                "udt_catalog": context.database,
                **underlying_type(domain.type),
                **_named(context, "domain", domain.schema, domain.name),
            }


def _element_types(context: BindContext) -> Iterator[NamedRow]:
    """Those of columns and domains; arrays of functions are listed as parameters only."""
    for table, number, column in _columns(context):
        if column.domain is None and column.type.element is not None:
            yield _element(context, table.schema, table.name, "TABLE", number, column.type)
    for domain in context.catalog.domains():
        if domain.type.element is not None:
            yield _element(context, domain.schema, domain.name, "DOMAIN", 1, domain.type)


def _element(
    context: BindContext, schema: str, name: str, kind: str, number: int, array: SqlType
) -> NamedRow:
    element = array.element
    assert element is not None, "it is an array"
    under = underlying_type(element)
    is_own = under["udt_schema"] != "pg_catalog"
    is_name = element.name == "name"
    return _named(context, "object", schema, name) | {
        "object_type": kind,
        "collection_type_identifier": str(number),
        "data_type": "USER-DEFINED" if is_own else format_type(SqlType(element.name)),
        "collation_catalog": context.database if is_name else None,
        "collation_schema": "pg_catalog" if is_name else None,
        "collation_name": "C" if is_name else None,
        "udt_catalog": context.database,
        **under,
        "dtd_identifier": f"a{number}",
    }


def _data_type_privileges(context: BindContext) -> Iterator[NamedRow]:
    sources = (
        (INFORMATION_SCHEMA_ROWS["columns"], "table", "TABLE"),
        (INFORMATION_SCHEMA_ROWS["domains"], "domain", "DOMAIN"),
        (FUNCTION_INFORMATION_ROWS["parameters"], "specific", "ROUTINE"),
        (FUNCTION_INFORMATION_ROWS["routines"], "specific", "ROUTINE"),
    )
    for rows, start, kind in sources:
        for row in rows(context):
            yield {
                "object_catalog": context.database,
                "object_schema": row[f"{start}_schema"],
                "object_name": row[f"{start}_name"],
                "object_type": kind,
                "dtd_identifier": row["dtd_identifier"],
            }


# --- functions, collations, the database ---------------------------------------------------------


def _routine_privileges(context: BindContext) -> Iterator[NamedRow]:
    """Everybody may call every function, and its owner may let others."""
    owner = roles_of(context).name(OWNER)
    for row in FUNCTION_INFORMATION_ROWS["routines"](context):
        for grantee, grantable in (("PUBLIC", "NO"), (owner, "YES")):
            yield {
                **{name: row[name] for name in row if name.startswith(("specific_", "routine_"))},
                "grantor": owner,
                "grantee": grantee,
                "privilege_type": "EXECUTE",
                "is_grantable": grantable,
            }


def _seen_routine_privileges(context: BindContext) -> Iterator[NamedRow]:
    mine = OWNER in session_role_oids(context)
    for row in _routine_privileges(context):
        if mine or row["grantee"] == "PUBLIC":
            yield row


def _role_routine_grants(context: BindContext) -> Iterator[NamedRow]:
    if OWNER in session_role_oids(context):
        yield from _routine_privileges(context)


def _collations(context: BindContext) -> Iterator[NamedRow]:
    for name, encoding in recorded_collations():
        if encoding in (-1, _UTF8):
            yield _named(context, "collation", "pg_catalog", name) | {"pad_attribute": "NO PAD"}


def _collation_character_sets(context: BindContext) -> Iterator[NamedRow]:
    for row in _collations(context):
        yield {**row, "character_set_name": "UTF8"}


def _character_sets(context: BindContext) -> Iterator[NamedRow]:
    yield {
        "character_set_name": "UTF8",
        "character_repertoire": "UCS",
        "form_of_use": "UTF8",
        "default_collate_catalog": context.database,
        "default_collate_schema": "pg_catalog",
        "default_collate_name": "C",
    }


def _catalog_name(context: BindContext) -> Iterator[NamedRow]:
    yield {"catalog_name": context.database}


USAGE_ROWS: Final[Mapping[str, Callable[[BindContext], Iterator[NamedRow]]]] = {
    "character_sets": _character_sets,
    "check_constraints": _check_constraints,
    "collation_character_set_applicability": _collation_character_sets,
    "collations": _collations,
    "column_column_usage": _column_column_usage,
    "column_domain_usage": _column_domain_usage,
    "column_udt_usage": _column_udt_usage,
    "constraint_column_usage": _constraint_column_usage,
    "constraint_table_usage": _constraint_table_usage,
    "data_type_privileges": _data_type_privileges,
    "domain_udt_usage": _domain_udt_usage,
    "element_types": _element_types,
    "information_schema_catalog_name": _catalog_name,
    "role_routine_grants": _role_routine_grants,
    "routine_privileges": _seen_routine_privileges,
    "view_column_usage": _view_column_usage,
    "view_table_usage": _view_table_usage,
}
