"""ALTER .. RENAME TO, RENAME COLUMN and RENAME CONSTRAINT of relations.

ALTER TABLE and ALTER INDEX rename any relation, ALTER VIEW and ALTER SEQUENCE only their own kind.
A constraint and its index share one name.
"""

from dataclasses import replace
from typing import Final

from pglast.enums import ObjectType

from sql.binder.ddl.alter.actions import check_column_name
from sql.binder.ddl.alter.set_schema import altered_table, redefined_table, skip_missing_relation
from sql.binder.ddl.comments import comments_of_renamed_constraint
from sql.binder.ddl.delta_invariants import with_delta_invariants
from sql.binder.ddl.storage_options import refuse_feed_columns
from sql.binder.resolve.catalog_lookup import (
    find_relation_named,
    refuse_renamed_type_clash,
    refuse_taken_name,
    relation_kind,
)
from sql.binder.resolve.system_columns import SYSTEM_COLUMNS
from sql.binder.state import Binding
from sql.binder.stored.table_changes import (
    index_with_renamed_column,
    statistics_with_renamed_column,
    with_renamed_column,
)
from sql.catalog.catalog import Table
from sql.catalog.constraint_names import constraint_names, with_stored_not_null_names
from sql.catalog.objects import (
    CatalogObject,
    IndexDefinition,
    MaterializedView,
    SequenceDefinition,
    ViewDefinition,
)
from sql.errors import SqlError, duplicate_constraint, not_supported
from sql.parser.statement_names import object_type_name
from sql.parser.syntax import Node
from sql.statements.bound import AlterTable
from sql.statements.ddl import ChangeObjects, Redefinition

RENAMABLE_RELATIONS: Final = {
    ObjectType.OBJECT_TABLE: "",
    ObjectType.OBJECT_INDEX: "",
    ObjectType.OBJECT_VIEW: ViewDefinition.kind,
    ObjectType.OBJECT_SEQUENCE: SequenceDefinition.kind,
    ObjectType.OBJECT_MATVIEW: MaterializedView.kind,
}
"""The relations that each form renames: any, or one kind."""

_WITH_COLUMNS: Final = (
    ObjectType.OBJECT_TABLE, ObjectType.OBJECT_VIEW, ObjectType.OBJECT_MATVIEW
)  # fmt: skip


def rename_relation(binding: Binding, node: Node) -> AlterTable | ChangeObjects:
    """ALTER TABLE, INDEX, VIEW, SEQUENCE .. RENAME TO."""
    relation, new = node.relation, node.newname
    tag = f"ALTER {object_type_name(node.renameType)}"
    word = RENAMABLE_RELATIONS[node.renameType]
    found = find_relation_named(binding, relation)
    if found is None:
        return skip_missing_relation(binding, node, tag)
    if word not in ("", relation_kind(found)):
        raise SqlError("42809", f'"{relation.relname}" is not a {word}')
    schema = found[0].schema if isinstance(found, tuple) else found.schema
    refuse_taken_name(binding, schema, new)
    if isinstance(found, Table | ViewDefinition):
        refuse_renamed_type_clash(binding, schema, new)
    if isinstance(found, Table):
        return AlterTable((redefined_table(found, name=new),), tag=tag)
    if isinstance(found, tuple):
        table, key = found
        return _constraint_renamed(binding, table, key.name, new, tag)
    return ChangeObjects(tag, objects=(replace(found, name=new, version=found.version + 1),))


def rename_column(binding: Binding, node: Node) -> AlterTable | ChangeObjects:
    """ALTER TABLE, VIEW and MATERIALIZED VIEW .. RENAME COLUMN, of any of them."""
    tag = f"ALTER {object_type_name(node.relationType)}"
    if node.relationType not in _WITH_COLUMNS:
        raise not_supported("RENAME COLUMN of this", None)
    found = find_relation_named(binding, node.relation)
    if isinstance(found, ViewDefinition):
        return _rename_view_column(found, node, tag)
    if isinstance(found, SequenceDefinition | IndexDefinition | tuple):
        kind = "sequences" if isinstance(found, SequenceDefinition) else "indexes"
        message = f'cannot rename columns of relation "{node.relation.relname}"'
        detail = f"This operation is not supported for {kind}."
        raise SqlError("42809", message, detail=detail)
    table = altered_table(binding, node)
    if table is None:
        return AlterTable(missing=node.relation.relname, tag=tag)
    places = {column.name: place for place, column in enumerate(table.columns)}
    old, new = node.subname, node.newname
    if old in SYSTEM_COLUMNS:
        raise SqlError("0A000", f'cannot rename system column "{old}"')
    if old not in places:
        raise SqlError("42703", f'column "{old}" does not exist')
    check_column_name(new)
    if new in places or new in [column.name for column in table.stored_columns]:
        raise SqlError("42701", f'column "{new}" of relation "{table.name}" already exists')
    after = with_renamed_column(with_stored_not_null_names(table), places[old], new)
    after = with_delta_invariants(binding, after)
    refuse_feed_columns(after)
    catalog = binding.context.catalog
    renamed: list[tuple[CatalogObject, CatalogObject]] = [
        *((one, index_with_renamed_column(one, old, new)) for one in catalog.indexes(table.oid)),
        *(
            (one, statistics_with_renamed_column(one, old, new))
            for one in catalog.statistics(table.oid)
        ),
    ]
    return AlterTable(
        (Redefinition(table, replace(after, version=table.version + 1)),),
        tag=tag,
        objects=tuple(changed for one, changed in renamed if changed is not one),
    )


def _rename_view_column(view: ViewDefinition, node: Node, tag: str) -> ChangeObjects:
    old, new = node.subname, node.newname
    if old not in view.columns:
        raise SqlError("42703", f'column "{old}" does not exist')
    check_column_name(new)
    if new in view.columns:
        raise SqlError("42701", f'column "{new}" of relation "{view.name}" already exists')
    names = tuple(new if name == old else name for name in view.columns)
    return ChangeObjects(tag, objects=(replace(view, columns=names, version=view.version + 1),))


def rename_table_constraint(binding: Binding, node: Node) -> AlterTable:
    """ALTER TABLE .. RENAME CONSTRAINT."""
    table = altered_table(binding, node)
    if table is None:
        return AlterTable(missing=node.relation.relname)
    old, new = node.subname, node.newname
    names = [*constraint_names(table)]
    if old not in names:
        message = f'constraint "{old}" for table "{table.name}" does not exist'
        raise SqlError("42704", message)
    if any(key.name == old for key in table.keys):
        refuse_taken_name(binding, table.schema, new)
    elif new in names:
        raise duplicate_constraint(new, table.name)
    return _constraint_renamed(binding, table, old, new)


def _constraint_renamed(
    binding: Binding, table: Table, old: str, new: str, tag: str = "ALTER TABLE"
) -> AlterTable:
    named_ = with_stored_not_null_names(table)
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
    said = comments_of_renamed_constraint(binding.context.catalog, table, old, new)
    return AlterTable((Redefinition(table, after),), tag=tag, comments=said)
