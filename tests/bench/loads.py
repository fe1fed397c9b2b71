"""How programs load rows, beside PostgreSQL: `python -m tests.bench.loads`.

    jdbc, rewritten  what Spark's JDBC writer sends: batches of one INSERT; of 128 rows each
    executemany      psycopg in one block: plain INSERT, keyed INSERT, upsert, UPDATE by key
    values           INSERT of 1,000 rows in the text, as pandas and psycopg2 send it
    copy             asyncpg's copy_records_to_table (binary); COPY of dates in a form of people
    any              SELECT .. WHERE id = ANY($1) of 1,000 keys
    one_by_one       one block of 5,000 UPDATEs by key, each answered before the next

Seconds of the whole load, client included, and processor time of the server. Rounds are
interleaved; medians are printed, and the ratios.
"""

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import asyncpg
import psycopg

from tests.bench.short_bench import measured_servers
from tests.support.servers import meridian, postgres_server

Connection = psycopg.Connection[tuple[object, ...]]


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(prog="tests.bench.loads")
    parser.add_argument("--only", default=",".join(LOADS))
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print("load", *os.getloadavg())
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as place,
        meridian(Path(place), ("--spark-master", "none")) as server,
        postgres_server() as postgres,
    ):
        for name in options.only.split(","):
            seconds: tuple[list[float], list[float]] = ([], [])
            cpu: tuple[list[float], list[float]] = ([], [])
            for _ in range(options.rounds):
                for which, (dsn, spent, _) in enumerate(measured_servers(server, postgres)):
                    with psycopg.connect(dsn, autocommit=True) as connection:
                        _empty(connection)
                        before, began = spent(), time.perf_counter()
                        LOADS[name](connection, dsn)
                        seconds[which].append(time.perf_counter() - began)
                        cpu[which].append((spent() - before) / 1e6)
            _print(name, seconds, cpu)


def _print(
    name: str, seconds: tuple[list[float], list[float]], cpu: tuple[list[float], list[float]]
) -> None:
    mine, other = (statistics.median(found) for found in seconds)
    ours, theirs = (statistics.median(found) for found in cpu)
    print(
        f"{name:18} {mine:7.2f} s   PostgreSQL {other:6.2f} s   {mine / other:5.1f} x"
        f"   CPU {ours:6.2f} s, {theirs:5.2f} s",
        flush=True,
    )


def _empty(connection: Connection) -> None:
    for name, columns in TABLES.items():
        connection.execute(f"drop table if exists {name}")
        connection.execute(f"create table {name} ({columns})")
    with connection.cursor() as cursor, cursor.copy("copy old from stdin") as copy:
        copy.write("".join(f"{n}\t0\tname {n}\n" for n in range(20_000)).encode())


def _jdbc(connection: Connection, _: str) -> None:
    """Batches of 1,000 rows in one transaction, as `df.write.jdbc` sends them."""
    with connection.transaction(), connection.cursor() as cursor:
        for first in range(0, 30_000, 1_000):
            cursor.executemany(
                "insert into wide values (%s, %s, %s, %s, %s, %s, %s)", _wide(first, 1_000)
            )


def _rewritten(connection: Connection, _: str) -> None:
    """The same with `reWriteBatchedInserts`: 128 rows a statement, as parameters."""
    row = "(%s, %s, %s, %s, %s, %s, %s)"
    with connection.transaction(), connection.cursor() as cursor:
        for first in range(0, 30_720, 1_280):
            rows = _wide(first, 1_280)
            cursor.executemany(
                f"insert into wide values {', '.join([row] * 128)}",
                [
                    [value for row_of in rows[at : at + 128] for value in row_of]
                    for at in range(0, 1_280, 128)
                ],
            )


def _wide(first: int, count: int) -> Sequence[tuple[object, ...]]:
    return [
        (n, f"name {n}", n / 7, n % 2 == 0, n * 2, f"city {n % 50}", n % 9)
        for n in range(first, first + count)
    ]


def _many(
    statement: str, rows: int, make: Callable[[int], Sequence[object]]
) -> Callable[[Connection, str], None]:
    def load(connection: Connection, _: str) -> None:
        with connection.transaction(), connection.cursor() as cursor:
            cursor.executemany(statement, [make(n) for n in range(rows)])

    return load


def _values(connection: Connection, _: str) -> None:
    with connection.transaction():
        for first in range(0, 50_000, 1_000):
            rows = ", ".join(
                f"({n}, 'name {n}', {n / 7}, true, {n * 2}, 'city', {n % 9})"
                for n in range(first, first + 1_000)
            )
            connection.execute(f"insert into wide values {rows}".encode())


def _copy(_: Connection, dsn: str) -> None:
    async def load() -> None:
        connection = await asyncpg.connect(dsn)
        await connection.copy_records_to_table(
            "plain", records=[(n, f"name {n}") for n in range(100_000)]
        )
        await connection.close()

    asyncio.run(load())


def _forms(connection: Connection, _: str) -> None:
    with connection.cursor() as cursor, cursor.copy("copy forms from stdin") as copy:
        copy.write(
            "".join(
                f"{n % 12 + 1:02}/21/2020\t2020-1-2\t2020-01-01 00:00Z\t+{n}\t1 day {n} hours\n"
                for n in range(50_000)
            ).encode()
        )


def _any(connection: Connection, _: str) -> None:
    for first in range(0, 19_000, 1_000):
        keys = list(range(first, first + 1_000))
        connection.execute("select id, n from old where id = any(%s)", [keys]).fetchall()


def _one_by_one(connection: Connection, _: str) -> None:
    with connection.transaction():
        for n in range(5_000):
            connection.execute(_UPDATE, [n, n * 3], prepare=True)


TABLES: Mapping[str, str] = {
    "wide": "a int, b text, c float8, d bool, e bigint, f text, g int",
    "plain": "id int8, name text",
    "keyed": "id bigint primary key, n int8, name text",
    "old": "id int8 primary key, n int8, name text",
    "forms": "a date, b date, c timestamptz, d int, e interval",
}
_UPSERT = "insert into old values (%s, 1, %s) on conflict (id) do update set n = old.n + 1"
_UPDATE = "update old set n = n + %s where id = %s"
LOADS: Mapping[str, Callable[[Connection, str], None]] = {
    "jdbc": _jdbc,
    "rewritten": _rewritten,
    "plain": _many("insert into plain values (%s, %s)", 20_000, lambda n: (n, f"name {n}")),
    "keyed": _many("insert into keyed values (%s, 1, %s)", 20_000, lambda n: (n, f"name {n}")),
    "upsert": _many(_UPSERT, 5_000, lambda n: (n * 5, f"name {n}")),
    "update": _many(_UPDATE, 3_000, lambda n: (n, n * 3)),
    "values": _values,
    "copy": _copy,
    "forms": _forms,
    "any": _any,
    "one_by_one": _one_by_one,
}


if __name__ == "__main__":
    main()
