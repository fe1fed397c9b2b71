"""What the statements of a session wait for: locks, places, other sessions."""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final, TypeAlias, TypeVar

from coordinator import session_errors as wrong
from coordinator.core.locking.modes import LOCK_WAIT_EVENTS, LockTag
from coordinator.transaction.progress import Progress
from coordinator.variables.variables import Variables
from storage.clock import Clock

_ENGINE_WAIT: Final = ("Extension", "LocalEnginePlace")
"""Of a session that waits for a place in the local engine."""

_Asked = TypeVar("_Asked")

WaitEvent: TypeAlias = tuple[str, str]
"""wait_event_type and wait_event of pg_stat_activity."""


class StatementWaits:
    """Those of one session."""

    wait_event: WaitEvent | None = None
    """What the statement waits for at this moment, as pg_stat_activity shows it."""
    watch_lock_wait: Callable[[], AbstractContextManager[None]] = nullcontext
    """Entered while a lock is waited for."""

    def __init__(self, clock: Clock, variables: Variables) -> None:
        self._clock = clock
        self._variables = variables
        self.progress = Progress()

    def waits_for_engine(self, waits: bool) -> None:
        """A statement begins or ends to wait for a place in the local engine."""
        self.wait_event = _ENGINE_WAIT if waits else None

    @contextmanager
    def waiting(self, kind: str, event: str) -> Generator[None]:
        """Until the block ends, the statement waits for this."""
        self.wait_event, self.progress.wait_began = (kind, event), self._clock.now()
        try:
            yield
        finally:
            self.wait_event = None

    async def in_lock_time(self, asked: Awaitable[_Asked], tag: type[LockTag]) -> _Asked:
        """What is asked for, within `lock_timeout`; `tag`: of what is waited for. Raises 55P03."""
        limit = self._variables.milliseconds("lock_timeout")
        with self.waiting("Lock", LOCK_WAIT_EVENTS[tag]), self.watch_lock_wait():
            if limit == 0:
                return await asked
            try:
                async with asyncio.timeout(limit / 1000):
                    return await asked
            except TimeoutError:
                raise wrong.lock_too_long() from None
