"""Look up relations, types and schemas by name, and record the name dependencies of a statement.

    a name ─┬─▶ a definition that goes into the plan ─▶ a use      view, type, domain, sequence ..
            └─▶ an oid, yes or no, nothing           ─▶ a look-up  regclass, IF EXISTS, search path

INVARIANTS
  Q1  relations of pg_catalog come before the search path; a statement that reads one reads the
      whole catalog.
  Q2  Meridian's system relations are found with their schema's name. Without it they are found only
      if the search path names the schema, and after every user table.
  Q3  every definition that the plan is made of is a use, with the version that was read; a table is
      watched by whoever reads or writes it instead. Everything else that the catalog has answered
      is a look-up: a name that was found missing, also in an earlier schema of the search path;
      whether something exists; the oid behind a name; system catalogs. A6 of
      `coordinator/core/validation.py` says which of them must still hold at the commit.
"""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from sql.binder.state import BindContext, Binding
from sql.catalog.catalog import (
    Catalog,
    Key,
    NameDependency,
    Table,
    type_dependency,
)
from sql.catalog.extension_relations import extension_view
from sql.catalog.meridian_schema import SYSTEM_RELATIONS, SYSTEM_SCHEMA_NAMES, is_server_state
from sql.catalog.objects import (
    EXTENSION_SPACE,
    CatalogObject,
    SequenceDefinition,
    UserType,
    ViewDefinition,
)
from sql.catalog.sequence_relation import is_sequence
from sql.catalog.sources import is_table_of_errors
from sql.catalog.system_catalogs import (
    INFORMATION_SCHEMA,
    PG_CATALOG,
    SYSTEM_SCHEMAS,
    system_catalog,
)
from sql.errors import SqlError, duplicate_table, undefined_schema, undefined_table
from sql.parser.syntax import Node, offset_to_position

Relation: TypeAlias = Table | CatalogObject | tuple[Table, Key]
"""Anything that has a name among relations; the index of a key is its table and the key."""


def look_up_table(
    binding: Binding, name: str, *, schema: str | None, decides: bool = False
) -> Table | None:
    """The table of that name, or None. `decides`: the statement depends on the name alone."""
    if schema in SYSTEM_SCHEMA_NAMES and name in SYSTEM_RELATIONS:
        return SYSTEM_RELATIONS[name]
    found = _system_catalog(binding, name, PG_CATALOG if schema is None else schema)
    if found is not None:
        return found
    path = binding.context.search_path if schema is None else (schema,)
    for candidate in path:
        if candidate == INFORMATION_SCHEMA and schema is None:
            found = _system_catalog(binding, name, candidate)
            if found is not None:
                return found
        table = binding.context.catalog.tables.get((candidate, name))
        if table is not None:
            if decides:
                binding.look_ups.add(NameDependency(candidate, name, table.oid))
            return table
        view = extension_view(binding.context.catalog, candidate, name)
        if view is not None:
            found, extension = view
            binding.look_ups.add(
                NameDependency(candidate, extension.name, extension.oid, EXTENSION_SPACE)
            )
            return found
        binding.look_ups.add(NameDependency(candidate, name, None))
    is_searched = any(schema in path for schema in SYSTEM_SCHEMA_NAMES)
    return SYSTEM_RELATIONS.get(name) if is_searched else None


def existing_schemas(context: BindContext, path: Sequence[str]) -> Iterator[str]:
    """The schemas of a search path that exist for PostgreSQL's purposes.

    Meridian's own schema is left out (Q2). The session's temporary one counts, as it is created on
    demand.
    """
    known = (PG_CATALOG, INFORMATION_SCHEMA, context.temporary)
    for name in path:
        if name in context.catalog.schemas or name in known:
            yield name


def check_may_create(schema: str, name: str) -> None:
    """42501 for a new object in a system schema."""
    if schema in SYSTEM_SCHEMAS:
        message = f'permission denied to create "{schema}.{name}"'
        detail = "System catalog modifications are currently disallowed."
        raise SqlError("42501", message, detail=detail)


def _system_catalog(binding: Binding, name: str, schema: str) -> Table | None:
    """A relation of pg_catalog, which comes before the search path, or of information_schema."""
    table = system_catalog(schema, name)
    if table is not None:
        binding.read_catalog()
    return table


