"""Who uses a sequence: the columns whose default is its next value, also in other tables."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from sql.catalog import Catalog, Column, Table
from sql.catalog_objects import SequenceDefinition
from sql.definition_statements import Redefinition

Use: TypeAlias = tuple[SequenceDefinition, Table, Column]


def users_of(catalog: Catalog, sequence: SequenceDefinition) -> Sequence[tuple[Table, Column]]:
    """The columns whose default is its next value."""
    return [
        (table, column)
        for table in catalog.tables.values()
        for column in table.columns
        if column.sequence == sequence.oid
    ]


def uses_elsewhere(catalog: Catalog, oids: Collection[int]) -> list[Use]:
    """What other tables use of the sequences that go with these."""
    owned = [sequence for sequence in catalog.sequences() if sequence.owner in oids]
    return [
        (sequence, table, column)
        for sequence in owned
        for table, column in users_of(catalog, sequence)
        if table.oid not in oids
    ]


def told_uses(used: Sequence[Use]) -> Iterator[str]:
    """For the detail of 2BP01."""
    for sequence, table, column in used:
        yield (
            f"default value for column {column.name} of table {table.name} depends on "
            f"sequence {sequence.name}"
        )


def cascaded_uses(used: Sequence[Use]) -> Iterator[str]:
    """For the notice of CASCADE."""
    for _, table, column in used:
        yield f"drop cascades to default value for column {column.name} of table {table.name}"


def without_defaults(
    catalog: Catalog, gone: Collection[int], changed: Sequence[Redefinition] = ()
) -> tuple[Redefinition, ...]:
    """The tables without the defaults that these sequences made; others are `changed` already."""
    found = {change.before.oid: change for change in changed}
    for table in catalog.tables.values():
        if any(column.sequence in gone for column in table.columns if column.sequence):
            known = found.get(table.oid)
            after = replace(table, version=table.version + 1) if known is None else known.after
            columns = tuple(
                replace(column, sequence=0, has_default=False)
                if column.sequence in gone
                else column
                for column in after.columns
            )
            found[table.oid] = Redefinition(table, replace(after, columns=columns))
    return tuple(found.values())
