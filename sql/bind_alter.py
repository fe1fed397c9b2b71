"""ALTER TABLE and ALTER SCHEMA: other names and schemas; columns are `bind_alter_columns.py`.

A table that is altered keeps its oid and its rows; its definition version grows by one (K2 of
`coordinator/core/catalog.py`).
"""

from pglast.enums import ObjectType

from sql.bind_alter_columns import alter_columns
from sql.bind_alter_others import alter_other, alters_other
from sql.bind_comments import schema_renamed
from sql.bind_definitions import check_schema_name
from sql.bind_domains import rename_constraint
from sql.bind_owners import alter_relation_owner, changes_owner
from sql.bind_rename import RELATIONS, rename_column, rename_relation, rename_table_constraint
from sql.bind_roles import rename_role
from sql.bind_set_schema import altered_table, moved, redefined
from sql.bind_user_types import rename_type
from sql.binding import Binding
from sql.catalog_objects import TYPE
from sql.definition_statements import ChangeObjects, ChangeRights
from sql.errors import SqlError, not_supported, undefined_schema
from sql.look_up import schema_exists
from sql.refused_names import object_words
from sql.rights import rights_renamed
from sql.statements import AlterTable
from sql.syntax import Node, strings
from sql.system_catalogs import SYSTEM_SCHEMAS
from sql.temporary import is_temporary


def rename(binding: Binding, node: Node) -> AlterTable | ChangeObjects | ChangeRights:
    """ALTER .. RENAME TO; other kinds are 0A000."""
    match node.renameType:
        case kind if kind in RELATIONS:
            return rename_relation(binding, node)
        case ObjectType.OBJECT_SCHEMA:
            return _rename_schema(binding, node)
        case ObjectType.OBJECT_COLUMN:
            return rename_column(binding, node)
        case ObjectType.OBJECT_TABCONSTRAINT:
            return rename_table_constraint(binding, node)
        case ObjectType.OBJECT_TYPE:
            return rename_type(binding, strings(node.object), node.newname)
        case ObjectType.OBJECT_DOMAIN:
            return rename_type(binding, strings(node.object), node.newname, domain=True)
        case ObjectType.OBJECT_ROLE:
            return rename_role(binding, node.subname, node.newname)
        case ObjectType.OBJECT_DOMCONSTRAINT:
            return rename_constraint(binding, node)
        case kind:
            raise not_supported(f"ALTER {object_words(kind)} .. RENAME TO", None)


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


def alter_table(binding: Binding, node: Node) -> AlterTable | ChangeObjects | ChangeRights:
    """ALTER TABLE with its actions, and of other relations."""
    if changes_owner(node):
        return alter_relation_owner(binding, node)
    if alters_other(binding, node):
        return alter_other(binding, node)
    if node.objtype != ObjectType.OBJECT_TABLE:
        raise not_supported(f"ALTER {object_words(node.objtype)}", None)
    table = altered_table(binding, node)
    if table is None:
        return AlterTable(missing=node.relation.relname)
    return alter_columns(binding, table, node.cmds)
