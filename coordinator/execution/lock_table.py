"""LOCK TABLE without waiting: the commit validates what the lock promises.

from writers   all rows of the table enter the read set, as under FOR UPDATE: if another transaction
               writes to the table meanwhile, the commit of a writing transaction fails with 40001
alone          two holders must appear to run one after the other. All transactions do so at the
               serializable levels; at weaker levels nothing would ensure it, so it is refused
"""

from typing import Final

from coordinator.core.messages import Isolation
from coordinator.execution.context import Done, Execution
from coordinator.session_errors import only_in_block
from sql.errors import not_supported
from sql.statements.bound import LockTables

_SERIAL: Final = (Isolation.STRICT_SERIALIZABLE, Isolation.SERIALIZABLE)


async def execute_lock(execution: Execution, statement: LockTables, tag: str) -> Done:
    """Put all rows of the tables into the read set, to be validated at the commit."""
    transaction = execution.transaction
    if transaction.warns_outside:
        raise only_in_block(tag)
    level, _ = execution.variables.level
    if statement.alone and level not in _SERIAL:
        hint = "Use isolation level serializable, or SHARE MODE, or SELECT .. FOR UPDATE."
        raise not_supported("LOCK TABLE in this mode at this isolation level", hint=hint)
    if statement.from_writers and not transaction.read_only:
        ts = await transaction.timestamp(statement.tables)
        oids = frozenset(table.oid for table in statement.tables)
        coordination = execution.services.coordination
        await coordination.scan(transaction.id, ts, statement.tables, (), oids)
    return Done(tag)
