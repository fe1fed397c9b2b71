"""TRUNCATE: delete every row that the transaction sees, without reading any.

INVARIANTS
  T1  the statement depends on all rows of its tables, at every isolation level. A row that another
      transaction inserts meanwhile is a conflict: it neither survives nor vanishes unseen, and it
      does not refer to a deleted row.
"""

from coordinator.execution.context import Done, Execution
from coordinator.execution.ddl import execute_definition
from coordinator.execution.dml.deferred_constraints import check_no_pending_checks
from coordinator.execution.spill import buffer_rows, spill_if_large
from coordinator.pgwire.messages import Severity
from sql.errors import SqlError
from sql.statements.bound import Truncate
from storage.batch import WriteBatch, all_rows


async def execute_truncate(execution: Execution, statement: Truncate, tag: str) -> Done:
    """Empty the tables, in the transaction."""
    transaction = execution.transaction
    transaction.check_writable("TRUNCATE TABLE")
    for name in statement.cascades:
        notice = SqlError("00000", f'truncate cascades to table "{name}"')
        execution.notice(notice, Severity.NOTICE)
    check_no_pending_checks(execution, statement.tables, "TRUNCATE")
    ts = await transaction.timestamp(statement.tables)
    coordination = execution.services.coordination
    locked = frozenset(table.oid for table in statement.tables)
    views = await coordination.scan(transaction.id, ts, statement.tables, (), locked)
    for table, view in zip(statement.tables, views, strict=True):
        deletes = all_rows(view)
        transaction.fresh.add(table.oid)
        if deletes:
            buffer_rows(execution, table, WriteBatch(deletes=deletes))
    await spill_if_large(execution)
    if statement.restarted is not None:
        await execute_definition(execution, statement.restarted, tag)
    return Done(tag)
