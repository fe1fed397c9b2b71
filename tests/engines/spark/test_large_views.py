"""A view of ten million rows that Spark builds and brings up to date, while its JVM is killed.

Not marked `spark`: it takes longer than a test may, and `make views` gives it the time.

    writers: rows come, one at a time, all the while ──▶ server ──▶ JVM ◀── kill -9, in the middle
    build · bulk load, catch-up · a smaller load, catch-up by changes ─▶ exact each time

INVARIANTS
  L1  the view comes back, exact: REFRESH, which computes all rows, finds none that differs.
  L2  no write fails.
  L3  neither the server nor the JVM holds the rows: their memory is bounded.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support.processes import children, command_line, peak_mb
from tests.support.servers import Meridian, meridian

HEAP_MB = 1_024
SERVER_MB_MAX = 1_024
"""Of the server's process; the rows of the view alone are some 280 MB, and its inputs 240."""
JVM_MB_MAX = HEAP_MB + 1_024
"""Heap, classes, threads, buffers."""
OPTIONS = (
    *("--set", "local_memory_mb=32"),
    *("--set", "local_spill_bytes_max=1"),
    *("--set", f"spark_heap_mb={HEAP_MB}"),
)
"""The join is beyond what the local engine may hold, so Spark computes it."""
QUERY = "SELECT f.id, f.k, f.amount, n.kind FROM fact f LEFT JOIN note n ON n.id = f.id"
SHOWN = (
    "SELECT state, tried, attached, by_changes, last_error FROM meridian.materialized_views"
    " WHERE table_name = 'wide'"
)

Connection = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class LargeViewSize:
    """Rows of the view at first, of a load that Spark computes anew, of one that it follows."""

    rows: int
    anew: int
    followed: int


SIZE = LargeViewSize(10_000_000, 300_000, 50_000)


@dataclass(slots=True)
class Phase:
    """The JVM is killed once its first rows are there. `struck`: it was."""

    name: str
    kills: bool
    struck: bool = False
    jvms: set[int] = field(default_factory=set[int])


class Beside:
    """Who writes all the while, and looks at server, JVM and view behind each write."""

    def __init__(self, server: Meridian, first: int) -> None:
        self._server = server
        self._numbers = count(first)
        self._ended = threading.Event()
        self._state = threading.Condition()
        self._exact = False
        self.phase = Phase("nothing", kills=False)
        self.written = 0
        self.failures: list[str] = []
        self.peaks = {"server": 0, "jvm": 0}

    def run(self) -> None:
        """Until `end`."""
        with _connected(self._server) as connection:
            while not self._ended.is_set():
                number = next(self._numbers)
                try:
                    connection.execute(
                        "INSERT INTO fact VALUES (%s, %s, 1)", (number, number % 1_000)
                    )
                except psycopg.Error as error:
                    self.failures.append(repr(error))
                self.written += 1
                self._look(connection)
                self._ended.wait(0.02)

    def end(self) -> None:
        """Nothing more is written."""
        self._ended.set()

    def wait_until_exact(self, seconds: float = 900) -> None:
        """Until the view was found so behind this moment."""
        with self._state:
            self._exact = False
            assert self._state.wait_for(lambda: self._exact, seconds), "the view stays behind"

    def _look(self, connection: Connection) -> None:
        phase = self.phase
        self.peaks["server"] = self._server.peak_mb
        jvm = _jvm_of(self._server.pid)
        if jvm is not None:
            phase.jvms.add(jvm)
            self.peaks["jvm"] = max(self.peaks["jvm"], peak_mb(jvm) or 0)
            if phase.kills and not phase.struck and _has_rows(self._server.data):
                phase.struck = _kill(jvm)
        found = connection.execute(SHOWN).fetchall()
        with self._state:
            self._exact = self._exact or [row[0] for row in found] == ["exact"]
            self._state.notify_all()


@contextmanager
def writing(server: Meridian, first: int) -> Iterator[Beside]:
    beside = Beside(server, first)
    thread = threading.Thread(target=beside.run)
    thread.start()
    try:
        yield beside
    finally:
        beside.end()
        thread.join()


@pytest.mark.slow
def test_a_large_view_comes_back_though_the_jvm_is_killed(tmp_path: Path) -> None:
    size = SIZE
    with meridian(tmp_path, OPTIONS) as server, _connected(server) as connection:
        connection.execute("CREATE TABLE fact (id bigint, k int, amount int)")
        connection.execute("CREATE TABLE note (id bigint, kind int)")
        _load(connection, 1, size.rows)
        series = f"generate_series(1, {size.rows // 2}) i"
        connection.execute(f"INSERT INTO note SELECT i * 2, i % 7 FROM {series}".encode())
        with writing(server, 10 * size.rows) as beside:
            beside.phase = build = Phase("build", kills=True)
            connection.execute(
                f"CREATE MATERIALIZED VIEW wide WITH (refresh = 'on commit') AS {QUERY}".encode()
            )
            beside.wait_until_exact()
            _tell(connection, beside)

            beside.phase = anew = Phase("catch-up, anew", kills=True)
            _load(connection, size.rows + 1, size.anew)
            beside.wait_until_exact()
            _tell(connection, beside)

            beside.phase = followed = Phase("catch-up, by changes", kills=False)
            _load(connection, 2 * size.rows, size.followed)
            beside.wait_until_exact()
            _tell(connection, beside)
        assert beside.failures == []
        assert [phase.name for phase in (build, anew) if not phase.struck] == []
        assert len(followed.jvms) == 1
        assert beside.peaks["server"] < SERVER_MB_MAX
        assert beside.peaks["jvm"] < JVM_MB_MAX
        _compare(connection)


def _compare(connection: Connection) -> None:
    """L1, now that nobody writes."""
    told: list[str | None] = []
    connection.add_notice_handler(lambda notice: told.append(notice.message_primary))
    connection.execute("REFRESH MATERIALIZED VIEW wide")
    assert told == ['materialized view "wide": 0 rows differ from those of its query']
    rows = "SELECT count(*), count(kind), sum(id), sum(amount), sum(kind) FROM {}"
    stored = connection.execute(rows.format("wide").encode()).fetchall()
    assert stored == connection.execute(rows.format(f"({QUERY}) q").encode()).fetchall()


def _connected(server: Meridian) -> Connection:
    return psycopg.connect(server.dsn, autocommit=True)


def _load(connection: Connection, first: int, rows: int) -> None:
    last = first + rows - 1
    series = f"generate_series({first}, {last}) i"
    connection.execute(f"INSERT INTO fact SELECT i, i % 1000, i % 97 FROM {series}".encode())


def _tell(connection: Connection, beside: Beside) -> None:
    found = connection.execute(SHOWN).fetchall()
    print(beside.phase.name, beside.written, beside.peaks, beside.phase.jvms, found, flush=True)


def _jvm_of(pid: int) -> int | None:
    """The JVM that a server has started, if it lives."""
    for child in children(pid):
        # It may have ended meanwhile.
        with suppress(FileNotFoundError, ProcessLookupError):
            if "org.apache.spark.deploy.SparkSubmit" in command_line(child).split("\0"):
                return child
    return None


def _has_rows(data: Path) -> bool:
    """Whether a query's first rows are on their way from the JVM."""
    return any((data / "tmp" / "spark" / "spools").glob("*/part-*"))


def _kill(pid: int) -> bool:
    os.kill(pid, signal.SIGKILL)
    return True
