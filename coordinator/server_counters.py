"""What a server has counted since its start: plain integers, added to where things happen.

    session, run_plan, driver ── one addition ──▶ ServerCounters ── at a scrape ──▶ `monitoring/`

INVARIANTS
  N1  counting costs an addition: no lock, no label, no clock that was not read anyway.
  N2  all of it is changed on the loop's thread, but for what a `Durations` is given.
  N3  what is kept is bounded, whatever clients send: command tags are folded into kinds.

Not here: gauges, which are read when somebody asks (`monitoring/observation.py`).
"""

from bisect import bisect_left
from collections.abc import Mapping
from typing import Final

STATEMENT_KINDS: Final = (
    "select", "insert", "update", "delete", "merge", "copy", "cursor", "transaction", "definition",
    "setting", "other",
)  # fmt: skip
"""All values that the label `kind` may have."""

ENGINE_NAMES: Final = ("in_process", "local", "spark", "reference")
"""All values that the label `engine` may have."""

SECONDS_BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
                         10.0, 30.0, 60.0)  # fmt: skip
"""Upper ends of the buckets of histograms. More: each scrape is longer."""

TAGS_MAX: Final = 256
"""Command tags that are told apart until they are folded. Larger: more memory, fewer foldings."""

_KIND_OF_WORD: Final = {
    "SELECT": "select",
    "INSERT": "insert",
    "UPDATE": "update",
    "DELETE": "delete",
    "MERGE": "merge",
    "COPY": "copy",
    **dict.fromkeys(("FETCH", "MOVE", "DECLARE", "CLOSE"), "cursor"),
    **dict.fromkeys(("BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE"),
                    "transaction"),
    **dict.fromkeys(("CREATE", "ALTER", "DROP", "TRUNCATE", "COMMENT", "GRANT", "REVOKE"),
                    "definition"),
    **dict.fromkeys(("SET", "RESET", "SHOW", "DISCARD"), "setting"),
}  # fmt: skip


class Durations:
    """A histogram of seconds: for each bound the durations up to it, then those above all."""

    __slots__ = ("counts", "total_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(SECONDS_BOUNDS) + 1)
        self.total_s = 0.0

    def add(self, seconds: float) -> None:
        """One more."""
        self.counts[bisect_left(SECONDS_BOUNDS, seconds)] += 1
        self.total_s += seconds

    def copy(self) -> "Durations":
        """As it is now."""
        made = Durations()
        made.counts, made.total_s = self.counts.copy(), self.total_s
        return made


class ServerCounters:
    """See the module."""

    def __init__(self) -> None:
        self._tags: dict[str, int] = {}
        self._statements: dict[str, int] = dict.fromkeys(STATEMENT_KINDS, 0)
        self._rows: dict[str, int] = dict.fromkeys(STATEMENT_KINDS, 0)
        self.errors: dict[str, int] = {}
        """By class of SQLSTATE."""
        self.sessions = 0
        self.bytes_received = 0
        self.bytes_sent = 0
        self.followed_rows = 0
        """Rows that subscribers were told."""
        self.retries = 0
        """Statements that began again by themselves, after a conflict."""
        self.stash = Durations()
        self.engines: dict[str, Durations] = {name: Durations() for name in ENGINE_NAMES}

    def completed(self, tag: str) -> None:
        """A statement has ended with this command tag."""
        try:
            self._tags[tag] += 1
        except KeyError:
            self._tags[tag] = 1
            if len(self._tags) > TAGS_MAX:
                self._fold()

    def suspended(self, rows: int) -> None:
        """A portal has given so many rows, and will give more."""
        self._rows["select"] += rows

    def failed(self, sqlstate: str) -> None:
        """A statement has failed."""
        group = sqlstate[:2]
        self.errors[group] = self.errors.get(group, 0) + 1

    def engine(self, name: str) -> Durations:
        """Where the seconds of an engine are counted."""
        return self.engines[name if name in self.engines else "reference"]

    @property
    def statements(self) -> Mapping[str, int]:
        """Statements that have ended without an error, by kind."""
        self._fold()
        return self._statements.copy()

    @property
    def rows(self) -> Mapping[str, int]:
        """Rows that these have returned or written, by kind, as their command tags say."""
        self._fold()
        return self._rows.copy()

    def _fold(self) -> None:
        """N3."""
        for tag, count in self._tags.items():
            words = tag.split()
            kind = _KIND_OF_WORD.get(words[0], "other") if words else "other"
            self._statements[kind] += count
            if words and words[-1].isdecimal():
                self._rows[kind] += count * int(words[-1])
        self._tags.clear()
