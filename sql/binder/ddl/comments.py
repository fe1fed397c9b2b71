"""COMMENT ON relations, columns, constraints, types, schemas, roles and the database.

A comment is stored beside the definition (`Subject`). It survives renaming and is dropped with its
object. Only comments on objects that are identified by name (a schema, a constraint) must be moved
when that name changes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from pglast.enums import ObjectType

from sql.binder.ddl.extended_statistics import find_statistics
from sql.binder.ddl.extensions import find_extension
from sql.binder.resolve.catalog_lookup import (
    Relation,
    look_up_table,
    named_relation,
    refuse_system_change,
    relation_kind,
    relation_name,
    schema_exists,
)
from sql.binder.resolve.database_names import elsewhere
from sql.binder.resolve.role_names import role_named, roles_of
from sql.binder.state import Binding
from sql.binder.stored.type_users import find_domain, find_type
from sql.catalog.catalog import Catalog, NameDependency, Table
from sql.catalog.constraint_names import constraint_names
from sql.catalog.extensions import PLPGSQL
from sql.catalog.objects import Comment, DomainDefinition, Subject, ViewDefinition
from sql.catalog.oids import DATABASE_OIDS
from sql.catalog.system_catalogs import SYSTEM_SCHEMAS
from sql.errors import SqlError, not_supported, undefined_schema, undefined_table
from sql.parser.statement_names import object_type_name
from sql.parser.syntax import Node, string_values
from sql.parser.type_names import is_builtin_type
from sql.statements.ddl import ChangeObjects

_KINDS: Final = {
    ObjectType.OBJECT_TABLE: "table",
    ObjectType.OBJECT_VIEW: "view",
    ObjectType.OBJECT_MATVIEW: "materialized view",
    ObjectType.OBJECT_SEQUENCE: "sequence",
    ObjectType.OBJECT_INDEX: "index",
}
_ARTICLES: Final = {"index": "an index"}


def comment(binding: Binding, node: Node) -> ChangeObjects:
    """COMMENT ON .. IS; an empty text removes the comment, as in PostgreSQL."""
    if node.objtype == ObjectType.OBJECT_DATABASE and node.object.sval != binding.context.database:
        if node.object.sval in DATABASE_OIDS:
            raise elsewhere(node.object.sval)
        # No more than a warning, so that a dump can be restored under another name.
        missing = ("3D000", f'database "{node.object.sval}" does not exist', None)
        return ChangeObjects("COMMENT", notices=(missing,))
    made = Comment(_subject(binding, node), node.comment or None)
    return ChangeObjects("COMMENT", comments=(made,))


def _subject(binding: Binding, node: Node) -> Subject:
    match node.objtype:
        case kind if kind in _KINDS:
            return _relation(binding, string_values(node.object), _KINDS[kind])
        case ObjectType.OBJECT_COLUMN:
            return _column(binding, string_values(node.object))
        case ObjectType.OBJECT_TABCONSTRAINT:
            return _constraint(binding, string_values(node.object))
        case ObjectType.OBJECT_DOMCONSTRAINT:
            return _domain_constraint(binding, node)
        case ObjectType.OBJECT_SCHEMA:
            if not schema_exists(binding, node.object.sval):
                raise undefined_schema(node.object.sval)
            return Subject("schema", node.object.sval)
        case ObjectType.OBJECT_DATABASE:
            return Subject("database", node.object.sval)
        case ObjectType.OBJECT_EXTENSION:
            return _extension(binding, node.object.sval)
        case ObjectType.OBJECT_STATISTIC_EXT:
            found = find_statistics(binding, string_values(node.object))
            return Subject("statistics", found.oid)
        case ObjectType.OBJECT_ROLE:
            return Subject("role", role_named(roles_of(binding.context), node.object.sval).oid)
        case ObjectType.OBJECT_TYPE | ObjectType.OBJECT_DOMAIN:
            return _type(binding, node)
        case kind:
            raise not_supported(f"COMMENT ON {object_type_name(kind)}")


def _relation(binding: Binding, names: Sequence[str], kind: str) -> Subject:
    found = find_relation(binding, names)
    if relation_kind(found) != kind:
        raise SqlError("42809", f'"{names[-1]}" is not {_ARTICLES.get(kind, f"a {kind}")}')
    if isinstance(found, tuple):
        table, key = found
        return Subject("index", table.oid, key.name)
    return Subject("relation", found.oid)


def _extension(binding: Binding, name: str) -> Subject:
    found = find_extension(binding.context.catalog, name)
    if found is PLPGSQL:
        raise not_supported("COMMENT ON EXTENSION plpgsql")
    return Subject("extension", found.oid)


def _type(binding: Binding, node: Node) -> Subject:
    if node.object.arrayBounds:
        raise not_supported("COMMENT ON an array type")
    names = string_values(node.object.names)
    if names[0] == "pg_catalog" or (len(names) == 1 and is_builtin_type(names[0])):
        raise not_supported("COMMENT ON a built-in type")
    found = find_type(binding, names)
    if node.objtype == ObjectType.OBJECT_DOMAIN and not isinstance(found, DomainDefinition):
        raise SqlError("42809", f'"{names[-1]}" is not a domain')
    return Subject("type", found.oid)


def _column(binding: Binding, names: Sequence[str]) -> Subject:
    *relation, name = names
    if not relation:
        raise SqlError("42601", "column name must be qualified")
    found = find_relation(binding, relation)
    if isinstance(found, Table):
        places = {column.name: found.number_of(at) for at, column in enumerate(found.columns)}
    elif isinstance(found, ViewDefinition):
        places = {column: number for number, column in enumerate(found.columns, 1)}
    else:
        places = {}
    if name not in places:
        message = f'column "{name}" of relation "{relation[-1]}" does not exist'
        raise SqlError("42703", message)
    assert not isinstance(found, tuple), "it has columns"
    return Subject("column", found.oid, places[name])


def _constraint(binding: Binding, names: Sequence[str]) -> Subject:
    *relation, name = names
    found = find_relation(binding, relation)
    table = found if isinstance(found, Table) else None
    if table is None or name not in _constraints(table):
        message = f'constraint "{name}" for table "{relation[-1]}" does not exist'
        raise SqlError("42704", message)
    return Subject("constraint", table.oid, name)


def _domain_constraint(binding: Binding, node: Node) -> Subject:
    type_, name = node.object
    found = find_domain(binding, string_values(type_.names))
    if name.sval not in found.rules:
        message = f'constraint "{name.sval}" for domain {found.name} does not exist'
        raise SqlError("42704", message)
    return Subject("constraint", found.oid, name.sval)


def _constraints(table: Table) -> Iterator[str]:
    indexes = {key.name for key in table.keys if key.index}
    return (name for name in constraint_names(table) if name not in indexes)


def find_relation(binding: Binding, names: Sequence[str], *, of_system: bool = False) -> Relation:
    """The relation of that name, of any kind, or 42P01.

    A system relation raises 42501, unless `of_system` allows it.
    """
    schema, name = relation_name(binding, names)
    known = (*SYSTEM_SCHEMAS, *binding.context.catalog.schemas)
    if schema is not None and schema not in known:
        raise undefined_schema(schema)
    for candidate in binding.context.search_path if schema is None else (schema,):
        found = named_relation(binding.context.catalog, candidate, name)
        oid = found.oid if found is not None and not isinstance(found, tuple) else None
        binding.look_ups.add(NameDependency(candidate, name, oid))
        if found is not None:
            return found
    system = look_up_table(binding, name, schema=schema)
    if system is not None:
        if not of_system:
            refuse_system_change(system)
        return system
    raise undefined_table(".".join(names))


# --- what is known by its name -----------------------------------------------------------------


def comments_of_renamed_schema(catalog: Catalog, old: str, new: str) -> tuple[Comment, ...]:
    """The comment of a schema, moved to its new name."""
    text = catalog.comments.get(Subject("schema", old))
    return () if text is None else (Comment(Subject("schema", new), text),)


def comments_of_renamed_constraint(
    catalog: Catalog, of: Table | DomainDefinition, old: str, new: str
) -> tuple[Comment, ...]:
    """The comments of a constraint and of its index, moved to the new name."""
    said = [Subject(kind, of.oid, old) for kind in ("constraint", "index")]
    return tuple(
        Comment(replace(subject, part=new), catalog.comments[subject])
        for subject in said
        if subject in catalog.comments
    )
