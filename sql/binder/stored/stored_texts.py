"""Iterate over all SQL text that the catalog stores: defaults, checks, indexes, views.

INVARIANTS
  N2  a stored text names user types with their schemas and relations by oid (N1 of
      `stored_names.py`), so its dependencies can be read off it.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from pglast import ast

from sql.binder.stored.column_expressions import expression_of
from sql.binder.stored.stored_names import named_relations, next_value, regtype
from sql.catalog.catalog import Catalog, Column, Table
from sql.catalog.objects import (
    CatalogObject,
    DomainDefinition,
    IndexDefinition,
    UserType,
    ViewDefinition,
)
from sql.catalog.temporary import is_temporary
from sql.errors import not_supported
from sql.parser.syntax import Node, is_a, parts, strings
from sql.types.sql_type import UNKNOWN


@dataclass(frozen=True, slots=True)
class Kept:
    """A stored text. `what`: its description in messages; `of`: the object that stores it."""

    what: str
    text: str
    of: Table | CatalogObject
    column: Column | None = None
    """The column whose default it is."""

    @property
    def tree(self) -> Node:
        """Its syntax tree, which is shared: callers must not modify it."""
        is_query = isinstance(self.of, ViewDefinition) and self.column is None
        return expression_of(f"({self.text})" if is_query else self.text)


def kept_texts(catalog: Catalog) -> Iterator[Kept]:
    """Every stored text of a catalog."""
    for thing in (*catalog.tables.values(), *catalog.objects.values()):
        yield from texts_of(thing)


def texts_of(thing: Table | CatalogObject) -> Iterator[Kept]:
    """The texts that one object stores."""
    match thing:
        case Table():
            yield from _texts_of_table(thing)
        case ViewDefinition(text=text):
            yield Kept(f"view {thing.shown}", text, thing)
            for place, default in thing.defaults:
                what = f"default value for column {thing.columns[place]} of view {thing.shown}"
                yield Kept(what, default, thing, Column(thing.columns[place], UNKNOWN))
        case IndexDefinition():
            for text in (*thing.elements, *([thing.predicate] if thing.predicate else ())):
                yield Kept(f"index {thing.shown}", text, thing)
        case DomainDefinition():
            for text in (*(check for _, check in thing.checks), thing.default):
                if text:
                    yield Kept(f"type {thing.shown}", text, thing)
        case _:
            pass


def refuse_temporary(catalog: Catalog, thing: Table | CatalogObject) -> None:
    """0A000 for a permanent object whose stored text names a temporary object.

    It would have to be dropped at the session's end. Only a column's default may name one (E2 of
    `coordinator/session/temporary_tables.py`).
    """
    if is_temporary(thing.schema):
        return
    named = {oid: kept for kept in texts_of(thing) for oid in _named(kept)}
    for other in (*catalog.tables.values(), *catalog.objects.values()) if named else ():
        if other.oid in named and is_temporary(other.schema):
            kept = named[other.oid]
            raise not_supported(f'a temporary relation in the definition of "{kept.what}"')


def _named(kept: Kept) -> Sequence[int]:
    return () if kept.column is not None else named_relations(kept.text)


def _texts_of_table(table: Table) -> Iterator[Kept]:
    for column in table.columns:
        where = f"column {column.name} of table {table.shown}"
        if column.sequence:
            yield default_of(table, column, next_value(column.sequence))
        elif column.expression is not None and not column.default_of_domain:
            yield default_of(table, column, column.expression)
        if column.generated is not None:
            yield Kept(where, column.generated, table)
    for check in table.checks:
        yield Kept(f"constraint {check.name} on table {table.shown}", check.expression, table)


def default_of(table: Table, column: Column, text: str) -> Kept:
    """A column's default, as a stored text."""
    what = f"default value for column {column.name} of table {table.shown}"
    return Kept(what, text, table, column)


def resting_on(catalog: Catalog, oids: Collection[int]) -> Sequence[tuple[int, Kept]]:
    """The stored texts that name one of these relations, each with the relation (N2)."""
    return [
        (oid, kept)
        for kept in kept_texts(catalog)
        for oid in named_relations(kept.text)
        if oid in oids
    ]


def naming(catalog: Catalog, found: UserType) -> list[str]:
    """Descriptions of the stored texts that name this type (N2)."""
    return [
        kept.what for kept in kept_texts(catalog) if (found.schema, found.name) in named_types(kept)
    ]


def named_types(kept: Kept) -> Iterator[tuple[str, str]]:
    """Schemas and names of the user types that a text names (N2), and of some other types."""
    for part in parts(kept.tree):
        found = part if is_a(part, ast.TypeName) else regtype(part)
        if found is not None and len(found.names) == 2:
            schema, name = strings(found.names)
            yield schema, name


def quoting(catalog: Catalog, label: str) -> list[str]:
    """Descriptions of the stored texts that contain this string constant, whatever its type."""
    return [
        kept.what
        for kept in kept_texts(catalog)
        if any(is_a(part, ast.A_Const) and _string(part) == label for part in parts(kept.tree))
    ]


def _string(constant: Node) -> str | None:
    return constant.val.sval if is_a(constant.val, ast.String) else None
