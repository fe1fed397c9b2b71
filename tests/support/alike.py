"""Normalise server output for comparison: times, generated names, Meridian's own warnings.

    2026-11-23 00:46:00.22348+00   <moment 1>+00   the first moment that this play has shown
    2026-11-23                     <today>
    pg_temp_3, pg_temp_5_1f        pg_temp         the session's own schema

INVARIANTS
  L1  only what the play itself brings about is renamed: a moment that a script writes is told as
      it is, to the last digit.
  L2  equal moments have one number, others have others: what must not move is seen to stay.
  L3  a warning is left out only if its whole text is one that `coordinator` calls its own;
      `tests/postgres/ddl/test_roles.py` asks for these. A notice is left out if it has the SQLSTATE
      of those that say that something changes nothing, which PostgreSQL gives to errors only.

Not here: orders of rows, which are for the players to say.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from coordinator.execution.grant import WARNINGS
from sql.binder.ddl.storage_parameters import CHANGES_NOTHING
from storage.clock import Clock, SystemClock

if TYPE_CHECKING:
    import psycopg

_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?)(?=([+-]\d\d(?::\d\d)?)?)")
_DAY = re.compile(r"datetime\.date\((\d+), (\d+), (\d+)\)|(\d{4})-(\d\d)-(\d\d)(?! \d\d:)")
_TEMPORARY = re.compile(r"pg_temp_\d+(_[0-9a-f]+)?")
# Both servers run on this machine, whose clock may be set while they do.
_CLOCKS_DIFFER = timedelta(minutes=1)


class Alike:
    """What one play has shown of the time since it began."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._since = self._now() - _CLOCKS_DIFFER
        self._moments: dict[datetime, int] = {}

    def told(self, text: str) -> str:
        """The text as every server tells it (L1, L2)."""
        text = _DAY.sub(self._day, _MOMENT.sub(self._moment, text))
        return _TEMPORARY.sub("pg_temp", text)

    def _moment(self, found: re.Match[str]) -> str:
        try:
            moment = datetime.fromisoformat(found[1] + (found[2] or "+00"))
        except ValueError:
            return found[0]
        if not self._since <= moment <= self._now() + _CLOCKS_DIFFER:
            return found[0]
        return f"<moment {self._moments.setdefault(moment, len(self._moments) + 1)}>"

    def _day(self, found: re.Match[str]) -> str:
        day = tuple(int(part) for part in found.groups() if part is not None)
        today = {(when.year, when.month, when.day) for when in (self._since, self._now())}
        return "<today>" if day in today else found[0]

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now() / 1_000_000, UTC)


def is_of_both(notice: "psycopg.errors.Diagnostic") -> bool:
    """Whether PostgreSQL might say this, too (L3)."""
    changes_nothing = (notice.severity, notice.sqlstate) == ("NOTICE", CHANGES_NOTHING)
    return notice.message_primary not in WARNINGS and not changes_nothing
