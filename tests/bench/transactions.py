"""Transactions that read and write: two tables, counters, a hot row, TPC-B, use cases side by side.

Scripts run with retries (40001), as an application would run them; what is counted are transactions
that committed. Both servers run at their strongest level.
"""

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence

import psycopg

from tests.bench.pgbench import Throughput, percentile, run_script
from tests.bench.sizes import Figures, Size

ONE_TABLE = """
BEGIN;
INSERT INTO {one} VALUES (:client_id, 1);
INSERT INTO {one} VALUES (:client_id, 2);
COMMIT;
"""
TWO_TABLES = ONE_TABLE.replace(
    "INSERT INTO {one} VALUES (:client_id, 2)", "INSERT INTO {two} VALUES (:client_id, 2)"
)

COUNTER = r"""
\set id random(1, 1000)
UPDATE {table} SET n = n + 1 WHERE id = :id;
"""
HOT_ROW = "UPDATE {table} SET n = n + 1 WHERE id = 1;"

# The script that pgbench calls `tpcb-like`, at scale 1.
TPC_B = r"""
\set aid random(1, 100000)
\set bid 1
\set tid random(1, 10)
\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime)
  VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
"""
TPC_B_TABLES = (
    ("pgbench_branches", "bid int NOT NULL, bbalance int, filler char(88)"),
    ("pgbench_tellers", "tid int NOT NULL, bid int, tbalance int, filler char(84)"),
    ("pgbench_accounts", "aid int NOT NULL, bid int, abalance int, filler char(84)"),
    ("pgbench_history", "tid int, bid int, aid int, delta int, mtime timestamp, filler char(22)"),
)


def two_tables(dsn: str, size: Size) -> Figures:
    """Is a transaction over two tables dearer than one of as many statements over one?"""
    with connected(dsn) as connection:
        for table in ("bench_one", "bench_two"):
            recreate(connection, table, "client int, n int")
    # In turns, so that what else the machine does hits both alike.
    one: list[float] = []
    two: list[float] = []
    for _ in range(3):
        for script, found in ((ONE_TABLE, one), (TWO_TABLES, two)):
            text = script.format(one="bench_one", two="bench_two")
            run = run_script(dsn, text, clients=1, protocol="prepared", seconds=size.seconds)
            found.append(run.p50_ms)
    return {
        "transaction over one table: p50 ms": percentile(one, 50),
        "transaction over two tables: p50 ms": percentile(two, 50),
        "transaction over two tables: times dearer": percentile(two, 50) / percentile(one, 50),
    }


def counters(dsn: str, size: Size) -> Figures:
    """Read-modify-write of one row of 1,000, and of the same row by all."""
    figures: dict[str, float] = {}
    for engine in engines(dsn):
        for name, script in (("one of 1,000 rows", COUNTER), ("one hot row", HOT_ROW)):
            for clients in (1, 16):
                with connected(dsn) as connection:
                    recreate(connection, "bench_counters", "id int NOT NULL, n bigint")
                    values = ", ".join(f"({n}, 0)" for n in range(1, 1001))
                    connection.execute(f"INSERT INTO bench_counters VALUES {values}")
                text = script.format(table="bench_counters")
                run = _at_strongest(dsn, text, clients, size.seconds, engine)
                what = f"UPDATE of {name}, {engine}, {clients} clients"
                figures[f"{what}: commits/s"] = run.per_second
                figures[f"{what}: p50 ms"] = run.p50_ms
    return figures


def tpc_b(dsn: str, size: Size) -> Figures:
    """TPC-B as pgbench has it, scale 1; on Meridian with the local engine."""
    figures: dict[str, float] = {}
    with connected(dsn) as connection:
        _load_tpc_b(connection)
    for clients in (1, 8):
        run = _at_strongest(dsn, TPC_B, clients, size.seconds, "local")
        figures[f"TPC-B, {clients} clients: transactions/s"] = run.per_second
        figures[f"TPC-B, {clients} clients: p50 ms"] = run.p50_ms
    return figures


