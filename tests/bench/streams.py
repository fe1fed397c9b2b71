"""A PostgreSQL that feeds Meridian, beside one that feeds a PostgreSQL by CREATE SUBSCRIPTION.

streams    copy      the first copy of a table
           large     one transaction of many rows, until the follower shows all of them
           full      clients that commit as fast as they can, and how fast the follower keeps up
           beside    SELECT 1 of another client of the follower meanwhile, and when all is idle
           latency   from the return of COMMIT upstream until the follower shows it
           gate      COMMIT upstream when the follower is its synchronous standby

The upstream is the same for both, one after the other.
"""

import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg

from tests.bench.pgbench import percentile, run_script
from tests.bench.sizes import Figures
from tests.resilience.upstream.wide import OPTIONS
from tests.support.servers import Meridian, Postgres, meridian, postgres_server
from tests.support.synchronous import commits_wait_for

UPSTREAM: Final = ("wal_level=logical", "max_wal_senders=20", "max_replication_slots=20")
COPIED_ROWS: Final = 5_000_000
LARGE_ROWS: Final = 1_000_000
LATENCY_COMMITS: Final = 200
GATE_COMMITS: Final = 200
PAUSE_S: Final = 0.01
"""Between two commits whose way is measured: a hundred a second."""
CLIENTS: Final = 16
ASKED_EACH_S: Final = 0.005
PATIENCE_S: Final = 1_200.0

_TABLES: Final = (
    "CREATE TABLE copied (id int PRIMARY KEY, a int8, b text, c numeric(12,2), d timestamptz, "
    "e double precision)",
    "CREATE TABLE large (id int PRIMARY KEY, v text)",
    "CREATE TABLE many (id bigserial PRIMARY KEY, client int, v int)",
    "CREATE TABLE marks (id int PRIMARY KEY, n int)",
)
_SCRIPT: Final = "INSERT INTO many (client, v) VALUES (:client_id, 1);\n"


@dataclass(frozen=True, slots=True)
class Follower:
    """Who is fed: `dsn` answers queries, `name` is what upstream knows it by, `join` begins."""

    dsn: str
    name: str
    join: Callable[[], None]

    def wait(self, query: str, wanted: int) -> None:
        """Until a query has this answer."""
        end = time.perf_counter() + PATIENCE_S
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            while connection.execute(query.encode()).fetchone() != (wanted,):
                if time.perf_counter() > end:
                    raise TimeoutError(query)


def measure_streams(seconds: int) -> tuple[Figures, Figures]:
    """Of Meridian and of PostgreSQL."""
    with (
        _upstream() as upstream,
        tempfile.TemporaryDirectory(prefix="bench-") as place,
        meridian(Path(place), OPTIONS) as server,
    ):
        ours = _measure(upstream, _fed(upstream, server), seconds)
        ours |= {"server memory at its peak: MiB": server.peak_mb}
    with _upstream() as upstream, postgres_server() as peer:
        theirs = _measure(upstream, _subscribed(upstream, peer), seconds)
    return ours, theirs


@contextmanager
def _upstream() -> Generator[Postgres]:
    with postgres_server(UPSTREAM) as server:
        _execute(
            server.dsn,
            *_TABLES,
            "CREATE PUBLICATION everything FOR ALL TABLES",
            "INSERT INTO copied SELECT i, i * 7, 'row ' || i, i / 7.0, now(), i / 3.0 "
            f"FROM generate_series(1, {COPIED_ROWS}) i",
        )
        yield server


