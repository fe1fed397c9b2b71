"""A million rows out, and 50,000 in: `python -m tests.bench.large_results`.

    text, binary    SELECT of 1 M rows x 3, which libpq keeps as one result
    copy            COPY FROM of 50,000 rows x 3 in binary, made before

Processor time of the server beside PostgreSQL's; rounds are interleaved, and medians are printed.
"""

import argparse
import os
import statistics
import struct
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psycopg

from tests.bench.short_bench import measured_servers
from tests.support.servers import meridian, postgres_server

Connection = psycopg.Connection[tuple[object, ...]]
_COLUMNS = "id int8, n float8, name text"
_SELECT = b"select id, n, name from large"


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(prog="tests.bench.large_results")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print("load", *os.getloadavg())
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as place,
        meridian(Path(place), ("--spark-master", "none")) as server,
        postgres_server() as postgres,
    ):
        servers = measured_servers(server, postgres)
        for dsn, _, _ in servers:
            with psycopg.connect(dsn, autocommit=True) as connection:
                _fill(connection, options.rows)
        for name, run in RUNS.items():
            figures = [_measured(dsn, spent, run) for dsn, spent, _ in [*servers] * options.rounds]
            (mine, ours), (other, theirs) = (_medians(figures[at::2]) for at in (0, 1))
            print(
                f"{name:8} CPU {ours:6.2f} s   PostgreSQL {theirs:6.2f} s   {ours / theirs:5.2f} x"
                f"   elapsed {mine:6.2f} s, {other:6.2f} s",
                flush=True,
            )


def _fill(connection: Connection, rows: int) -> None:
    connection.execute(f"create table large ({_COLUMNS})".encode())
    with connection.cursor() as cursor, cursor.copy("copy large from stdin") as copy:
        for first in range(0, rows, 50_000):
            numbers = range(first, min(first + 50_000, rows))
            copy.write("".join(f"{n}\t{n / 7}\tname {n}\n" for n in numbers).encode())


def _measured(
    dsn: str, spent: Callable[[], float], run: Callable[[Connection], None]
) -> tuple[float, float]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("drop table if exists taken")
        connection.execute(f"create table taken ({_COLUMNS})".encode())
        before, began = spent(), time.perf_counter()
        run(connection)
        return time.perf_counter() - began, (spent() - before) / 1e6


def _medians(figures: list[tuple[float, float]]) -> tuple[float, float]:
    elapsed, cpu = zip(*figures, strict=True)
    return statistics.median(elapsed), statistics.median(cpu)


def _text(connection: Connection) -> None:
    assert connection.pgconn.exec_(_SELECT).ntuples > 0, "there are rows"


def _binary(connection: Connection) -> None:
    result = connection.pgconn.exec_params(_SELECT, None, result_format=1)
    assert result.ntuples > 0, "there are rows"


def _copy(connection: Connection) -> None:
    with connection.cursor() as cursor:
        for _ in range(_COPIES):
            with cursor.copy("copy taken from stdin (format binary)") as copy:
                copy.write(_BINARY)


_COPIES = 5
"""The clock of processor time counts hundredths of a second."""


def _binary_rows(count: int) -> bytes:
    rows = [b"PGCOPY\n\xff\r\n\0", struct.pack("!ii", 0, 0)]
    for n in range(count):
        name = f"name {n}".encode()
        rows.append(struct.pack("!hiqidi", 3, 8, n, 8, n / 7, len(name)) + name)
    return b"".join([*rows, struct.pack("!h", -1)])


_BINARY = _binary_rows(50_000)

RUNS: Mapping[str, Callable[[Connection], None]] = {
    "text": _text,
    "binary": _binary,
    "copy": _copy,
}


if __name__ == "__main__":
    main()