def look_up_sequence(
    binding: Binding, name: str, *, schema: str | None
) -> SequenceDefinition | None:
    """The sequence of that name, or None. 42809 if another relation has the name."""
    for candidate in binding.context.search_path if schema is None else (schema,):
        table = binding.context.catalog.tables.get((candidate, name))
        found = binding.context.catalog.relation(candidate, name)
        if isinstance(found, SequenceDefinition):
            binding.look_ups.add(NameDependency(candidate, name, found.oid))
            return found
        other = table or found
        if other is not None:
            raise wrong_kind(name, "sequence", other.kind)
        binding.look_ups.add(NameDependency(candidate, name, None))
    return None


def named_relation(catalog: Catalog, schema: str, name: str) -> Relation | None:
    """The relation of that name, including the index of a key."""
    found = catalog.tables.get((schema, name)) or catalog.relation(schema, name)
    if found is not None:
        return found
    return next(iter(catalog.named_tables.keys_named.get((schema, name), ())), None)


def find_relation_named(binding: Binding, relation: Node) -> Relation | None:
    """The relation that a RangeVar names, of any kind. Raises 0A000 for another database."""
    check_database(binding, relation, placed=False)
    schema, catalog = relation.schemaname, binding.context.catalog
    path = binding.context.search_path if schema is None else (schema,)
    found = (named_relation(catalog, schema, relation.relname) for schema in path)
    return next((thing for thing in found if thing is not None), None)


def relation_kind(found: Relation) -> str:
    """The kind of a relation in PostgreSQL's words."""
    match found:
        case tuple():
            return "index"
        case _:
            return found.kind


def relation_exists(binding: Binding, schema: str, name: str) -> bool:
    """Whether a relation or index has that name; the statement depends on the answer."""
    found = named_relation(binding.context.catalog, schema, name)
    if isinstance(found, tuple):
        # No object says when the index of a key goes.
        binding.read_catalog()
    else:
        binding.look_ups.add(NameDependency(schema, name, None if found is None else found.oid))
    return found is not None


def look_up_type(
    binding: Binding, name: str, *, schema: str | None, uses: bool = False
) -> UserType | None:
    """The user-defined type of that name, or None. `uses`: its definition goes into the plan."""
    for candidate in binding.context.search_path if schema is None else (schema,):
        found = binding.context.catalog.type_named(candidate, name)
        names = binding.uses if uses and found is not None else binding.look_ups
        names.add(type_dependency(candidate, name, found))
        if found is not None:
            return found
    return None


def row_type(binding: Binding, name: str, *, schema: str | None) -> Table | ViewDefinition | None:
    """The table or view whose row type has that name; the statement depends on the answer."""
    for candidate in binding.context.search_path if schema is None else (schema,):
        found = named_relation(binding.context.catalog, candidate, name)
        if relation_exists(binding, candidate, name) and isinstance(found, Table | ViewDefinition):
            return found
    return None


def row_type_exists(binding: Binding, schema: str, name: str) -> bool:
    """Whether a type or row type of that name exists."""
    relation = named_relation(binding.context.catalog, schema, name)
    found = look_up_type(binding, name, schema=schema)
    taken = relation_exists(binding, schema, name) and isinstance(relation, Table | ViewDefinition)
    return taken or found is not None


def refuse_row_type_clash(binding: Binding, schema: str, name: str) -> None:
    """42710 for a new table or view whose row type would have the name of a type."""
    if look_up_type(binding, name, schema=schema) is not None:
        hint = (
            "A relation has an associated type of the same name, so you must use a name that "
            "doesn't conflict with any existing type."
        )
        raise SqlError("42710", f'type "{name}" already exists', hint=hint)


def refuse_renamed_type_clash(binding: Binding, schema: str, name: str, *, where: str = "") -> None:
    """42710 for a relation that is renamed to, or moved onto, the name of a type."""
    if look_up_type(binding, name, schema=schema) is not None:
        raise SqlError("42710", f'type "{name}" already exists{where}')


def schema_exists(binding: Binding, name: str) -> bool:
    """Whether a user schema of that name exists; the statement depends on the answer."""
    exists = name in binding.context.catalog.schemas
    binding.look_ups.add(NameDependency(name, None, 0 if exists else None))
    return exists


def undefined_relation(binding: Binding, relation: Node) -> SqlError:
    """The error for a relation that does not exist, or whose schema does not (RangeVarGetRelid)."""
    schema: str | None = relation.schemaname
    known = schema is None or schema in SYSTEM_SCHEMAS or schema_exists(binding, schema)
    if schema is not None and not known:
        return undefined_schema(schema)
    return undefined_table(relation.relname if schema is None else f"{schema}.{relation.relname}")


