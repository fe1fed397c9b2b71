"""The row types of tables and views (pg_class.reltype), as types of whole rows and of casts."""

from sql.binder.resolve.catalog_lookup import look_up_type, row_type
from sql.binder.state import Binding
from sql.catalog.catalog import Table, definition_of
from sql.catalog.objects import ViewDefinition
from sql.catalog.oids import row_array_oid, row_type_oid
from sql.errors import not_supported
from sql.parser.syntax import Node, offset_to_position, string_values
from sql.parser.type_names import is_builtin_type
from sql.types.records import record_type
from sql.types.sql_type import RowType, SqlType, array_of


def row_type_of(relation: Table | ViewDefinition) -> RowType:
    """The name of a relation's row type."""
    oid = relation.oid
    return RowType(row_type_oid(oid), row_array_oid(oid), relation.schema, relation.name)


def declared_row_type(binding: Binding, node: Node) -> SqlType | None:
    """The row type that a TypeName means; None for other types. 0A000 for one of a view."""
    *qualifier, name = string_values(node.names)
    if node.setof or node.pct_type or not name or len(qualifier) > 1 or node.typmods:
        return None
    schema = qualifier[0] if qualifier else None
    if schema == "pg_catalog" or (schema is None and is_builtin_type(name)):
        return None
    if look_up_type(binding, name, schema=schema) is not None:
        return None
    relation = row_type(binding, name, schema=schema)
    if relation is None:
        return None
    place = offset_to_position(node.location)
    if not isinstance(relation, Table):
        raise not_supported(f'a cast to the type of rows of the view "{name}"', place)
    if any(column.domain is not None for column in relation.columns):
        raise not_supported(f'a cast to the type of rows of "{name}", which has domains', place)
    # Nobody may read or write its rows, so that its definition is watched here.
    binding.uses.add(definition_of(relation))
    names = [column.name for column in relation.columns]
    found = record_type([column.type for column in relation.columns], names, row_type_of(relation))
    return array_of(found) if node.arrayBounds else found
