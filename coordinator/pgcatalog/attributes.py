"""Rows of pg_attribute: columns of relations, of indexes, and those that are gone.

A row names the columns it has (W2 of `pgcatalog/relations.py`).

INVARIANTS
  N1  the numbers of a relation's rows have no gap up to its last column: the columns that were
      dropped are there, as in PostgreSQL. pg_dump insists on it.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from pglast import ast

from coordinator.pgcatalog.definition_texts import DefinitionTexts
from coordinator.pgcatalog.definitions import column_number, index_orders
from coordinator.pgcatalog.named_row import NamedRow
from coordinator.pgcatalog.privileges import PrivilegeColumns
from coordinator.pgcatalog.types import collation_of, index_collation, storage_columns
from sql.binder.bind import bind_with_context
from sql.binder.ddl.indexes import index_element_name
from sql.binder.state import BindContext, Binding
from sql.binder.stored.column_expressions import parse_stored_expression
from sql.binder.stored.unique_indexes import unique_index_plan
from sql.catalog.catalog import Column, Key, Table
from sql.catalog.constraint_names import index_column_names
from sql.catalog.objects import IndexDefinition
from sql.catalog.oids import index_oid
from sql.catalog.system_catalogs import PG_CATALOG, columns_as_shown, is_catalog_view
from sql.errors import SqlError
from sql.parser.syntax import is_a
from sql.types.sql_type import INT4, TEXT, SqlType, Value

_IDENTITY: Final = {"always": "a", "by default": "d"}


def table_attributes(
    context: BindContext, shown: PrivilegeColumns, texts: DefinitionTexts, table: Table
) -> Iterator[NamedRow]:
    """The rows of a relation and of its indexes."""
    numbers: set[int] = set()
    for place, column in enumerate(columns_as_shown(table), 1):
        number = column_number(column, place)
        numbers.add(number)
        yield _of_type(column.type) | {
            "attrelid": table.oid,
            "attname": column.name,
            "atttypid": column.type.oid if column.domain is None else column.domain.oid,
            "attnum": number,
            "atttypmod": column.type.typmod if column.domain is None else -1,
            "attndims": int(column.type.element is not None),
            "attnotnull": column.not_null,
            "atthasdef": texts.has_default(column),
            "attidentity": _IDENTITY.get(column.identity, ""),
            "attgenerated": "s" if column.generated is not None else "",
            "attcollation": _collation(table, column),
            "attacl": shown.column(table.oid, number),
        }
    for number in range(1, max(numbers, default=0)):
        if number not in numbers:
            yield _dropped(table, number)
    for key in table.keys:
        yield from _of_key(table, key)
    for index in context.catalog.indexes(table.oid):
        yield from _of_index(context, table, index)


def _collation(table: Table, column: Column) -> int:
    """Texts in tables of pg_catalog compare by bytes, as in PostgreSQL; those of views do not."""
    found = collation_of(column.type, column.collation)
    if column.type.name == "pg_node_tree":
        found = collation_of(TEXT)
    by_bytes = found and table.schema == PG_CATALOG and not is_catalog_view(table)
    return collation_of(column.type, "C") if by_bytes else found


def _of_type(type_: SqlType) -> dict[str, Value]:
    return {f"att{end}": value for end, value in storage_columns(type_).items()} | {
        "attislocal": True
    }


def _dropped(table: Table, number: int) -> NamedRow:
    """A column that is gone (N1); what it was like is not known any more."""
    return _of_type(TEXT) | {
        "attrelid": table.oid,
        "attname": f"........pg.dropped.{number}........",
        "atttypid": 0,
        "attnum": number,
        "atttypmod": -1,
        "attisdropped": True,
    }


def _of_key(table: Table, key: Key) -> Iterator[NamedRow]:
    orders = (*index_orders(key), *(None for _ in key.include))
    columns = [table.columns[at] for at in (*key.columns, *key.include)]
    names = index_column_names([column.name for column in columns])
    for place, column in enumerate(columns, 1):
        order = orders[place - 1]
        yield _of_type(column.type) | {
            "attrelid": index_oid(table, key),
            "attname": names[place - 1],
            "atttypid": column.type.oid,
            "attnum": place,
            "atttypmod": column.type.typmod,
            "attcollation": 0
            if order is None
            else index_collation(column.type, column.collation, order),
        }


def element_types(
    context: BindContext, table: Table, index: IndexDefinition
) -> Sequence[SqlType | None]:
    """The types of what an index is over; all None if it names something that is gone."""

    def types(binding: Binding) -> list[SqlType]:
        return [column.type for column in unique_index_plan(binding, table, index).columns]

    try:
        return bind_with_context(context, types)[: len(index.elements)]
    except SqlError:
        return [None] * len(index.elements)


def _kept(type_: SqlType, method: str, option: str) -> SqlType:
    """The type of what an index keeps in place of a value."""
    if method == "hash":
        return INT4
    if method == "gin":
        return type_.element or (INT4 if "jsonb_path_ops" in option.split() else TEXT)
    return TEXT if method == "brin" and type_.name == "varchar" else type_


def _of_index(context: BindContext, table: Table, index: IndexDefinition) -> Iterator[NamedRow]:
    """The elements of an index, and its further columns."""
    texts = (*index.elements, *index.include)
    names = index_column_names([index_element_name(parse_stored_expression(t)) for t in texts])
    types = [type_ or TEXT for type_ in element_types(context, table, index)]
    options = index.options or ("",) * len(types)
    found = [
        _kept(type_, index.method, option) for type_, option in zip(types, options, strict=True)
    ]
    columns = [_column(table, text) for text in texts]
    included = [column.type for column in columns[len(found) :] if column is not None]
    for place, (name, type_) in enumerate(zip(names, [*found, *included], strict=True), 1):
        column = columns[place - 1]
        keeps_values = index.method not in ("hash", "gin")
        domain = column.domain if column is not None and keeps_values else None
        yield _of_type(type_) | {
            "attrelid": index.oid,
            "attname": name,
            "atttypid": type_.oid if domain is None else domain.oid,
            "attnum": place,
            "atttypmod": type_.typmod,
            "attcollation": 0
            if place > len(found)
            else index_collation(
                types[place - 1], column.collation if column else "", options[place - 1]
            ),
        }


def _column(table: Table, text: str) -> Column | None:
    """The column that an element is, if it is one."""
    node = parse_stored_expression(text)
    if not is_a(node, ast.ColumnRef):
        return None
    return next(column for column in table.columns if column.name == index_element_name(node))
