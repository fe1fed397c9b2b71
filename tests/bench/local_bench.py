"""Small queries on the local engine, beside Spark: `python -m tests.bench.local_bench`.

    point, aggregate, join, top 10   over 1,000 rows, through the server, by pgbench
    key                              the point by primary key: no engine is asked
    checked                          an INSERT with a domain, two checks and a generated column
    fresh                            the same point, a new row before each: a read after a commit
    duckdb                           the point in DuckDB alone, in this process: the floor

The goals of docs/benchmarks.md: p50 of one client at most 3 ms, at least 1,000 queries a second of
16.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

import duckdb
import psycopg

from tests.bench.pgbench import percentile, run_script
from tests.support.servers import Meridian, meridian

ROWS = 1_000
QUERIES = {
    "point": "select id, name, v from t where id = :n",
    "key": "select id, name, v from k where id = :n",
    "aggregate": "select count(*), sum(v) from t where id > :n",
    "join": "select count(*), sum(a.v) from t a join t b on a.id = b.id where a.id > :n",
    "top 10": "select id, name from t where id > :n order by v desc limit 10",
    "checked": "insert into c (a, b) values (:n + 1, :n)",
    "fresh": "insert into t values (1000 + :n, 'new', 1);\nselect id, name, v from t where id = :n",
}


def main() -> None:
    """Print all numbers."""
    parser = argparse.ArgumentParser(prog="tests.bench.local_bench")
    parser.add_argument("--engines", default="local,spark")
    parser.add_argument("--queries", default=",".join(QUERIES))
    parser.add_argument("--clients", default="1,16")
    parser.add_argument("--seconds", type=int, default=5)
    options = parser.parse_args()
    print("load", *os.getloadavg())
    engines = options.engines.split(",")
    master = "local[*]" if "spark" in engines else "none"
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as place,
        meridian(Path(place), ("--spark-master", master)) as server,
    ):
        _prepare(server.dsn)
        for name in options.queries.split(","):
            for engine in engines:
                for clients in map(int, options.clients.split(",")):
                    _measure(server, name, engine, clients, options.seconds)
    print(f"duckdb alone, point: p50 {_floor():.2f} ms")


def _prepare(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create table t (id int8, name text, v float8)")
        connection.execute("create domain positive as int check (value > 0)")
        connection.execute(
            "create table c (a positive, b int check (b >= 0), check (a > b),"
            " d int generated always as (a + b) stored)"
        )
        connection.execute("create table k (id int8 primary key, name text, v float8)")
        for table in ("t", "k"):
            with connection.cursor() as cursor, cursor.copy(f"copy {table} from stdin") as copy:
                copy.write("".join(f"{n}\tname {n}\t{n}.5\n" for n in range(ROWS)).encode())


def _measure(server: Meridian, name: str, engine: str, clients: int, seconds: int) -> None:
    script = f"\\set n random(0, {ROWS - 1})\n{QUERIES[name]};\n"
    settings = f"-c engine={engine}"
    dsn = server.dsn
    run_script(dsn, script, clients=clients, protocol="extended", seconds=2, options=settings)
    used = server.cpu_s
    run = run_script(
        dsn, script, clients=clients, protocol="extended", seconds=seconds, options=settings
    )
    # What a busy machine does not change as much as the others.
    cost = (server.cpu_s - used) * 1000 / (run.per_second * seconds)
    figures = (
        f"{run.per_second:.0f}/s, p50 {run.p50_ms:.2f} ms, p99 {run.p99_ms:.2f} ms,"
        f" {cost:.2f} ms of the server's processor each"
    )
    print(f"{name}, {engine}, {clients} clients: {figures}", flush=True)


def _floor() -> float:
    connection = duckdb.connect()
    connection.execute(
        "create table t as select i as id, 'name ' || i as name, i + 0.5::double as v"
        f" from range({ROWS}) t(i)"
    )
    found: list[float] = []
    for number in range(500):
        start = time.perf_counter()
        connection.execute("select id, name, v from t where id = $1", [number]).fetchall()
        found.append((time.perf_counter() - start) * 1000)
    connection.close()
    return percentile(found, 50)


if __name__ == "__main__":
    main()
