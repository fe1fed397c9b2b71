"""Who looks at both sides while they are written to and struck (W1, W2)."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import psycopg

from tests.resilience.faults.running import Reachable
from tests.resilience.upstream.writers import ACCOUNTS, TOTAL, Marks

READ = """
    SELECT (SELECT sum(balance) FROM shop.accounts), (SELECT count(*) FROM shop.accounts),
           (SELECT count(*) FROM shop.counts c
             WHERE c.n <> (SELECT max(n) FROM shop.ticks t WHERE t.writer = c.writer)),
           (SELECT array_agg(writer ORDER BY writer) FROM shop.counts),
           (SELECT array_agg(n ORDER BY writer) FROM shop.counts), meridian.query_timestamp()
"""
_ACKNOWLEDGED = """
    WITH kept AS (SELECT *, substring(slot_name FROM '_([0-9]+)$')::int AS epoch
                    FROM pg_replication_slots WHERE database = current_database() AND NOT temporary)
    SELECT max(confirmed_flush_lsn - '0/0')::int8 FROM kept
     WHERE epoch = (SELECT max(epoch) FROM kept)
       AND (active_pid IN (SELECT pid FROM pg_stat_replication
                            WHERE state IN ('catchup', 'streaming'))
            OR 1 = (SELECT count(*) FROM kept))
"""
"""Of the slot that is read. A coordinator that was deposed may have made another one, which begins
where upstream is, and may read it, too.
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """A strict read."""

    total: int
    accounts: int
    torn: int
    counts: dict[int, int]
    ts: int


def read(connection: psycopg.Connection, as_of: int | None = None) -> Seen:
    """A strict read of the fed tables, or one of what they were."""
    text = READ if as_of is None else f"{READ} AS OF {as_of}"
    row = connection.execute(text.encode()).fetchone()
    assert row is not None
    total, accounts, torn, writers, numbers, ts = row
    return Seen(total, accounts, torn, dict(zip(writers or (), numbers or (), strict=True)), ts)


class Watcher(threading.Thread):
    """First the slot, then a strict read, over and over; what it finds is in `findings`."""

    def __init__(
        self, upstream: str, server: Reachable, marks: Marks, ended: threading.Event
    ) -> None:
        super().__init__(daemon=True)
        self._upstream = upstream
        self._server = server
        self._marks = marks
        self._ended = ended
        self.seen: list[Seen] = []
        self.findings: list[str] = []

    def run(self) -> None:
        while not self._ended.is_set():
            try:
                with (
                    psycopg.connect(self._upstream, autocommit=True) as upstream,
                    psycopg.connect(self._server.dsn, autocommit=True) as here,
                ):
                    while not self._ended.is_set():
                        self.findings += self._look(upstream, here)
            except psycopg.OperationalError:
                self._ended.wait(0.05)
            except psycopg.Error as error:
                self.findings.append(f"{error.sqlstate} {error}")
                return

    def _look(self, upstream: psycopg.Connection, here: psycopg.Connection) -> Sequence[str]:
        row = upstream.execute(_ACKNOWLEDGED).fetchone()
        assert row is not None
        known = self._marks.acknowledged(row[0] or 0)
        seen = read(here)
        self.seen.append(seen)
        return judge(seen, known)


def judge(seen: Seen, known: dict[int, int]) -> Sequence[str]:
    """What a strict read must not show, when so much was acknowledged before it began."""
    found = []
    if (seen.total, seen.accounts) != (TOTAL, ACCOUNTS) or seen.torn:
        found.append(f"torn: {seen}")
    found += [
        f"acknowledged ahead: writer {writer} at {n}, read {seen.counts.get(writer, 0)}"
        for writer, n in known.items()
        if seen.counts.get(writer, 0) < n
    ]
    return found
