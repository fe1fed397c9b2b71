"""Names of a table's constraints, including the generated ones of NOT NULL.

The binder, the system catalogs and COMMENT use them. A NOT NULL constraint has no definition of its
own: its name is generated from those of table and column, and stored once one of these changes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from sql.catalog.catalog import Column, Table

IDENTIFIER_BYTES_MAX: Final = 63
"""PostgreSQL's NAMEDATALEN, without the zero behind it."""


def constraint_names(table: Table) -> Iterator[str]:
    """The names of a table's constraints."""
    yield from (key.name for key in table.keys)
    yield from (check.name for check in table.checks)
    yield from (key.name for key in table.foreign_keys)
    yield from (not_null_name(table, column) for column in table.columns if column.not_null)


def not_null_name(table: Table, column: Column) -> str:
    """The name of a column's NOT NULL, which survives renaming of table or column."""
    return column.not_null_name or make_object_name(table.name, column.name, "not_null")


def with_stored_not_null_names(table: Table) -> Table:
    """The table with the names of its NOT NULL constraints stored, before it is renamed."""
    named = tuple(
        replace(column, not_null_name=not_null_name(table, column)) if column.not_null else column
        for column in table.columns
    )
    return replace(table, columns=named)


def make_object_name(first: str, second: str, label: str) -> str:
    """`first_second_label`; the longer of the two names is cut until it fits (makeObjectName)."""
    parts = [part for part in (first, second) if part]
    room = IDENTIFIER_BYTES_MAX - len(label.encode()) - len(parts)
    sizes = [len(part.encode()) for part in parts]
    while sum(sizes) > room:
        # PostgreSQL's makeObjectName: the second name gives way when both are equally long.
        longer = 0 if len(sizes) == 1 or sizes[0] > sizes[1] else 1
        sizes[longer] -= 1
    return "_".join(
        [*(truncate_identifier(part, size) for part, size in zip(parts, sizes, strict=True)), label]
    )


def index_column_names(elements: Sequence[str]) -> list[str]:
    """The names of an index's columns, from those of its elements (ChooseIndexColumnNames)."""
    names = list[str]()
    for element in elements:
        names.append(_other_than(names, element))
    return names


def _other_than(names: Sequence[str], name: str) -> str:
    """As PostgreSQL's ChooseIndexColumnNames: the second of a name gets a 1."""
    number, other = 0, name
    while other in names:
        number += 1
        other = f"{truncate_identifier(name, IDENTIFIER_BYTES_MAX - len(str(number)))}{number}"
    return other


def truncate_identifier(text: str, size: int) -> str:
    """The beginning of a name, of at most so many bytes."""
    return text.encode()[:size].decode(errors="ignore")
