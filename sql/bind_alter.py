"""ALTER TABLE and ALTER SCHEMA: other names and schemas; columns are `bind_alter_columns.py`.

A table that is altered keeps its oid and its rows; its definition version grows by one (K2).
"""

from dataclasses import replace

from pglast.enums import ObjectType

from sql.bind_alter_columns import alter_columns, check_column_name
from sql.bind_checks import constraint_names, with_not_null_names
from sql.bind_comments import constraint_renamed, schema_renamed
from sql.bind_definitions import check_schema_name
from sql.bind_domains import rename_constraint
from sql.bind_from import find_view
from sql.bind_owners import alter_relation_owner, changes_owner
from sql.bind_roles import rename_role
from sql.bind_sequence_definitions import renamed_sequence
from sql.bind_set_schema import altered_table, moved, named, redefined
from sql.bind_user_types import rename_type
from sql.binding import Binding
from sql.catalog_objects import TYPE, SequenceDefinition, ViewDefinition
from sql.definition_statements import ChangeObjects, ChangeRights, Redefinition
from sql.errors import SqlError, duplicate_table, not_supported, undefined_schema, undefined_table
from sql.look_up import (
    SYSTEM_SCHEMAS,
    look_up,
    refuse_renamed,
    relation_exists,
    schema_exists,
)
from sql.rights import rights_renamed
from sql.statements import AlterTable
from sql.syntax import Node, strings
from sql.table_changes import index_with_name, with_name
from sql.temporary import is_temporary


def rename(binding: Binding, node: Node) -> AlterTable | ChangeObjects | ChangeRights:
    """ALTER .. RENAME TO; other kinds are 0A000."""
    match node.renameType:
        case ObjectType.OBJECT_TABLE:
            return _rename_relation(binding, node)
        case ObjectType.OBJECT_SCHEMA:
            return _rename_schema(binding, node)
        case ObjectType.OBJECT_VIEW:
            return _rename_view(binding, node, "ALTER VIEW")
        case ObjectType.OBJECT_SEQUENCE:
            return renamed_sequence(
                binding,
                node.relation,
                node.newname,
                missing_ok=node.missing_ok,
                tag="ALTER SEQUENCE",
            )
        case ObjectType.OBJECT_COLUMN:
            return _rename_column(binding, node)
        case ObjectType.OBJECT_TABCONSTRAINT:
            return _rename_constraint(binding, node)
        case ObjectType.OBJECT_TYPE:
            return rename_type(binding, strings(node.object), node.newname)
        case ObjectType.OBJECT_DOMAIN:
            changed = rename_type(binding, strings(node.object), node.newname)
            return replace(changed, tag="ALTER DOMAIN")
        case ObjectType.OBJECT_ROLE:
            return rename_role(binding, node.subname, node.newname)
        case ObjectType.OBJECT_DOMCONSTRAINT:
            return rename_constraint(binding, node)
        case kind:
            what = kind.name.removeprefix("OBJECT_").replace("_", " ")
            raise not_supported(f"RENAME of {what}", None)


def _rename_relation(binding: Binding, node: Node) -> AlterTable | ChangeObjects:
    """ALTER TABLE .. RENAME TO, which may name a view or a sequence, too."""
    relation, tag = node.relation, "ALTER TABLE"
    match named(binding, relation):
        case SequenceDefinition():
            return renamed_sequence(
                binding, relation, node.newname, missing_ok=node.missing_ok, tag=tag
            )
        case ViewDefinition():
            return _rename_view(binding, node, tag)
        case _:
            return _rename_table(binding, node)


def _rename_table(binding: Binding, node: Node) -> AlterTable:
    table = altered_table(binding, node)
    if table is None:
        return AlterTable(missing=node.relation.relname)
    name: str = node.newname
    if relation_exists(binding, table.schema, name):
        raise duplicate_table(name)
    refuse_renamed(binding, table.schema, name)
    return AlterTable((redefined(table, name=name),))


