"""Find sources and connections by their names, and places for new ones."""

from collections.abc import Sequence
from typing import TypeVar

from pglast import ast

from sql.binder.ddl.schemas import creation_schema
from sql.binder.resolve.catalog_lookup import existing_schemas, schema_exists
from sql.binder.state import Binding
from sql.catalog.catalog import NameDependency
from sql.catalog.objects import ConnectionDefinition, SourceDefinition
from sql.catalog.temporary import is_temporary_schema
from sql.errors import SqlError, not_supported, undefined_schema
from sql.parser.meridian_nodes import Identifier

T = TypeVar("T", SourceDefinition, ConnectionDefinition)


def find_feeding(binding: Binding, kind: type[T], names: Sequence[Identifier]) -> T:
    """The source or connection of this name. Raises 42704."""
    found = look_up_feeding(binding, kind, names)
    if found is None:
        raise undefined_feeding(kind.kind, names)
    return found


def undefined_feeding(kind: str, names: Sequence[Identifier]) -> SqlError:
    """42704."""
    name = ".".join(part.text for part in names)
    return SqlError("42704", f'{kind} "{name}" does not exist', names[0].place + 1)


def look_up_feeding(binding: Binding, kind: type[T], names: Sequence[Identifier]) -> T | None:
    """The same, or None. The statement rests on what is found."""
    space: str = kind.space
    if len(names) > 1 and not schema_exists(binding, names[0].text):
        raise undefined_schema(names[0].text, names[0].place + 1)
    path = [*existing_schemas(binding.context, binding.context.search_path)]
    for schema in path if len(names) == 1 else [names[0].text]:
        found = binding.context.catalog.objects.get((space, schema, names[-1].text))
        if isinstance(found, kind):
            binding.look_ups.add(NameDependency(schema, found.name, found.oid, space))
            return found
        binding.look_ups.add(NameDependency(schema, names[-1].text, None, space))
    return None


def new_feeding_place(binding: Binding, names: Sequence[Identifier]) -> tuple[str, str]:
    """The schema and name of something new."""
    schema = names[0].text if len(names) > 1 else None
    node = ast.RangeVar(
        relname=names[-1].text, schemaname=schema, relpersistence="p", location=names[0].place
    )
    found = creation_schema(binding, node)
    if is_temporary_schema(found):
        raise not_supported("a source or its table among temporary ones", names[0].place + 1)
    return found, names[-1].text
