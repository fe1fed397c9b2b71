"""One wide table upstream, for loads that are larger than memory: what is written, and whether it
is here.
"""

import threading
import time

import psycopg

from tests.resilience.upstream.feed import source_of
from tests.support.servers import Meridian, Postgres

OPTIONS = (
    "--spark-master", "none", "--set", "source_hosts=127.0.0.1", "--set", "local_memory_mb=256",
)  # fmt: skip
SCHEMA = (
    "CREATE TABLE wide (id int PRIMARY KEY, a int, b text, c numeric(12,2), d timestamptz)",
    "INSERT INTO wide SELECT i, i, 'before', 1, '2026-01-01' FROM generate_series(1, 1000) i",
    "CREATE PUBLICATION everything FOR ALL TABLES",
)
SUMS = "SELECT count(*), sum(id::int8), sum(a::int8), min(b), max(b), sum(c) FROM {}"
PEAK_MB_MAX = 1_024
PATIENCE_S = 900.0


def feed_wide(upstream: Postgres, server: Meridian) -> None:
    """Both have the table, with some rows."""
    with psycopg.connect(upstream.dsn, autocommit=True) as there:
        for statement in SCHEMA:
            there.execute(statement.encode())
    with psycopg.connect(server.dsn, autocommit=True) as here:
        for statement in source_of(upstream.port):
            here.execute(statement.encode())
        assert here.execute("SELECT count(*) FROM shop.wide").fetchone() == (1000,)


def commit_wide(upstream: Postgres, rows: int, first: int = 1001) -> None:
    """One transaction: inserts, and changes of what was inserted."""
    with psycopg.connect(upstream.dsn) as there:
        there.execute(
            f"INSERT INTO wide SELECT i, i % 97, 'w' || i, i / 7.0, '2026-02-03' "
            f"FROM generate_series({first}, {first + rows - 1}) i".encode()
        )
        among = f"id >= {first - 1_000}"
        there.execute(f"UPDATE wide SET a = a + 1, b = b || 'u' WHERE id % 10 = 0 AND {among}")
        there.execute(f"UPDATE wide SET id = -id WHERE id % 100 = 1 AND {among}")
        there.execute(f"DELETE FROM wide WHERE id % 15 = 0 AND {among}")


def commit_often(upstream: Postgres, times: int, rows: int, first: int = 1001) -> None:
    """So many transactions, of some rows each; later ones change rows of earlier ones."""
    with psycopg.connect(upstream.dsn, autocommit=True) as there:
        # Otherwise the time goes by with upstream's own syncs.
        there.execute("SET synchronous_commit = off")
        there.execute(
            f"""DO $$
            DECLARE low int;
            BEGIN
              FOR n IN 0..{times - 1} LOOP
                low := {first} + n * {rows};
                INSERT INTO wide SELECT i, i % 97, 'w' || i, i / 7.0, '2026-02-03'
                  FROM generate_series(low, low + {rows - 1}) i;
                IF n % 3 = 0 THEN
                  UPDATE wide SET a = a + 1, b = b || 'u'
                    WHERE id BETWEEN low - {rows} AND low - {rows} + 10;
                END IF;
                IF n % 10 = 0 THEN
                  DELETE FROM wide WHERE id BETWEEN low - {rows} AND low - {rows} + 3;
                END IF;
                COMMIT;
              END LOOP;
            END $$""".encode()
        )


def assert_equal(upstream: Postgres, server: Meridian) -> None:
    """Both sides come to the same, in the end."""
    with psycopg.connect(upstream.dsn) as there, psycopg.connect(server.dsn) as here:
        here.autocommit = True
        wanted = there.execute(SUMS.format("wide").encode()).fetchall()
        end = time.monotonic() + PATIENCE_S
        waits = threading.Event()
        while (found := here.execute(SUMS.format("shop.wide").encode()).fetchall()) != wanted:
            told = here.execute("SELECT state, code, reason FROM meridian.sources").fetchall()
            assert time.monotonic() < end, (found, wanted, told)
            waits.wait(0.5)
