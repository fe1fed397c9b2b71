"""Look up the relations and types that GRANT, REVOKE and OWNER TO name."""

from collections.abc import Sequence

from sql.binder.ddl.comments import found_relation
from sql.binder.resolve.catalog_lookup import check_database
from sql.binder.state import Binding
from sql.binder.stored.type_users import found_type
from sql.catalog.catalog import Table
from sql.catalog.objects import (
    CatalogObject,
    DomainDefinition,
    IndexDefinition,
    SequenceDefinition,
    Subject,
)
from sql.catalog.ownership import Thing, thing_of
from sql.errors import SqlError
from sql.parser.syntax import Node
from sql.parser.type_names import is_builtin
from sql.types.sql_type import OIDS, is_type


def relation_to_grant(binding: Binding, relation: Node, *, sequence: bool) -> Table | CatalogObject:
    """The table, view, sequence or system catalog. Raises 42P01, 42809."""
    check_database(binding, relation, placed=False)
    schema, name = relation.schemaname, relation.relname
    names = [name] if schema is None else [schema, name]
    found = found_relation(binding, names, of_system=not sequence)
    if isinstance(found, tuple | IndexDefinition):
        raise SqlError("42809", f'"{name}" is an index')
    if sequence and not isinstance(found, SequenceDefinition):
        raise SqlError("42809", f'"{name}" is not a sequence')
    return found


def type_to_grant(binding: Binding, names: Sequence[str], *, domain: bool = False) -> Thing:
    """The type or domain, built in or user-defined. Raises 42704, 42809."""
    name = names[-1]
    is_own = is_builtin(name) and is_type(name) and name in OIDS
    if is_own and not domain and (len(names) == 1 or names[0] == "pg_catalog"):
        return Thing(Subject("type", OIDS[name]), "type", "pg_catalog", name)
    found = found_type(binding, names)
    if domain and not isinstance(found, DomainDefinition):
        raise SqlError("42809", f'"{name}" is not a domain')
    return thing_of(found)
