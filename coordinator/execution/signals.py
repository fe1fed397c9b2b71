"""pg_cancel_backend() and pg_terminate_backend(): end what another session runs, or the session.

    caller ─▶ may it? (signalfuncs.c) ─▶ Sessions ─▶ 57014 or 57P01 at the other client

INVARIANTS
  S1  only a superuser ends what belongs to a superuser. Others need the privileges of the role that
      the session has logged in as, or of pg_signal_backend.
"""

import asyncio

from coordinator.execution.context import Execution, Sessions
from coordinator.pgwire.messages import Severity
from sql.binder.resolve.role_names import roles_of
from sql.catalog.roles import SIGNAL_ROLE
from sql.errors import SqlError


async def cancel_backend(execution: Execution, pid: int) -> bool:
    """End the statement that a session runs, if any. False: there is no such session. 42501."""
    sessions = _sessions(execution)
    if not _may_signal(execution, pid, ("cancel query", "cancel queries", "query", "canceled")):
        return False
    sessions.cancel_backend(pid)
    await _be_heard()
    return True


async def terminate_backend(execution: Execution, pid: int, timeout_ms: int) -> bool:
    """End a session. `timeout_ms`: wait so long for its end, if it is not 0; False: it has not
    ended, or there is none. 42501, 22003.
    """
    sessions = _sessions(execution)
    if timeout_ms < 0:
        raise SqlError("22003", '"timeout" must not be negative')
    words = ("terminate process", "terminate processes", "process", "terminated")
    if not _may_signal(execution, pid, words):
        return False
    sessions.terminate_backend(pid)
    await _be_heard()
    if not timeout_ms:
        return True
    with execution.transaction.waiting("IPC", "BackendTermination"):
        if await sessions.has_left(pid, timeout_ms / 1000):
            return True
    unit = "millisecond" if timeout_ms == 1 else "milliseconds"
    message = f"backend with PID {pid} did not terminate within {timeout_ms} {unit}"
    execution.notice(SqlError("01000", message), Severity.WARNING)
    return False


def _sessions(execution: Execution) -> Sessions:
    sessions = execution.services.sessions
    assert sessions is not None, "who calls is a session"
    return sessions


async def _be_heard() -> None:
    """One's own session is interrupted here, and not when it no longer runs the statement."""
    await asyncio.sleep(0)


def _may_signal(execution: Execution, pid: int, words: tuple[str, str, str, str]) -> bool:
    """Whether there is such a session; a warning if not. Raises 42501 (S1)."""
    owner = _sessions(execution).role_of(pid)
    if owner is None:
        told = SqlError("01000", f"PID {pid} is not a PostgreSQL backend process")
        execution.notice(told, Severity.WARNING)
        return False
    context = execution.context()
    roles, asking = roles_of(context), context.user_oid
    what, many, noun, done = words
    if roles.is_super(asking):
        return True
    if roles.is_super(owner):
        detail = (
            f"Only roles with the SUPERUSER attribute may {many} of roles with the SUPERUSER"
            " attribute."
        )
    elif roles.has(asking, owner) or roles.has(asking, SIGNAL_ROLE):
        return True
    else:
        detail = (
            f"Only roles with privileges of the role whose {noun} is being {done} or with"
            f' privileges of the "pg_signal_backend" role may {what.split()[0]} this {noun}.'
        )
    raise SqlError("42501", f"permission denied to {what}", detail=detail)
