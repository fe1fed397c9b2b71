"""What is measured. Each workload takes the DSN of a server and gives named figures.

A workload makes its own tables, so that the order of the workloads does not matter and the same
code runs on both servers. The names of the figures are the rows of the report.
"""

import io
import time
from collections.abc import Callable, Iterator, Mapping

import psycopg

from tests.bench.crowded import crowded
from tests.bench.keyed import bulk, keyed
from tests.bench.lists import lists
from tests.bench.pgbench import percentile, run_script
from tests.bench.sizes import Figures, Size
from tests.bench.transactions import counters, side_by_side, tpc_b, two_tables
from tests.bench.waiting import waiting

INSERT = r"""
\set id random(1, 1000000000)
INSERT INTO {table} (id, client, amount, note) VALUES (:id, :client_id, 12.50, 'one more row');
"""

WARM_UP = 20
COPY_CHUNK_ROWS = 10_000


def commits(dsn: str, size: Size) -> Figures:
    """One-row INSERTs: commits a second and latencies."""
    figures: dict[str, float] = {}
    with _connect(dsn) as connection:
        _create_ledger(connection, "bench_commits")
    for protocol in size.protocols:
        for clients in size.clients:
            script = INSERT.format(table="bench_commits")
            run = run_script(dsn, script, clients=clients, protocol=protocol, seconds=size.seconds)
            name = f"INSERT of one row, {protocol}, {clients} clients"
            figures[f"{name}: commits/s"] = run.per_second
            figures[f"{name}: p50 ms"] = run.p50_ms
            figures[f"{name}: p99 ms"] = run.p99_ms
    return figures


def reads(dsn: str, size: Size) -> Figures:
    """Small SELECTs on warm Spark, and a SELECT of what was written just before it."""
    with _connect(dsn) as connection:
        if _is_ours(connection):
            connection.execute("SET engine = spark")
        _create_ledger(connection, "bench_reads")
        with connection.cursor() as cursor, cursor.copy("COPY bench_reads FROM STDIN") as copy:
            copy.write("".join(f"{n}\t{n % 8}\t{n}.25\tnote {n}\n" for n in range(1_000)).encode())
        total = "SELECT client, count(*), sum(amount) FROM bench_reads GROUP BY client"
        point = "SELECT amount, note FROM bench_reads WHERE id = 500"
        whole = "SELECT * FROM bench_reads"

        def write_then_read() -> None:
            connection.execute("INSERT INTO bench_reads VALUES (-1, 0, 1, 'fresh')")
            connection.execute("SELECT count(*) FROM bench_reads WHERE id = -1").fetchall()

        return {
            "SELECT, aggregate of 1,000 rows: p50 ms": _p50(_ask(connection, total), size.reads),
            "SELECT, one of 1,000 rows: p50 ms": _p50(_ask(connection, point), size.reads),
            "SELECT, all of 1,000 rows: p50 ms": _p50(_ask(connection, whole), size.reads),
            "SELECT 1: p50 ms": _p50(_ask(connection, "SELECT 1"), size.reads),
            "INSERT then SELECT of it: p50 ms": _p50(write_then_read, size.reads),
        }


def small_reads(dsn: str, size: Size) -> Figures:
    """Small SELECTs of 1,000 rows, warm, on the local engine where there is one."""
    with _connect(dsn) as connection:
        _drop(connection, "bench_small")
        connection.execute("CREATE TABLE bench_small (id bigint PRIMARY KEY, name text, v float8)")
        with connection.cursor() as cursor, cursor.copy("COPY bench_small FROM STDIN") as copy:
            copy.write("".join(f"{n}\tname {n}\t{n}.5\n" for n in range(1_000)).encode())
        is_ours = _is_ours(connection)
    queries = {
        "by key": "SELECT id, name, v FROM bench_small WHERE id = :n",
        "by another column": "SELECT id, name, v FROM bench_small WHERE v = :n + 0.5::float8",
        "aggregate": "SELECT count(*), sum(v) FROM bench_small WHERE id > :n",
    }
    figures: dict[str, float] = {}
    for name, query in queries.items():
        for clients in (1, 16):
            run = run_script(
                dsn,
                f"\\set n random(0, 999)\n{query};\n",
                clients=clients,
                protocol="prepared",
                seconds=size.seconds,
                options="-c engine=local" if is_ours else "",
            )
            what = f"small SELECT, {name}, {clients} clients"
            figures[f"{what}: queries/s"] = run.per_second
            figures[f"{what}: p50 ms"] = run.p50_ms
    return figures


