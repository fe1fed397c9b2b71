"""ALTER .. SET SCHEMA, and the lookup of the relation that an ALTER names."""

from dataclasses import replace
from typing import Final

from pglast.enums import ObjectType

from sql.binder.ddl.extended_statistics import move_statistics
from sql.binder.ddl.user_types import move_type
from sql.binder.resolve.catalog_lookup import (
    check_database,
    find_relation_named,
    look_up_table,
    refuse_renamed_type_clash,
    refuse_system_change,
    relation_exists,
    relation_kind,
    schema_exists,
    undefined_relation,
)
from sql.binder.state import Binding
from sql.catalog.catalog import Table
from sql.catalog.constraint_names import with_stored_not_null_names
from sql.catalog.objects import (
    CatalogObject,
    IndexDefinition,
    MaterializedView,
    SequenceDefinition,
    ViewDefinition,
)
from sql.catalog.system_catalogs import SYSTEM_SCHEMAS
from sql.catalog.temporary import is_temporary_schema
from sql.errors import SqlError, not_supported, undefined_schema
from sql.parser.statement_names import object_type_name
from sql.parser.syntax import Node, string_values
from sql.statements.bound import AlterTable
from sql.statements.ddl import ChangeObjects, Redefinition

_KINDS: Final = {
    ObjectType.OBJECT_SEQUENCE: SequenceDefinition.kind,
    ObjectType.OBJECT_VIEW: ViewDefinition.kind,
    ObjectType.OBJECT_MATVIEW: MaterializedView.kind,
}


def set_schema(binding: Binding, node: Node) -> AlterTable | ChangeObjects:
    """ALTER TABLE, VIEW, SEQUENCE, TYPE and DOMAIN .. SET SCHEMA."""
    if node.objectType in (ObjectType.OBJECT_TYPE, ObjectType.OBJECT_DOMAIN):
        is_domain = node.objectType == ObjectType.OBJECT_DOMAIN
        return move_type(binding, string_values(node.object), node.newschema, domain=is_domain)
    if node.objectType == ObjectType.OBJECT_STATISTIC_EXT:
        return move_statistics(binding, string_values(node.object), node.newschema)
    what = object_type_name(node.objectType)
    if node.objectType != ObjectType.OBJECT_TABLE and node.objectType not in _KINDS:
        raise not_supported(f"ALTER {what} .. SET SCHEMA", None)
    relation, tag = node.relation, f"ALTER {what}"
    found = find_relation_named(binding, relation)
    word = _KINDS.get(node.objectType, "")
    if found is not None and word not in ("", relation_kind(found)):
        raise SqlError("42809", f'"{relation.relname}" is not a {word}')
    if isinstance(found, SequenceDefinition | ViewDefinition):
        return _set_schema_of(binding, found, node.newschema, tag)
    if isinstance(found, tuple | IndexDefinition):
        message = f'cannot change schema of index "{relation.relname}"'
        raise SqlError("42809", message, hint="Change the schema of the table instead.")
    if found is None:
        return skip_missing_relation(binding, node, tag)
    table = altered_table(binding, node)
    assert table is not None, "what is named is found"
    return replace(_set_schema_of_table(binding, table, node.newschema), tag=tag)


def _set_schema_of(
    binding: Binding, found: SequenceDefinition | ViewDefinition, schema: str, tag: str
) -> ChangeObjects:
    if isinstance(found, SequenceDefinition) and found.owner:
        owner = binding.context.catalog.by_oid(found.owner)
        assert owner is not None, "a sequence goes with the table that owns it"
        detail = f'Sequence "{found.name}" is linked to table "{owner.name}".'
        message = "cannot move an owned sequence into another schema"
        raise SqlError("0A000", message, detail=detail)
    check_move(binding, found.schema, schema)
    if schema == found.schema:
        return ChangeObjects(tag)
    _refuse_taken(binding, schema, found.name)
    if isinstance(found, ViewDefinition):
        refuse_renamed_type_clash(binding, schema, found.name, where=f' in schema "{schema}"')
    return ChangeObjects(tag, objects=(moved_to_schema(found, schema),))


def check_move(binding: Binding, before: str, schema: str) -> None:
    """Whether things may go to this schema. Raises 42501, 0A000, 3F000."""
    if schema in SYSTEM_SCHEMAS:
        raise SqlError("42501", f"permission denied for schema {schema}")
    if is_temporary_schema(schema) or is_temporary_schema(before):
        message = "cannot move objects into or out of temporary schemas"
        raise SqlError("0A000", message)
    if not schema_exists(binding, schema):
        raise undefined_schema(schema)


def _refuse_taken(binding: Binding, schema: str, name: str) -> None:
    if relation_exists(binding, schema, name):
        raise SqlError("42P07", f'relation "{name}" already exists in schema "{schema}"')


def _set_schema_of_table(binding: Binding, table: Table, schema: str) -> AlterTable:
    check_move(binding, table.schema, schema)
    if schema == table.schema:
        return AlterTable()
    _refuse_taken(binding, schema, table.name)
    refuse_renamed_type_clash(binding, schema, table.name, where=f' in schema "{schema}"')
    for key in table.keys:
        _refuse_taken(binding, schema, key.name)
    catalog = binding.context.catalog
    own: list[CatalogObject] = [*catalog.indexes(table.oid)]
    own += (sequence for sequence in catalog.sequences() if sequence.owner == table.oid)
    for thing in own:
        _refuse_taken(binding, schema, thing.name)
    things = tuple(moved_to_schema(thing, schema) for thing in own)
    return AlterTable((redefined_table(table, schema=schema),), objects=things)


# --- what is altered ---------------------------------------------------------------------------


def skip_missing_relation(binding: Binding, node: Node, tag: str) -> AlterTable:
    """The no-op result for IF EXISTS. Raises 42P01, 3F000; 42501 for a system relation."""
    table = altered_table(binding, node)
    assert table is None, "what is named is found"
    return AlterTable(missing=node.relation.relname, tag=tag)


def moved_to_schema(thing: CatalogObject, schema: str) -> CatalogObject:
    """The object in another schema."""
    return replace(thing, schema=schema, version=thing.version + 1)


def altered_table(binding: Binding, node: Node) -> Table | None:
    """The table that a statement alters; None if it is missing and IF EXISTS is given."""
    relation = node.relation
    check_database(binding, relation, placed=False)
    table = look_up_table(binding, relation.relname, schema=relation.schemaname)
    if table is not None:
        refuse_system_change(table)
        return table
    if node.missing_ok:
        return None
    raise undefined_relation(binding, relation)


def redefined_table(
    table: Table, *, name: str | None = None, schema: str | None = None
) -> Redefinition:
    """The table under another name or in another schema."""
    after = replace(
        table if name is None else with_stored_not_null_names(table),
        name=table.name if name is None else name,
        schema=table.schema if schema is None else schema,
        version=table.version + 1,
    )
    return Redefinition(table, after)
