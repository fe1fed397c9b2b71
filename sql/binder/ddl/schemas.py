"""Choose the schema in which CREATE puts an object (RangeVarGetCreationNamespace)."""

from sql.binder.resolve.catalog_lookup import (
    check_database,
    check_may_create,
    existing_schemas,
    schema_exists,
)
from sql.binder.state import Binding
from sql.errors import SqlError, not_supported, undefined_schema
from sql.parser.syntax import Node, offset_to_position


def creation_schema(binding: Binding, relation: Node) -> str:
    """The schema of a new relation. Raises 3F000, 42501."""
    context, place = binding.context, offset_to_position(relation.location)
    check_database(binding, relation)
    schema: str | None = relation.schemaname
    temporary = relation.relpersistence == "t"
    if schema is None:
        if temporary:
            return temporary_schema(binding)
        for name in existing_schemas(context, context.creation_path):
            check_may_create(name, relation.relname)
            if name == context.temporary or schema_exists(binding, name):
                return name
        raise SqlError("3F000", "no schema has been selected to create in", place)
    if schema == context.temporary:
        return temporary_schema(binding)
    if temporary:
        message = "cannot create temporary relation in non-temporary schema"
        raise SqlError("42P16", message, place)
    check_may_create(schema, relation.relname)
    if not schema_exists(binding, schema):
        raise undefined_schema(schema, place)
    return schema


def temporary_schema(binding: Binding) -> str:
    """The session's schema for temporary objects, which may not exist yet."""
    if not binding.context.temporary:
        raise not_supported("a temporary relation without a session")
    # T3 of `temporary_names.py`: it is another one in every session.
    binding.uses_session = True
    return binding.context.temporary
