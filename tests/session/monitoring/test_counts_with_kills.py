"""Counters equal what clients have counted, also while sessions are cancelled and terminated."""

import threading
from collections import Counter
from pathlib import Path

import psycopg

from tests.session.monitoring.http_client import scrape, value
from tests.support.servers import free_port, meridian

WORKERS = 4
STATEMENTS = 160
EVERY = 40
"""So many statements of a worker lie between two strikes at its neighbour."""
THROWN_OUT = ("57P01", None)
"""What a terminated client is told, or nothing: a reset can overtake the message."""


class _Killer:
    """An administrator, who cancels and terminates by turns."""

    def __init__(self, connection: "psycopg.Connection[tuple[object, ...]]") -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self.pids: dict[int, int] = {}
        self.strikes = 0
        self.sent: Counter[str] = Counter()

    def strike(self, worker: int) -> None:
        """At a worker, which may be between two sessions, or have ended."""
        with self._lock:
            pid = self.pids.get(worker)
            if pid is None:
                return
            self.strikes += 1
            name = ("pg_terminate_backend", "pg_cancel_backend")[self.strikes % 2]
            found = self._connection.execute(f"SELECT {name}(%s)".encode(), (pid,)).fetchone()
            self.sent[name] += found == (True,)


class _Worker(threading.Thread):
    """A client that writes and reads, and connects again when it is thrown out."""

    def __init__(self, dsn: str, number: int, killer: _Killer) -> None:
        super().__init__()
        self._dsn, self._number, self._killer = dsn, number, killer
        self.done: Counter[str] = Counter()
        self.told: Counter[str] = Counter()
        self.sessions = 0

    def run(self) -> None:
        left = list(range(STATEMENTS))
        while left:
            with psycopg.connect(self._dsn, autocommit=True) as connection:
                self.sessions += 1
                self._killer.pids[self._number] = connection.info.backend_pid
                try:
                    while left:
                        self._one(connection, left.pop())
                except psycopg.OperationalError as error:
                    if error.sqlstate not in THROWN_OUT:
                        raise
                    # A driver that saw the socket fail still holds the connection for good.
                    connection.close()

    def _one(self, connection: "psycopg.Connection[tuple[object, ...]]", number: int) -> None:
        key = self._number * STATEMENTS + number
        if number % EVERY == 0:
            self._killer.strike((self._number + 1) % WORKERS)
        try:
            connection.execute("INSERT INTO kept VALUES (%s)", (key,))
            self.done["insert"] += 1
            connection.execute("SELECT sum(a) FROM kept WHERE a <= %s", (key,)).fetchall()
            self.done["select"] += 1
        except psycopg.errors.QueryCanceled as error:
            self.told[error.sqlstate or ""] += 1


def test_counters_are_what_clients_count_under_kills(tmp_path: Path) -> None:
    port = free_port()
    options = ("--spark-master", "none", "--set", f"http_listen=127.0.0.1:{port}")
    with meridian(tmp_path, options) as server:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute("CREATE TABLE kept (a int PRIMARY KEY)")
        before = scrape(port)
        with psycopg.connect(server.dsn, autocommit=True) as admin:
            killer = _Killer(admin)
            workers = [_Worker(server.dsn, number, killer) for number in range(WORKERS)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
        after = scrape(port)
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            (rows,) = connection.execute("SELECT count(*) FROM kept").fetchone() or (0,)
            asked = "SELECT sessions_killed FROM pg_stat_database WHERE datname = 'meridian'"
            (killed,) = connection.execute(asked).fetchone() or (0,)

    def grown(name: str, **labels: str) -> float:
        return value(after, name, **labels) - value(before, name, **labels)

    done = sum((worker.done for worker in workers), Counter())
    told = sum((worker.told for worker in workers), Counter())
    sent = killer.sent
    assert sent["pg_terminate_backend"] > 0
    assert sent["pg_cancel_backend"] > 0
    assert killed == sent["pg_terminate_backend"]
    # Whoever was thrown out behind a commit has not heard of it: one statement for each.
    inserted = grown("meridian_statements_total", kind="insert")
    assert inserted == rows
    assert done["insert"] <= inserted <= done["insert"] + sent.total()
    selected = grown("meridian_statements_total", kind="select") - killer.strikes
    assert done["select"] <= selected <= done["select"] + sent.total()
    errors = grown("meridian_errors_total", sqlstate_class="57")
    assert told["57014"] <= errors <= sent.total()
    sessions = sum(worker.sessions for worker in workers) + 1
    assert grown("meridian_sessions_total") == sessions
