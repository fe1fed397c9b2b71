"""Handle the messages about locks: acquire, cancel, release; serve those whose turn it is.

Functions over the core's state; the invariants are those of the package (K1 to K5).
"""

from collections.abc import Iterable
from typing import TypeAlias, assert_never

from coordinator.core.effects import Effect, Reply
from coordinator.core.locking.lock_table import LockRequest, LockVerdict
from coordinator.core.messages import (
    AcquireLock,
    CancelLock,
    ConnectionId,
    LockAnswered,
    Refused,
    RefusedReason,
    Released,
    ReleaseLock,
    ReleaseSessionLocks,
)
from coordinator.core.state import CoreState

LockMessage: TypeAlias = AcquireLock | CancelLock | ReleaseLock | ReleaseSessionLocks


def change_locks(core: CoreState, message: LockMessage) -> list[Effect]:
    """Handle one message about locks."""
    match message:
        case AcquireLock():
            return acquire_lock(core, message)
        case CancelLock():
            return cancel_lock(core, message)
        case ReleaseLock():
            return release_lock(core, message)
        case ReleaseSessionLocks(owner=owner):
            return release_session_locks(core, owner)
        case _:
            assert_never(message)


def acquire_lock(core: CoreState, message: AcquireLock) -> list[Effect]:
    """Take a lock, or stand in line for it."""
    txn = core.transactions[message.txn]
    ticket = message.ticket or core.locks.graph.ticket()
    wanted = LockRequest(
        message.request,
        txn.owner,
        None if message.by_session else txn.id,
        message.tag,
        message.mode,
        txn.innermost_savepoint,
        ticket,
    )
    answer = core.locks.acquire(wanted, message.wait)
    effects = serve_waiters(answer.served)
    match answer.verdict:
        case LockVerdict.GRANTED:
            effects.append(Reply(message.request, LockAnswered(True, ticket)))
        case LockVerdict.NOT_AVAILABLE:
            effects.append(Reply(message.request, LockAnswered(False, ticket)))
        case LockVerdict.DEADLOCK:
            effects.append(Reply(message.request, _deadlock(answer.circle or "")))
        case LockVerdict.WAITS:
            pass
    return effects


def _deadlock(circle: str) -> Refused:
    hint = "See server log for query details."
    return Refused(RefusedReason.OTHER, "40P01", "deadlock detected", circle, hint)


def serve_waiters(granted: Iterable[LockRequest]) -> list[Effect]:
    """Tell those who have waited that they hold their locks (K3)."""
    return [Reply(request.request, LockAnswered(True, request.ticket)) for request in granted]


def cancel_lock(core: CoreState, message: CancelLock) -> list[Effect]:
    """Leave the line, or give back what was granted just then."""
    wanted = message.wanted
    txn = core.transactions.get(wanted.txn)
    if txn is None:
        return []  # its end has released what it waited for
    served = core.locks.cancel(txn.owner, wanted.request)
    if served is not None:
        return serve_waiters(served)
    if wanted.by_session:
        return serve_waiters(core.locks.unlock(txn.owner, wanted.tag, wanted.mode).served)
    return []


def release_lock(core: CoreState, message: ReleaseLock) -> list[Effect]:
    """Give back a lock of the session."""
    found = core.locks.unlock(message.owner, message.tag, message.mode)
    return [*serve_waiters(found.served), Reply(message.request, Released(found.held))]


def release_session_locks(core: CoreState, owner: ConnectionId) -> list[Effect]:
    """Give back all locks that the session holds by itself."""
    return serve_waiters(core.locks.release_session(owner))
