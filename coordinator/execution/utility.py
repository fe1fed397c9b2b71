"""Execute utility statements: whatever is neither a query, nor a change of rows, nor the session's.

The name is PostgreSQL's (utility.c). `statement_runner.py` imports it with the first of them: a
server starts without definitions, EXPLAIN and COPY.
"""

from typing import assert_never

from coordinator.execution.change_streams.subscribe import (
    execute_copy_subscription,
    execute_subscribe,
)
from coordinator.execution.context import Execution, Outcome
from coordinator.execution.copy import CopyStream, execute_copy_in, execute_copy_out
from coordinator.execution.create_table_as import execute_create_as, execute_refresh
from coordinator.execution.ddl import execute_advance, execute_definition
from coordinator.execution.explain import execute_explain
from coordinator.execution.lock_table import execute_lock
from coordinator.execution.maintenance import execute_maintenance
from coordinator.execution.truncate import execute_truncate
from sql.statements.bound import (
    AlterTable,
    CopyIn,
    CopyOut,
    CopySubscription,
    CreateSchema,
    CreateTable,
    CreateTableAs,
    DropSchema,
    DropTable,
    Explain,
    ExplainTimestamp,
    RefreshMaterializedView,
    Subscribe,
    Truncate,
    UtilityStatement,
)
from sql.statements.ddl import ChangeObjects, ChangePrivileges, CreateObject, CreateSequence
from sql.statements.locking import LockTables
from sql.statements.maintenance import MaintenanceStatement
from sql.statements.sources import (
    CreateFedTables,
    CreateSource,
    CreateUpstreamTables,
    SkipRecord,
)
from sql.statements.timelines import (
    AdvanceReadHold,
    AdvanceTimeline,
    CreateReadHold,
    CreateTimeline,
    DropReadHold,
    DropTimeline,
)
from storage.types import Timestamp


async def execute_utility(
    execution: Execution,
    statement: UtilityStatement,
    tag: str,
    stream: CopyStream,
    *,
    as_of: Timestamp | None,
    alone: bool,
) -> Outcome:
    """Execute one; `alone`: it is its whole transaction. `stream`: where COPY's data is, and who
    follows changes.
    """
    match statement:
        case CreateTableAs() as created:
            return await execute_create_as(execution, created)
        case RefreshMaterializedView() as refresh:
            return await execute_refresh(execution, refresh, tag)
        case Truncate() as truncated:
            return await execute_truncate(execution, truncated, tag)
        case LockTables() as locked:
            return await execute_lock(execution, locked, tag)
        case CopyIn() as copy:
            return await execute_copy_in(execution, copy, stream)
        case CopyOut() as copy:
            return await execute_copy_out(execution, copy, stream, as_of=as_of)
        case Subscribe() as subscribe:
            return await execute_subscribe(execution, subscribe, stream, as_of=as_of)
        case CopySubscription() as copy:
            return await execute_copy_subscription(execution, copy, stream, as_of=as_of)
        case (
            CreateTable() | DropTable() | CreateSchema() | DropSchema() | AlterTable()
            | CreateTimeline() | DropTimeline() | CreateReadHold() | AdvanceReadHold()
            | DropReadHold()
            | CreateSequence() | CreateObject() | ChangeObjects() | ChangePrivileges()
            | CreateSource() | CreateFedTables() | CreateUpstreamTables() | SkipRecord()
        ) as definition:  # fmt: skip
            return await execute_definition(execution, definition, tag)
        case AdvanceTimeline() as advance:
            return await execute_advance(execution, advance, tag)
        case MaintenanceStatement() as maintenance:
            return await execute_maintenance(execution, maintenance, alone=alone)
        case ExplainTimestamp():
            raise AssertionError("it is executed where it is bound")
        case Explain() as explain:
            return await execute_explain(execution, explain, as_of=as_of)
        case _:
            assert_never(statement)
