"""LOCK TABLE where nobody waits: what it promises is looked at when the transaction commits.

from writers   all rows of the table are read, as under FOR UPDATE: who has written to it
               meanwhile makes the commit of a transaction that writes fail with 40001
alone          two who hold it seem to come one after the other: so do all transactions at the
               serializable levels, and at weaker ones nobody would see to it: refused
"""

from typing import Final

from coordinator.core.messages import Isolation
from coordinator.execution.context import Done, Execution
from coordinator.session_errors import only_in_block
from coordinator.variables.isolation import level_of
from sql.errors import not_supported
from sql.statements.bound import LockTables

_SERIAL: Final = (Isolation.STRICT_SERIALIZABLE, Isolation.SERIALIZABLE)


async def execute_lock(execution: Execution, statement: LockTables, tag: str) -> Done:
    """Remember what must not change."""
    transaction = execution.transaction
    if transaction.warns_outside:
        raise only_in_block(tag)
    level, _ = level_of(execution.variables.get("transaction_isolation"))
    if statement.alone and level not in _SERIAL:
        hint = "Use isolation level serializable, or SHARE MODE, or SELECT .. FOR UPDATE."
        raise not_supported("LOCK TABLE in this mode at this isolation level", hint=hint)
    if statement.from_writers and not transaction.read_only:
        ts = await transaction.timestamp(statement.tables)
        oids = frozenset(table.oid for table in statement.tables)
        coordination = execution.services.coordination
        await coordination.scan(transaction.id, ts, statement.tables, (), oids)
    return Done(tag)
