"""What is said of every type that users have made alike: RENAME TO, SET SCHEMA, DROP."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pglast import ast
from pglast.enums import AlterTableType, DropBehavior, ObjectType

from sql import bind_domains, bind_enums
from sql.bind_alter_columns import alter_columns
from sql.binding import Binding
from sql.catalog import Catalog, Column, Table
from sql.catalog_objects import CatalogObject, DomainDefinition, UserType
from sql.definition_statements import ChangeObjects, Redefinition, cascades
from sql.errors import SqlError, not_supported, undefined_schema
from sql.kept_texts import naming
from sql.look_up import SYSTEM_SCHEMAS, look_up_type, row_type_exists, schema_exists
from sql.names import is_builtin
from sql.syntax import Node, strings
from sql.type_users import found_type, is_of, tables_with
from sql.types import SqlType, display, is_type, user_type_name

_HINT: Final = "Use DROP ... CASCADE to drop the dependent objects too."
_TAG: Final = "ALTER TYPE"


# --- ALTER -------------------------------------------------------------------------------------


def _redefined(binding: Binding, old: UserType, new: UserType) -> ChangeObjects:
    """Another name or schema; values stay."""
    if isinstance(old, DomainDefinition):
        assert isinstance(new, DomainDefinition), "a domain stays one"
        return bind_domains.redefined(binding, old, new)
    assert not isinstance(new, DomainDefinition), "an enum stays one"
    return bind_enums.redefined(binding, old, new)


def rename_type(binding: Binding, names: Sequence[str], new: str) -> ChangeObjects:
    """ALTER TYPE .. RENAME TO."""
    found = found_type(binding, names)
    if row_type_exists(binding, found.schema, new):
        raise SqlError("42710", f'type "{new}" already exists')
    _refuse_named(binding, found, "RENAME")
    return _redefined(binding, found, replace(found, name=new))


def move_type(binding: Binding, names: Sequence[str], schema: str) -> ChangeObjects:
    """ALTER TYPE .. SET SCHEMA."""
    found = found_type(binding, names)
    if schema in SYSTEM_SCHEMAS:
        raise SqlError("42501", f"permission denied for schema {schema}")
    if not schema_exists(binding, schema):
        raise undefined_schema(schema)
    if schema == found.schema:
        return ChangeObjects(_TAG)
    if row_type_exists(binding, schema, found.name):
        raise SqlError("42710", f'type "{found.name}" already exists in schema "{schema}"')
    _refuse_named(binding, found, "SET SCHEMA")
    return _redefined(binding, found, replace(found, schema=schema))


def _refuse_named(binding: Binding, found: UserType, what: str) -> None:
    named = naming(binding.context.catalog, found)
    if named:
        raise not_supported(f'{what} of a type that the definition of "{named[0]}" names')


# --- DROP --------------------------------------------------------------------------------------


def drop_types(binding: Binding, node: Node) -> ChangeObjects:
    """DROP TYPE [IF EXISTS] .. [CASCADE]."""
    notices: list[tuple[str, str, str | None]] = []
    domains = node.removeType == ObjectType.OBJECT_DOMAIN
    dropped: dict[int, UserType] = {}
    for item in node.objects:
        found = _to_drop(binding, strings(item.names), node, notices)
        if found is not None and domains and not isinstance(found, DomainDefinition):
            raise SqlError("42809", f'"{found.name}" is not a domain')
        if found is not None:
            dropped[found.oid] = found
    catalog, types = binding.context.catalog, [*dropped.values()]
    using = [(table, column, of) for of in types for table, column in _columns(catalog, of)]
    named = [(where, of) for of in types for where in naming(catalog, of)]
    if (using or named) and node.behavior != DropBehavior.DROP_CASCADE:
        told = [
            f"column {c.name} of table {t.name} depends on type {_named_of(c, of)}"
            for t, c, of in using
        ]
        told += [f"{where} depends on type {shown(of)}" for where, of in named]
        raise _needed(types, told)
    changed, objects = _without_columns(binding, using)
    left = _left(catalog, changed, objects)
    others = [where for of in types for where in naming(left, of)]
    if others:
        raise not_supported(f'DROP TYPE .. CASCADE while the definition of "{others[0]}" names it')
    told = [f"drop cascades to column {c.name} of table {t.name}" for t, c, _ in using]
    notices += cascades(told)
    return ChangeObjects(
        "DROP DOMAIN" if domains else "DROP TYPE",
        dropped=(*types, *objects),
        tables=changed,
        notices=tuple(notices),
    )


def _left(
    catalog: Catalog, changed: Sequence[Redefinition], gone: Sequence[CatalogObject]
) -> Catalog:
    """The catalog when columns have gone, and what goes with them."""
    tables = {**catalog.tables} | {(c.after.schema, c.after.name): c.after for c in changed}
    objects = {key: thing for key, thing in catalog.objects.items() if thing not in gone}
    return replace(catalog, tables=tables, objects=objects)


def _to_drop(
    binding: Binding,
    names: Sequence[str],
    node: Node,
    notices: list[tuple[str, str, str | None]],
) -> UserType | None:
    *qualifier, name = names
    schema = qualifier[-1] if qualifier else None
    found = look_up_type(binding, name, schema=schema)
    if found is not None:
        return found
    if schema == "pg_catalog" or (schema is None and is_builtin(name)):
        shown = display(SqlType(name)) if is_type(name) else name
        message = f"cannot drop type {shown} because it is required by the database system"
        raise SqlError("2BP01", message)
    gone = schema is not None and schema not in binding.context.catalog.schemas
    what = f'schema "{schema}"' if gone else f'type "{".".join(names)}"'
    if not node.missing_ok:
        raise SqlError("3F000" if gone else "42704", f"{what} does not exist")
    notices.append(("00000", f"{what} does not exist, skipping", None))
    return None


def _columns(catalog: Catalog, found: UserType) -> list[tuple[Table, Column]]:
    """The columns of a type; arrays come first, as PostgreSQL finds them."""
    columns = [
        (table, column)
        for table in tables_with(catalog, found)
        for column in table.columns
        if is_of(column, found)
    ]
    return sorted(columns, key=lambda entry: entry[1].type.element is None)


def _needed(types: Sequence[UserType], told: Sequence[str]) -> SqlError:
    message = f"cannot drop type {shown(types[0])} because other objects depend on it"
    if len(types) > 1:
        message = "cannot drop desired object(s) because other objects depend on them"
    return SqlError("2BP01", message, detail="\n".join(told), hint=_HINT)


def _without_columns(
    binding: Binding, using: Sequence[tuple[Table, Column, UserType]]
) -> tuple[tuple[Redefinition, ...], tuple[CatalogObject, ...]]:
    """The tables without these columns, and what goes with them."""
    commands: dict[int, tuple[Table, list[Node]]] = {}
    for table, column, _ in using:
        drop = ast.AlterTableCmd(
            subtype=AlterTableType.AT_DropColumn,
            name=column.name,
            behavior=DropBehavior.DROP_CASCADE,
        )
        commands.setdefault(table.oid, (table, []))[1].append(drop)
    altered = [alter_columns(binding, table, drops) for table, drops in commands.values()]
    return (
        tuple(change for one in altered for change in one.tables),
        tuple(thing for one in altered for thing in one.dropped),
    )


def shown(found: UserType) -> str:
    """A type as messages name it."""
    return user_type_name(found.schema, found.name)


def _named_of(column: Column, found: UserType) -> str:
    return shown(found) if column.domain is not None else display(column.type)
