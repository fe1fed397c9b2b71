"""What is kept as text, and what it names: defaults, checks, indexes, views.

INVARIANTS
  N2  a kept text names types of users with their schemas (X3 of `sql/column_expressions.py`), so
      what it depends on can be read off it.
"""

from collections.abc import Iterator

from pglast import ast

from sql.catalog import Catalog, Table
from sql.catalog_objects import DomainDefinition, IndexDefinition, UserType, ViewDefinition
from sql.column_expressions import expression_of, parts
from sql.syntax import Node, is_a, strings


def kept_texts(catalog: Catalog) -> Iterator[tuple[str, Node]]:
    """Everything that is kept as text: what it belongs to, as messages say it, and its tree."""
    for table in catalog.tables.values():
        yield from _texts_of(table)
    for thing in catalog.objects.values():
        match thing:
            case ViewDefinition(text=text):
                yield f"view {thing.name}", expression_of(f"({text})")
            case IndexDefinition():
                for text in (*thing.elements, *([thing.predicate] if thing.predicate else ())):
                    yield f"index {thing.name}", expression_of(text)
            case DomainDefinition():
                for text in (*(check for _, check in thing.checks), thing.default):
                    if text:
                        yield f"domain {thing.name}", expression_of(text)
            case _:
                pass


def _texts_of(table: Table) -> Iterator[tuple[str, Node]]:
    for column in table.columns:
        where = f"column {column.name} of table {table.name}"
        if column.expression is not None:
            yield f"default value for {where}", expression_of(column.expression)
        if column.generated is not None:
            yield where, expression_of(column.generated)
    for check in table.checks:
        where = f"constraint {check.name} on table {table.name}"
        yield where, expression_of(check.expression)


def naming(catalog: Catalog, found: UserType) -> list[str]:
    """What has a kept text that names this type (N2)."""
    return [
        where
        for where, tree in kept_texts(catalog)
        if any(
            is_a(part, ast.TypeName) and strings(part.names) == (found.schema, found.name)
            for part in parts(tree)
        )
    ]


def quoting(catalog: Catalog, label: str) -> list[str]:
    """What has a kept text with this string in it, of whatever type it is there."""
    return [
        where
        for where, tree in kept_texts(catalog)
        if any(is_a(part, ast.A_Const) and _string(part) == label for part in parts(tree))
    ]


def _string(constant: Node) -> str | None:
    return constant.val.sval if is_a(constant.val, ast.String) else None
