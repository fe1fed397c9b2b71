"""DDL: changes of the catalog, buffered in the transaction."""

from dataclasses import replace
from typing import TypeAlias

from coordinator.core.messages import (
    CatalogChange,
    PutReadHold,
    PutSchema,
    PutTable,
    PutTimeline,
    RemoveReadHold,
    RemoveSchema,
    RemoveTable,
    RemoveTimeline,
)
from coordinator.execute_alter import redefine, validate
from coordinator.execution import Done, Execution
from coordinator.pgwire.messages import Severity
from coordinator.time_value import time_value
from sql.catalog import ReadHold, Table
from sql.errors import SqlError
from sql.statements import (
    AdvanceTimeline,
    AlterTable,
    CreateReadHold,
    CreateSchema,
    CreateTable,
    CreateTimeline,
    DropReadHold,
    DropSchema,
    DropTable,
    DropTimeline,
)

Definition: TypeAlias = (
    CreateTable | DropTable | CreateSchema | DropSchema | AlterTable | CreateTimeline
    | DropTimeline | CreateReadHold | DropReadHold
)  # fmt: skip


async def execute_definition(execution: Execution, statement: Definition, tag: str) -> Done:
    """Buffer the DDL; it is part of the commit like any write."""
    execution.transaction.check_writable(tag)
    changes = await _changes(execution, statement)
    if changes:
        execution.transaction.changed_catalog = True
        execution.transaction.wrote = True
        execution.services.coordination.change_catalog(execution.transaction.id, changes)
    return Done(tag)


def execute_advance(execution: Execution, statement: AdvanceTimeline, tag: str) -> Done:
    """ADVANCE TIMELINE: the commit brings it there, with what the transaction writes to it."""
    execution.transaction.check_writable(tag)
    ts = time_value(execution, statement.to, "TO")
    execution.transaction.wrote = True
    execution.services.coordination.advance(execution.transaction.id, statement.name, ts)
    return Done(tag)


async def _changes(execution: Execution, statement: Definition) -> list[CatalogChange]:
    match statement:
        case CreateTable(exists=True):
            _skipping(execution, "42P07", f'relation "{statement.name}" already exists')
            return []
        case CreateTable():
            return [PutTable(await _created_table(execution, statement))]
        case DropTable():
            for name in statement.missing:
                _skipping(execution, "00000", f'table "{name}" does not exist')
            return [RemoveTable(table) for table in statement.tables]
        case CreateSchema(exists=True):
            _skipping(execution, "42P06", f'schema "{statement.name}" already exists')
            return []
        case CreateSchema():
            return [PutSchema(statement.name)]
        case DropSchema():
            return _dropped_schemas(execution, statement)
        case AlterTable():
            return await _altered(execution, statement)
        case CreateTimeline() | DropTimeline():
            return await _timelines(execution, statement)
        case CreateReadHold() | DropReadHold():
            return await _read_holds(execution, statement)


async def _created_table(execution: Execution, statement: CreateTable) -> Table:
    oid, shard = await execution.services.coordination.new_table_id()
    return Table(
        oid,
        statement.schema,
        statement.name,
        shard,
        statement.columns,
        timeline=statement.timeline,
        history_us=statement.history_us,
        keys=statement.keys,
        checks=statement.checks,
    )


async def _altered(execution: Execution, statement: AlterTable) -> list[CatalogChange]:
    if statement.missing is not None:
        _skipping(execution, "00000", f'relation "{statement.missing}" does not exist')
    for sqlstate, text in statement.notices:
        execution.notice(SqlError(sqlstate, text), Severity.NOTICE)
    if statement.rewrite is not None or statement.validations:
        (change,) = statement.tables
        await redefine(execution, change, statement.rewrite)
        await validate(execution, change.after, statement.validations)
        return []
    changes: list[CatalogChange] = []
    if statement.new_schema is not None:
        changes.append(PutSchema(statement.new_schema))
    changes += [PutTable(redefined.after) for redefined in statement.tables]
    if statement.old_schema is not None:
        changes.append(RemoveSchema(statement.old_schema))
    return changes


async def _timelines(
    execution: Execution, statement: CreateTimeline | DropTimeline
) -> list[CatalogChange]:
    match statement:
        case CreateTimeline(exists=True):
            name = statement.timeline.name
            _skipping(execution, "42710", f'timeline "{name}" already exists')
            return []
        case CreateTimeline():
            _, part = await execution.services.coordination.new_table_id()
            return [PutTimeline(replace(statement.timeline, part=part))]
        case DropTimeline():
            for name in statement.missing:
                _skipping(execution, "00000", f'timeline "{name}" does not exist')
            return [RemoveTimeline(name) for name in statement.names]


async def _read_holds(
    execution: Execution, statement: CreateReadHold | DropReadHold
) -> list[CatalogChange]:
    match statement:
        case CreateReadHold(name=name, timeline=timeline, at=at):
            ts = None if at is None else time_value(execution, at, "AT")
            txn = execution.transaction.id
            ts = await execution.services.coordination.hold(txn, timeline, ts)
            return [PutReadHold(ReadHold(name, timeline, ts))]
        case DropReadHold():
            for name in statement.missing:
                _skipping(execution, "00000", f'read hold "{name}" does not exist')
            return [RemoveReadHold(name) for name in statement.names]


def _dropped_schemas(execution: Execution, statement: DropSchema) -> list[CatalogChange]:
    for name in statement.missing:
        _skipping(execution, "00000", f'schema "{name}" does not exist')
    if len(statement.tables) == 1:
        _cascade(execution, f"drop cascades to table {_listed(statement.tables[0])}", None)
    elif statement.tables:
        detail = "\n".join(f"drop cascades to table {_listed(t)}" for t in statement.tables)
        _cascade(execution, f"drop cascades to {len(statement.tables)} other objects", detail)
    tables: list[CatalogChange] = [RemoveTable(table) for table in statement.tables]
    return tables + [RemoveSchema(name) for name in statement.names]


def _listed(table: Table) -> str:
    return f"{table.schema}.{table.name}"


def _skipping(execution: Execution, sqlstate: str, message: str) -> None:
    execution.notice(SqlError(sqlstate, f"{message}, skipping"), Severity.NOTICE)


def _cascade(execution: Execution, message: str, detail: str | None) -> None:
    execution.notice(SqlError("00000", message, detail=detail), Severity.NOTICE)