def _execute(dsn: str, *statements: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def _fed(upstream: Postgres, server: Meridian) -> Follower:
    def join() -> None:
        _execute(
            server.dsn,
            f"CREATE CONNECTION c TO POSTGRES (HOST '127.0.0.1', PORT {upstream.port}, "
            "DATABASE 'postgres', USER 'postgres')",
            "CREATE SOURCE feed FROM POSTGRES CONNECTION c (PUBLICATION 'everything')",
            "CREATE TABLES FROM SOURCE feed",
        )

    return Follower(server.dsn, "feed", join)


def _subscribed(upstream: Postgres, peer: Postgres) -> Follower:
    def join() -> None:
        where = f"host=127.0.0.1 port={upstream.port} dbname=postgres user=postgres"
        _execute(
            peer.dsn,
            *_TABLES,
            f"CREATE SUBSCRIPTION feed CONNECTION '{where}' PUBLICATION everything",
        )

    return Follower(peer.dsn, "feed", join)


def _measure(upstream: Postgres, follower: Follower, seconds: int) -> Figures:
    found: dict[str, float] = {}
    began = time.perf_counter()
    follower.join()
    follower.wait("SELECT count(*) FROM copied", COPIED_ROWS)
    found["first copy of 6 columns: rows/s"] = COPIED_ROWS / (time.perf_counter() - began)
    found |= _large(upstream, follower)
    found |= _beside(follower, "idle", lambda: time.sleep(seconds))
    busy = dict[str, float]()
    found |= _beside(follower, "busy", lambda: busy.update(_full(upstream, follower, seconds)))
    found |= busy
    found |= _latency(upstream, follower)
    found |= _gate(upstream, follower)
    return found


def _large(upstream: Postgres, follower: Follower) -> Figures:
    began = time.perf_counter()
    _execute(
        upstream.dsn,
        f"INSERT INTO large SELECT i, 'value ' || i FROM generate_series(1, {LARGE_ROWS}) i",
    )
    follower.wait("SELECT count(*) FROM large", LARGE_ROWS)
    rate = LARGE_ROWS / (time.perf_counter() - began)
    return {f"one transaction of {LARGE_ROWS:,} rows: rows/s": rate}


def _full(upstream: Postgres, follower: Follower, seconds: int) -> Figures:
    """Lag at the end: until the follower shows what was committed when the clients ended."""
    began = time.perf_counter()
    run_script(upstream.dsn, _SCRIPT, clients=CLIENTS, seconds=seconds, protocol="prepared")
    ended = time.perf_counter()
    with psycopg.connect(upstream.dsn, autocommit=True) as connection:
        row = connection.execute("SELECT count(*) FROM many").fetchone()
    assert row is not None
    follower.wait("SELECT count(*) FROM many", row[0])
    now = time.perf_counter()
    return {
        "clients at full rate: upstream transactions/s": row[0] / (ended - began),
        "clients at full rate: followed transactions/s": row[0] / (now - began),
        "clients at full rate: lag at the end, s": now - ended,
    }


def _beside(follower: Follower, name: str, work: Callable[[], None]) -> Figures:
    """SELECT 1 of another client while this goes on."""
    over = threading.Event()
    waits: list[float] = []

    def ask() -> None:
        with psycopg.connect(follower.dsn, autocommit=True) as connection:
            while not over.wait(ASKED_EACH_S):
                began = time.perf_counter()
                connection.execute("SELECT 1").fetchone()
                waits.append((time.perf_counter() - began) * 1_000)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        work()
    finally:
        over.set()
        asking.join()
    waits.sort()
    return {
        f"SELECT 1 of another client, {name}: p50 ms": percentile(waits, 50),
        f"SELECT 1 of another client, {name}: p99 ms": percentile(waits, 99),
    }


def _latency(upstream: Postgres, follower: Follower) -> Figures:
    seen: dict[int, float] = {}
    over = threading.Event()

    def look() -> None:
        newest = -1
        with psycopg.connect(follower.dsn, autocommit=True) as connection:
            while not over.is_set() and newest < LATENCY_COMMITS - 1:
                row = connection.execute("SELECT n FROM marks WHERE id = 1").fetchone()
                now = time.perf_counter()
                if row is not None:
                    seen.update(dict.fromkeys(range(newest + 1, row[0] + 1), now))
                    newest = row[0]

    looking = threading.Thread(target=look)
    looking.start()
    committed: list[float] = []
    with psycopg.connect(upstream.dsn, autocommit=True) as connection:
        for n in range(LATENCY_COMMITS):
            connection.execute(
                "INSERT INTO marks VALUES (1, %s) ON CONFLICT (id) DO UPDATE SET n = excluded.n",
                [n],
            )
            committed.append(time.perf_counter())
            over.wait(PAUSE_S)
    looking.join(PATIENCE_S)
    over.set()
    waits = sorted(max(0.0, seen[n] - at) * 1_000 for n, at in enumerate(committed))
    return {
        "COMMIT upstream to SELECT: p50 ms": statistics.median(waits),
        "COMMIT upstream to SELECT: p99 ms": waits[int(len(waits) * 0.99)],
    }


def _gate(upstream: Postgres, follower: Follower) -> Figures:
    commits_wait_for(upstream.dsn, follower.name)
    waits: list[float] = []
    with psycopg.connect(upstream.dsn, autocommit=True) as connection:
        for n in range(GATE_COMMITS):
            began = time.perf_counter()
            connection.execute("INSERT INTO many (client, v) VALUES (-1, %s)", [n])
            waits.append((time.perf_counter() - began) * 1_000)
    commits_wait_for(upstream.dsn, "")
    return {"COMMIT upstream that waits for it: p50 ms": statistics.median(waits)}
