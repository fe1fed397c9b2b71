"""Measure how long others wait beside large statements: `python -m tests.bench.fair_bench`.

    one client  ──▶ a large statement ─▶ server ◀── SELECT 1, over and over ── another process
                                                       └▶ the worst, and the 99th percentile

python -m tests.bench.fair_bench                       # all statements, Meridian and PostgreSQL
python -m tests.bench.fair_bench --only values,union --repeat 5

Each statement runs `--repeat` times in a row. The figures are those of `SELECT 1` from its
first to its last byte, beside the figure of a server that does nothing else.
"""

import argparse
import contextlib
import multiprocessing
import multiprocessing.synchronize
import socket
import struct
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import Queue
from typing import Final, TypeAlias

import psycopg

from tests.support.servers import meridian, postgres

PAUSE_SECONDS: Final = 0.002
"""Between two statements of the one who waits."""

Statement: TypeAlias = Callable[[psycopg.Connection], None]


def _execute(text: str) -> Statement:
    def run(connection: psycopg.Connection) -> None:
        with connection.cursor() as cursor:
            cursor.execute(text.encode(), prepare=False)
            if cursor.description is not None:
                cursor.fetchall()

    return run


def _string_of_statements(connection: psycopg.Connection) -> None:
    connection.pgconn.exec_(b"SELECT 1;" * 5_000)


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def _pipelined(connection: psycopg.Connection, sent: bytes, answers: int) -> None:
    """Send messages at once, over the connection's own socket, and read all ReadyForQuery."""
    wire = socket.socket(fileno=connection.pgconn.socket)
    try:
        wire.setblocking(True)
        wire.sendall(sent)
        left, seen = answers, b""
        while left:
            seen += wire.recv(1 << 20)
            while len(seen) >= 5 and len(seen) > (size := struct.unpack("!i", seen[1:5])[0]):
                left -= seen[:1] == b"Z"
                seen = seen[size + 1 :]
    finally:
        wire.setblocking(False)
        wire.detach()


def _queries(connection: psycopg.Connection) -> None:
    _pipelined(connection, _message(b"Q", b"SELECT 1\0") * 5_000, 5_000)


def _binds(connection: psycopg.Connection) -> None:
    parse = _message(b"P", b"\0SELECT $1::int\0\0\0")
    value = struct.pack("!hhi", 0, 1, 1) + b"7"
    bind = _message(b"B", b"\0\0" + value + struct.pack("!h", 0)) + _message(b"E", b"\0\0\0\0\0")
    _pipelined(connection, parse + bind * 5_000 + _message(b"S", b""), 1)


def _prepare(connection: psycopg.Connection) -> None:
    items = ",".join(map(str, range(30_000)))
    connection.pgconn.exec_(f"PREPARE a AS SELECT count(*) FROM unnest(ARRAY[{items}])".encode())
    connection.pgconn.exec_(b"EXECUTE a")
    connection.pgconn.exec_(b"DEALLOCATE a")


def _array(connection: psycopg.Connection) -> None:
    text = "SELECT count(*) FROM fair_bench WHERE id = ANY(%s)"
    connection.execute(text, [list(range(30_000))], prepare=False)


def _joined(parts: Iterator[str], by: str = ",") -> str:
    return by.join(parts)


def _statements() -> dict[str, Statement]:
    numbers = range(50_000)
    literals = ",".join(map(str, range(10)))
    rows = _joined(f"({i},{literals})" for i in range(20_000))
    columns = "SELECT count(*) FROM fair_bench WHERE"
    return {
        "alone": lambda _connection: time.sleep(1),
        "values": _execute("VALUES " + _joined(f"({i})" for i in numbers)),
        "insert": _execute(f"INSERT INTO fair_wide VALUES {rows}"),
        "in": _execute(f"{columns} id IN ({_joined(map(str, numbers))})"),
        "string": _string_of_statements,
        "queries": _queries,
        "binds": _binds,
        "prepare": _prepare,
        "array": _array,
        "literal": _execute(f"SELECT length('{'x' * (8 << 20)}')"),
        "result": _execute("SELECT i, i FROM generate_series(1, 3000000) i"),
        "union": _execute(" UNION ALL ".join(f"SELECT {i}" for i in range(5_000))),
        "or": _execute(f"{columns} " + " OR ".join(f"(id = {i} AND v = 1)" for i in range(2_000))),
    }


