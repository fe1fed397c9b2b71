"""Notices for people who wait: a statement that runs for long says so, every progress_notices_s.

They are sent while it runs: libpq shows them as they come. 0, the default, is none.
"""

import asyncio
from collections.abc import Callable

from coordinator.pgwire.messages import Severity
from coordinator.transaction.transaction import SessionTransaction
from coordinator.variables.variables import Variables
from sql.errors import SqlError

_Notify = Callable[[SqlError, Severity], None]


class ProgressNotices:
    """See the module."""

    def __init__(
        self, variables: Variables, transaction: SessionTransaction, notify: _Notify
    ) -> None:
        self._variables = variables
        self._transaction = transaction
        self._notify = notify
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_running(self) -> bool:
        """Whether there is a timer to stop."""
        return self._timer is not None

    def start(self) -> None:
        """A statement begins."""
        self.stop()
        period_s = self._variables.milliseconds("progress_notices_s") // 1000
        if period_s:
            self._again(period_s, period_s)

    def stop(self) -> None:
        """It is over."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _again(self, period_s: int, total_s: int) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(period_s, self._tell, period_s, total_s)

    def _tell(self, period_s: int, total_s: int) -> None:
        self._again(period_s, total_s + period_s)
        notice = SqlError("00000", f"still running after {total_s} s", detail=self._detail())
        self._notify(notice, Severity.NOTICE)

    def _detail(self) -> str | None:
        copy, waits = self._transaction.progress.copy, self._transaction.wait_event
        if waits is not None:
            return f"It waits for {waits[0]}: {waits[1]}."
        if copy is not None:
            return f"{copy.command} has processed {copy.rows} rows and {copy.bytes} bytes."
        return None
