"""CREATE and DROP of tables and schemas: changes of the catalog, buffered in the transaction."""

from coordinator.core.messages import (
    CatalogChange,
    PutSchema,
    PutTable,
    RemoveSchema,
    RemoveTable,
)
from coordinator.execution import Done, Execution
from coordinator.pgwire.messages import Severity
from sql.catalog import Table
from sql.errors import SqlError
from sql.statements import CreateSchema, CreateTable, DropSchema, DropTable


async def execute_definition(
    execution: Execution,
    statement: CreateTable | DropTable | CreateSchema | DropSchema,
    tag: str,
) -> Done:
    """Buffer the DDL; it is part of the commit like any write."""
    execution.transaction.check_writable(tag)
    changes = await _changes(execution, statement)
    if changes:
        execution.transaction.changed_catalog = True
        execution.transaction.wrote = True
        execution.services.coordination.change_catalog(execution.transaction.id, changes)
    return Done(tag)


async def _changes(
    execution: Execution, statement: CreateTable | DropTable | CreateSchema | DropSchema
) -> list[CatalogChange]:
    match statement:
        case CreateTable(exists=True):
            _skipping(execution, "42P07", f'relation "{statement.name}" already exists')
            return []
        case CreateTable():
            oid, shard = await execution.services.coordination.new_table_id()
            return [
                PutTable(Table(oid, statement.schema, statement.name, shard, statement.columns))
            ]
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
