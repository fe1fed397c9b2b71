"""TPC-H through the server, beside each engine alone over the same Parquet files.

    load by COPY ─▶ OPTIMIZE ─▶ the files of the tables ─┬─▶ the server, SET engine = auto | ..
                                                         ├─▶ DuckDB alone, in this process
                                                         └─▶ PySpark alone, in this process

python -m tests.bench.tpch_bench --scale 0.1 --engines auto,local

The goals of docs/benchmarks.md, at scale 1: Spark through the server in at most 1.05 times the time
of PySpark, the local engine and `auto` in at most 1.3 times that of DuckDB. A query's time is the
median of its runs after one that warms up; the sum of all queries is compared. Every run has a text
of its own: the server keeps what it has prepared on Spark, with its shuffled rows, for the same
text over the same files, and would answer again in milliseconds. DuckDB runs each query in turn
with the server, so that both have the machine in the same minutes; PySpark runs after it, in a JVM
of as much memory.
"""

import argparse
import contextlib
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path

import duckdb
import psycopg
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from compute.spark.jvm import JvmSettings
from tests.bench.sizes import Figures
from tests.postgres.queries.statement_files import cases_of
from tests.postgres.tpch.generate import SCHEMA, tables
from tests.postgres.tpch.loading import load
from tests.postgres.tpch.test_tpch import QUERIES
from tests.support.servers import meridian

WRITTEN_SECONDS_MAX = 120

Run = Callable[[str], object]
Times = dict[str, float]


def measure(scale: float, engines: Sequence[str], rounds: int) -> Figures:
    """Seconds of each engine, through the server and alone, and how many times dearer we are."""
    queries = {f"q{number:02d}": case.text for number, case in enumerate(cases_of(QUERIES), 1)}
    found: dict[str, list[Times]] = {}
    with tempfile.TemporaryDirectory(prefix="tpch-") as place:
        options = () if {"spark", "auto"} & {*engines} else ("--spark-master", "none")
        with meridian(Path(place), options) as server:
            load(server.dsn, scale)
            with psycopg.connect(server.dsn, autocommit=True) as connection:
                for table in SCHEMA:
                    connection.execute(f"optimize {table}".encode())
                files = _files_when_written(Path(place) / "data" / "warehouse", scale)
                for engine in engines:
                    connection.execute(f"set engine = {engine}".encode())
                    run = lambda text: connection.execute(text.encode()).fetchall()  # noqa: E731
                    with _beside(engine, files) as alone:
                        found[engine] = _timed(engine, queries, [run, *alone], rounds)
            server.stop()
        if "spark" in engines:
            found["spark"] += _spark(files, queries, rounds)
    figures: dict[str, float] = {}
    for engine, (ours, alone) in found.items():
        _compare(engine, ours, alone)
        name = f"TPC-H {scale}, {engine}"
        figures[f"{name}: s"] = sum(ours.values())
        figures[f"{name}: s of the engine alone"] = sum(alone.values())
        figures[f"{name}: times dearer"] = sum(ours.values()) / sum(alone.values())
    return figures


def _files_when_written(warehouse: Path, scale: float) -> dict[str, list[str]]:
    """The Parquet files of each table, once all rows are in them: the last ones come with a cut."""
    wanted = {name: table.num_rows for name, table in tables(scale).items()}
    end = time.monotonic() + WRITTEN_SECONDS_MAX
    while True:
        files = _files(warehouse)
        rows = {
            name: sum(pq.read_metadata(path).num_rows for path in paths)
            for name, paths in files.items()
        }
        if rows == wanted:
            return files
        assert time.monotonic() < end, f"rows in files: {rows}"
        time.sleep(1)


def _files(warehouse: Path) -> dict[str, list[str]]:
    """The Parquet files of each table that has some; it is known by its first column."""
    firsts = {columns.split()[0]: name for name, columns in SCHEMA.items()}
    found: dict[str, list[str]] = {}
    for directory in warehouse.iterdir():
        with contextlib.suppress(TableNotFoundError):
            table = DeltaTable(directory)
            found[firsts[table.schema().fields[0].name]] = table.file_uris()
    return found


def _timed(what: str, queries: Mapping[str, str], runs: Sequence[Run], rounds: int) -> list[Times]:
    """Median seconds of each query, for those who run it in turn."""
    times: list[Times] = [{} for _ in runs]
    for name, text in queries.items():
        taken: list[list[float]] = [[] for _ in runs]
        for number in range(rounds + 1):
            for run, seconds in zip(runs, taken, strict=True):
                began = time.perf_counter()
                run(_of_round(text, number))
                seconds.append(time.perf_counter() - began)
        for known, seconds in zip(times, taken, strict=True):
            known[name] = statistics.median(seconds[1:])
    print(f"{what}:", *[f"{sum(known.values()):.2f} s" for known in times], flush=True)
    return times


def _of_round(text: str, number: int) -> str:
    return f"select answer.*, {number} as round from ({text}) answer"


@contextlib.contextmanager
def _beside(engine: str, files: Mapping[str, list[str]]) -> Generator[list[Run]]:
    """Who runs the queries in turn with the server's engine."""
    if engine == "spark":
        yield []
        return
    with duckdb.connect() as connection:
        for name, paths in files.items():
            connection.execute(f"create view {name} as select * from read_parquet({paths})")
        yield [lambda text: connection.execute(text).fetchall()]


def _spark(files: Mapping[str, list[str]], queries: Mapping[str, str], rounds: int) -> list[Times]:
    from pyspark.sql import SparkSession

    heap = f"{JvmSettings(Path()).heap_mb}m"
    builder = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", heap)
    for name in ("spark.driver.bindAddress", "spark.driver.host"):
        builder = builder.config(name, "127.0.0.1")
    spark = builder.getOrCreate()
    try:
        spark.sparkContext.setLogLevel("ERROR")
        for name, paths in files.items():
            spark.read.parquet(*paths).createOrReplaceTempView(name)
        return _timed("PySpark alone", queries, [lambda text: spark.sql(text).collect()], rounds)
    finally:
        spark.stop()


def _compare(engine: str, ours: Times, alone: Times) -> None:
    print(f"{engine}: query, ms through the server, ms alone, times dearer")
    for name, seconds in ours.items():
        ratio = seconds / alone[name]
        print(f"  {name}  {seconds * 1000:8.1f}  {alone[name] * 1000:8.1f}  {ratio:5.2f}")


def main() -> None:
    """Print all numbers."""
    parser = argparse.ArgumentParser(prog="tests.bench.tpch_bench", description=__doc__)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--engines", default="local,spark")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print("load", *os.getloadavg())
    for name, figure in measure(options.scale, options.engines.split(","), options.rounds).items():
        print(f"{name}: {figure:.2f}")


if __name__ == "__main__":
    main()