def side_by_side(dsn: str, size: Size) -> Figures:
    """Small writes and reads alone, and beside a large read, a large write, a long transaction."""
    with connected(dsn) as connection:
        recreate(connection, "bench_small", "id int NOT NULL, n bigint")
        connection.execute("INSERT INTO bench_small VALUES (1, 0)")
        recreate(connection, "bench_large", "id bigint, v double precision, t text")
        _fill(connection, "bench_large", 500_000)
        recreate(connection, "bench_sink", "id bigint, v double precision, t text")
    alone = _small_latencies(dsn, size.seconds)
    with _busy(dsn):
        beside = _small_latencies(dsn, size.seconds)
    figures: dict[str, float] = {}
    for what, before, after in zip(("INSERT", "SELECT"), alone, beside, strict=True):
        figures[f"small {what}, alone: p99 ms"] = percentile(before, 99)
        figures[f"small {what}, beside large and long ones: p99 ms"] = percentile(after, 99)
    return figures


def engines(dsn: str) -> Sequence[str]:
    """The engines to measure; a peer has one, which stands beside each."""
    return ("local", "spark")


def connected(dsn: str) -> psycopg.Connection:
    """A connection that commits every statement."""
    connection = psycopg.connect(dsn, autocommit=True)
    connection.execute("SET client_min_messages = warning")
    return connection


def recreate(connection: psycopg.Connection, table: str, columns: str) -> None:
    """An empty table."""
    connection.execute(f"DROP TABLE IF EXISTS {table}")
    connection.execute(f"CREATE TABLE {table} ({columns})")


def _at_strongest(dsn: str, script: str, clients: int, seconds: int, engine: str) -> Throughput:
    options = "-c default_transaction_isolation=serializable"
    if _is_meridian(dsn):
        options += f" -c engine={engine}"
    return run_script(
        dsn,
        script,
        clients=clients,
        protocol="prepared",
        seconds=seconds,
        options=options,
        retries=True,
    )


def _is_meridian(dsn: str) -> bool:
    with connected(dsn) as connection:
        row = connection.execute("SELECT version()").fetchone()
    return row is not None and "Meridian" in row[0]


def _load_tpc_b(connection: psycopg.Connection) -> None:
    for table, columns in TPC_B_TABLES:
        recreate(connection, table, columns)
    connection.execute("INSERT INTO pgbench_branches VALUES (1, 0, NULL)")
    values = ", ".join(f"({n}, 1, 0, NULL)" for n in range(1, 11))
    connection.execute(f"INSERT INTO pgbench_tellers VALUES {values}")
    with connection.cursor() as cursor, cursor.copy("COPY pgbench_accounts FROM STDIN") as copy:
        copy.write("".join(f"{n}\t1\t0\t\n" for n in range(1, 100_001)).encode())
    if "Meridian" not in str(connection.execute("SELECT version()").fetchone()):
        # What pgbench -i makes; a scan of 100,000 rows would be an unfair peer.
        connection.execute("ALTER TABLE pgbench_accounts ADD PRIMARY KEY (aid)")


def _fill(connection: psycopg.Connection, table: str, rows: int) -> None:
    with connection.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN") as copy:
        for start in range(0, rows, 10_000):
            lines = (f"{n}\t{n * 0.5}\ttext {n % 100}\n" for n in range(start, start + 10_000))
            copy.write("".join(lines).encode())


def _small_latencies(dsn: str, seconds: int) -> tuple[list[float], list[float]]:
    """Milliseconds of one-row INSERTs and of SELECTs of one row, by one client in turns."""
    writes: list[float] = []
    reads: list[float] = []
    end = time.monotonic() + seconds
    with connected(dsn) as connection:
        while time.monotonic() < end:
            for text, taken in (
                ("INSERT INTO bench_small VALUES (2, 0)", writes),
                ("SELECT n FROM bench_small WHERE id = 1", reads),
            ):
                began = time.perf_counter()
                connection.execute(text)
                taken.append((time.perf_counter() - began) * 1000)
    return writes, reads


@contextlib.contextmanager
def _busy(dsn: str) -> Iterator[None]:
    """A large read and a large write over and over, and a transaction that is left open."""
    stop = threading.Event()

    def repeat(text: str) -> None:
        with connected(dsn) as connection:
            while not stop.is_set():
                connection.execute(text)

    texts = (
        "SELECT t, count(*), sum(v) FROM bench_large GROUP BY t",
        "INSERT INTO bench_sink SELECT * FROM bench_large WHERE id < 100000",
    )
    threads = [threading.Thread(target=repeat, args=(text,)) for text in texts]
    with connected(dsn) as idle:
        idle.execute("BEGIN")
        idle.execute("INSERT INTO bench_sink VALUES (0, 0, 'left open')")
        idle.execute("SELECT count(*) FROM bench_small")
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            for thread in threads:
                thread.join()
            idle.execute("ROLLBACK")
