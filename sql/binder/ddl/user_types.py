"""RENAME TO, SET SCHEMA and DROP of user-defined types: enums and domains alike."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pglast import ast
from pglast.enums import AlterTableType, DropBehavior, ObjectType

from sql.binder.ddl import domains as bind_domains
from sql.binder.ddl import enums as bind_enums
from sql.binder.ddl.alter.actions import alter_columns
from sql.binder.ddl.casts import cast_dependency_details
from sql.binder.resolve.catalog_lookup import (
    check_qualified,
    look_up_type,
    relation_kind,
    row_type,
    row_type_exists,
    schema_exists,
)
from sql.binder.state import Binding
from sql.binder.stored.relation_users import relation_display_name
from sql.binder.stored.stored_texts import texts_naming_type
from sql.binder.stored.type_users import columns_of_type, find_domain, find_type
from sql.catalog.catalog import Catalog, Column, Table
from sql.catalog.objects import CatalogObject, DomainDefinition, UserType, ViewDefinition
from sql.catalog.system_catalogs import SYSTEM_SCHEMAS
from sql.errors import SqlError, not_supported, undefined_schema
from sql.parser.syntax import Node, string_values
from sql.parser.type_names import is_builtin_type
from sql.statements.ddl import ChangeObjects, Redefinition, drop_cascade_notices
from sql.types.sql_type import SqlType, format_type, is_type, user_type_name

_HINT: Final = "Use DROP ... CASCADE to drop the dependent objects too."
_TAG: Final = "ALTER TYPE"


# --- ALTER -------------------------------------------------------------------------------------


def _redefined(binding: Binding, old: UserType, new: UserType) -> ChangeObjects:
    """Another name or schema; values stay."""
    if isinstance(old, DomainDefinition):
        assert isinstance(new, DomainDefinition), "a domain stays one"
        return bind_domains.redefined_domain(binding, old, new)
    assert not isinstance(new, DomainDefinition), "an enum stays one"
    return bind_enums.redefined_enum(binding, old, new)


def _altered(binding: Binding, names: Sequence[str], *, domain: bool) -> tuple[UserType, str]:
    """What ALTER TYPE or ALTER DOMAIN alters, and its tag."""
    if domain:
        return find_domain(binding, names), "ALTER DOMAIN"
    return find_type(binding, names), _TAG


def rename_type(
    binding: Binding, names: Sequence[str], new: str, *, domain: bool = False
) -> ChangeObjects:
    """ALTER TYPE and ALTER DOMAIN .. RENAME TO."""
    found, tag = _altered(binding, names, domain=domain)
    if row_type_exists(binding, found.schema, new):
        raise SqlError("42710", f'type "{new}" already exists')
    _refuse_named(binding, found, "RENAME")
    named = replace(found, name=new)
    if isinstance(found, DomainDefinition) and isinstance(named, DomainDefinition):
        # A NOT NULL keeps its name.
        rule = found.not_null_name if found.not_null else found.null_rule
        named = replace(named, null_rule=rule)
    return replace(_redefined(binding, found, named), tag=tag)


def move_type(
    binding: Binding, names: Sequence[str], schema: str, *, domain: bool = False
) -> ChangeObjects:
    """ALTER TYPE and ALTER DOMAIN .. SET SCHEMA."""
    found, tag = _altered(binding, names, domain=domain)
    if schema in SYSTEM_SCHEMAS:
        raise SqlError("42501", f"permission denied for schema {schema}")
    if not schema_exists(binding, schema):
        raise undefined_schema(schema)
    if schema == found.schema:
        return ChangeObjects(tag)
    if row_type_exists(binding, schema, found.name):
        raise SqlError("42710", f'type "{found.name}" already exists in schema "{schema}"')
    _refuse_named(binding, found, "SET SCHEMA")
    return replace(_redefined(binding, found, replace(found, schema=schema)), tag=tag)


def _refuse_named(binding: Binding, found: UserType, what: str) -> None:
    named = texts_naming_type(binding.context.catalog, found)
    if named:
        raise not_supported(f'{what} of a type that the definition of "{named[0]}" names')


# --- DROP --------------------------------------------------------------------------------------


def drop_types(binding: Binding, node: Node) -> ChangeObjects:
    """DROP TYPE [IF EXISTS] .. [CASCADE]."""
    notices: list[tuple[str, str, str | None]] = []
    domains = node.removeType == ObjectType.OBJECT_DOMAIN
    dropped: dict[int, UserType] = {}
    for item in node.objects:
        found = _to_drop(binding, string_values(item.names), node, notices, bool(item.arrayBounds))
        if found is not None and domains and not isinstance(found, DomainDefinition):
            raise SqlError("42809", f'"{found.name}" is not a domain')
        if found is not None:
            dropped[found.oid] = found
    catalog, types = binding.context.catalog, [*dropped.values()]
    using = [(table, column, of) for of in types for table, column in columns_of_type(catalog, of)]
    named = [(where, of) for of in types for where in texts_naming_type(catalog, of)]
    casts = [(line, of) for of in types for line in cast_dependency_details(of)]
    if (using or named or casts) and node.behavior != DropBehavior.DROP_CASCADE:
        told = column_dependency_details(catalog, types, ())
        told += [f"{line} depends on type {type_display_name(of)}" for line, of in casts]
        told += [f"{where} depends on type {type_display_name(of)}" for where, of in named]
        raise _needed(types, told)
    lost = _without_columns(binding, using)
    others = [where for of in types for where in texts_naming_type(lost.left, of)]
    if others:
        raise not_supported(f'DROP TYPE .. CASCADE while the definition of "{others[0]}" names it')
    told = [f"drop cascades to column {c.name} of table {t.shown}" for t, c, _ in using]
    told += _told_views(lost.dropped) + [f"drop cascades to {line}" for line, _ in casts]
    notices += drop_cascade_notices(told)
    return ChangeObjects(
        "DROP DOMAIN" if domains else "DROP TYPE",
        dropped=(*types, *lost.dropped),
        objects=lost.objects,
        tables=lost.tables,
        notices=tuple(notices),
    )


def _told_views(dropped: Sequence[CatalogObject]) -> list[str]:
    views = (thing for thing in dropped if isinstance(thing, ViewDefinition))
    return [f"drop cascades to {view.kind} {view.shown}" for view in views]


def column_dependency_details(
    catalog: Catalog, types: Sequence[UserType], tables: Collection[int]
) -> list[str]:
    """Lines of the detail of 2BP01, for columns of these types outside `tables`."""
    return [
        f"column {c.name} of table {t.shown} depends on type {_named_of(c, of)}"
        for of in types
        for t, c in columns_of_type(catalog, of)
        if t.oid not in tables
    ]


@dataclass(frozen=True, slots=True)
class DroppedTypeColumns:
    """The consequences of dropped types for other objects.

    `tables`: without the columns of these types; `dropped`: objects of those columns; `objects`:
    those redefined without the types; `left`: the catalog that remains.
    """

    tables: tuple[Redefinition, ...]
    dropped: tuple[CatalogObject, ...]
    objects: tuple[CatalogObject, ...]
    left: Catalog


def drop_columns_of_types(
    binding: Binding,
    types: Sequence[UserType],
    tables: Collection[int],
    objects: Sequence[CatalogObject],
    what: str,
) -> tuple[DroppedTypeColumns, list[str]]:
    """Drop the columns of dropped types from the remaining tables, and return the notices.

    The types are dropped together with `tables` and `objects`. `what`: the statement.
    """
    catalog = binding.context.catalog
    using = [
        (table, column, of)
        for of in types
        for table, column in columns_of_type(catalog, of)
        if table.oid not in tables
    ]
    lost = _without_columns(binding, using)
    known = {thing.oid for thing in objects}
    gone = tuple(thing for thing in lost.dropped if thing.oid not in known)
    # Indexes go with their tables.
    inside = [index for oid in tables for index in catalog.indexes(oid)]
    left = _left(lost.left, (), (*types, *objects, *inside))
    there = {key: table for key, table in left.tables.items() if table.oid not in tables}
    left = replace(left, tables=there)
    others = [where for of in types for where in texts_naming_type(left, of)]
    if others:
        told = f'{what} .. CASCADE while the definition of "{others[0]}" names a type that goes'
        raise not_supported(told)
    path = binding.context.search_path
    columns = [
        f"drop cascades to column {c.name} of table {relation_display_name(t, path)}"
        for t, c, _ in using
    ]
    return replace(lost, dropped=gone), [*columns, *_told_views(gone)]


def _left(
    catalog: Catalog, changed: Sequence[Redefinition], gone: Sequence[CatalogObject]
) -> Catalog:
    """The catalog when columns have gone, and what goes with them."""
    oids = {thing.oid for thing in gone}
    tables = {key: table for key, table in catalog.tables.items() if table.oid not in oids}
    tables |= {(c.after.schema, c.after.name): c.after for c in changed}
    objects = {key: thing for key, thing in catalog.objects.items() if thing.oid not in oids}
    return replace(catalog, tables=tables, objects=objects)


def _to_drop(
    binding: Binding,
    names: Sequence[str],
    node: Node,
    notices: list[tuple[str, str, str | None]],
    array: bool,
) -> UserType | None:
    check_qualified(binding, names)
    *qualifier, name = names
    schema = qualifier[-1] if qualifier else None
    found = look_up_type(binding, name, schema=schema)
    if found is not None and array:
        raise _required(f"{type_display_name(found)}[]", f"type {type_display_name(found)}")
    if found is not None:
        return found
    relation = row_type(binding, name, schema=schema)
    domains = node.removeType == ObjectType.OBJECT_DOMAIN
    is_own = schema == "pg_catalog" or (schema is None and is_builtin_type(name))
    if domains and (relation is not None or is_own):
        raise SqlError("42809", f'"{name}" is not a domain')
    if is_own:
        known = format_type(SqlType(name)) if is_type(name) else name
        known += "[]" if array else ""
        message = f"cannot drop type {known} because it is required by the database system"
        raise SqlError("2BP01", message)
    if relation is not None:
        name = relation_display_name(relation, binding.context.search_path)
        kind = relation_kind(relation)
        raise _required(f"{name}[]", f"type {name}") if array else _required(name, f"{kind} {name}")
    gone = schema is not None and schema not in binding.context.catalog.schemas
    what = f'schema "{schema}"' if gone else f'type "{".".join(names)}"'
    if not node.missing_ok:
        raise SqlError("3F000" if gone else "42704", f"{what} does not exist")
    notices.append(("00000", f"{what} does not exist, skipping", None))
    return None


def _required(name: str, by: str) -> SqlError:
    """2BP01 for a type that goes with something else, and not alone."""
    message = f"cannot drop type {name} because {by} requires it"
    return SqlError("2BP01", message, hint=f"You can drop {by} instead.")


def _needed(types: Sequence[UserType], told: Sequence[str]) -> SqlError:
    message = f"cannot drop type {type_display_name(types[0])} because other objects depend on it"
    if len(types) > 1:
        message = "cannot drop desired object(s) because other objects depend on them"
    return SqlError("2BP01", message, detail="\n".join(told), hint=_HINT)


def _without_columns(
    binding: Binding, using: Sequence[tuple[Table, Column, UserType]]
) -> DroppedTypeColumns:
    """The tables without these columns, one after the other: a foreign key may be lost with the
    column of either side.
    """
    commands: dict[int, list[Node]] = {}
    for table, column, _ in using:
        drop = ast.AlterTableCmd(
            subtype=AlterTableType.AT_DropColumn,
            name=column.name,
            behavior=DropBehavior.DROP_CASCADE,
        )
        commands.setdefault(table.oid, []).append(drop)
    before = left = binding.context.catalog
    changed: dict[int, Table] = {}
    objects: dict[int, CatalogObject] = {}
    dropped: dict[int, CatalogObject] = {}
    for oid, drops in commands.items():
        context = replace(binding.context, catalog=left)
        fresh = binding.fresh(context)
        altered = alter_columns(fresh, _table(left, oid), drops)
        binding.look_ups |= fresh.look_ups
        binding.uses |= fresh.uses
        left = _left(left, altered.tables, altered.dropped)
        left = replace(
            left,
            objects={**left.objects} | {(o.space, o.schema, o.name): o for o in altered.objects},
        )
        changed |= {change.after.oid: change.after for change in altered.tables}
        objects |= {thing.oid: thing for thing in altered.objects}
        dropped |= {thing.oid: thing for thing in altered.dropped}
    tables = [
        Redefinition(old, replace(after, version=old.version + 1))
        for after in changed.values()
        for old in (_table(before, after.oid),)
    ]
    kept = tuple(thing for thing in objects.values() if thing.oid not in dropped)
    return DroppedTypeColumns(tuple(tables), tuple(dropped.values()), kept, left)


def _table(catalog: Catalog, oid: int) -> Table:
    found = catalog.by_oid(oid)
    assert found is not None, "a table that has columns of a type is there"
    return found


def type_display_name(found: UserType) -> str:
    """A type's name as messages show it."""
    return user_type_name(found.schema, found.name)


def _named_of(column: Column, found: UserType) -> str:
    return type_display_name(found) if column.domain is not None else format_type(column.type)
