"""Spark on small queries, and the start of its JVM: `python -m tests.bench.spark_bench`.

    small     1,000 rows in a file: the same statement again; other literals each time
    tail      the same, with a new row each time: what a read right after a commit costs
    start     JVM, sessions and first query, without and with the class archive

Compare numbers of one run only: the same query moves by 40 % between runs on a shared machine.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from compute.spark.class_archive import ClassArchive
from compute.spark.executor import SparkExecutor
from compute.spark.jvm import find_java
from sql.plan.nodes import Plan
from sql.types.sql_type import FLOAT8, INT8, TEXT, SqlType
from storage.batch import ShardView
from tests.engines.spark import shared_engine
from tests.engines.spark.shared_engine import ARCHIVES, Shard, plan_of, rows_of, settings

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("v", pa.float64())])
COLUMNS: list[tuple[str, SqlType]] = [("id", INT8), ("name", TEXT), ("v", FLOAT8)]
QUERIES = {
    "point": "select id, name, v from t where id = {n}",
    "aggregate": "select count(*), sum(v) from t where id > {n}",
    "group": "select id % 10, count(*), sum(v) from t where id > {n} group by id % 10",
    "join": "select count(*), sum(a.v) from t a join t b on a.id = b.id where a.id > {n}",
    "top 10": "select id, name from t where id > {n} order by v desc limit 10",
}


def plan(text: str, n: int) -> Plan:
    """The statement with this literal."""
    return plan_of(text.format(n=n), t=COLUMNS)


def rows(first: int, count: int) -> pa.Table:
    """Rows with ids from `first` on."""
    ids = range(first, first + count)
    return pa.table([list(ids), [f"n{n}" for n in ids], [n / 2 for n in ids]], schema=SCHEMA)


async def timed(
    spark: SparkExecutor, step: Callable[[int], tuple[Plan, ShardView]], rounds: range
) -> list[float]:
    """Milliseconds of each round."""
    found: list[float] = []
    for n in rounds:
        statement, view = step(n)
        start = time.perf_counter()
        await rows_of(spark, statement, {"t": view})
        found.append((time.perf_counter() - start) * 1000)
    return sorted(found)


async def small(spark: SparkExecutor, *, count: int, warm_up: int, rounds: int) -> None:
    """Latencies of small statements over a table of `count` rows."""
    shard = Shard.new(SCHEMA)
    shard.file("a.parquet", rows(0, count))
    files: list[tuple[str, int | None, list[int]]] = [("a.parquet", None, [])]
    whole = shard.view(files)
    tail: list[tuple[str, pa.Table, list[int]]] = []

    def grown(n: int) -> ShardView:
        tail.append((f"@{n}", rows(count + len(tail), 1), []))
        return shard.view(files, tail)

    shapes: dict[str, Callable[[str, int], tuple[Plan, ShardView]]] = {
        "repeated": lambda text, _: (plan(text, 7), whole),
        "other literals": lambda text, n: (plan(text, n % 500), whole),
        "new tail": lambda text, n: (plan(text, n % 500), grown(n)),
    }
    print(f"{count:,} rows, milliseconds", *shapes, sep="\t")
    for name, text in QUERIES.items():
        cells: list[str] = []
        for shape in shapes.values():
            tail.clear()
            step = lambda n, text=text, shape=shape: shape(text, n)  # noqa: E731
            await timed(spark, step, range(warm_up))
            found = await timed(spark, step, range(warm_up, warm_up + rounds))
            p50, p90 = found[len(found) // 2], found[len(found) * 9 // 10]
            cells.append(f"p50 {p50:.1f} p90 {p90:.1f}")
        print(name, *cells, sep="\t", flush=True)


@contextmanager
def started(archives: Path | None) -> Iterator[None]:
    """A fresh engine, and how long it took to its first answer."""
    with tempfile.TemporaryDirectory() as place:
        chosen = settings(Path(place))
        if archives is None:
            # A directory of its own is an empty one.
            chosen = type(chosen)(chosen.directory, chosen.warehouse, heap_mb=chosen.heap_mb)

        async def story() -> None:
            start = time.perf_counter()
            spark = SparkExecutor(chosen)
            await spark.ready()
            ready = time.perf_counter() - start
            view = Shard.new(SCHEMA).view(inline=[("@1", rows(0, 10), [])])
            await rows_of(spark, plan(QUERIES["group"], 3), {"t": view})
            first = time.perf_counter() - start
            name = "without archive" if archives is None else "with archive"
            print(f"start {name}: ready {ready:.1f} s, first answer {first:.1f} s", flush=True)
            await spark.close()

        asyncio.run(story())
        yield


def main() -> None:
    """Print all numbers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--warm-up", type=int, default=200)
    parser.add_argument("--starts", type=int, default=2)
    options = parser.parse_args()
    print("load", *os.getloadavg())
    spark = shared_engine.executor()

    async def story() -> None:
        await spark.ready()
        for count in (1_000, 1_000_000):
            rounds, warm_up = options.rounds, options.warm_up
            if count > 10_000:
                rounds, warm_up = max(rounds // 4, 1), max(warm_up // 8, 1)
            await small(spark, count=count, warm_up=warm_up, rounds=rounds)

    asyncio.run(story())
    shared_engine.close()
    archived = ClassArchive(ARCHIVES, find_java(None)).path.exists()
    for _ in range(options.starts):
        for archives in (None, ARCHIVES) if archived else (None,):
            with started(archives):
                pass
    print("load", *os.getloadavg())


if __name__ == "__main__":
    main()
