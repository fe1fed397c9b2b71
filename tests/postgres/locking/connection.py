"""One connection whose statement may take long: sent, then asked again and again for its answer.

    send ─▶ receive ─▶ False ─▶ .. ─▶ True: `answer` holds notices, tags, rows and errors, as lines

INVARIANTS
  C1  an answer has nothing of its own server: no pids, no details, none of Meridian's own warnings.
  C2  what a PostgreSQL logs about a wait of the session is taken in, and not told.
"""

import re
import select
import time
from collections.abc import Callable, Mapping
from typing import Final

import psycopg
from psycopg.pq import (
    ConnStatus,
    DiagnosticField,
    ExecStatus,
    PGcancelConn,
    PGconn,
    PollingStatus,
    TransactionStatus,
)
from psycopg.pq.abc import PGresult

from coordinator.execution.grant import WARNINGS

ANSWER_SECONDS_MAX: Final = 120
"""Only against hanging for ever."""

POLL_SECONDS: Final = 0.004
"""Larger: a step in which somebody waits takes longer. Smaller: more questions to the server."""

_PIDS: Final = frozenset({"pid", "pg_blocking_pids"})
"""Columns whose numbers are told as names of sessions (C1)."""


class Connection:
    """See the module. `names`: of sessions by pid; None: pids are told as they are."""

    def __init__(self, dsn: str, names: Mapping[int, str] | None = None) -> None:
        self._names = names
        self._link = PGconn.connect_start(dsn.encode())
        _finish_polling(self._link)
        assert self._link.status == ConnStatus.OK, self._link.get_error_message()
        self._link.notice_handler = self._noticed
        self.pid = self._link.backend_pid
        self.is_pending = False
        self.is_checked = False
        """PostgreSQL's search for deadlocks has seen the wait of the session."""
        self.is_lost = False
        self.answer: list[str] = []

    @property
    def socket(self) -> int:
        """For select()."""
        return self._link.socket

    @property
    def status(self) -> TransactionStatus:
        """Of its transaction, when it has answered."""
        return TransactionStatus(self._link.transaction_status)

    def send(self, text: str) -> None:
        """Ask; the answer comes by `receive`."""
        assert not self.is_pending, f"it has not answered yet: {text}"
        self.answer, self.is_pending, self.is_checked = [], True, False
        self._link.send_query(text.encode())

    def cancel(self) -> None:
        """Give up what it waits for; it will be answered."""
        cancel = self._link.cancel_conn()
        cancel.start()
        _finish_polling(cancel)
        cancel.finish()

    def close(self) -> None:
        """Hang up."""
        self._link.finish()

    def receive(self) -> bool:
        """Take in what has come; whether the answer is complete, or the connection lost."""
        try:
            self._link.consume_input()
            while not self._link.is_busy():
                result = self._link.get_result()
                if result is None:
                    self.is_pending = False
                    break
                self.answer += self._shown(result)
        except psycopg.OperationalError:
            self._lost()
        if self._link.status != ConnStatus.OK:
            self._lost()
        return not self.is_pending

    def _lost(self) -> None:
        if not self.is_lost:
            self.answer.append("connection lost")
        self.is_pending, self.is_lost = False, True

    def ask(self, text: str) -> list[str]:
        """Ask, and wait for the answer."""
        self.send(text)
        self._wait_until(self.receive)
        return self.answer

    def wait_until_lost(self) -> None:
        """Wait until the server hangs up."""
        self._wait_until(lambda: self.receive() and self.is_lost)

    def _wait_until(self, is_done: Callable[[], bool]) -> None:
        limit = time.monotonic() + ANSWER_SECONDS_MAX
        while not is_done():
            assert time.monotonic() < limit, f"no end of it after {self.answer}"
            select.select([self.socket], [], [], POLL_SECONDS)

    def _noticed(self, result: PGresult) -> None:
        message = _field(result, DiagnosticField.MESSAGE_PRIMARY)
        severity = _field(result, DiagnosticField.SEVERITY_NONLOCALIZED)
        if severity == "LOG":
            if message.startswith(f"process {self.pid} "):
                self.is_checked = "still waiting" in message
        elif message not in WARNINGS:
            # A session that is ended while it asks for nothing hears of it so.
            kind = "E" if severity == "FATAL" else "N"
            self.answer.append(f"{kind} {_field(result, DiagnosticField.SQLSTATE)} {message}")

    def _shown(self, result: PGresult) -> list[str]:
        tag = (result.command_status or b"").decode()
        match result.status:
            case ExecStatus.TUPLES_OK:
                title, rows = f"{tag} ({', '.join(_columns(result))})", self._rows(result)
                return [f"{title} = {rows[0]}"] if len(rows) == 1 else [title, *rows]
            case ExecStatus.COMMAND_OK:
                return [tag]
            case ExecStatus.FATAL_ERROR:
                sqlstate = _field(result, DiagnosticField.SQLSTATE)
                message = _field(result, DiagnosticField.MESSAGE_PRIMARY)
                # What libpq itself says of a lost connection has no SQLSTATE.
                return [f"E {sqlstate} {message}"] if sqlstate else []
            case _:
                return [ExecStatus(result.status).name]

    def _rows(self, result: PGresult) -> list[str]:
        columns = list(enumerate(_columns(result)))
        return [
            "|".join(self._value(result.get_value(row, at), name) for at, name in columns)
            for row in range(result.ntuples)
        ]

    def _value(self, value: bytes | None, column: str) -> str:
        names = self._names
        text = "NULL" if value is None else value.decode() or "''"
        if names is None or column not in _PIDS:
            return text
        return re.sub(r"\d+", lambda pid: names.get(int(pid[0]), "?"), text)


def _finish_polling(link: PGconn | PGcancelConn) -> None:
    """What blocks inside of libpq would keep the interpreter's lock from a server in its thread."""
    poll = link.connect_poll if isinstance(link, PGconn) else link.poll
    while (state := poll()) in {PollingStatus.READING, PollingStatus.WRITING}:
        sockets = [link.socket]
        is_reading = state == PollingStatus.READING
        select.select(sockets if is_reading else [], [] if is_reading else sockets, [], 1)


def _field(result: PGresult, field: DiagnosticField) -> str:
    return (result.error_field(field) or b"").decode()


def _columns(result: PGresult) -> list[str]:
    return [(result.fname(at) or b"").decode() for at in range(result.nfields)]