@dataclass(frozen=True, slots=True)
class Waited:
    """Milliseconds of others' statements. `took`: seconds of the large one, the median."""

    took: float
    worst: float
    p99: float
    median: float
    problem: str = ""


@contextlib.contextmanager
def watched(dsn: str) -> Iterator[list[float]]:
    """How many seconds others wait for `SELECT 1` meanwhile; sorted, filled at the end."""
    processes = multiprocessing.get_context("spawn")
    stop, ready = processes.Event(), processes.Event()
    found: Queue[list[float]] = processes.Queue()  # type: ignore[assignment]
    watcher = processes.Process(target=_watch, args=(dsn, stop, ready, found), daemon=True)
    watcher.start()
    ready.wait()
    waits: list[float] = []
    try:
        yield waits
    finally:
        stop.set()
        waits += sorted(found.get())
        watcher.join()


def quantile(waits: Sequence[float], part: float) -> float:
    """Of sorted seconds, in milliseconds; `part` 1 is the worst one."""
    return waits[min(len(waits) - 1, int(len(waits) * part))] * 1e3


def _watch(
    dsn: str,
    stop: multiprocessing.synchronize.Event,
    ready: multiprocessing.synchronize.Event,
    found: "multiprocessing.Queue[list[float]]",
) -> None:
    """SELECT 1 over and over, in a process of its own."""
    waits: list[float] = []
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SELECT 1")
        ready.set()
        while not stop.is_set():
            began = time.perf_counter()
            connection.execute("SELECT 1")
            waits.append(time.perf_counter() - began)
            time.sleep(PAUSE_SECONDS)
    found.put(waits)


def measure(dsn: str, statement: Statement, repeat: int) -> Waited:
    """Run the statement so many times; what others waited meanwhile."""
    took: list[float] = []
    problem = ""
    with watched(dsn) as waits, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SET statement_timeout = '120s'")
        for _ in range(repeat):
            began = time.perf_counter()
            try:
                statement(connection)
            except psycopg.Error as error:
                problem = f"{error.sqlstate} {str(error).splitlines()[0]}"
            took.append(time.perf_counter() - began)
    worst, p99, median = (quantile(waits, part) for part in (1, 0.99, 0.5))
    return Waited(sorted(took)[len(took) // 2], worst, p99, median, problem)


def _prepare_tables(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE fair_bench (id int, v int)")
        connection.execute("INSERT INTO fair_bench SELECT i, i FROM generate_series(1, 10000) i")
        columns = ", ".join(f"c{i} int" for i in range(11))
        connection.execute(f"CREATE TABLE fair_wide ({columns})".encode())


def _measure_all(name: str, dsn: str, only: Sequence[str], repeat: int) -> None:
    _prepare_tables(dsn)
    statements = _statements()
    for each in only or statements:
        waited = measure(dsn, statements[each], repeat)
        print(
            f"{name:10} {each:8} took {waited.took:7.3f} s   others: worst {waited.worst:8.1f} ms"
            f"   p99 {waited.p99:8.1f} ms   median {waited.median:6.2f} ms   {waited.problem}",
            flush=True,
        )


def main() -> None:
    """Both servers, one after the other."""
    parser = argparse.ArgumentParser(prog="fair_bench", description=__doc__)
    parser.add_argument("--only", default="", help=f"some of {','.join(_statements())}")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--servers", default="meridian,postgresql")
    arguments = parser.parse_args()
    only = [name for name in arguments.only.split(",") if name]
    measured = partial(_measure_all, only=only, repeat=arguments.repeat)
    with contextlib.ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fair-")))
        if "meridian" in arguments.servers:
            options = ("--set", "spark_start=off")
            server = stack.enter_context(meridian(place / "meridian", options))
            measured("meridian", server.dsn)
        if "postgresql" in arguments.servers:
            measured("postgresql", stack.enter_context(postgres()))


if __name__ == "__main__":
    main()
