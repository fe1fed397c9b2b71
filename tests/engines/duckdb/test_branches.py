"""The local engine computes no subquery in a branch that is not taken."""

import pyarrow as pa
import pytest

from compute.reference.executor import execute_plan
from sql.types.sql_type import BOOL, INT4
from tests.engines.duckdb.local_engine import Engine, Shard, T, plan_of

COLUMNS = [("id", INT4), ("a", BOOL), ("v", INT4)]
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int32()),
        "a": pa.array([True, False, None]),
        "v": pa.array([0, 5, None], pa.int32()),
    }
)
QUERIES = [
    "select id, case when a then 1 else (select 10/v from t u where u.id = t.id) end from t",
    "select id, case when v <> 0 then (select 10/t.v) end from t",
    "select id, case when v <> 0 then (select max(u.id) from t u where 10/t.v > 1) end from t",
    "select id, case when a is null then (select max(10/u.v) from t u) else 0 end from t"
    " where id < 3",
    "select id, case when a then 1 else (select u.id from t u) end from t where id = 1",
    "select id, case when id = 1 then 1 else (select u.id from t u where u.id >= t.id) end from t"
    " where id in (1, 3)",
    "select id, coalesce(a::int, (select 1/(v-v) from t u where u.id = 1)) from t where id < 3",
    "select id from t where v = 0 or exists (select 1 from t u where 10/t.v > 1)",
    "select id, case when v <> 0 then exists (select 1 from t u where 10/t.v > u.id) end from t",
    "select id, case when v <> 0 then 2 in (select 10/t.v from t u) end from t",
    "select id, case when v <> 0 then array(select 10/t.v from t u) end from t",
    "select id, case when v = 0 then 0 when v > 1 then (select 10/t.v) else -1 end from t",
    "select sum(case when v <> 0 then (select 10/t.v) end) from t",
    "select id, case when v <> 0 then (select sum(10/t.v + u.id) from t u) end from t",
    "select id, v <> 0 and (select 10/t.v > 1) from t",
    "select id, case when v <> 0 then (select (select 10/t.v + u.id) from t u where u.id = 1) end"
    " from t",
    "select id, case when exists (select 1 from t u where u.id = t.id and t.v <> 0)"
    " then (select sum(10/t.v + u.v) from t u) end from t",
    "select id, case when (select count(*) from t u where u.v > 5) > 0"
    " then (select 1/u.v from t u where u.v = 0) else 7 end from t",
    "select id, case when exists (select 1 from t u where u.id = t.id and t.v <> 0)"
    " then 10/v in (select u.id from t u) end from t",
    "select id, case when exists (select 1 from t u where u.id = t.id and u.v >= 0)"
    " then (select u.v from t u where u.id = t.id) else (select u.v from t u) end from t"
    " where id < 3",
    "select id, case when exists (select 1 from t u where u.id = t.id and t.v <> 0)"
    " then array(select 10/t.v from t u where u.id < 3) end from t",
    "select id, case when v in (select u.v from t u where u.v > 0) then"
    " case when (select 10/t.v) > 1 then (select 10/(t.v - 10)) end end from t",
]


@pytest.mark.parametrize("text", QUERIES)
def test_what_is_not_asked_does_not_fail(engine: Engine, text: str) -> None:
    plan = plan_of(text, COLUMNS)
    view = Shard(engine, ROWS.schema).view(inline=[("@1", ROWS, [])])
    expected = list(execute_plan(plan, {T: view}))
    assert sorted(engine.values(plan, view), key=repr) == sorted(expected, key=repr)
