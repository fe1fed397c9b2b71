"""Writing to a large table: by key, in batches, and much at once.

The table is filled by COPY and has a primary key; keys come at random from twice its size, so that
half of the upserts find a row.
"""

import random
import time
from collections.abc import Callable

import psycopg

from tests.bench.pgbench import percentile, run_script
from tests.bench.sizes import Figures, Size

CLIENTS = (1, 16)
FIRST_NEW = 1_000_000_000
"""New keys are larger than those that the table is filled with, and so many that none comes twice:
of 8 thousand million, one run in forty of 20,000 rows drew one again."""

INSERT = rf"""
\set id random({FIRST_NEW}, 9000000000000000000)
INSERT INTO bench_keyed VALUES (:id, 1, 'inserted', 1.5);
"""
BATCH_ROWS = 1_000
BATCHES = 10
CHUNK_ROWS = 10_000

UPDATE = r"""
\set id random(0, {keys})
UPDATE bench_keyed SET visits = visits + 1 WHERE id = :id;
"""

UPSERT = r"""
\set id random(1, {keys})
INSERT INTO bench_keyed VALUES (:id, 1, 'upserted', 1.5)
    ON CONFLICT (id) DO UPDATE SET visits = bench_keyed.visits + excluded.visits;
"""


def keyed(dsn: str, size: Size) -> Figures:
    """Single rows by key: INSERT, UPDATE, DELETE, ON CONFLICT; and ON CONFLICT in batches."""
    rows, chance = size.keyed_rows, random.Random(1)
    with psycopg.connect(dsn, autocommit=True) as connection:
        _fill(connection, rows)

        def update() -> None:
            query = "UPDATE bench_keyed SET visits = visits + 1 WHERE id = %s"
            connection.execute(query, (chance.randrange(rows),))

        def delete() -> None:
            connection.execute("DELETE FROM bench_keyed WHERE id = %s", (chance.randrange(rows),))

        def batch() -> None:
            keys = chance.sample(range(2 * rows), min(BATCH_ROWS, rows))
            values = ", ".join(f"({key}, 1, 'batch', 1.5)" for key in keys)
            text = (
                f"INSERT INTO bench_keyed VALUES {values} ON CONFLICT (id) DO UPDATE"
                " SET visits = bench_keyed.visits + excluded.visits"
            )
            connection.execute(text.encode())

        figures = {
            "UPDATE by key, large table: p50 ms": _p50(update, size.reads),
            "DELETE by key, large table: p50 ms": _p50(delete, size.reads),
            f"ON CONFLICT, {BATCH_ROWS} rows at once: p50 ms": _p50(batch, BATCHES),
        }
    for what, script in (
        ("INSERT, large keyed table", INSERT),
        ("UPDATE by key", UPDATE.format(keys=rows - 1)),
        ("ON CONFLICT by key", UPSERT.format(keys=2 * rows)),
    ):
        for clients in CLIENTS:
            run = run_script(
                dsn,
                script,
                clients=clients,
                protocol="prepared",
                seconds=size.seconds,
                retries=True,
            )
            figures[f"{what}, {clients} clients: commits/s"] = run.per_second
            figures[f"{what}, {clients} clients: p50 ms"] = run.p50_ms
    return figures


def bulk(dsn: str, size: Size) -> Figures:
    """INSERT .. SELECT, UPDATE of a hundredth, MERGE, DELETE with a subquery, all of many rows."""
    rows = size.keyed_rows
    with psycopg.connect(dsn, autocommit=True) as connection:
        _fill(connection, rows)
        connection.execute("DROP TABLE IF EXISTS bench_bulk")
        connection.execute("CREATE TABLE bench_bulk (id bigint, visits integer, note text)")
        merge = (
            "MERGE INTO bench_keyed t USING (SELECT id, max(visits) AS visits FROM bench_bulk"
            f" WHERE id % 10 = 0 GROUP BY id) s ON t.id = s.id + {rows // 2}"
            " WHEN MATCHED THEN UPDATE SET visits = s.visits"
            " WHEN NOT MATCHED THEN INSERT VALUES (s.id + "
            f"{rows // 2}, s.visits, 'merged', 0)"
        )
        statements = {
            "INSERT SELECT: rows/s": (
                "INSERT INTO bench_bulk SELECT id, visits, note FROM bench_keyed",
                rows,
            ),
            "UPDATE of 1 %: rows/s": (
                "UPDATE bench_bulk SET visits = visits + 1 WHERE id % 100 = 7",
                rows // 100,
            ),
            "MERGE: rows/s": (merge, rows // 10),
            "DELETE with a subquery: rows/s": (
                "DELETE FROM bench_bulk WHERE id IN (SELECT id FROM bench_keyed WHERE id % 10 = 3)",
                rows // 10,
            ),
        }
        return {
            name: affected / _seconds(connection, text)
            for name, (text, affected) in statements.items()
        }


def _fill(connection: psycopg.Connection, rows: int) -> None:
    connection.execute("SET client_min_messages = warning")
    connection.execute("DROP TABLE IF EXISTS bench_keyed")
    columns = "id bigint PRIMARY KEY, visits integer, note text, amount numeric(12, 2)"
    connection.execute(f"CREATE TABLE bench_keyed ({columns})")
    with connection.cursor() as cursor, cursor.copy("COPY bench_keyed FROM STDIN") as into:
        for first in range(0, rows, CHUNK_ROWS):
            last = min(rows, first + CHUNK_ROWS)
            into.write("".join(f"{n}\t{n % 8}\tnote {n}\t{n}.25\n" for n in range(first, last)))


def _seconds(connection: psycopg.Connection, statement: str) -> float:
    began = time.perf_counter()
    connection.execute(statement.encode())
    return time.perf_counter() - began


def _p50(action: Callable[[], None], times: int) -> float:
    """Median milliseconds, after one that warms up."""
    action()
    taken: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        action()
        taken.append((time.perf_counter() - began) * 1000)
    return percentile(taken, 50)
