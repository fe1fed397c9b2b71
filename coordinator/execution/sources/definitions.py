"""Execute CREATE SOURCE and CREATE TABLE .. FROM SOURCE, and keep others off what sources feed."""

import json
import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from coordinator.core.messages.catalog_changes import CatalogChange, PutObject, PutTable
from coordinator.execution.context import Execution
from coordinator.execution.sources.upstream_tables import check_upstream, upstream_tables_made
from sql.binder.ddl.sources import refuse_altered_feeds, refuse_dropped_errors, refuse_torn_feeds
from sql.catalog.catalog import Table
from sql.catalog.objects import CatalogObject, Feed, SourceDefinition
from sql.catalog.sources import BROKEN_RECORD
from sql.errors import SqlError
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


def with_skipped_record(
    execution: Execution, things: Sequence[CatalogObject]
) -> Sequence[CatalogObject]:
    """With the place of the record at which a source stands, for SKIP RECORD. Raises 55000."""
    return [
        replace(one, skip=tuple([_place(execution, one, place) for place in one.skip]))
        if isinstance(one, SourceDefinition) and BROKEN_RECORD in one.skip
        else one
        for one in things
    ]


def _place(execution: Execution, source: SourceDefinition, place: str) -> str:
    if place != BROKEN_RECORD:
        return place
    for line in execution.services.coordination.observe():
        for known in line.sources:
            if known.definition.oid == source.oid and known.place and "row" in known.place:
                return json.dumps(dict(known.place))
    message = f'source "{source.name}" does not stand at a record that can be skipped'
    raise SqlError("55000", message)