def qualifying_schema(binding: Binding, names: Sequence[str], place: int | None) -> str | None:
    """The schema of a qualified name. Raises 3F000, and the errors of `check_qualified`."""
    check_qualified(binding, names, offset_to_position(place))
    schema = names[-2] if len(names) > 1 else None
    if schema is not None and schema not in SYSTEM_SCHEMAS and not schema_exists(binding, schema):
        raise undefined_schema(schema, offset_to_position(place))
    return schema


def check_qualified(binding: Binding, names: Sequence[str], place: int | None = None) -> None:
    """0A000 for a name in another database, 42601 for one with too many parts
    (DeconstructQualifiedName).
    """
    shown = ".".join(names)
    if len(names) > 3:
        message = f"improper qualified name (too many dotted names): {shown}"
        raise SqlError("42601", message, place)
    if len(names) == 3 and names[0] != binding.context.database:
        message = f"cross-database references are not implemented: {shown}"
        raise SqlError("0A000", message, place)


def relation_name(binding: Binding, names: Sequence[str]) -> tuple[str | None, str]:
    """Schema and name of a relation (makeRangeVarFromNameList).

    Raises 0A000 for another database, 42601 for a name with too many parts.
    """
    *qualifier, name = names
    if len(names) > 3:
        message = f"improper relation name (too many dotted names): {'.'.join(names)}"
        raise SqlError("42601", message)
    if len(names) == 3 and names[0] != binding.context.database:
        shown = ".".join(names)
        message = f'cross-database references are not implemented: "{shown}"'
        raise SqlError("0A000", message)
    return qualifier[-1] if qualifier else None, name


def missing_object_notice(
    binding: Binding, kind: str, schema: str | None, name: str, *, missing_ok: bool
) -> str:
    """The notice of IF EXISTS for a missing object. Without IF EXISTS it raises 3F000, 42P01,
    42704.
    """
    known = schema is None or schema in SYSTEM_SCHEMAS or schema_exists(binding, schema)
    if schema is not None and not known:
        if not missing_ok:
            raise undefined_schema(schema)
        return f'schema "{schema}" does not exist, skipping'
    if not missing_ok:
        sqlstate = "42704" if kind in ("index", "foreign table") else "42P01"
        raise SqlError(sqlstate, f'{kind} "{name}" does not exist')
    for candidate in binding.context.search_path if schema is None else (schema,):
        binding.look_ups.add(NameDependency(candidate, name, None))
    return f'{kind} "{name}" does not exist, skipping'


def wrong_kind(name: str, wanted: str, kind: str) -> SqlError:
    """42809 of DROP for an object of that name but of another kind."""
    one, other = (f"{'an' if word[0] in 'aeiou' else 'a'} {word}" for word in (wanted, kind))
    hint = f"Use DROP {kind.upper()} to remove {other}."
    return SqlError("42809", f'"{name}" is not {one}', hint=hint)


def check_database(binding: Binding, relation: Node, *, placed: bool = True) -> None:
    """0A000 for a RangeVar of another database. `placed`: the error carries its position."""
    catalog = relation.catalogname
    if catalog is None or catalog == binding.context.database:
        return
    shown = f"{catalog}.{relation.schemaname}.{relation.relname}"
    message = f'cross-database references are not implemented: "{shown}"'
    raise SqlError("0A000", message, offset_to_position(relation.location) if placed else None)


def refuse_system_change(table: Table) -> None:
    """42501 for DDL on a system relation."""
    if is_server_state(table):
        raise SqlError("42501", f'permission denied: "{table.name}" is a system catalog')


def refuse_system_write(table: Table) -> None:
    """42809 for INSERT, UPDATE, DELETE and COPY FROM on a system relation or materialized view."""
    if table.query is not None:
        raise SqlError("42809", f'cannot change materialized view "{table.name}"')
    refuse_fed_write(table)
    if is_sequence(table):
        raise SqlError("42809", f'cannot change sequence "{table.name}"')
    if is_server_state(table):
        detail = "It shows the state of the server."
        raise SqlError("42809", f'cannot change system relation "{table.name}"', detail=detail)


def refuse_fed_write(table: Table) -> None:
    """42809 for a change of rows that a source brings. (DELETE takes errors that are done with.)"""
    if table.feed is not None:
        hint = "ALTER TABLE .. DETACH SOURCE makes it an ordinary table."
        if is_table_of_errors(table):
            hint = "DELETE takes out records that are done with."
        message = f'cannot change table "{table.name}", which is fed by a source'
        raise SqlError("42809", message, hint=hint)


def refuse_taken_name(binding: Binding, schema: str, name: str) -> None:
    """42P07 for a name that a relation or the index of a key has already."""
    if relation_exists(binding, schema, name):
        raise duplicate_table(name)
