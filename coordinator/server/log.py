"""Log to stderr, one line a record: time in UTC, level, logger, text; or JSON.

    2026-11-29T17:00:00.123Z LOG meridian.session [7] duration: 1.234 ms  statement: select 1
    {"timestamp":"2026-11-29T17:00:00.123Z","error_severity":"LOG","pid":7,"message":"duration: ..

Records of sessions have further lines in the text format (DETAIL, STATEMENT ..), and in JSON the
names that PostgreSQL's jsonlog has. Metrics: `coordinator/monitoring/`.

INVARIANTS
  G1  a line is whole: control characters in the logged text are escaped. In JSON a record is one
      line.
  G2  what may be a secret is hidden in everything that is written, tracebacks too.
  G3  a text has LOGGED_TEXT_MAX characters at most: this runs on the loop, and texts are anybody's.
  G4  the newest records are kept as they were written, bounded in number and length.
"""

import logging
import sys
import time
from collections import deque
from collections.abc import Sequence
from typing import Final, TextIO

from coordinator.hidden_secrets import without_secrets, without_secrets_of
from coordinator.session_records import SESSION_RECORD, SessionRecord

LOGGED_TEXT_MAX: Final = 100_000
"""Characters. Larger: a long statement that fails holds up all sessions for longer."""
_KEPT_RECORDS: Final = 1_000
"""For `meridian doctor`. Larger: more memory, a longer look back."""
_KEPT_CHARACTERS: Final = 1_000
"""Of each of them."""

_TIME: Final = "%Y-%m-%dT%H:%M:%S"


def _moment(record: logging.LogRecord) -> str:
    whole = time.strftime(_TIME, time.gmtime(record.created))
    return f"{whole}.{int(record.msecs):03d}Z"


_ESCAPED: Final = {
    **{code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if code != ord("\t")},
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}
"""Texts are anybody's: they must not look like other lines, nor command a terminal (G1)."""


def _session_record(record: logging.LogRecord) -> SessionRecord | None:
    found = getattr(record, SESSION_RECORD, None)
    return found if isinstance(found, SessionRecord) else None


def _message(record: logging.LogRecord) -> str:
    session, text = _session_record(record), record.getMessage()
    if session is None or not session.statement:
        return _shown(text)
    statement, most = session.statement, LOGGED_TEXT_MAX
    is_cut = max(len(text), len(statement)) > most
    shown = without_secrets_of(text[:most], statement[:most], is_cut=is_cut)
    return f"{shown}..." if len(text) > most else shown


def _shown(text: str) -> str:
    """The text without secrets, and not too long (G2, G3)."""
    if len(text) <= LOGGED_TEXT_MAX:
        return without_secrets(text)
    return f"{without_secrets(text[:LOGGED_TEXT_MAX], is_cut=True)}..."


class TextLines(logging.Formatter):
    """One line a record, or one a part of it (G1), in UTC."""

    def format(self, record: logging.LogRecord) -> str:
        """See logging.Formatter."""
        session = _session_record(record)
        if session is None:
            text = self._line(record, record.levelname, _message(record))
            if record.exc_info is None:
                return text
            return f"{text}\n{_shown(self.formatException(record.exc_info))}"
        pid = "" if session.origin is None else f"[{session.origin.pid}] "
        parts = {session.severity.name: _message(record)}
        parts.update((word, _shown(text)) for word, text in session.lines().items())
        return "\n".join(self._line(record, word, pid + text) for word, text in parts.items())

    def _line(self, record: logging.LogRecord, word: str, text: str) -> str:
        line = f"{_moment(record)} {word} {record.name} {text}"
        return line.translate(_ESCAPED)


def json_fields(record: logging.LogRecord) -> dict[str, object]:
    """The fields of a record in JSON, as PostgreSQL's jsonlog calls them."""
    session = _session_record(record)
    fields: dict[str, object] = {"timestamp": _moment(record)}
    origin = None if session is None else session.origin
    if origin is not None:
        fields |= {
            "pid": origin.pid, "user": origin.user, "dbname": origin.database,
            "remote_host": origin.host, "remote_port": origin.port,
            "application_name": origin.application,
        }  # fmt: skip
    fields["error_severity"] = record.levelname if session is None else session.severity.name
    if session is not None:
        fields["state_code"] = session.sqlstate
    fields |= {"message": _message(record), "logger": record.name}
    if session is not None:
        fields |= {word.lower(): _shown(text) for word, text in session.lines().items()}
    return {name: value for name, value in fields.items() if value not in ("", None)}


def _json_formatter() -> logging.Formatter:
    from pythonjsonlogger.json import JsonFormatter

    class JsonLines(JsonFormatter):
        """One JSON object a record (G1)."""

        def add_fields(
            self,
            log_data: dict[str, object],
            record: logging.LogRecord,
            message_dict: dict[str, object],
        ) -> None:
            log_data.update(json_fields(record))
            if "exc_info" in message_dict:
                log_data["backtrace"] = _shown(str(message_dict["exc_info"]))

    return JsonLines(json_ensure_ascii=False)


class _KeepingHandler(logging.StreamHandler[TextIO]):
    """Writes records, and keeps the newest (G4)."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self.kept: deque[str] = deque(maxlen=_KEPT_RECORDS)

    def format(self, record: logging.LogRecord) -> str:
        """See logging.Handler."""
        text = super().format(record)
        self.kept.append(text[:_KEPT_CHARACTERS])
        return text


def newest_lines() -> Sequence[str]:
    """What this process has logged last, without secrets (G2)."""
    kept = [one.kept for one in logging.getLogger().handlers if isinstance(one, _KeepingHandler)]
    return [line for each in kept for text in each.copy() for line in text.splitlines()]


def start_logging(level: str, form: str = "text") -> None:
    """Log to stderr from now on. `form`: `text` or `json`."""
    handler = _KeepingHandler(sys.stderr)
    handler.setFormatter(_json_formatter() if form == "json" else TextLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # Spark's bridge logs its failures before it raises them; who catches them says what matters.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
