"""Joins, groups and subqueries: the local engine agrees with the reference evaluator."""

import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from compute.reference.executor import execute_plan
from sql.types.sql_type import DATE, FLOAT8, INT4, INT8, TEXT, numeric
from tests.engines.duckdb.local_engine import Engine, Shard, T, plan_of

COLUMNS = [
    ("k", INT4), ("n", INT8), ("p", numeric(12, 2)), ("f", FLOAT8), ("s", TEXT), ("d", DATE),
]  # fmt: skip
SCHEMA = pa.schema(
    [
        ("k", pa.int32()), ("n", pa.int64()), ("p", pa.decimal128(12, 2)), ("f", pa.float64()),
        ("s", pa.string()), ("d", pa.date32()),
    ]
)  # fmt: skip
REVENUE = "sum(p * (1 - 0.05)) as revenue"
QUERIES = [
    # As TPC-H asks.
    "select s, k % 3, sum(n), sum(p), sum(p * (1 - 0.1) * (1 + 0.02)), avg(p), avg(n), count(*)"
    " from t where d <= date '2024-02-20' - interval '10 days' group by 1, 2",
    f"select k, {REVENUE}, d from t where d < '2024-02-01' group by k, d"
    " order by revenue desc nulls last, k, d limit 10",
    "select sum(case when s like 'a%' then p else 0 end) / nullif(sum(p), 0) * 100 from t",
    "select sum(p) from t where n between 3 and 9 and f < 0.5 and k < 24",
    "select a.k, count(*) from t a where exists (select 1 from t b where b.k = a.k and b.n > a.n)"
    " and not exists (select 1 from t c where c.k = a.k and c.s <> a.s) group by a.k",
    "select k from t where p = (select min(b.p) from t b where b.k = t.k)",
    "select x.s, x.total from (select s, sum(p) as total from t group by s) x"
    " where x.total = (select max(total) from (select sum(p) as total from t group by s) y)",
    "select c, count(*) from (select a.k, count(b.n) as c from t a left join t b on a.k = b.k"
    " and b.s not like '%b%' group by a.k) x group by c",
    "select s from t where n in (select n from t group by n having sum(p) > 100)",
    "select extract(year from d), extract(month from d), sum(p) from t group by 1, 2",
    "select sum(p) / 7.0 from t where n < (select 0.2 * avg(b.n) from t b where b.k = t.k)",
    # Outer joins and conditions on both sides.
    "select a.k, b.k from (select distinct k from t where n < 4) a"
    " full join (select distinct k from t where n > 8) b on a.k = b.k",
    "select a.n, b.n from (select n from t where k = 1) a left join (select n from t where k = 2) b"
    " on a.n < b.n and b.n % 2 = 0",
    "select a.s, l.m from (select distinct s from t) a left join lateral"
    " (select max(n) as m from t b where b.s = a.s and b.k < 3) l on true",
    "select a.k, l.n from (select distinct k from t where k < 4) a cross join lateral"
    " (select n from t b where b.k = a.k order by n desc nulls last, p, f limit 2) l",
    "select count(*) from t a join t b on a.k = b.k and (a.s = b.s or a.s is null and b.s is null)",
    # Membership with NULLs.
    "select distinct k from t where k not in (select k from t where n > 8)",
    "select distinct k from t where k not in (select k from t where n > 8 and k is not null)",
    "select distinct k, n from t where (k, n) in (select n, k from t)",
    "select distinct k, (k, n) not in (select n, k from t where k < 3) from t where n < 3",
    "select k, k in (select n from t where n < 2 or n is null) from t where k < 5",
    "select k, k = any (select n from t where n < 3 or n is null) from t where k < 6",
    # Sets.
    "select k from t union select n from t",
    "select k from t where k < 5 intersect all select n from t where n < 7",
    "select k from t except all select n from t",
    "select k, s from t except select n, s from t where s like 'a%'",
    "(select k from t union all select n from t) union select null",
    # Aggregates.
    "select k, count(distinct s), count(distinct s) filter (where n > 3), sum(distinct n) from t"
    " group by k",
    "select s, string_agg(s || n, ',' order by n desc nulls last, s), min(s), max(d) from t"
    " where k = 2 group by s",
    "select k, stddev(n), var_pop(p), bool_or(n > 5), bool_and(n > 1), bit_or(n) from t group by k",
    "select k is null, s is null, count(*) from t group by 1, 2 having count(*) > 1",
    "select distinct on_k from (select k % 4 as on_k, f from t) x where f is null or f = 'NaN'",
    "select sum(n), avg(p), max(s), count(*) from t where false",
    "select k, sum(n) from t where false group by k",
    "select max(f), min(f), count(f) from t",
    "select f, count(*) from t where f > 0.9 or f is null group by f",
    # Subqueries in places.
    "with c as (select k, sum(p) as total from t group by k)"
    " select a.k, a.total, (select count(*) from c b where b.total > a.total) from c a",
    "select (select max(n) from t b where b.k = a.k and b.s = a.s), a.k from t a where a.n = 1",
    "select case when exists (select 1 from t b where b.k = a.n) then 'yes' else 'no' end, a.n"
    " from (select distinct n from t) a",
    "select x.k from (select k, n from t order by n desc nulls last, k, p, f limit 7 offset 3) x",
    "select greatest(k, n, 3), least(k, n), coalesce(k, n, -1), nullif(k, n) from t where n < 4",
    "select k from t where k is distinct from n and s is not distinct from null",
    "select v.a, count(t.k) from (values (1, 'a'), (2, null), (9, 'z')) v(a, b)"
    " left join t on t.k = v.a group by v.a",
    # Correlated in every place.
    "select a.k, (select sum(b.n) from t b where b.k = a.k and b.n > (select avg(c.n) from t"
    " c where c.s = a.s)) from t a",
    "select a.k, (select count(*) from (select b.n from t b where b.k = a.k union select c.k"
    " from t c where c.n = a.n) x) from t a",
    "select a.k, (select n from t b where b.k = a.k order by n limit 1 offset 1) from t a",
    "select a.k from t a join t b on a.k = b.n and a.n = (select max(c.n) from t c where c.k"
    " = b.k)",
    "select a.k from t a left join t b on a.k = b.n and exists (select 1 from t c where c.k"
    " = a.k and c.n = b.n)",
    "select a.k, l.x from t a left join lateral (select b.n as x from t b where b.k = a.k) l"
    " on l.x > a.n",
    "select a.k, l.x, m.y from t a, lateral (select max(n) as x from t b where b.k=a.k) l,"
    " lateral (select count(*) as y from t c where c.n = l.x) m",
    "select a.k, (select count(*) from t b where b.k in (select c.n from t c where c.s = a.s"
    " and c.d > b.d)) from t a",
    "select a.k, a.k in (select b.n from t b where b.s = a.s), a.k not in (select b.n from t"
    " b where b.s = a.s) from t a",
    "select a.k, (a.k, a.n) in (select b.n, b.k from t b where b.s = a.s) from t a",
    "select k, sum(n) from t a group by k having sum(n) > (select avg(b.n) * 3 from t b"
    " where b.k = a.k)",
    "select k, (select max(s) from t b where b.n = sum(a.n)) from t a group by k",
    "select (select sum(a.n + b.n) from t b) from t a where a.k = 1",
    "select a.n, x.c from t a cross join (select count(*) as c from t b where b.n > 3) x",
    "select * from (select k from t order by n limit 3) a, (select s from t order by n desc"
    " limit 2) b",
    "select a.k from t a full join t b on a.k < b.n and a.n > b.k",
    "select a.k from t a full join t b on a.s = b.s or a.k = b.k",
    "select (select (select (select max(d.n) from t d where d.k = a.k) from t c limit 1)"
    " from t b limit 1) from t a",
    "select k from t order by (select max(n) from t b where b.k = t.k), k, n, p limit 5",
    "select case when k > 2 then (select max(n) from t b where b.k = a.k) else (select"
    " min(n) from t c) end from t a",
    "select count(*) from t a, lateral (values (a.k), (a.n)) v(x) where v.x > 2",
    "select a.k, (select string_agg(s, ',' order by s) from t b where b.k = a.k) from t a",
    "select a.k, (select count(distinct b.s) filter (where b.n > a.n) from t b) from t a",
    "select exists (select 1 from t b where b.k = a.k limit 0), exists(select count(*) from"
    " t b where b.k = a.k and false) from t a",
    "select a.k from t a where a.k = coalesce((select b.k from t b where b.n = a.n and b.k >"
    " 100), a.k)",
    "select k from t where exists (select 1 from t b left join t c on b.k = c.n and c.s ="
    " t.s where b.n = t.k and c.k is null)",
    "select t.k, (select max(u.n) from (select b.n, b.k from t b where b.s = t.s) u join"
    " (select c.k from t c where c.n = t.n) w on u.k = w.k) from t",
    "select 'x', null, 1 from t order by 1, 2, 3",
    "select k, 'c' as c from t group by k, c order by c, k",
    "select 5 as five, count(*) from t group by five",
    "select k from t where 1 = 1 order by 'a'::text, k",
    "select null::int as z, k from t group by 1, 2",
    "select sum(x) from (select 1 as x from t limit all offset 2) y",
    "select k, n from t union all select 1, 2 order by 1 nulls first, 2 desc limit 4",
]


