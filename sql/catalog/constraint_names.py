"""Names of a table's constraints, including the generated ones of NOT NULL.

The binder, the system catalogs and COMMENT use them. A NOT NULL constraint has no definition of its
own: its name is generated from those of table and column, and stored once one of these changes.
"""

from collections.abc import Collection, Container, Iterator, Sequence
from dataclasses import replace
from typing import Final

from sql.catalog.catalog import Catalog, Column, Table

IDENTIFIER_BYTES_MAX: Final = 63
"""PostgreSQL's NAMEDATALEN, without the zero behind it."""


def constraint_names(table: Table) -> Iterator[str]:
    """The names of a table's constraints."""
    yield from _rule_names(table)
    yield from (not_null_name(table, column) for column in table.columns if column.not_null)


def _rule_names(table: Table) -> Iterator[str]:
    yield from (key.name for key in table.keys)
    yield from (check.name for check in table.checks)
    yield from (key.name for key in table.foreign_keys)


def not_null_name(table: Table, column: Column) -> str:
    """The name of a column's NOT NULL, which survives renaming of table or column."""
    return column.not_null_name or make_object_name(table.name, column.name, "not_null")


class ConstraintsBeside:
    """The names of constraints of the other tables in a table's schema, which no made-up name may
    be, although one that is given may. It looks for one name at a time: there may be many tables.
    """

    def __init__(self, catalog: Catalog, table: Table) -> None:
        self._tables, self._table = catalog.named_tables, table

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        own, tables = self._table, self._tables
        named = own.schema, name
        if any(other.oid != own.oid for other, _ in tables.keys_named.get(named, ())):
            return True
        stored = tables.by_oid.get(own.oid)
        mine = 0 if stored is None else [*stored.rule_names()].count(name)
        return tables.rules_named.get(named, 0) > mine or any(
            name == not_null_name(other, column)
            for other in self._alike(name)
            for column in other.columns
            if column.not_null
        )

    def _alike(self, name: str) -> Iterator[Table]:
        """Tables whose NOT NULLs may be called so by themselves: the name begins with theirs."""
        for place, character in enumerate(name):
            if character == "_":
                other = self._tables.get((self._table.schema, name[:place]))
                if other is not None and other.oid != self._table.oid:
                    yield other


def settled_constraint_names(table: Table, named: Collection[str]) -> set[str]:
    """The names of a table's constraints but of the NOT NULLs that have none yet: those of columns
    that are not among `named`.
    """
    unnamed = {
        not_null_name(table, column)
        for column in table.columns
        if column.not_null and not column.not_null_name and column.name not in named
    }
    given = {column.not_null_name for column in table.columns if column.not_null} - {""}
    return ({*constraint_names(table)} - unnamed) | {*_rule_names(table)} | given


def with_free_not_null_names(table: Table, named: Collection[str], beside: Container[str]) -> Table:
    """The table; a NOT NULL has a stored name where the one that PostgreSQL would make up first is
    taken. `named`: the columns whose NOT NULL has its name already.
    """
    taken = settled_constraint_names(table, named)
    columns: list[Column] = []
    for column in table.columns:
        if column.not_null and not column.not_null_name and column.name not in named:
            number, first = 0, not_null_name(table, column)
            name = first
            while name in taken or name in beside:
                number += 1
                name = make_object_name(table.name, column.name, f"not_null{number}")
            taken.add(name)
            columns.append(replace(column, not_null_name="" if name == first else name))
        else:
            columns.append(column)
    return replace(table, columns=tuple(columns))


def not_null_columns(table: Table) -> frozenset[str]:
    """The columns that are NOT NULL."""
    return frozenset(column.name for column in table.columns if column.not_null)


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
