"""The rows of pg_stat_statements: what was counted of each statement, by role and database.

INVARIANTS
  E1  at most STATEMENTS_COUNTED_MAX entries: the least used twentieth goes when one more comes, as
      in PostgreSQL (entry_dealloc in pg_stat_statements.c).
"""

from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Final, NamedTuple

STATEMENTS_COUNTED_MAX: Final = 5_000
"""As pg_stat_statements.max. Larger: more memory, and longer reads of the view."""

_LEAST_DROPPED: Final = 10
_LATER: Final = 0.99
"""How much of its usage an entry keeps each time some are dropped (USAGE_DECREASE_FACTOR)."""


class EntryKey(NamedTuple):
    """Who has run which statement where. `user`: an oid; `database`: a name."""

    user: int
    database: str
    queryid: int


@dataclass(slots=True)
class Timings:
    """How long calls took, in seconds."""

    calls: int = 0
    total: float = 0.0
    squares: float = 0.0
    least: float = 0.0
    most: float = 0.0

    def merge(self, other: "Timings") -> None:
        """Add others."""
        if other.calls:
            self.least = min(self.least, other.least) if self.calls else other.least
            self.most = max(self.most, other.most)
            self.calls += other.calls
        self.total += other.total
        self.squares += other.squares

    @property
    def mean(self) -> float:
        """Of one call."""
        return self.total / self.calls if self.calls else 0.0

    @property
    def deviation(self) -> float:
        """The standard deviation of all calls."""
        if self.calls < 2:
            return 0.0
        return sqrt(max(self.squares / self.calls - self.mean**2, 0.0))


@dataclass(slots=True)
class StatementEntry:
    """A row. `since`, `extremes_since`: microseconds. `engines`: calls that an engine has run."""

    text: str
    since: int
    extremes_since: int
    timings: Timings = field(default_factory=Timings)
    rows: int = 0
    usage: float = 0.0
    engines: dict[str, int] = field(default_factory=dict[str, int])

    def copy(self) -> "StatementEntry":
        """As it is now."""
        return replace(self, timings=replace(self.timings), engines=self.engines.copy())


class StatementEntries:
    """See the module."""

    def __init__(self) -> None:
        self._entries: dict[EntryKey, StatementEntry] = {}
        self.dropped = 0
        """How often entries had to go (E1)."""
        self.reset_at = 0

    def entry(self, key: EntryKey, text: str, now: int) -> StatementEntry:
        """The entry, made now if there is none."""
        found = self._entries.get(key)
        if found is None:
            if len(self._entries) >= STATEMENTS_COUNTED_MAX:
                self._drop_least_used()
            found = self._entries[key] = StatementEntry(text, now, now)
        return found

    def items(self) -> list[tuple[EntryKey, StatementEntry]]:
        """All of them."""
        return list(self._entries.items())

    def reset(
        self, now: int, *, user: int = 0, database: str = "", queryid: int = 0, extremes: bool
    ) -> None:
        """Forget entries, or only their `extremes`; 0 and empty: of all."""
        chosen = [
            key
            for key in self._entries
            if user in (0, key.user)
            and database in ("", key.database)
            and queryid in (0, key.queryid)
        ]
        for key in chosen:
            if extremes:
                entry = self._entries[key]
                entry.timings.least = entry.timings.most = 0.0
                entry.extremes_since = now
            else:
                del self._entries[key]
        if not extremes and not user and not database and not queryid:
            self.reset_at, self.dropped = now, 0

    def _drop_least_used(self) -> None:
        by_usage = sorted(self._entries, key=lambda key: self._entries[key].usage)
        for key in by_usage[: max(_LEAST_DROPPED, len(by_usage) // 20)]:
            del self._entries[key]
        for entry in self._entries.values():
            entry.usage *= _LATER
        self.dropped += 1
