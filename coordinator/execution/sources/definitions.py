"""Execute CREATE SOURCE and CREATE TABLE .. FROM SOURCE, and keep others off what sources feed."""

import secrets
from dataclasses import replace
from typing import Final

from coordinator.core.messages.catalog_changes import CatalogChange, PutObject, PutTable
from coordinator.execution.context import Execution
from coordinator.execution.sources.upstream_tables import check_upstream, upstream_tables_made
from coordinator.pgwire.messages import Severity
from sql.binder.ddl.sources import refuse_altered_feeds, refuse_dropped_errors, refuse_torn_feeds
from sql.catalog.catalog import Table
from sql.catalog.objects import Feed, SourceDefinition
from sql.errors import SqlError
from sql.statements.bound import AlterTable, Definition, DropSchema, DropTable
from sql.statements.ddl import ChangeObjects
from sql.statements.sources import (
    CreateFedTables,
    CreateSource,
    CreateUpstreamTables,
    FeedingStatement,
    SkipRecord,
)

_FEED_ID_BYTES: Final = 8
SKIPPED_MAX: Final = 100
"""Places that a source keeps: those of its newest records, which alone may come again."""


async def source_changes(execution: Execution, statement: FeedingStatement) -> list[CatalogChange]:
    """The catalog changes; objects get their oids, tables their shards."""
    allocate = execution.services.coordination.new_table_id
    made: list[CatalogChange] = []
    tables: tuple[Table, ...]
    match statement:
        case SkipRecord(source=source):
            return [PutObject(_skipping_record(execution, source))]
        case CreateSource(exists=True, source=source):
            _told_to_exist(execution, "42710", f'source "{source.name}"')
            return []
        case CreateFedTables(exists=str(name)):
            _told_to_exist(execution, "42P07", f'relation "{name}"')
            return []
        case CreateSource(source=source, errors=errors, connection=connection):
            if connection is not None:
                await check_upstream(execution, source, connection)
            oid, _ = await allocate()
            name = secrets.token_hex(_FEED_ID_BYTES)
            made.append(PutObject(replace(source, oid=oid, feed_id=name)))
            tables = (replace(errors, feed=Feed(oid, "")),)
        case CreateUpstreamTables():
            tables = await upstream_tables_made(execution, statement)
        case CreateFedTables():
            tables = statement.tables
    for table in tables:
        oid, shard = await allocate()
        execution.transaction.fresh.add(oid)
        made.append(PutTable(replace(table, oid=oid, shard=shard)))
    return made


def _told_to_exist(execution: Execution, sqlstate: str, what: str) -> None:
    told = SqlError(sqlstate, f"{what} already exists, skipping")
    execution.notice(told, Severity.NOTICE)


def _skipping_record(execution: Execution, source: SourceDefinition) -> SourceDefinition:
    """The source without the record that it is broken at. Raises 55000 if it is at none."""
    for line in execution.services.coordination.observe():
        for known in line.sources:
            if known.definition.oid == source.oid and known.place:
                skip = (*source.skip, known.place)[-SKIPPED_MAX:]
                return replace(source, skip=skip, paused=False, version=source.version + 1)
    hint = "Only a source that is broken at a record with a place can leave it out."
    raise SqlError("55000", f'source "{source.name}" is at no record to skip', hint=hint)


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
