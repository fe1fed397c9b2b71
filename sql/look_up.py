"""Finding a table by its name, and remembering what the answer rests on.

A name that resolves to a table of a later schema of the search path, or that is found missing, says
something about names that do not exist. A transaction that writes commits only if that still holds
(`coordinator/core/validation.py`), so it is written down here. What is found is watched by the
table's definition; only who decides by a name alone (IF NOT EXISTS) asks to have it written down.

INVARIANTS
  Q1  relations of pg_catalog come before the search path; a statement that reads one rests on the
      whole catalog.
  Q2  system relations are found with their schema's name; without it only if the search path names
      the schema, and behind every table of users.
"""

from typing import Final, TypeAlias

from sql.binding import Binding
from sql.catalog import WHOLE_CATALOG, Catalog, Key, LookUp, Table, state_of
from sql.catalog_objects import (
    TYPE,
    CatalogObject,
    SequenceDefinition,
    UserType,
    ViewDefinition,
)
from sql.errors import SqlError
from sql.sequence_relation import is_sequence
from sql.syntax import Node, at
from sql.system_catalogs import INFORMATION_SCHEMA, PG_CATALOG, system_catalog
from sql.system_relations import SYSTEM_RELATIONS, SYSTEM_SCHEMA, is_system

SYSTEM_SCHEMAS: Final = frozenset({PG_CATALOG, INFORMATION_SCHEMA, SYSTEM_SCHEMA})
"""They are always there, and nobody creates or drops anything in them."""

Relation: TypeAlias = Table | CatalogObject | tuple[Table, Key]
"""What may have a name among relations; an index of a key is known by both."""


def look_up(
    binding: Binding, name: str, *, schema: str | None, decides: bool = False
) -> Table | None:
    """The table of that name, or None. `decides`: the statement needs no more than the name."""
    if schema == SYSTEM_SCHEMA and name in SYSTEM_RELATIONS:
        return SYSTEM_RELATIONS[name]
    found = _system_catalog(binding, name, schema)
    if found is not None:
        return found
    path = binding.context.search_path if schema is None else (schema,)
    for candidate in path:
        table = binding.context.catalog.tables.get((candidate, name))
        if table is not None:
            if decides:
                binding.look_ups.add(LookUp(candidate, name, table.oid))
            return table
        binding.look_ups.add(LookUp(candidate, name, None))
    return SYSTEM_RELATIONS.get(name) if SYSTEM_SCHEMA in path else None


def _system_catalog(binding: Binding, name: str, schema: str | None) -> Table | None:
    """A relation of pg_catalog, which comes before the search path, or of information_schema."""
    table = system_catalog(PG_CATALOG if schema is None else schema, name)
    if table is not None:
        binding.look_ups.add(WHOLE_CATALOG)
    return table


def look_up_sequence(
    binding: Binding, name: str, *, schema: str | None
) -> SequenceDefinition | None:
    """The sequence of that name, or None. 42809 if something else is called so."""
    for candidate in binding.context.search_path if schema is None else (schema,):
        table = binding.context.catalog.tables.get((candidate, name))
        found = binding.context.catalog.relation(candidate, name)
        if isinstance(found, SequenceDefinition):
            binding.look_ups.add(LookUp(candidate, name, found.oid))
            return found
        if table is not None or found is not None:
            raise SqlError("42809", f'"{name}" is not a sequence')
        binding.look_ups.add(LookUp(candidate, name, None))
    return None


def named_relation(catalog: Catalog, schema: str, name: str) -> Relation | None:
    """What is called so, an index of a key included."""
    found = catalog.tables.get((schema, name)) or catalog.relation(schema, name)
    if found is not None:
        return found
    for table in catalog.tables.values():
        if table.schema == schema:
            for key in table.keys:
                if key.name == name:
                    return table, key
    return None


def kind_of(found: Relation) -> str:
    """What PostgreSQL calls it."""
    match found:
        case Table():
            return "table"
        case tuple():
            return "index"
        case _:
            return found.kind


def relation_exists(binding: Binding, schema: str, name: str) -> bool:
    """Whether a table, sequence, view or index is called so; the statement rests on the answer."""
    catalog = binding.context.catalog
    table, thing = catalog.tables.get((schema, name)), catalog.relation(schema, name)
    oid = table.oid if table is not None else None if thing is None else thing.oid
    binding.look_ups.add(LookUp(schema, name, oid))
    return oid is not None


def look_up_type(binding: Binding, name: str, *, schema: str | None) -> UserType | None:
    """The type of that name that users have made, or None; the statement rests on the answer."""
    for candidate in binding.context.search_path if schema is None else (schema,):
        found = binding.context.catalog.type_named(candidate, name)
        binding.look_ups.add(LookUp(candidate, name, state_of(found), TYPE))
        if found is not None:
            return found
    return None


def row_type_exists(binding: Binding, schema: str, name: str) -> bool:
    """Whether a type is called so, or a relation whose rows are of a type so called."""
    relation = binding.context.catalog.relation(schema, name)
    found = look_up_type(binding, name, schema=schema)
    taken = relation_exists(binding, schema, name) and (
        relation is None or isinstance(relation, ViewDefinition)
    )
    return taken or found is not None


def refuse_type_name(binding: Binding, schema: str, name: str) -> None:
    """42710 for a table or view that is called like a type: its rows would have that type."""
    if look_up_type(binding, name, schema=schema) is not None:
        hint = (
            "A relation has an associated type of the same name, so you must use a name that "
            "doesn't conflict with any existing type."
        )
        raise SqlError("42710", f'type "{name}" already exists', hint=hint)


def refuse_renamed(binding: Binding, schema: str, name: str, *, where: str = "") -> None:
    """The same for one that is to be called so."""
    if look_up_type(binding, name, schema=schema) is not None:
        raise SqlError("42710", f'type "{name}" already exists{where}')


def schema_exists(binding: Binding, name: str) -> bool:
    """Whether users have a schema of that name; the statement rests on the answer."""
    exists = name in binding.context.catalog.schemas
    binding.look_ups.add(LookUp(name, None, 0 if exists else None))
    return exists


def check_database(binding: Binding, relation: Node) -> None:
    """0A000 for a RangeVar of another database."""
    catalog = relation.catalogname
    if catalog is None or catalog == binding.context.database:
        return
    shown = f"{catalog}.{relation.schemaname}.{relation.relname}"
    message = f'cross-database references are not implemented: "{shown}"'
    raise SqlError("0A000", message, at(relation.location))


def refuse_system_change(table: Table) -> None:
    """42501 for DDL on a system relation."""
    if is_system(table):
        raise SqlError("42501", f'permission denied: "{table.name}" is a system catalog')


def refuse_system_write(table: Table) -> None:
    """42809 for INSERT, UPDATE, DELETE and COPY FROM on a system relation."""
    if is_sequence(table):
        raise SqlError("42809", f'cannot change sequence "{table.name}"')
    if is_system(table):
        detail = "It shows the state of the server."
        raise SqlError("42809", f'cannot change system relation "{table.name}"', detail=detail)
