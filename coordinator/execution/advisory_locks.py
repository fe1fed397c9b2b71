"""Call the functions of advisory locks for a session.

    pg_try_advisory_xact_lock_shared(1, 2) ─▶ tag (1, 2), shared, of the transaction, no wait

INVARIANTS
  V1  a call that a statement has made is not made again if the statement starts again by itself: it
      gets the answer of the first try. What the last try does not call any more is undone.

The functions are those of PostgreSQL's `lockfuncs.c`.
"""

from collections.abc import Sequence

from coordinator.core.locking.modes import AdvisoryTag, LockMode, LockWait
from coordinator.core.messages import ConnectionId
from coordinator.execution.context import Execution
from coordinator.pgwire.messages import Severity
from sql.errors import SqlError
from sql.types.sql_type import Value


async def call_advisory_lock(execution: Execution, name: str, args: Sequence[Value]) -> Value:
    """Make a call; its result. Raises 40P01, 55P03."""
    if None in args:
        return None
    if name == "pg_advisory_unlock_all":
        execution.services.coordination.unlock_all(execution.transaction.owner)
        return ""
    tag = _tag(args)
    shared = name.endswith("_shared")
    mode = LockMode.ADVISORY_SHARED if shared else LockMode.ADVISORY_EXCLUSIVE
    if name.startswith("pg_advisory_unlock"):
        return await _unlock(execution, execution.transaction.owner, tag, mode)
    tries = name.startswith("pg_try")
    answer = await execution.transaction.lock(
        tag,
        mode,
        wait=LockWait.NO if tries else LockWait.UNTIL_GRANTED,
        by_session="_xact_" not in name,
    )
    return answer.granted if tries else ""


def _tag(args: Sequence[Value]) -> AdvisoryTag:
    match args:
        case (int() as key,):
            return AdvisoryTag.of_bigint(key)
        case (int() as first, int() as second):
            return AdvisoryTag.of_integers(first, second)
        case _:
            raise AssertionError("the function table knows one key or two")


async def _unlock(
    execution: Execution, owner: ConnectionId, tag: AdvisoryTag, mode: LockMode
) -> bool:
    held = await execution.services.coordination.unlock(owner, tag, mode)
    if not held:
        message = f"you don't own a lock of type {mode.shown}"
        execution.notice(SqlError("01000", message), Severity.WARNING)
    return held
