"""A client that follows a table by SUBSCRIBE and folds what it is told; it may lose its connection.

INVARIANTS
  F1  `state` is the table as it was just before `frontier`: what was told with a timestamp at or
      past the last progress is forgotten when the connection is lost, and told again.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import cycle

import psycopg
from psycopg import sql

Row = tuple[object, ...]


@dataclass(slots=True)
class Follower:
    """See the module. `progressed` is called with the state at each progress, and its timestamp."""

    relation: str
    progressed: Callable[["Follower"], None] = lambda _: None
    frontier: int | None = None
    state: Counter[Row] = field(default_factory=Counter)
    snapshot_at: int | None = None
    problems: list[str] = field(default_factory=list)
    rows: int = 0
    resumes: bool = True
    """Whether the query can be gone on from; otherwise it begins anew each time."""
    altered: int = 0
    """How often a definition has changed, and it began anew."""
    fetches: bool = False
    """It asks for rows by FETCH, and is not told as they come."""

    def follow(self, dsn: str, *, until: Callable[[int], bool], rows_max: int) -> None:
        """Follow until a progress timestamp is the last one, or so many rows have come."""
        with psycopg.connect(dsn, autocommit=True) as connection:
            if not self.resumes:
                self._begin_anew()
            told = self._fetched(connection) if self.fetches else self._streamed(connection)
            try:
                self._fold(told, until, rows_max)
            except psycopg.errors.FeatureNotSupported as error:
                if "has changed" not in str(error):
                    raise
                self.altered += 1
                self._begin_anew()
            except psycopg.errors.ObjectNotInPrerequisiteState as error:
                # A view that is behind: it tries again, having told nothing.
                if "is behind its inputs" not in str(error) or self.frontier is not None:
                    raise
            # A client that is killed says no good-bye, and leaves rows in its socket.
            connection.pgconn.finish()

    def _begin_anew(self) -> None:
        self.frontier = None
        self.state.clear()

    def _streamed(self, connection: psycopg.Connection) -> Iterator[Row]:
        return connection.cursor().stream(self._statement())

    def _fetched(self, connection: psycopg.Connection) -> Iterator[Row]:
        connection.execute("BEGIN")
        connection.execute(sql.SQL("DECLARE c CURSOR FOR {}").format(self._statement()))
        for fetch in cycle(("FETCH 100 c", "FETCH ALL c", "FETCH 7 c WITH (timeout = '20 ms')")):
            yield from connection.execute(fetch.encode()).fetchall()

    def _statement(self) -> sql.Composed:
        if self.frontier is None:
            return sql.SQL("SUBSCRIBE {} WITH (PROGRESS)").format(sql.SQL(self.relation))
        return sql.SQL("SUBSCRIBE {} WITH (SNAPSHOT = false, PROGRESS) AS OF {}").format(
            sql.SQL(self.relation), sql.Literal(self.frontier - 1)
        )

    def _fold(self, told: Iterator[Row], until: Callable[[int], bool], rows_max: int) -> None:
        since = self.frontier
        at = 0
        pending: Counter[Row] = Counter()
        for count, (ts, progressed, diff, *values) in enumerate(told, 1):
            assert isinstance(ts, int)
            self.rows += 1
            if ts < at:
                self.problems.append(f"time went back from {at} to {ts}")
            if since is not None and ts < since:
                self.problems.append(f"{ts} was told, but {since} was a progress before")
            at = ts
            if progressed:
                self._progress(ts, pending)
                since = ts
                if until(ts):
                    return
            else:
                assert isinstance(diff, int)
                pending[tuple(values)] += diff
            if count >= rows_max:
                return

    def _progress(self, ts: int, pending: Counter[Row]) -> None:
        self.state.update(pending)
        pending.clear()
        negative = [row for row, count in self.state.items() if count < 0]
        if negative:
            self.problems.append(f"at {ts} there are less than none of {negative[:3]}")
        self.state = +self.state
        self.frontier = ts
        self.progressed(self)


def rows_max(choices: random.Random) -> int:
    """After how many rows a client is killed: often soon, in the middle of a commit."""
    return choices.choice([1, 2, 3, 7, 20, 60, 200])
