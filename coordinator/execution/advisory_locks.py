"""Call the functions of advisory locks for a session.

    pg_try_advisory_xact_lock_shared(1, 2) ─▶ tag (1, 2), shared, of the transaction, no wait

INVARIANTS
  V1  a statement that begins again by itself makes no call twice that outlives its transaction (B1
      and B2 of `coordinator/transaction/lock_calls.py`).

The functions are those of PostgreSQL's `lockfuncs.c`.
"""

from collections.abc import Sequence

from coordinator.core.locking.modes import AdvisoryTag, LockMode, LockWait
from coordinator.core.messages.identities import ConnectionId
from coordinator.execution.context import Execution
from coordinator.pgwire.messages import Severity
from coordinator.transaction.lock_calls import LockCall
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
    tries = name.startswith("pg_try")
    if "_xact_" in name:
        granted = await _lock(execution, tag, mode, tries=tries, by_session=False)
        return granted if tries else ""
    calls, call = execution.transaction.lock_calls, LockCall(name, tag, mode)
    done = calls.answered(call)
    if done is None:
        if name.startswith("pg_advisory_unlock"):
            done = await _unlock(execution, execution.transaction.owner, tag, mode)
        else:
            done = await _lock(execution, tag, mode, tries=tries, by_session=True)
        calls.made(call, done=done)
    return "" if name.startswith("pg_advisory_lock") else done


async def give_back_left(execution: Execution) -> None:
    """The statement is done: give back what only an earlier try of it has taken (V1)."""
    for call in execution.transaction.lock_calls.left():
        owner = execution.transaction.owner
        await execution.services.coordination.unlock(owner, call.tag, call.mode)


async def _lock(
    execution: Execution, tag: AdvisoryTag, mode: LockMode, *, tries: bool, by_session: bool
) -> bool:
    wait = LockWait.NO if tries else LockWait.UNTIL_GRANTED
    answer = await execution.transaction.lock(tag, mode, wait=wait, by_session=by_session)
    return answer.granted


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
