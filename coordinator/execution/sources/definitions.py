"""Execute CREATE SOURCE and CREATE TABLE .. FROM SOURCE, and keep others off what sources feed."""

import secrets
from dataclasses import replace
from typing import Final

from coordinator.core.messages.catalog_changes import CatalogChange, PutObject, PutTable
from coordinator.execution.context import Execution
from coordinator.execution.sources.upstream_tables import check_upstream, upstream_tables_made
from sql.binder.ddl.sources import refuse_altered_feeds, refuse_dropped_errors, refuse_torn_feeds
from sql.catalog.catalog import Table
from sql.catalog.objects import Feed
from sql.statements.bound import AlterTable, Definition, DropSchema, DropTable
from sql.statements.ddl import ChangeObjects
from sql.statements.sources import CreateFedTables, CreateSource, CreateUpstreamTables

_FEED_ID_BYTES: Final = 8


async def created_by_source(
    execution: Execution, statement: CreateSource | CreateFedTables | CreateUpstreamTables
) -> list[CatalogChange]:
    """The catalog changes; objects get their oids, tables their shards."""
    allocate = execution.services.coordination.new_table_id
    if isinstance(statement, CreateSource):
        if statement.connection is not None:
            await check_upstream(execution, statement.source, statement.connection)
        oid, _ = await allocate()
        name = secrets.token_hex(_FEED_ID_BYTES)
        made: list[CatalogChange] = [PutObject(replace(statement.source, oid=oid, feed_id=name))]
        tables: tuple[Table, ...] = (replace(statement.errors, feed=Feed(oid, "")),)
    elif isinstance(statement, CreateUpstreamTables):
        made, tables = [], await upstream_tables_made(execution, statement)
    else:
        made, tables = [], statement.tables
    for table in tables:
        oid, shard = await allocate()
        execution.transaction.fresh.add(oid)
        made.append(PutTable(replace(table, oid=oid, shard=shard)))
    return made


def check_feeds(execution: Execution, statement: Definition) -> None:
    """Refuse what would take a table from its source by another way than DETACH."""
    match statement:
        case AlterTable():
            refuse_altered_feeds(statement.tables, has_index=statement.unique_index is not None)
        case ChangeObjects():
            refuse_altered_feeds([item.change for item in statement.rewritings])
            refuse_altered_feeds(statement.tables)
        case DropTable():
            refuse_dropped_errors(execution.catalog(), statement.tables)
        case DropSchema():
            refuse_dropped_errors(execution.catalog(), statement.tables, statement.objects)
            refuse_torn_feeds(execution.catalog(), statement.tables, statement.objects)
        case _:
            pass
