"""The clocks that run while a session does: for its statement, for its transaction, and for its
last answer.

INVARIANTS
  C1  no timer runs, and none is made, as long as no limit is set.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from coordinator import session_errors as wrong
from coordinator.session.progress_notices import ProgressNotices
from coordinator.transaction.transaction import SessionTransaction
from coordinator.variables.variables import Variables
from sql.errors import SqlError

LAST_ANSWER_S: Final = 5.0
"""How long a session that is ended goes on answering what has committed. Larger: a client that does
not read keeps it longer. Smaller: a slow one does not hear that it has committed."""


class SessionTimers:
    """See the module. `interrupt`, `end`: of the session; `stop`: at once, whatever it does."""

    def __init__(
        self,
        variables: Variables,
        transaction: SessionTransaction,
        progress: ProgressNotices,
        interrupt: Callable[[SqlError], None],
        end: Callable[[SqlError], None],
        stop: Callable[[], None],
    ) -> None:
        self._variables = variables
        self._transaction = transaction
        self._progress = progress
        self._interrupt = interrupt
        self._end = end
        self._stop = stop
        self._of_statement: asyncio.TimerHandle | None = None
        self._of_transaction: asyncio.TimerHandle | None = None
        self._of_last_answer: asyncio.TimerHandle | None = None

    @property
    def is_needed(self) -> bool:
        """Whether there is a limit to watch, or a timer to stop (C1)."""
        return (
            self._variables.has_limits
            or self._of_statement is not None
            or self._progress.is_running
            or self._of_transaction is not None
        )

    def restart(self) -> None:
        """A statement begins: statement_timeout is for each of a string."""
        self.stop()
        self._progress.start()
        limit = self._variables.milliseconds("statement_timeout")
        if limit:
            self._of_statement = asyncio.get_running_loop().call_later(
                limit / 1000, self._interrupt, wrong.statement_too_long()
            )

    def stop(self) -> None:
        """The statement has ended."""
        self._progress.stop()
        if self._of_statement is not None:
            self._of_statement.cancel()
            self._of_statement = None

    def watch_transaction(self, *, running: bool) -> None:
        """transaction_timeout: from the statement that begins it to its end; not of a block that
        holds nothing but subscriptions.
        """
        limit = self._variables.milliseconds("transaction_timeout")
        timer = self._of_transaction
        follows = self._transaction.only_follows
        if follows or (not running and not self._transaction.is_open):
            if timer is not None:
                timer.cancel()
                self._of_transaction = None
        elif timer is None and limit:
            self._of_transaction = asyncio.get_running_loop().call_later(
                limit / 1000, self._end, wrong.transaction_too_long()
            )

    def limit_last_answer(self) -> None:
        """The session is ended, and answers what has committed."""
        if self._of_last_answer is None:
            loop = asyncio.get_running_loop()
            self._of_last_answer = loop.call_later(LAST_ANSWER_S, self._stop)

    def close(self) -> None:
        """The session leaves."""
        for timer in (self._of_transaction, self._of_last_answer):
            if timer is not None:
                timer.cancel()
