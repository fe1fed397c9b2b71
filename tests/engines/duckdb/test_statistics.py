"""What DuckDB knows of a file without reading it must not change an answer."""

import pyarrow as pa
import pytest

from sql.types.sql_type import INT8
from tests.engines.duckdb.local_engine import Engine, Shard, plan_of

COLUMNS = [("i", INT8), ("x", INT8)]
NOTHING = "t a left join t b on a.i = b.i and b.x > 77"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"select count(*) from (select a.i from {NOTHING} limit 3) s", 3),
        (f"select exists (select 1 from {NOTHING})", True),
        (f"select count(*) from t c where not exists (select 1 from {NOTHING})", 0),
        ("select exists (select 1 from t b right join t a on a.i = b.i and b.x > 77)", True),
        (
            "select count(*) from (with r as materialized (select * from t where x > 77)"
            " select a.i from t a left join r on a.i = r.i limit 3) s",
            3,
        ),
        (f"select count(*) from (select distinct a.i from {NOTHING} order by 1 limit 3) s", 3),
    ],
)
def test_a_left_join_with_nothing_has_rows(engine: Engine, text: str, expected: object) -> None:
    rows = pa.table({"i": pa.array(range(10), pa.int64()), "x": pa.array([2] * 10, pa.int64())})
    shard = Shard(engine, rows.schema)
    shard.file("a.parquet", rows)
    view = shard.view([("a.parquet", None, [])], [])
    # From the second time on the rows are a table of DuckDB's, with statistics.
    for _ in range(3):
        assert engine.answer(plan_of(text, COLUMNS), view) == [(expected,)]
