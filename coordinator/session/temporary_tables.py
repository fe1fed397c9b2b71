"""Drop temporary relations: at COMMIT, when the session ends, and after a crash.

    ON COMMIT DELETE ROWS  new rows are not committed (`coordinator/core/transactions.py`
                           final_writes)
    ON COMMIT DROP         dropped in the transaction that created the table
    end of the session     a transaction of its own drops its schema with all that is in it
    crash, kill -9         the next start does so, before anybody is served

INVARIANTS
  E1  when a server accepts its first connection no temporary relation exists.
  E2  references that permanent relations store of a dropped one are removed, too: the defaults that
      name it, by nextval() above all. Nothing else that stays can name it
      (`refuse_temporary_dependency`).
  E3  a type that a permanent object uses stays, and its schema with it. The binder allows no new
      ones (`sql/binder/stored/type_users.py`), but old directories may have one.
"""

import asyncio
import logging
from collections.abc import Collection
from typing import Final

from coordinator.core.messages.catalog_changes import (
    CatalogChange,
    PutObject,
    PutTable,
    RemoveObject,
    RemoveSchema,
    RemoveTable,
)
from coordinator.core.messages.identities import ConnectionId
from coordinator.driver.coordination import Coordination
from coordinator.driver.server_changes import SERVER, change_catalog_alone
from coordinator.transaction.transaction import SessionTransaction
from sql.binder.stored.relation_users import views_without_defaults, without_defaults
from sql.binder.stored.type_users import tables_with
from sql.binder.stored.views import views_over
from sql.catalog.catalog import Catalog, Table
from sql.catalog.objects import (
    CatalogObject,
    DomainDefinition,
    EnumDefinition,
    IndexDefinition,
    SequenceDefinition,
    StatisticsDefinition,
)
from sql.catalog.temporary import is_temporary_schema
from sql.errors import SqlError

log = logging.getLogger("meridian.temporary")

DROP_TIMEOUT_S: Final = 10
"""How long the end of a session waits for its relations to be dropped; the next start does what was
not to be."""


async def drop_at_session_end(coordination: Coordination, owner: ConnectionId, schema: str) -> None:
    """Drop the temporary relations of a session that ends."""
    if schema not in coordination.newest_catalog.schemas:
        return
    try:
        async with asyncio.timeout(DROP_TIMEOUT_S):
            await _drop(coordination, owner, {schema})
    except (SqlError, TimeoutError) as error:
        log.warning("temporary relations of %s stay until the next start: %s", schema, error)


async def drop_leftover_temporaries(coordination: Coordination) -> None:
    """Drop the temporary relations that an earlier server left (E1). Raises RequestRefused."""
    left = {name for name in coordination.newest_catalog.schemas if is_temporary_schema(name)}
    if left:
        log.info("dropping temporary relations of %s sessions", len(left))
        await _drop(coordination, SERVER, left)


async def _drop(coordination: Coordination, owner: ConnectionId, schemas: Collection[str]) -> None:
    # Somebody may change a table whose default goes, too: then it begins again.
    await change_catalog_alone(coordination, owner, lambda known: schema_drops(known, schemas))


def schema_drops(catalog: Catalog, schemas: Collection[str]) -> list[CatalogChange]:
    """The catalog changes that drop these schemas with everything in them."""
    tables = [table for table in catalog.tables.values() if table.schema in schemas]
    things = [thing for thing in catalog.objects.values() if thing.schema in schemas]
    kept = {thing.oid: thing.schema for thing in things if _is_used(catalog, thing, schemas)}
    things = [thing for thing in things if thing.oid not in kept]
    there = sorted(catalog.schemas.intersection(schemas).difference(kept.values()))
    return [*_removing(catalog, tables, things), *(RemoveSchema(name) for name in there)]


def _is_used(catalog: Catalog, thing: CatalogObject, schemas: Collection[str]) -> bool:
    """Whether what is not temporary has a temporary type (E3)."""
    if not isinstance(thing, EnumDefinition | DomainDefinition):
        return False
    others = [table.schema for table in tables_with(catalog, thing)]
    if isinstance(thing, EnumDefinition):
        name = thing.type.name
        over = (d for d in catalog.domains() if d.type.name.removeprefix("_") == name)
        others += (domain.schema for domain in over)
    return any(schema not in schemas for schema in others)


async def discard_temporary(
    transaction: SessionTransaction, coordination: Coordination, schema: str
) -> None:
    """DISCARD TEMP, in the transaction."""
    catalog = (await transaction.snapshot()).catalog
    changes = schema_drops(catalog, {schema})
    if changes:
        transaction.changed_catalog = transaction.wrote = True
        coordination.change_catalog(transaction.id, changes)


def on_commit_drops(catalog: Catalog, schema: str) -> list[CatalogChange]:
    """The catalog changes of ON COMMIT DROP for a session's tables and their dependents."""
    if schema not in catalog.schemas:
        return []
    tables = [
        table
        for table in catalog.tables.values()
        if table.schema == schema and table.on_commit == "drop"
    ]
    oids = {table.oid for table in tables}
    things = [
        thing
        for thing in catalog.objects.values()
        if (isinstance(thing, SequenceDefinition) and thing.owner in oids)
        or (isinstance(thing, IndexDefinition | StatisticsDefinition) and thing.table in oids)
    ]
    return _removing(catalog, tables, [*things, *views_over(catalog, oids)])


def _removing(
    catalog: Catalog, tables: Collection[Table], things: Collection[CatalogObject]
) -> list[CatalogChange]:
    gone = {table.oid for table in tables}
    leaving = {*gone, *(thing.oid for thing in things)}
    changed = without_defaults(catalog, leaving)
    return [
        *(PutTable(change.after) for change in changed if change.before.oid not in gone),
        *(PutObject(view) for view in views_without_defaults(catalog, leaving)),
        *(RemoveObject(thing) for thing in things),
        *(RemoveTable(table) for table in tables),
    ]
