"""ALTER TABLE and ALTER SCHEMA: other names, other schemas, another history.

A table that is altered keeps its oid and its rows; its definition version grows by one (K2).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pglast.enums import AlterTableType, ObjectType

from sql.bind_definitions import SYSTEM_SCHEMAS, check_schema_name, history_option
from sql.binding import Binding
from sql.catalog import Table
from sql.errors import SqlError, duplicate_table, not_supported, undefined_schema, undefined_table
from sql.look_up import check_database, look_up, refuse_system_change, schema_exists
from sql.statements import AlterTable, Redefinition
from sql.syntax import Node, at

_COMMANDS: Final = {
    AlterTableType.AT_AddColumn: "ADD COLUMN",
    AlterTableType.AT_DropColumn: "DROP COLUMN",
    AlterTableType.AT_AlterColumnType: "ALTER COLUMN TYPE",
    AlterTableType.AT_ColumnDefault: "ALTER COLUMN DEFAULT",
    AlterTableType.AT_SetNotNull: "SET NOT NULL",
    AlterTableType.AT_DropNotNull: "DROP NOT NULL",
    AlterTableType.AT_AddConstraint: "ADD CONSTRAINT",
    AlterTableType.AT_DropConstraint: "DROP CONSTRAINT",
    AlterTableType.AT_ChangeOwner: "OWNER TO",
}


def rename(binding: Binding, node: Node) -> AlterTable:
    """ALTER TABLE .. RENAME TO, ALTER SCHEMA .. RENAME TO; other kinds are 0A000."""
    match node.renameType:
        case ObjectType.OBJECT_TABLE:
            return _rename_table(binding, node)
        case ObjectType.OBJECT_SCHEMA:
            return _rename_schema(binding, node)
        case kind:
            what = kind.name.removeprefix("OBJECT_").replace("_", " ")
            raise not_supported(f"RENAME of {what}", None)


def _rename_table(binding: Binding, node: Node) -> AlterTable:
    table = _altered(binding, node)
    if table is None:
        return AlterTable(missing=node.relation.relname)
    name: str = node.newname
    if look_up(binding, name, schema=table.schema) is not None:
        raise duplicate_table(name)
    return AlterTable((_redefined(table, name=name),))


def _rename_schema(binding: Binding, node: Node) -> AlterTable:
    old, new = node.subname, node.newname
    if old in SYSTEM_SCHEMAS:
        raise SqlError("42501", f"permission denied for schema {old}")
    if not schema_exists(binding, old):
        raise undefined_schema(old)
    if new in SYSTEM_SCHEMAS or schema_exists(binding, new):
        raise SqlError("42P06", f'schema "{new}" already exists')
    check_schema_name(new)
    tables = (table for table in binding.context.catalog.tables.values() if table.schema == old)
    moved = tuple(_redefined(table, schema=new) for table in tables)
    return AlterTable(moved, new_schema=new, old_schema=old, tag="ALTER SCHEMA")


def set_schema(binding: Binding, node: Node) -> AlterTable:
    """ALTER TABLE .. SET SCHEMA."""
    if node.objectType != ObjectType.OBJECT_TABLE:
        what = node.objectType.name.removeprefix("OBJECT_").replace("_", " ")
        raise not_supported(f"SET SCHEMA of {what}", None)
    table = _altered(binding, node)
    if table is None:
        return AlterTable(missing=node.relation.relname)
    schema: str = node.newschema
    if schema in SYSTEM_SCHEMAS:
        raise SqlError("42501", f"permission denied for schema {schema}")
    if not schema_exists(binding, schema):
        raise undefined_schema(schema)
    if schema == table.schema:
        return AlterTable()
    if look_up(binding, table.name, schema=schema) is not None:
        message = f'relation "{table.name}" already exists in schema "{schema}"'
        raise SqlError("42P07", message)
    return AlterTable((_redefined(table, schema=schema),))


def alter_table(binding: Binding, node: Node) -> AlterTable:
    """ALTER TABLE .. SET (history = ..), RESET (history); columns and constraints are 0A000."""
    if node.objtype != ObjectType.OBJECT_TABLE:
        what = node.objtype.name.removeprefix("OBJECT_").replace("_", " ")
        raise not_supported(f"ALTER {what}", None)
    table = _altered(binding, node)
    if table is None:
        return AlterTable(missing=node.relation.relname)
    altered = table
    for command in node.cmds:
        match command.subtype:
            case AlterTableType.AT_SetRelOptions:
                altered = replace(altered, history_us=history_option(command.def_))
            case AlterTableType.AT_ResetRelOptions:
                _check_reset(command.def_)
                altered = replace(altered, history_us=None)
            case kind:
                name = kind.name.removeprefix("AT_")
                raise not_supported(f"ALTER TABLE {_COMMANDS.get(kind, name)}", None)
    return AlterTable((Redefinition(table, replace(altered, version=table.version + 1)),))


def _check_reset(options: Sequence[Node]) -> None:
    for option in options:
        if option.arg is not None:
            raise SqlError("42601", "RESET must not include values for parameters")
        if option.defname != "history" or option.defnamespace is not None:
            raise not_supported(f"the storage parameter {option.defname}", at(option.location))


def _altered(binding: Binding, node: Node) -> Table | None:
    """The table that a statement alters; None if IF EXISTS may find none."""
    relation = node.relation
    check_database(binding, relation)
    table = look_up(binding, relation.relname, schema=relation.schemaname)
    if table is not None:
        refuse_system_change(table)
        return table
    if node.missing_ok:
        return None
    schema = relation.schemaname
    raise undefined_table(relation.relname if schema is None else f"{schema}.{relation.relname}")


def _redefined(table: Table, *, name: str | None = None, schema: str | None = None) -> Redefinition:
    after = replace(
        table,
        name=table.name if name is None else name,
        schema=table.schema if schema is None else schema,
        version=table.version + 1,
    )
    return Redefinition(table, after)
