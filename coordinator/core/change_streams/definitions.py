"""Find the commit that changes what a subscription tells: another definition of a table or view.

A table is known by its oid. What counts is what a row looks like: names, types and places of its
columns, and its shard. Another name of the table, a default, a key or a comment changes no row. Of
a view, its query and the names of its columns count. A materialized view that does not follow its
inputs any more would be waited for in vain.
"""

from collections.abc import Iterable

from coordinator.core.catalog import VersionedCatalog
from coordinator.core.change_streams.steps import StreamEnd, SubscriptionRequest, is_exact_view
from coordinator.core.messages.catalog_changes import (
    CatalogChange,
    PutObject,
    PutTable,
    RemoveObject,
    RemoveTable,
)
from sql.catalog.catalog import Catalog, Table
from sql.catalog.objects import TYPE_SPACE, ViewDefinition
from storage.types import Timestamp


def may_concern(changes: Iterable[CatalogChange], wanted: SubscriptionRequest) -> bool:
    """Whether DDL may have changed its rows; quickly, since most DDL has not."""
    for change in changes:
        match change:
            case PutTable(table=other) | RemoveTable(table=other):
                if any(other.oid == table.oid for table in wanted.tables):
                    return True
            case PutObject(object=thing) | RemoveObject(object=thing):
                if thing.space == TYPE_SPACE:
                    return True  # columns of a type follow it without a record of their own
                if any(thing.oid == view.oid for view in wanted.views):
                    return True
            case _:
                pass
    return False


def definition_end(
    wanted: SubscriptionRequest, catalog: Catalog, ts: Timestamp
) -> StreamEnd | None:
    """How a catalog, which is true from `ts` on, ends a subscription; None: it goes on."""
    ends = [
        *(_view_end(view, catalog, ts) for view in wanted.views),
        *(_table_end(table, catalog, ts) for table in wanted.tables),
    ]
    return next((end for end in ends if end is not None), None)


def _table_end(table: Table, catalog: Catalog, ts: Timestamp) -> StreamEnd | None:
    kind = "table" if table.query is None else "materialized view"
    found = catalog.by_oid(table.oid)
    if found is None:
        return _dropped(kind, table.name, ts)
    followed = is_exact_view(found) == is_exact_view(table)
    if found.shard == table.shard and followed and _row_shape(found) == _row_shape(table):
        return None
    return _changed(kind, table.name, ts)


def _view_end(view: ViewDefinition, catalog: Catalog, ts: Timestamp) -> StreamEnd | None:
    found = next((other for other in catalog.views() if other.oid == view.oid), None)
    if found is None:
        return _dropped("view", view.name, ts)
    same = (found.text, found.columns) == (view.text, view.columns)
    return None if same else _changed("view", view.name, ts)


def _dropped(kind: str, name: str, ts: Timestamp) -> StreamEnd:
    return StreamEnd("42P01", f'{kind} "{name}" was dropped at {ts}')


def _changed(kind: str, name: str, ts: Timestamp) -> StreamEnd:
    message = f'the definition of {kind} "{name}" has changed at {ts}'
    return StreamEnd("0A000", message, f"To go on with its rows as they are now, begin AS OF {ts}.")


def first_definition_end(
    wanted: SubscriptionRequest, catalogs: VersionedCatalog, after: Timestamp
) -> tuple[Timestamp, StreamEnd] | None:
    """The first catalog after a timestamp that ends a subscription."""
    for ts, changes in catalogs.changes_after(after):
        if may_concern(changes, wanted):
            end = definition_end(wanted, catalogs.at(ts), ts)
            if end is not None:
                return ts, end
    return None


def _row_shape(table: Table) -> tuple[object, ...]:
    return tuple([(c.name, c.type, c.stored, c.number) for c in table.columns])
