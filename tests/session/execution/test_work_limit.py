"""Constant queries run on the loop, so a large one must not: it would stop everybody."""

import gc
import sys

from coordinator.execution.in_process import ReferenceInProcess
from sql.binder.bind import bind
from sql.binder.state import BindContext
from sql.catalog.catalog import Catalog
from sql.parser.parse import parse
from sql.statements.bound import BoundQuery

TEN = "(VALUES " + ", ".join(f"({number})" for number in range(10)) + ")"


def refusal_of(text: str) -> str | None:
    (statement,) = parse(text)
    context = BindContext(catalog=Catalog(), search_path=["public"], now=0)
    bound = bind(statement, context, []).bound
    assert isinstance(bound, BoundQuery)
    return ReferenceInProcess().refusal(bound.plan)


def runs_in_process(text: str) -> bool:
    return refusal_of(text) is None


def test_a_refusal_says_why() -> None:
    assert refusal_of("SELECT 1") is None
    arrays = "SELECT array_agg(x) FROM (VALUES (ARRAY[1])) t(x)"
    assert refusal_of(arrays) == "the evaluator has no aggregate array_agg(anyarray)"
    tables = ", ".join(f"{TEN} t{number}(x{number})" for number in range(6))
    touched = refusal_of(f"SELECT count(*) FROM {tables}")
    assert touched is not None
    assert touched.startswith("the plan may touch ")


def test_small_ones_run_at_once() -> None:
    assert runs_in_process("SELECT 1")
    assert runs_in_process(f"SELECT count(*) FROM {TEN} a(x), {TEN} b(y), {TEN} c(z)")
    assert runs_in_process(f"SELECT (SELECT max(y) FROM {TEN} b(y) WHERE y < x) FROM {TEN} a(x)")


def test_products_of_rows_go_to_the_engine() -> None:
    tables = ", ".join(f"{TEN} t{number}(x{number})" for number in range(6))
    assert not runs_in_process(f"SELECT count(*) FROM {tables}")


def test_rows_that_are_written_out_run_at_once_however_many() -> None:
    rows = ", ".join(f"({number})" for number in range(30_000))
    twice = f"SELECT x FROM (SELECT DISTINCT x FROM (VALUES {rows}) a(x)) b WHERE x > 5"
    assert runs_in_process(f"SELECT max(x) FROM ({twice}) c GROUP BY x % 2 ORDER BY 1")
    assert not runs_in_process(f"SELECT count(*) FROM (VALUES {rows}) a(x), {TEN} b(y), {TEN} c(z)")


def test_subqueries_count_for_every_row_that_asks_them() -> None:
    inner = ", ".join(f"{TEN} t{number}(x{number})" for number in range(3))
    outer = f"{TEN} a(x), {TEN} b(y), {TEN} c(z)"
    assert not runs_in_process(f"SELECT (SELECT count(*) FROM {inner} WHERE x0 < x) FROM {outer}")


def test_long_plans_are_not_kept() -> None:
    engine = ReferenceInProcess()
    (statement,) = parse("VALUES " + ", ".join(f"({number})" for number in range(5_000)))
    bound = bind(statement, BindContext(catalog=Catalog(), search_path=["public"], now=0), []).bound
    assert isinstance(bound, BoundQuery)
    gc.collect()  # binding leaves cycles, which would go at any moment
    before = sys.getrefcount(bound.plan)
    refused = engine.refusal(bound.plan)
    after = sys.getrefcount(bound.plan)
    assert refused is None
    assert after == before
