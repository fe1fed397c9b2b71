"""Domains that CASCADE drops together with a relation that their default names, with their columns.

PostgreSQL does the same: a domain depends on the objects that its default depends on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sql.binder.stored.relation_users import StoredUse
from sql.binder.stored.type_users import columns_of_type
from sql.binder.stored.views import views_over, views_reading_column
from sql.catalog.catalog import Catalog, Column, Table
from sql.catalog.objects import DomainDefinition
from sql.types.sql_type import user_type_name


@dataclass(frozen=True, slots=True)
class DroppedDomains:
    """The dropped domains. `told`, by oid: the objects dropped with each, and what they depend
    on.
    """

    types: tuple[DomainDefinition, ...]
    told: Mapping[int, Sequence[tuple[str, str]]]


def domains_dropped_with(catalog: Catalog, used: Sequence[StoredUse]) -> DroppedDomains:
    """The domains whose default is one of these uses."""
    found: dict[int, DomainDefinition] = {}
    for use in used:
        of = use.kept.of
        if isinstance(of, DomainDefinition) and use.kept.text == of.default:
            found[of.oid] = of
    told = {oid: _told(catalog, domain) for oid, domain in found.items()}
    return DroppedDomains(tuple(found.values()), told)


def _told(catalog: Catalog, domain: DomainDefinition) -> list[tuple[str, str]]:
    told: list[tuple[str, str]] = []
    for table, column in columns_of_type(catalog, domain):
        where = f"column {column.name} of table {table.shown}"
        told.append((where, f"type {user_type_name(domain.schema, domain.name)}"))
        told += _told_views(catalog, table, column, where)
    return told


def _told_views(
    catalog: Catalog, table: Table, column: Column, where: str
) -> list[tuple[str, str]]:
    number = table.number_of(table.columns.index(column))
    reading = sorted(views_reading_column(catalog, table.oid, number), key=lambda view: view.oid)
    told: list[tuple[str, str]] = []
    for view in reading:
        told.append((f"{view.kind} {view.shown}", where))
        over = views_over(catalog, [view.oid])
        told += [(f"{other.kind} {other.shown}", f"{view.kind} {view.shown}") for other in over]
    return told
