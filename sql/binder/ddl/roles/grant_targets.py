"""Look up the relations and types that GRANT, REVOKE and OWNER TO name."""

from collections.abc import Sequence

from sql.binder.ddl.comments import find_relation
from sql.binder.resolve.catalog_lookup import check_database
from sql.binder.state import Binding
from sql.binder.stored.type_users import find_type
from sql.catalog.catalog import Table
from sql.catalog.objects import (
    CatalogObject,
    DomainDefinition,
    IndexDefinition,
    SequenceDefinition,
    Subject,
)
from sql.catalog.ownership import OwnedObject, owned_object
from sql.errors import SqlError
from sql.parser.syntax import Node
from sql.parser.type_names import is_builtin_type
from sql.types.sql_type import TYPE_OIDS, is_type


def relation_to_grant(binding: Binding, relation: Node, *, sequence: bool) -> Table | CatalogObject:
    """The table, view, sequence or system catalog. Raises 42P01, 42809."""
    check_database(binding, relation, placed=False)
    schema, name = relation.schemaname, relation.relname
    names = [name] if schema is None else [schema, name]
    found = find_relation(binding, names, of_system=not sequence)
    if isinstance(found, tuple | IndexDefinition):
        raise SqlError("42809", f'"{name}" is an index')
    if sequence and not isinstance(found, SequenceDefinition):
        raise SqlError("42809", f'"{name}" is not a sequence')
    return found


def type_to_grant(binding: Binding, names: Sequence[str], *, domain: bool = False) -> OwnedObject:
    """The type or domain, built in or user-defined. Raises 42704, 42809."""
    name = names[-1]
    is_own = is_builtin_type(name) and is_type(name) and name in TYPE_OIDS
    if is_own and not domain and (len(names) == 1 or names[0] == "pg_catalog"):
        return OwnedObject(Subject("type", TYPE_OIDS[name]), "type", "pg_catalog", name)
    found = find_type(binding, names)
    if domain and not isinstance(found, DomainDefinition):
        raise SqlError("42809", f'"{name}" is not a domain')
    return owned_object(found)