def copy(dsn: str, size: Size) -> Figures:
    """COPY FROM of six columns, one transaction."""
    with _connect(dsn) as connection:
        _drop(connection, "bench_copy")
        connection.execute(
            """CREATE TABLE bench_copy (id bigint NOT NULL, place integer, weight double precision,
                                        amount numeric(12, 2), name text, at timestamptz)"""
        )
        began = time.perf_counter()
        with connection.cursor() as cursor:
            with cursor.copy("COPY bench_copy FROM STDIN WITH (FORMAT csv)") as into:
                for chunk in _copy_chunks(size.copy_rows):
                    into.write(chunk)
            assert cursor.rowcount == size.copy_rows, f"copied {cursor.rowcount} rows"
        return {"COPY of 6 columns: rows/s": size.copy_rows / (time.perf_counter() - began)}


def after_commits(dsn: str, size: Size) -> Figures:
    """Is a commit dearer after many commits? The same table before and after."""
    with _connect(dsn) as connection:
        _create_ledger(connection, "bench_age")
    script = INSERT.format(table="bench_age")

    def p50() -> float:
        seconds = size.seconds
        return run_script(dsn, script, clients=1, protocol="prepared", seconds=seconds).p50_ms

    before = p50()
    run_script(dsn, script, clients=64, protocol="prepared", transactions=size.commits)
    after = p50()
    return {
        "INSERT, new table: p50 ms": before,
        f"INSERT, after {size.commits} commits: p50 ms": after,
        f"INSERT, after {size.commits} commits: times dearer": after / before,
    }


def many_tables(dsn: str, size: Size) -> Figures:
    """Is a commit dearer beside many tables, each with a row?"""
    with _connect(dsn) as connection:
        began = time.perf_counter()
        for number in range(size.tables):
            _create_ledger(connection, f"bench_table_{number}")
            text = f"INSERT INTO bench_table_{number} VALUES (1, 1, 1, 'a row')"
            connection.execute(text.encode())
        seconds = time.perf_counter() - began
    script = INSERT.format(table="bench_table_0")
    run = run_script(dsn, script, clients=1, protocol="prepared", seconds=size.seconds)
    return {
        f"CREATE TABLE and INSERT, {size.tables} times: ms each": seconds * 1000 / size.tables,
        f"INSERT, beside {size.tables} tables: p50 ms": run.p50_ms,
    }


WORKLOADS: Mapping[str, Callable[[str, Size], Figures]] = {
    "commits": commits,
    "reads": reads,
    "small": small_reads,
    "copy": copy,
    "age": after_commits,
    "tables": many_tables,
    "two": two_tables,
    "counters": counters,
    "tpcb": tpc_b,
    "mixed": side_by_side,
    "waiting": waiting,
    "keyed": keyed,
    "bulk": bulk,
    "crowded": crowded,
    "lists": lists,
}


def _is_ours(connection: psycopg.Connection) -> bool:
    return "Meridian" in connection.execute("SELECT version()").fetchall()[0][0]


def _connect(dsn: str) -> psycopg.Connection:
    return psycopg.connect(dsn, autocommit=True)


def _drop(connection: psycopg.Connection, table: str) -> None:
    connection.execute("SET client_min_messages = warning")
    connection.execute(f"DROP TABLE IF EXISTS {table}".encode())


def _create_ledger(connection: psycopg.Connection, table: str) -> None:
    _drop(connection, table)
    columns = "id bigint NOT NULL, client integer, amount numeric(12, 2), note text"
    connection.execute(f"CREATE TABLE {table} ({columns})".encode())


def _ask(connection: psycopg.Connection, query: str) -> Callable[[], object]:
    return lambda: connection.execute(query.encode()).fetchall()


def _p50(action: Callable[[], object], times: int) -> float:
    """Median milliseconds, after a warm-up."""
    taken: list[float] = []
    for _ in range(WARM_UP + times):
        began = time.perf_counter()
        action()
        taken.append((time.perf_counter() - began) * 1000)
    return percentile(taken[WARM_UP:], 50)


def _copy_chunks(rows: int) -> Iterator[bytes]:
    """CSV in chunks; the text of a chunk is made once, so that the client costs next to nothing."""
    text = io.StringIO()
    for n in range(COPY_CHUNK_ROWS):
        text.write(f"{n},{n % 100},{n * 0.5},{n}.25,name {n % 1000},2024-05-06 07:08:09+00\n")
    chunk = text.getvalue().encode()
    assert rows % COPY_CHUNK_ROWS == 0, f"rows come in chunks of {COPY_CHUNK_ROWS}"
    for _ in range(rows // COPY_CHUNK_ROWS):
        yield chunk
