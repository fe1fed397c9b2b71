"""Which views a change leaves behind, and who has read stored rows that were (V2, V7).

Functions over catalogs and transactions; the invariants are those of the package.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from coordinator.core.messages.catalog_changes import (
    AttachView,
    CatalogChange,
    LeaveView,
    PutObject,
    PutTable,
    RemoveObject,
    RemoveTable,
)
from sql.catalog.catalog import Catalog, NamedTables
from sql.catalog.objects import (
    DomainDefinition,
    EnumDefinition,
    ExactView,
    ExtensionDefinition,
)


def apply_view_change(
    exact: dict[int, ExactView], tables: NamedTables, change: AttachView | LeaveView
) -> str | None:
    """Apply one, or say why it does not fit (K2 of `core/catalog.py`)."""
    match change:
        case AttachView(oid=oid, view=view):
            if not _may_be_exact(tables, oid):
                return "a materialized view was changed by a concurrent transaction"
            exact[oid] = view
        case LeaveView(oid=oid):
            exact.pop(oid, None)
    return None


def forget_exactness(
    exact: dict[int, ExactView], tables: NamedTables, change: CatalogChange
) -> None:
    """After a change: a view that is gone, empty or not `on commit` any more is not exact."""
    if exact and isinstance(change, PutTable | RemoveTable):
        oid = change.table.oid
        if oid in exact and not _may_be_exact(tables, oid):
            del exact[oid]


def _may_be_exact(tables: NamedTables, oid: int) -> bool:
    table = tables.by_oid.get(oid)
    query = None if table is None else table.query
    return query is not None and query.on_commit and query.is_populated


def views_left_behind(
    catalog: Catalog, written: Collection[int], changes: Iterable[CatalogChange] = ()
) -> Sequence[int]:
    """The exact views that rest on tables written to or on definitions changed (V2); their oids."""
    if not catalog.exact_views:
        return ()
    changed, any_type = changed_definitions(changes)
    return [
        oid
        for oid, view in catalog.exact_views.items()
        if any_type
        or not view.inputs.isdisjoint(written)
        or not view.definitions.isdisjoint(changed)
    ]


def changed_definitions(changes: Iterable[CatalogChange]) -> tuple[set[int], bool]:
    """The relations that these define otherwise; whether a type or an extension is, on which
    everything may rest.
    """
    oids: set[int] = set()
    any_type = False
    for change in changes:
        match change:
            case PutTable(table=thing) | RemoveTable(table=thing):
                oids.add(thing.oid)
            case PutObject(object=thing) | RemoveObject(object=thing):
                oids.add(thing.oid)
                whole = EnumDefinition | DomainDefinition | ExtensionDefinition
                any_type = any_type or isinstance(thing, whole)
            case _:
                pass
    return oids, any_type


def has_same_meaning(oid: int, view: ExactView, since: Iterable[CatalogChange]) -> bool:
    """Whether the query of a view means what it did before these changes."""
    changed, any_type = changed_definitions(since)
    return not any_type and oid not in changed and view.definitions.isdisjoint(changed)


def without_exactness(catalog: Catalog, left: Collection[int]) -> Catalog:
    """The catalog in which these views are behind."""
    exact = {oid: view for oid, view in catalog.exact_views.items() if oid not in left}
    return replace(catalog, version=catalog.version + 1, exact_views=exact)


def fallen_behind(bound: Catalog, read: Iterable[int], now: Catalog) -> int | None:
    """V7: the first of the views whose rows were read under `bound` that has other ones `now`."""
    exact = bound.exact_views
    if not exact:
        return None
    return next(
        (oid for oid in read if oid in exact and exact[oid] != now.exact_views.get(oid)), None
    )
