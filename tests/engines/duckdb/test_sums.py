"""Sums of numbers that one machine word does not hold."""

from decimal import Decimal

import pyarrow as pa

from sql.types.sql_type import INT8, numeric
from tests.engines.duckdb.local_engine import Engine, Shard, plan_of

LARGEST = Decimal("9999999999999999.99")
COLUMNS = [("a", numeric(18, 2))]


def test_sums_of_narrow_decimals_are_wide(engine: Engine) -> None:
    rows = pa.table({"a": pa.array([LARGEST] * 2_000 + [None], pa.decimal128(18, 2))})
    shard = Shard(engine, rows.schema)
    shard.file("a.parquet", rows)
    view = shard.view([("a.parquet", None, [])], [("@9", rows.slice(0, 3), [])])
    text = "select sum(a), avg(a), sum(distinct a), sum(a) filter (where a < 0) from t"
    expected = (2_003 * LARGEST, LARGEST, LARGEST, None)
    assert engine.answer(plan_of(text, COLUMNS), view) == [expected]
    text = "select max(s) from (select sum(a) over (rows unbounded preceding) s from t) x"
    assert engine.answer(plan_of(text, COLUMNS), view) == [(2_003 * LARGEST,)]


def test_an_average_of_integers_is_of_their_exact_sum(engine: Engine) -> None:
    largest = (1 << 63) - 1
    rows = pa.table({"a": pa.array([largest] * 9, pa.int64())})
    view = Shard(engine, rows.schema).view([], [("@9", rows, [])])
    plan = plan_of("select sum(a), avg(a) from t", [("a", INT8)])
    assert engine.answer(plan, view) == [(9 * largest, largest)]
