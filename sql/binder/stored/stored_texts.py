"""Iterate over all SQL text that the catalog stores: defaults, checks, indexes, views.

INVARIANTS
  N2  a stored text names user types with their schemas and relations by oid (N1 of
      `stored_names.py`), so its dependencies can be read off it.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pglast import ast

from sql.binder.stored.column_expressions import parse_stored_expression
from sql.binder.stored.stored_names import named_relations, next_value_text, regtype_name
from sql.catalog.catalog import Catalog, Column, Table
from sql.catalog.objects import (
    CatalogObject,
    DomainDefinition,
    IndexDefinition,
    StatisticsDefinition,
    UserType,
    ViewDefinition,
)
from sql.catalog.temporary import is_temporary_schema
from sql.errors import not_supported
from sql.parser.syntax import Node, is_a, string_values, tree_nodes
from sql.types.sql_type import UNKNOWN


@dataclass(frozen=True, slots=True)
class StoredText:
    """A stored text. `what`: its description in messages; `of`: the object that stores it."""

    what: str
    text: str
    of: Table | CatalogObject
    column: Column | None = None
    """The column whose default it is."""

    @property
    def tree(self) -> Node:
        """Its syntax tree, which is shared: callers must not modify it."""
        return parse_stored_expression(self.expression)

    @property
    def expression(self) -> str:
        """The text as an expression: a query becomes a subquery."""
        is_query = isinstance(self.of, ViewDefinition) and self.column is None
        return f"({self.text})" if is_query else self.text


def all_stored_texts(catalog: Catalog) -> Iterator[StoredText]:
    """Every stored text of a catalog."""
    for thing in (*catalog.tables.values(), *catalog.objects.values()):
        yield from stored_texts_of(thing)


def stored_texts_of(thing: Table | CatalogObject) -> Iterator[StoredText]:
    """The texts that one object stores."""
    match thing:
        case Table():
            yield from _texts_of_table(thing)
        case ViewDefinition(text=text):
            yield StoredText(f"{thing.kind} {thing.shown}", text, thing)
            for place, default in thing.defaults:
                what = f"default value for column {thing.columns[place]} of view {thing.shown}"
                yield StoredText(what, default, thing, Column(thing.columns[place], UNKNOWN))
        case IndexDefinition():
            for text in (*thing.elements, *([thing.predicate] if thing.predicate else ())):
                yield StoredText(f"index {thing.shown}", text, thing)
        case StatisticsDefinition():
            for text in thing.expressions:
                yield StoredText(f"statistics object {thing.shown}", text, thing)
        case DomainDefinition():
            for text in (*(check for _, check in thing.checks), thing.default):
                if text:
                    yield StoredText(f"type {thing.shown}", text, thing)
        case _:
            pass


def refuse_temporary_dependency(catalog: Catalog, thing: Table | CatalogObject) -> None:
    """0A000 for a permanent object whose stored text names a temporary object.

    It would have to be dropped at the session's end. Only a column's default may name one (E2 of
    `coordinator/session/temporary_tables.py`).
    """
    if is_temporary_schema(thing.schema):
        return
    named = {oid: kept for kept in stored_texts_of(thing) for oid in _named(kept)}
    for other in (*catalog.tables.values(), *catalog.objects.values()) if named else ():
        if other.oid in named and is_temporary_schema(other.schema):
            kept = named[other.oid]
            raise not_supported(f'a temporary relation in the definition of "{kept.what}"')


def _named(kept: StoredText) -> Sequence[int]:
    return () if kept.column is not None else named_relations(kept.text)


def _texts_of_table(table: Table) -> Iterator[StoredText]:
    view = table.materialized_view
    if view is not None:
        yield from stored_texts_of(view)
    for column in table.columns:
        where = f"column {column.name} of table {table.shown}"
        if column.sequence:
            yield default_text_of(table, column, next_value_text(column.sequence))
        elif column.expression is not None and not column.default_of_domain:
            yield default_text_of(table, column, column.expression)
        if column.generated is not None:
            yield StoredText(where, column.generated, table)
    for check in table.checks:
        yield StoredText(f"constraint {check.name} on table {table.shown}", check.expression, table)


def default_text_of(table: Table, column: Column, text: str) -> StoredText:
    """A column's default, as a stored text."""
    what = f"default value for column {column.name} of table {table.shown}"
    return StoredText(what, text, table, column)


def texts_depending_on(catalog: Catalog, oids: Collection[int]) -> Sequence[tuple[int, StoredText]]:
    """The stored texts that name one of these relations, each with the relation (N2)."""
    return [
        (oid, kept)
        for kept in all_stored_texts(catalog)
        for oid in named_relations(kept.text)
        if oid in oids
    ]


def texts_naming_type(catalog: Catalog, found: UserType) -> list[str]:
    """Descriptions of the stored texts that name this type (N2)."""
    return [
        kept.what
        for kept in all_stored_texts(catalog)
        if (found.schema, found.name) in types_named_in(kept)
    ]


def types_named_in(kept: StoredText) -> Sequence[tuple[str, str]]:
    """Schemas and names of the user types that a text names (N2), and of some other types."""
    return _types_named(kept.expression)


@lru_cache(maxsize=2_000)
def _types_named(expression: str) -> Sequence[tuple[str, str]]:
    """Cached, for concurrent DDL compares the definitions of all who have committed meanwhile."""
    named: list[tuple[str, str]] = []
    for part in tree_nodes(parse_stored_expression(expression)):
        found = part if is_a(part, ast.TypeName) else regtype_name(part)
        if found is not None and len(found.names) == 2:
            schema, name = string_values(found.names)
            named.append((schema, name))
    return tuple(named)


def texts_quoting(catalog: Catalog, label: str) -> list[str]:
    """Descriptions of the stored texts that contain this string constant, whatever its type."""
    return [
        kept.what
        for kept in all_stored_texts(catalog)
        if any(is_a(part, ast.A_Const) and _string(part) == label for part in tree_nodes(kept.tree))
    ]


def _string(constant: Node) -> str | None:
    return constant.val.sval if is_a(constant.val, ast.String) else None