def table(seed: int, count: int) -> pa.Table:
    rng = random.Random(seed)

    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.1 else value

    rows = [
        (
            maybe(rng.randrange(8)),
            maybe(rng.randrange(12)),
            maybe(Decimal(rng.randrange(-5_000, 50_000)).scaleb(-2)),
            maybe(rng.choice([rng.random(), 0.5, float("nan"), float("inf"), -0.0])),
            maybe(rng.choice(["a", "ab", "b", "", "Ä", "abc"])),
            maybe(19_700 + rng.randrange(90)),
        )
        for _ in range(count)
    ]
    columns = [pa.array(list(column)) for column in zip(*rows, strict=True)]
    return pa.table(
        [
            column.cast(pa.int32()).cast(type_) if type_ == pa.date32() else column.cast(type_)
            for column, type_ in zip(columns, SCHEMA.types, strict=True)
        ],
        schema=SCHEMA,
    )


@pytest.mark.parametrize("text", QUERIES)
def test_the_reference_agrees(engine: Engine, text: str) -> None:
    shard = Shard(engine, SCHEMA)
    shard.file("a.parquet", table(1, 60))
    view = shard.view([("a.parquet", 55, [3, 8])], [("@1", table(2, 20), [0])])
    files = {name: table(1, 60) for name in shard.files}
    plan = plan_of(text, COLUMNS)
    expected = list(execute_plan(plan, {T: view}, (), lambda _shard, file: files[file.name]))
    found = engine.values(plan, view)
    # Equal but for the last digits of floats, and the order where none is asked for.
    assert sorted(map(shown, found)) == sorted(map(shown, expected))


def shown(row: tuple[Any, ...]) -> str:
    return repr(tuple(f"{value:.12g}" if isinstance(value, float) else value for value in row))
