"""Records of sessions in the server's log: PostgreSQL's severities, and the fields of its jsonlog.

    session ─▶ log_record(severity, "duration: 1.234 ms", pid=7, statement="select 1") ─▶ logging
                                            server/log.py: text or JSON, without secrets ◀──┘

INVARIANTS
  R1  severities rank as in PostgreSQL's `log_min_messages`: LOG above ERROR, below FATAL. So
      `log_level = error` leaves LOG in.
  R2  nothing is hidden here: whoever writes a record hides what is secret in all of its fields.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final


class LogSeverity(IntEnum):
    """Severities, as levels of `logging` (R1)."""

    NOTICE = logging.INFO
    WARNING = logging.WARNING
    ERROR = logging.ERROR
    LOG = logging.ERROR + 5
    FATAL = logging.ERROR + 7


@dataclass(frozen=True, slots=True)
class RecordOrigin:
    """The session that a record is of. `host` None: it came by the Unix socket."""

    pid: int
    user: str
    database: str
    application: str = ""
    host: str | None = None
    port: int | None = None


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """What a record has beside its message; empty: it has none."""

    severity: LogSeverity
    origin: RecordOrigin | None = None
    sqlstate: str = ""
    detail: str = ""
    hint: str = ""
    context: str = ""
    statement: str = ""

    def lines(self) -> Mapping[str, str]:
        """What the text format has in lines of its own, by the word in front."""
        named = {
            "DETAIL": self.detail, "HINT": self.hint, "CONTEXT": self.context,
            "STATEMENT": self.statement,
        }  # fmt: skip
        return {word: text for word, text in named.items() if text}


SESSION_RECORD: Final = "session_record"
"""The attribute of a `logging.LogRecord` that has the SessionRecord."""

log = logging.getLogger("meridian.session")


def log_record(message: str, record: SessionRecord) -> None:
    """Write a record, if the server's level lets it through."""
    if log.isEnabledFor(record.severity):
        log.log(record.severity, "%s", message, extra={SESSION_RECORD: record})
