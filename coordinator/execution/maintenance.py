"""OPTIMIZE, VACUUM, ANALYZE: file maintenance outside of transactions, which changes no answer."""

from dataclasses import replace

from coordinator.execution.context import Done, Execution
from coordinator.pgwire.messages import Severity
from sql.errors import SqlError
from sql.statements.maintenance import MaintenanceKind, MaintenanceStatement


async def execute_maintenance(
    execution: Execution, statement: MaintenanceStatement, *, alone: bool
) -> Done:
    """Do it and wait for the end; completed work is never undone."""
    coordination = execution.services.coordination
    tag = statement.kind.value
    if statement.kind is not MaintenanceKind.ANALYZE:
        _check_alone(execution, statement.command or tag, alone=alone)
    if statement.problem is not None:
        raise replace(statement.problem)
    match statement.kind:
        case MaintenanceKind.ANALYZE | MaintenanceKind.REINDEX | MaintenanceKind.CLUSTER:
            pass
        case MaintenanceKind.OPTIMIZE:
            assert statement.tables is not None, "OPTIMIZE names a table"
            await coordination.optimize(statement.tables)
        case MaintenanceKind.VACUUM:
            await coordination.vacuum(statement.tables)
    if statement.notice is not None:
        execution.notice(statement.notice, Severity.NOTICE)
    return Done(tag)


def _check_alone(execution: Execution, command: str, *, alone: bool) -> None:
    """25001 inside of a block or a pipeline."""
    execution.transaction.check_writable(command)
    if not alone:
        raise SqlError("25001", f"{command} cannot run inside a transaction block")
