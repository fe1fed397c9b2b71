"""What a session adds to when it has run a statement: a few additions, and no look-up.

    CountedStatement.add(began, ended, rows) ─▶ waits among `pending` ─▶ `ServerStatistics.fold`

INVARIANTS
  C1  an object that holds counts is among `pending`, once; it may be there without any.
"""

from coordinator.statistics.query_texts import QueryText
from coordinator.statistics.relation_accesses import RelationAccess
from coordinator.statistics.statement_entries import EntryKey, Timings


class CountedStatement:
    """A statement of one role in one database, and what was counted since it was folded.

    `accesses`: what each call, or each row, does to tables; of the plan `planned`.
    """

    __slots__ = (
        "accesses", "calls", "engines", "key", "last", "least", "most", "pending", "planned",
        "query", "rows", "squares", "total", "waits",
    )  # fmt: skip

    def __init__(self, key: EntryKey, query: QueryText, pending: "list[CountedStatement]") -> None:
        self.key = key
        self.query = query
        self.pending = pending
        self.planned: object = None
        self.accesses: tuple[RelationAccess, ...] = ()
        self.waits = False
        """Whether it is among `pending`."""
        self.clear()

    def clear(self) -> None:
        """Everything is folded."""
        self.calls = self.rows = 0
        self.total = self.squares = self.last = self.most = 0.0
        self.least = float("inf")
        self.engines: dict[str, int] | None = None

    def add(self, began: float, ended: float, rows: int) -> None:
        """A call, in seconds of a monotonic clock."""
        if not self.waits:
            self.waits = True
            self.pending.append(self)
        seconds = ended - began
        self.calls += 1
        self.rows += rows
        self.last = ended
        self.total += seconds
        self.squares += seconds * seconds
        if seconds < self.least:  # noqa: PLR1730 - a call takes three times as long
            self.least = seconds
        if seconds > self.most:  # noqa: PLR1730
            self.most = seconds

    def add_calls(self, calls: int, began: float, ended: float, rows: int) -> None:
        """Several calls that were one piece of work."""
        if not self.waits:
            self.waits = True
            self.pending.append(self)
        seconds = (ended - began) / calls
        self.calls += calls
        self.rows += rows
        self.last = ended
        self.total += ended - began
        self.squares += seconds * seconds * calls
        self.least, self.most = min(self.least, seconds), max(self.most, seconds)

    def add_rows(self, began: float, ended: float, rows: int) -> None:
        """More of a call that was added: a portal goes on."""
        if not self.waits:
            self.waits = True
            self.pending.append(self)
        self.rows += rows
        self.total += ended - began

    def ran_on(self, engine: str) -> None:
        """The call that was just added has run on an engine."""
        if self.engines is None:
            self.engines = {}
        self.engines[engine] = self.engines.get(engine, 0) + 1

    @property
    def timings(self) -> Timings:
        """How long these calls took."""
        return Timings(self.calls, self.total, self.squares, self.least, self.most)
