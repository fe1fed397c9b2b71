"""1,000 small statements on `auto` and on each engine: `python -m tests.bench.choice_bench`.

    shapes × tables of 10 to 100,000 rows × literals ─▶ each engine in turn ─▶ times, and how much
                                                        dearer `auto` is than the best engine

A statement's time is the least of its runs after one that plans and warms up: a busy machine hides
what was chosen from every other. The engines take turns, run by run. Goal (docs/benchmarks.md):
no statement on `auto` takes ten times as long as on the best engine. A millisecond is nobody's
order of magnitude: it is added to both times before they are compared.
"""

import argparse
import os
import random
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import psycopg

from tests.support.servers import meridian

SIZES: Final = (10, 100, 190, 1_000, 100_000)
SHAPES: Final = (
    "select {n} + 1, 'text {n}', now()",
    "select id, name, v from t{size} where id = {n}",
    "select id, name, v from k{size} where id = {n}",
    "select count(*), sum(v), max(name) from t{size} where id >= {n}",
    "select id % 7, count(*), avg(v) from t{size} where id <> {n} group by 1 order by 1",
    "select id, name from t{size} where v > {n} order by v desc, id limit 10",
    "select count(*), sum(a.v) from t{size} a join k{size} b using (id) where a.id <> {n}",
    "select count(*) from t{size} t where exists (select from k{size} k where k.id = t.id + {n})",
    "select max(r) from (select rank() over (order by v) as r from t{size} where id <> {n}) x",
    "select count(distinct name) from t{size} where name like '%{n}%'",
    "with w as (select id, v from k{size} where id > {n}) select sum(w.v) from w, w as x"
    " where w.id = x.id",
    "select count(*) from generate_series(1, {n}) g",
    "select relname from pg_class where relkind = 'r' and oid <> {n} order by 1",
)
SLOWER_MAX: Final = 10.0
GRAIN_S: Final = 0.001
SHOWN: Final = 10


def statements(count: int, seed: int) -> list[str]:
    """So many of them, all different."""
    chance = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        size = chance.choice(SIZES)
        found[chance.choice(SHAPES).format(size=size, n=chance.randrange(2 * size))] = None
    return list(found)


def prepare(dsn: str) -> None:
    """The tables `tN` without a key and `kN` with one."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for size in SIZES:
            rows = "".join(f"{n}\tname {n}\t{n % 97}.5\n" for n in range(size)).encode()
            for table, key in ((f"t{size}", ""), (f"k{size}", "primary key")):
                connection.execute(
                    f"create table {table} (id int8 {key}, name text, v float8)".encode()
                )
                into = f"copy {table} from stdin".encode()
                with connection.cursor() as cursor, cursor.copy(into) as copy:
                    copy.write(rows)


def measure(
    dsn: str, texts: Sequence[str], engines: Sequence[str], rounds: int
) -> dict[str, dict[str, float]]:
    """The least seconds of each statement, by engine."""
    found: dict[str, dict[str, float]] = {engine: {} for engine in engines}
    with psycopg.connect(dsn, autocommit=True) as connection:
        for text in texts:
            times: dict[str, list[float]] = {engine: [] for engine in engines}
            for _ in range(rounds + 1):
                for engine in engines:
                    connection.execute(f"set engine = {engine}".encode())
                    began = time.perf_counter()
                    connection.execute(text.encode()).fetchall()
                    times[engine].append(time.perf_counter() - began)
            for engine in engines:
                found[engine][text] = min(times[engine][1:])
    return found


def report(found: Mapping[str, Mapping[str, float]]) -> None:
    """Times of each engine, and the statements for which the choice was worst."""
    for engine, times in found.items():
        cuts = statistics.quantiles(times.values(), n=100)
        print(
            f"{engine}: {sum(times.values()):.2f} s,"
            f" p50 {1000 * cuts[49]:.2f} ms, p99 {1000 * cuts[98]:.2f} ms"
        )
    others = [times for engine, times in found.items() if engine != "auto"]
    if "auto" not in found or not others:
        return
    best = {text: min(times[text] for times in others) for text in found["auto"]}
    dearer = {
        text: (seconds + GRAIN_S) / (best[text] + GRAIN_S)
        for text, seconds in found["auto"].items()
    }
    wrong = sum(ratio > SLOWER_MAX for ratio in dearer.values())
    print(f"auto, times dearer than the best engine: at most {max(dearer.values()):.2f}; {wrong}"
          f" of {len(dearer)} statements more than {SLOWER_MAX:.0f}")  # fmt: skip
    for text in sorted(dearer, key=lambda text: -dearer[text])[:SHOWN]:
        times = ", ".join(f"{engine} {1000 * of[text]:.2f} ms" for engine, of in found.items())
        print(f"  {dearer[text]:.2f}  {times}  {text}")


def main() -> None:
    """Print all numbers."""
    parser = argparse.ArgumentParser(prog="tests.bench.choice_bench")
    parser.add_argument("--engines", default="auto,local")
    parser.add_argument("--statements", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    engines = options.engines.split(",")
    print("load", *os.getloadavg())
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as place,
        meridian(Path(place)) as server,
    ):
        prepare(server.dsn)
        texts = statements(options.statements, options.seed)
        report(measure(server.dsn, texts, engines, options.rounds))


if __name__ == "__main__":
    main()
