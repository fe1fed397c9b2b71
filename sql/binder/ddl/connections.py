"""Connections to other systems: CREATE, ALTER; and what is altered alike of sources.

INVARIANTS
  N2  a definition names where its password is, and never has it (N1 of `connection_grammar.py`).
  N3  who alters a connection alters the sources that use it, too: they connect anew.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from sql.binder.ddl.alter.set_schema import check_move, moved_to_schema, redefined_table
from sql.binder.ddl.roles.owners import owned_by
from sql.binder.ddl.source_names import find_feeding, new_feeding_place
from sql.binder.resolve.catalog_lookup import relation_exists
from sql.binder.resolve.role_names import role_named, roles_of
from sql.binder.state import Binding
from sql.catalog.catalog import Catalog, Table
from sql.catalog.objects import (
    CatalogObject,
    Comment,
    ConnectionDefinition,
    SourceDefinition,
    Subject,
)
from sql.catalog.ownership import owned_object
from sql.catalog.sources import errors_name, errors_of_source, sources_of
from sql.errors import SqlError, duplicate_table
from sql.parser.meridian_nodes import (
    AlterConnectionNode,
    AlterNamedNode,
    CreateConnectionNode,
    SourceOption,
)
from sql.statements.ddl import ChangeObjects, ChangePrivileges, CreateObject, Redefinition

SSL_MODES: Final = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_REQUIRED: Final = ("host", "database", "user")


def create_connection(binding: Binding, node: CreateConnectionNode) -> CreateObject | ChangeObjects:
    """CREATE CONNECTION [IF NOT EXISTS]. Raises 42710, 42601, 22023."""
    schema, name = new_feeding_place(binding, node.name)
    if (ConnectionDefinition.space, schema, name) in binding.context.catalog.objects:
        if not node.if_not_exists:
            raise SqlError("42710", f'connection "{name}" already exists')
        told = ("42710", f'connection "{name}" already exists, skipping', None)
        return ChangeObjects("CREATE CONNECTION", notices=(told,))
    given = _checked(node.options)
    for option in _REQUIRED:
        if option not in given:
            message = f"a connection to PostgreSQL needs {option.upper()}"
            raise SqlError("42601", message, node.name[0].place + 1)
    made = ConnectionDefinition(
        0, schema, name, connector=node.connector, options=tuple(given.items())
    )
    return CreateObject(made, "CREATE CONNECTION")


def _checked(options: Sequence[SourceOption]) -> dict[str, str]:
    for option in options:
        value = option.value
        if option.name == "ssl mode" and value not in SSL_MODES:
            hint = f"Valid values are: {', '.join(SSL_MODES)}."
            raise SqlError("22023", f'unrecognized SSL mode "{value}"', option.place, hint=hint)
        if isinstance(value, int) and not 0 < value < 1 << 16:
            message = f"{value} is outside the valid range for PORT"
            detail = f"Valid values are between 1 and {(1 << 16) - 1}."
            raise SqlError("22023", message, option.place, detail=detail)
        if not value or "\0" in str(value):
            raise SqlError("22023", f"{option.name.upper()} must not be empty", option.place)
    return {option.name: str(option.value) for option in options}


def alter_connection(binding: Binding, node: AlterConnectionNode) -> ChangeObjects:
    """ALTER CONNECTION .. SET (N3)."""
    found = find_feeding(binding, ConnectionDefinition, node.name)
    given = _checked(node.options)
    # A password from a variable takes the place of one from a file.
    replaced = {name.partition(" ")[0] for name in given}
    kept = {name: value for name, value in found.options if name.partition(" ")[0] not in replaced}
    after = replace(found, options=tuple({**kept, **given}.items()), version=found.version + 1)
    users = sources_of_connection(binding.context.catalog, found.oid)
    again = [replace(source, version=source.version + 1) for source in users]
    return ChangeObjects("ALTER CONNECTION", objects=(after, *again))


def sources_of_connection(catalog: Catalog, oid: int) -> list[SourceDefinition]:
    """The sources that read by it."""
    return sorted(
        [source for source in sources_of(catalog) if source.connection == oid],
        key=lambda source: source.oid,
    )


# --- alike for sources -------------------------------------------------------------------------


def _named(binding: Binding, node: AlterNamedNode) -> SourceDefinition | ConnectionDefinition:
    if node.kind == "source":
        return find_feeding(binding, SourceDefinition, node.name)
    return find_feeding(binding, ConnectionDefinition, node.name)


def alter_named(binding: Binding, node: AlterNamedNode) -> ChangeObjects | ChangePrivileges:
    """RENAME TO, SET SCHEMA, OWNER TO and COMMENT ON of a connection or source."""
    found = _named(binding, node)
    tag = f"ALTER {node.kind.upper()}"
    if node.action == "comment":
        said = Comment(Subject(found.kind, found.oid), node.text)
        return ChangeObjects("COMMENT", comments=(said,))
    assert node.new is not None, "it has a name"
    if node.action == "owner":
        binding.uses_session = True
        role = role_named(roles_of(binding.context), node.new.text)
        rights = owned_by(binding.context.catalog, owned_object(found), role.oid)
        return ChangePrivileges(tag, rights=rights)
    if node.action == "rename":
        return _moved(binding, found, found.schema, node.new.text, tag)
    check_move(binding, found.schema, node.new.text)
    if node.new.text == found.schema:
        return ChangeObjects(tag)
    return _moved(binding, found, node.new.text, found.name, tag)


def _moved(
    binding: Binding,
    found: SourceDefinition | ConnectionDefinition,
    schema: str,
    name: str,
    tag: str,
) -> ChangeObjects:
    """With another name, or elsewhere. The table of a source's errors goes along."""
    catalog = binding.context.catalog
    if (found.space, schema, name) in catalog.objects:
        where = f' in schema "{schema}"' if schema != found.schema else ""
        raise SqlError("42710", f'{found.kind} "{name}" already exists{where}')
    after: CatalogObject = replace(found, schema=schema, name=name, version=found.version + 1)
    if isinstance(found, ConnectionDefinition):
        return ChangeObjects(tag, objects=(after,))
    errors = errors_of_source(catalog, found.oid)
    # One that somebody has renamed keeps its name.
    is_plain = errors.name == errors_name(found.name)
    change = _errors_moved(binding, errors, schema, errors_name(name) if is_plain else errors.name)
    own = [moved_to_schema(index, schema) for index in catalog.indexes(errors.oid)]
    return ChangeObjects(
        tag,
        objects=(after, *(own if schema != errors.schema else ())),
        tables=() if change is None else (change,),
    )


def _errors_moved(binding: Binding, errors: Table, schema: str, name: str) -> Redefinition | None:
    if (errors.schema, errors.name) == (schema, name):
        return None
    if relation_exists(binding, schema, name):
        raise duplicate_table(name)
    return redefined_table(errors, schema=schema, name=name)
