"""Walk the foreign keys of a catalog: which tables refer to which, directly and in chains."""

from collections.abc import Collection, Sequence

from sql.catalog.catalog import Catalog, ForeignKey, Key, Table


def referencing_keys(catalog: Catalog, oid: int) -> list[tuple[Table, ForeignKey]]:
    """The foreign keys that refer to a table."""
    return [
        (table, key)
        for table in sorted(catalog.tables.values(), key=lambda table: table.oid)
        for key in table.foreign_keys
        if key.table == oid
    ]


def foreign_key_closure(catalog: Catalog, tables: Sequence[Table]) -> tuple[Table, ...]:
    """These tables, and all that their foreign keys check or change when these are written."""
    found = {table.oid: table for table in tables}
    waiting = [*tables]
    while waiting:
        for child, key in referencing_keys(catalog, waiting.pop().oid):
            acts = not {key.on_delete, key.on_update} <= {"no action", "restrict"}
            if child.oid not in found and acts:
                waiting.append(child)
            found.setdefault(child.oid, child)
    parents = {key.table for table in found.values() for key in table.foreign_keys}
    found |= {table.oid: table for table in catalog.tables.values() if table.oid in parents}
    return tuple(found.values())


def dependent_foreign_keys(
    catalog: Catalog, dropped: Collection[int]
) -> list[tuple[Table, ForeignKey, Table]]:
    """Foreign keys of other tables that refer to these: child, key, parent."""
    by_oid = {table.oid: table for table in catalog.tables.values()}
    return [
        (child, key, by_oid[oid])
        for oid in dropped
        for child, key in referencing_keys(catalog, oid)
        if child.oid not in dropped
    ]


def is_reference_to_key(parent: Table, foreign: ForeignKey, key: Key) -> bool:
    """Whether a foreign key depends on this key of the referenced table."""
    numbers = sorted(parent.number_of(ordinal) for ordinal in key.columns)
    return not key.deferrable and numbers == sorted(foreign.references)