def _rename_schema(binding: Binding, node: Node) -> AlterTable:
    old, new = node.subname, node.newname
    if old in SYSTEM_SCHEMAS or is_temporary(old):
        raise SqlError("42501", f"permission denied for schema {old}")
    if not schema_exists(binding, old):
        raise undefined_schema(old)
    if new in SYSTEM_SCHEMAS or schema_exists(binding, new):
        raise SqlError("42P06", f'schema "{new}" already exists')
    check_schema_name(new)
    catalog = binding.context.catalog
    tables = (table for table in catalog.tables.values() if table.schema == old)
    things = [thing for thing in catalog.objects.values() if thing.schema == old]
    for thing in things:
        if thing.space == TYPE:
            raise not_supported(f'renaming a schema with the type "{thing.name}" in it')
    return AlterTable(
        tuple(redefined(table, schema=new) for table in tables),
        new_schema=new,
        old_schema=old,
        tag="ALTER SCHEMA",
        objects=tuple(moved(thing, new) for thing in things),
        comments=schema_renamed(catalog, old, new),
        rights=rights_renamed(catalog, old, new),
    )


def alter_table(binding: Binding, node: Node) -> AlterTable | ChangeRights:
    """ALTER TABLE with its actions; of other relations OWNER TO."""
    if changes_owner(node):
        return alter_relation_owner(binding, node)
    if node.objtype != ObjectType.OBJECT_TABLE:
        what = node.objtype.name.removeprefix("OBJECT_").replace("_", " ")
        raise not_supported(f"ALTER {what}", None)
    table = altered_table(binding, node)
    if table is None:
        return AlterTable(missing=node.relation.relname)
    return alter_columns(binding, table, node.cmds)


def _rename_view(binding: Binding, node: Node, tag: str) -> AlterTable | ChangeObjects:
    view = find_view(binding, node.relation)
    if view is None:
        if look_up(binding, node.relation.relname, schema=node.relation.schemaname) is not None:
            raise SqlError("42809", f'"{node.relation.relname}" is not a view')
        if node.missing_ok:
            return AlterTable(missing=node.relation.relname, tag=tag)
        raise undefined_table(node.relation.relname)
    if relation_exists(binding, view.schema, node.newname):
        raise duplicate_table(node.newname)
    refuse_renamed(binding, view.schema, node.newname)
    renamed = replace(view, name=node.newname, version=view.version + 1)
    return ChangeObjects(tag, objects=(renamed,))


def _rename_column(binding: Binding, node: Node) -> AlterTable:
    if node.relationType != ObjectType.OBJECT_TABLE:
        raise not_supported("RENAME COLUMN of this", None)
    table = altered_table(binding, node)
    if table is None:
        return AlterTable(missing=node.relation.relname)
    places = {column.name: place for place, column in enumerate(table.columns)}
    old, new = node.subname, node.newname
    if old not in places:
        raise SqlError("42703", f'column "{old}" does not exist')
    check_column_name(new)
    if new in places:
        raise SqlError("42701", f'column "{new}" of relation "{table.name}" already exists')
    after = with_name(with_not_null_names(table), places[old], new)
    indexes = [*binding.context.catalog.indexes(table.oid)]
    renamed = [(index, index_with_name(index, old, new)) for index in indexes]
    return AlterTable(
        (Redefinition(table, replace(after, version=table.version + 1)),),
        objects=tuple(changed for index, changed in renamed if changed is not index),
    )


def _rename_constraint(binding: Binding, node: Node) -> AlterTable:
    table = altered_table(binding, node)
    if table is None:
        return AlterTable(missing=node.relation.relname)
    old, new = node.subname, node.newname
    names = [*constraint_names(table)]
    if old not in names:
        message = f'constraint "{old}" for table "{table.name}" does not exist'
        raise SqlError("42704", message)
    named_ = with_not_null_names(table)
    if any(key.name == old for key in table.keys):
        if look_up(binding, new, schema=table.schema) is not None or new in names:
            raise duplicate_table(new)
    elif new in names:
        message = f'constraint "{new}" for relation "{table.name}" already exists'
        raise SqlError("42710", message)
    after = replace(
        table,
        columns=tuple(
            replace(column, not_null_name=new) if named.not_null_name == old else column
            for column, named in zip(table.columns, named_.columns, strict=True)
        ),
        keys=tuple(replace(k, name=new) if k.name == old else k for k in table.keys),
        checks=tuple(replace(c, name=new) if c.name == old else c for c in table.checks),
        foreign_keys=tuple(
            replace(k, name=new) if k.name == old else k for k in table.foreign_keys
        ),
        version=table.version + 1,
    )
    said = constraint_renamed(binding.context.catalog, table, old, new)
    return AlterTable((Redefinition(table, after),), comments=said)
