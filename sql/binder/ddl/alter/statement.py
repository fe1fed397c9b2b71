"""ALTER TABLE and ALTER .. RENAME: dispatch to the modules of this package.

An altered table keeps its oid and its rows; its definition version grows by one (K2 of
`coordinator/core/catalog.py`).
"""

from pglast.enums import ObjectType

from sql.binder.ddl.alter.actions import alter_columns
from sql.binder.ddl.alter.other_relations import alter_other_relation, alters_other_relation
from sql.binder.ddl.alter.rename import (
    RENAMABLE_RELATIONS,
    rename_column,
    rename_relation,
    rename_table_constraint,
)
from sql.binder.ddl.alter.set_schema import altered_table, moved_to_schema, redefined_table
from sql.binder.ddl.comments import comments_of_renamed_schema
from sql.binder.ddl.create import check_schema_name
from sql.binder.ddl.domains import rename_domain_constraint
from sql.binder.ddl.extended_statistics import rename_statistics
from sql.binder.ddl.extensions import refuse_renamed_calls
from sql.binder.ddl.roles.owners import alter_relation_owner, changes_owner
from sql.binder.ddl.roles.roles import rename_role
from sql.binder.ddl.user_types import rename_type
from sql.binder.resolve.catalog_lookup import schema_exists
from sql.binder.state import Binding
from sql.catalog.objects import TYPE_SPACE, ExtensionDefinition
from sql.catalog.ownership import privileges_of_renamed_schema
from sql.catalog.system_catalogs import SYSTEM_SCHEMAS
from sql.catalog.temporary import is_temporary_schema
from sql.errors import SqlError, not_supported, undefined_schema
from sql.parser.statement_names import object_type_name
from sql.parser.syntax import Node, string_values
from sql.statements.bound import AlterTable
from sql.statements.ddl import ChangeObjects, ChangePrivileges


def rename(binding: Binding, node: Node) -> AlterTable | ChangeObjects | ChangePrivileges:
    """ALTER .. RENAME TO; kinds that do not exist here are 0A000."""
    match node.renameType:
        case kind if kind in RENAMABLE_RELATIONS:
            return rename_relation(binding, node)
        case ObjectType.OBJECT_SCHEMA:
            return _rename_schema(binding, node)
        case ObjectType.OBJECT_COLUMN:
            return rename_column(binding, node)
        case ObjectType.OBJECT_TABCONSTRAINT:
            return rename_table_constraint(binding, node)
        case ObjectType.OBJECT_TYPE:
            return rename_type(binding, string_values(node.object), node.newname)
        case ObjectType.OBJECT_DOMAIN:
            return rename_type(binding, string_values(node.object), node.newname, domain=True)
        case ObjectType.OBJECT_ROLE:
            return rename_role(binding, node.subname, node.newname)
        case ObjectType.OBJECT_STATISTIC_EXT:
            return rename_statistics(binding, string_values(node.object), node.newname)
        case ObjectType.OBJECT_DOMCONSTRAINT:
            return rename_domain_constraint(binding, node)
        case kind:
            raise not_supported(f"ALTER {object_type_name(kind)} .. RENAME TO", None)


def _rename_schema(binding: Binding, node: Node) -> AlterTable:
    old, new = node.subname, node.newname
    if old in SYSTEM_SCHEMAS or is_temporary_schema(old):
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
        if thing.space == TYPE_SPACE:
            raise not_supported(f'renaming a schema with the type "{thing.name}" in it')
        if isinstance(thing, ExtensionDefinition):
            refuse_renamed_calls(catalog, thing)
    return AlterTable(
        tuple(redefined_table(table, schema=new) for table in tables),
        new_schema=new,
        old_schema=old,
        tag="ALTER SCHEMA",
        objects=tuple(moved_to_schema(thing, new) for thing in things),
        comments=comments_of_renamed_schema(catalog, old, new),
        rights=privileges_of_renamed_schema(catalog, old, new),
    )


def alter_table(binding: Binding, node: Node) -> AlterTable | ChangeObjects | ChangePrivileges:
    """ALTER TABLE with its actions, also of other relations."""
    if changes_owner(node):
        return alter_relation_owner(binding, node)
    if alters_other_relation(binding, node):
        return alter_other_relation(binding, node)
    if node.objtype != ObjectType.OBJECT_TABLE:
        raise not_supported(f"ALTER {object_type_name(node.objtype)}", None)
    table = altered_table(binding, node)
    if table is None:
        return AlterTable(missing=node.relation.relname)
    return alter_columns(binding, table, node.cmds)
