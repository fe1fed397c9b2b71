"""Find the commit that changes what a subscription tells: another definition of its table, or none.

A table is known by its oid. What counts is what a row looks like: names, types and places of its
columns, and its shard. Another name of the table, a default, a key or a comment changes no row.
"""

from collections.abc import Iterable

from coordinator.core.catalog import VersionedCatalog
from coordinator.core.change_streams.steps import StreamEnd
from coordinator.core.messages import (
    CatalogChange,
    PutObject,
    PutTable,
    RemoveObject,
    RemoveTable,
)
from sql.catalog.catalog import Catalog, Table
from sql.catalog.objects import TYPE_SPACE
from storage.types import Timestamp


def may_concern(changes: Iterable[CatalogChange], table: Table) -> bool:
    """Whether DDL may have changed the table's rows; quickly, since most DDL has not."""
    for change in changes:
        match change:
            case PutTable(table=other) | RemoveTable(table=other):
                if other.oid == table.oid:
                    return True
            case PutObject(object=thing) | RemoveObject(object=thing):
                if thing.space == TYPE_SPACE:
                    return True  # columns of a type follow it without a record of their own
            case _:
                pass
    return False


def definition_end(table: Table, catalog: Catalog, ts: Timestamp) -> StreamEnd | None:
    """How a catalog, which is true from `ts` on, ends a subscription to `table`; None: it goes
    on.
    """
    found = catalog.by_oid(table.oid)
    if found is None:
        return StreamEnd("42P01", f'table "{table.name}" was dropped at {ts}')
    if found.shard == table.shard and _row_shape(found) == _row_shape(table):
        return None
    message = f'the definition of table "{table.name}" has changed at {ts}'
    return StreamEnd("0A000", message, f"To go on with its rows as they are now, begin AS OF {ts}.")


def first_definition_end(
    table: Table, catalogs: VersionedCatalog, after: Timestamp
) -> tuple[Timestamp, StreamEnd] | None:
    """The first catalog after a timestamp that ends a subscription to `table`."""
    for ts, changes in catalogs.changes_after(after):
        if may_concern(changes, table):
            end = definition_end(table, catalogs.at(ts), ts)
            if end is not None:
                return ts, end
    return None


def _row_shape(table: Table) -> tuple[object, ...]:
    return tuple([(c.name, c.type, c.stored, c.number) for c in table.columns])
