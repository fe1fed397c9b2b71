# ruff: noqa: E501 -- a statement stands on one line
"""What planning a statement costs, in this process: `python -m tests.bench.planning`.

    simple    a point, an aggregate, a join, a top 10
    TPC-H     all 22 queries
    again     the text of a known plan for relations of other names, as after each commit
    cached    the same through the plan cache: what a repeated statement costs before its engine

Planning is parse, bind, compute constants and emit, for both engines. The goals of docs/benchmarks.md: p50 of the simple ones at
most 1 ms, of TPC-H at most 5 ms, cached at most 0.1 ms.
"""

import argparse
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from coordinator.planning.plan_cache import PlanCache
from coordinator.planning.planner import plan_prepared
from sql.binder.bind import bind
from sql.binder.state import BindContext
from sql.catalog.catalog import SYSTEM_TIMELINE, Catalog, Column, Table
from sql.emit.duckdb import dialect as duckdb
from sql.emit.spark import dialect as spark
from sql.parser.parse import parse
from sql.plan.nodes import Plan
from sql.plan.traverse import scans
from sql.statements.bound import BoundQuery
from sql.types.sql_type import DATE, INT4, INT8, SqlType, bpchar, numeric, varchar
from tests.bench.pgbench import percentile
from tests.postgres.queries.statement_files import cases_of
from tests.postgres.tpch.generate import SCHEMA

SIMPLE = (
    "select p_partkey, p_name from part where p_partkey = 42",
    "select count(*), sum(l_extendedprice) from lineitem where l_quantity > 10",
    "select o_orderkey, c_name from orders join customer on o_custkey = c_custkey where o_orderkey = 7",
    "select s_name from supplier where s_nationkey = 3 order by s_acctbal desc limit 10",
)  # fmt: skip
QUERIES = Path(__file__).parents[1] / "postgres" / "tpch" / "testdata" / "queries.txt"
_TYPES: dict[str, SqlType] = {"integer": INT4, "bigint": INT8, "date": DATE}


def main() -> None:
    """Print all numbers."""
    parser = argparse.ArgumentParser(prog="tests.bench.planning", description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    print("load", *os.getloadavg())
    tpch = [case.text for case in cases_of(QUERIES)]
    for kind, texts in (("simple", SIMPLE), ("TPC-H", tpch)):
        for name, emit in (("spark", _on_spark), ("duckdb", _on_duckdb)):
            _show(
                f"{kind}, {name}",
                [_time(lambda t=t, e=emit: e(_planned(t)), rounds) for t in texts],
            )
    for name, emit in (("spark", _on_spark), ("duckdb", _on_duckdb)):
        plans = [_planned(text) for text in (*SIMPLE, *tpch)]
        _show(f"again, {name}", [_time(lambda p=p, e=emit: e(p), rounds) for p in plans])
    cache, context = PlanCache(), _context()

    def cached(text: str) -> None:
        [statement] = cache.parse(text)
        setting = ("public", 1)
        if cache.known(statement, (), setting=setting) is None:
            cache.bind(statement, lambda: context, (), setting=setting, shared=True)

    _show("cached", [_time(lambda t=t: cached(t), rounds) for t in (*SIMPLE, *tpch)])


def _show(name: str, times: list[float]) -> None:
    print(
        f"{name}: p50 {percentile(times, 50):.3f} ms, most {max(times):.3f} ms"
        f" (medians of {len(times)} statements)",
        flush=True,
    )


def _time(action: Callable[[], object], rounds: int) -> float:
    """Median milliseconds of processor time, after one to warm up: it waits for nothing."""
    action()
    taken: list[float] = []
    for _ in range(rounds):
        began = time.process_time()
        action()
        taken.append((time.process_time() - began) * 1000)
    return percentile(taken, 50)


def _planned(text: str) -> Plan:
    [statement] = parse(text)
    bound = plan_prepared(bind(statement, _CONTEXT, ())).bound
    assert isinstance(bound, BoundQuery), f"no query: {text}"
    return bound.plan


def _on_spark(plan: Plan) -> None:
    spark.emit(plan, {scan.relation: "r" for scan in scans(plan)})


def _on_duckdb(plan: Plan) -> None:
    duckdb.emit(plan, {scan.relation: "r" for scan in scans(plan)})


def _context() -> BindContext:
    tables = {
        ("public", name): Table(16_384 + number, "public", name, name, tuple(_columns(columns)))
        for number, (name, columns) in enumerate(SCHEMA.items())
    }
    timelines = {SYSTEM_TIMELINE.name: SYSTEM_TIMELINE}
    catalog = Catalog(1, frozenset({"public"}), tables, timelines, {})
    return BindContext(catalog, ("public",), 0, user="u", database="d")


def _columns(text: str) -> Iterator[Column]:
    for part in text.replace("15,2", "15.2").split(", "):
        name, type_ = part.split(maxsplit=1)
        word, _, length = type_.rstrip(")").partition("(")
        match word:
            case "char":
                yield Column(name, bpchar(int(length)))
            case "varchar":
                yield Column(name, varchar(int(length)))
            case "numeric":
                yield Column(name, numeric(15, 2))
            case _:
                yield Column(name, _TYPES[word])


_CONTEXT = _context()

if __name__ == "__main__":
    main()
