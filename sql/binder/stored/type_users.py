"""User-defined types: the schema of a new one, name resolution, and the columns that use one."""

from collections.abc import Sequence

from sql.binder.resolve.catalog_lookup import (
    check_may_create,
    check_qualified,
    existing_schemas,
    look_up_type,
    row_type,
    schema_exists,
)
from sql.binder.state import Binding
from sql.catalog.catalog import Catalog, Column, Table
from sql.catalog.objects import DomainDefinition, UserType
from sql.catalog.temporary import is_temporary_schema
from sql.errors import SqlError, not_supported, undefined_schema
from sql.parser.type_names import is_builtin_type
from sql.types.sql_type import SqlType, format_type, is_type, quoted_name


def type_creation_schema(binding: Binding, qualifier: Sequence[str], name: str) -> str:
    """The schema in which to create a new type.

    Raises 3F000, 42501; 0A000 for a temporary type, because permanent tables would lose their
    columns of it when the session ends.
    """
    if not qualifier:
        for schema in existing_schemas(binding.context, binding.context.creation_path):
            check_may_create(schema, name)
            if schema_exists(binding, schema):
                return _permanent(schema)
        raise SqlError("3F000", "no schema has been selected to create in")
    check_qualified(binding, [*qualifier, name])
    schema = qualifier[-1]
    check_may_create(schema, name)
    if schema == "pg_temp":
        raise not_supported("a temporary type", None)
    if not schema_exists(binding, schema):
        raise undefined_schema(schema)
    return _permanent(schema)


def _permanent(schema: str) -> str:
    if is_temporary_schema(schema):
        raise not_supported("a temporary type", None)
    return schema


def tables_with(catalog: Catalog, found: UserType) -> list[Table]:
    """The tables with columns of a type, or of arrays of it."""
    return [
        table
        for table in catalog.tables.values()
        if any(is_column_of_type(column, found) for column in table.columns)
    ]


def columns_of_type(catalog: Catalog, found: UserType) -> list[tuple[Table, Column]]:
    """The columns of a type in PostgreSQL's order: arrays first, a table's last column first. Those
    of materialized views are left out: they are what their queries make of them.
    """
    columns = [
        (table, column)
        for table in sorted(tables_with(catalog, found), key=lambda table: table.oid)
        for column in reversed(table.columns if table.query is None else ())
        if is_column_of_type(column, found)
    ]
    return sorted(columns, key=lambda entry: entry[1].type.element is None)


def is_column_of_type(column: Column, found: UserType) -> bool:
    """Whether a column's values are of the type, or arrays of it."""
    if isinstance(found, DomainDefinition):
        return column.domain is not None and column.domain.oid == found.oid
    return column.type.name.removeprefix("_") == found.type.name


def find_type(binding: Binding, names: Sequence[str], wanted: str = "") -> UserType:
    """The type that a statement changes.

    Raises 42704, 3F000. Raises 42809 for a type of another kind than `wanted`, and for a row type.
    """
    check_qualified(binding, names)
    *qualifier, name = names
    schema = qualifier[-1] if qualifier else None
    found = look_up_type(binding, name, schema=schema)
    if found is not None:
        return found
    if schema == "pg_catalog" or (schema is None and is_builtin_type(name)):
        shown = format_type(SqlType(name)) if is_type(name) else name
        raise SqlError("42809", f"{shown} is not {wanted or 'an enum'}")
    relation = row_type(binding, name, schema=schema)
    if relation is not None and wanted:
        raise SqlError("42809", f"{quoted_name(name)} is not {wanted}")
    if relation is not None:
        message = f"{quoted_name(name)} is a table's row type"
        raise SqlError("42809", message, hint="Use ALTER TABLE instead.")
    if schema is not None and schema not in binding.context.catalog.schemas:
        raise undefined_schema(schema)
    raise SqlError("42704", f'type "{".".join(names)}" does not exist')


def find_domain(binding: Binding, names: Sequence[str]) -> DomainDefinition:
    """The domain that a statement changes. Raises 42704, 42809."""
    found = find_type(binding, names, "a domain")
    if not isinstance(found, DomainDefinition):
        raise SqlError("42809", f"{found.name} is not a domain")
    return found
