"""Find duplicate relation names among tables, the indexes of their keys and other relations."""

from collections import Counter
from collections.abc import Iterable, Iterator

from coordinator.core.messages.catalog_changes import CatalogChange, PutObject, PutTable
from sql.catalog.catalog import Catalog
from sql.catalog.objects import RELATION_SPACE


def duplicate_relation_names(catalog: Catalog) -> frozenset[tuple[str, str]]:
    """Schemas and names that more than one relation has."""
    tables = catalog.tables
    found = Counter(tables.keys())
    found.update((table.schema, key.name) for table in tables.values() for key in table.keys)
    found.update(
        (schema, name) for space, schema, name in catalog.objects if space == RELATION_SPACE
    )
    if len(found) == found.total():
        return frozenset()
    return frozenset(name for name, count in found.items() if count > 1)


def put_relation_names(changes: Iterable[CatalogChange]) -> Iterator[tuple[str, str]]:
    """The names of relations that these changes may bring, keys among them."""
    for change in changes:
        match change:
            case PutTable(table=table):
                yield table.schema, table.name
                yield from ((table.schema, key.name) for key in table.keys)
            case PutObject(object=thing) if thing.space == RELATION_SPACE:
                yield thing.schema, thing.name
            case _:
                pass
