"""One suite for every engine: plans over pinned inputs, equal answers, equal errors.

Inputs are views of shards: files with deletion vectors and row limits, rows in memory, both. The
reference engine reads files through a callable; Spark gets them from `engines.py` in this
directory.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyroaring import BitMap64

from compute.executor import Executor, Run
from sql.binder.bind import bind
from sql.binder.state import BindContext
from sql.catalog.catalog import Catalog, Column, Table
from sql.errors import SqlError
from sql.parser.parse import parse
from sql.plan.nodes import ColumnId, Filter, Plan, PlanColumn, Project, RelationId, Scan, Values
from sql.statements.bound import BoundQuery
from sql.types.sql_type import BOOL, FLOAT8, INT4, INT8, TEXT, Value, computed_numeric, numeric
from storage.batch import DataFile, FileSlice, InlineSlice, ShardView
from storage.types import ShardId, Source
from tests.conformance.engines import ENGINES, Files

T = Table(
    1,
    "public",
    "t",
    "t0000000000000001",
    (
        Column("id", INT4),
        Column("name", TEXT),
        Column("price", numeric(10, 2)),
        Column("ratio", FLOAT8),
        Column("ok", BOOL),
    ),
)
U = Table(2, "public", "u", "t0000000000000002", (Column("id", INT4), Column("city", TEXT)))
CATALOG = Catalog(tables={("public", "t"): T, ("public", "u"): U})
SCHEMA_T = pa.schema(
    [
        ("id", pa.int32()),
        ("name", pa.string()),
        ("price", pa.decimal128(10, 2)),
        ("ratio", pa.float64()),
        ("ok", pa.bool_()),
    ]
)
SCHEMA_U = pa.schema([("id", pa.int32()), ("city", pa.string())])
NAN = float("nan")


def rows_t(rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    return pa.table([list(column) for column in zip(*rows, strict=True)], schema=SCHEMA_T)


BASE = rows_t(
    [
        (1, "one", Decimal("1.00"), 1.5, True),
        (2, "two", Decimal("2.50"), None, False),
        (3, None, None, NAN, None),
        (4, "deleted", Decimal("9.99"), 0.0, True),
        (5, "Zoë", Decimal("-3.25"), -0.5, True),
        (6, "beyond the limit", Decimal("0.01"), 7.0, False),
    ]
)
TAIL = rows_t(
    [
        (7, "a'b\\c", Decimal("100.10"), 2.0, False),
        (8, "deleted too", Decimal("1.00"), 1.0, True),
        (None, "two", Decimal("2.50"), 4.0, None),
    ]
)
CITIES = pa.table([[1, 2, 2, None, 9], ["Bonn", "Ulm", "Jena", "Köln", "Trier"]], schema=SCHEMA_U)


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """(executor, files) of each engine; the files of all engines are the same."""
    files = Files(tmp_path_factory.mktemp("warehouse"))
    with request.param(files) as executor:
        yield executor, files


def view_t(files: Files) -> ShardView:
    file = files.write(ShardId(T.shard), "part-0.parquet", BASE)
    return ShardView(
        ShardId(T.shard),
        SCHEMA_T,
        "base-1",
        (FileSlice(file, 5, BitMap64([3])),),
        (InlineSlice(Source("@100"), TAIL, BitMap64([1])),),
    )


def view_u() -> ShardView:
    inline = InlineSlice(Source("@101"), CITIES, BitMap64())
    return ShardView(ShardId(U.shard), SCHEMA_U, "base-2", (), (inline,))


async def collect(batches: AsyncIterator[pa.RecordBatch]) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    async for batch in batches:
        columns = [column.to_pylist() for column in batch.columns]
        rows += list(zip(*columns, strict=True)) if columns else [()] * batch.num_rows
    return rows


def run_plan(engine: Any, plan: Plan, parameters: Sequence[Value] = ()) -> list[tuple[Any, ...]]:
    executor, files = engine
    inputs = {RelationId(T.shard): view_t(files), RelationId(U.shard): view_u()}
    run = Run(plan, inputs, parameters)
    return asyncio.run(collect(executor.run(run)))


def plan_of(text: str) -> Plan:
    prepared = bind(parse(text)[0], BindContext(CATALOG, ["public"], 0), [])
    assert isinstance(prepared.bound, BoundQuery)
    return prepared.bound.plan


def query(engine: Any, text: str, parameters: Sequence[Value] = ()) -> list[tuple[Any, ...]]:
    return run_plan(engine, plan_of(text), parameters)


ONE, TWO, FIVE, SEVEN = (
    (1, "one", Decimal("1.00"), 1.5, True),
    (2, "two", Decimal("2.50"), None, False),
    (5, "Zoë", Decimal("-3.25"), -0.5, True),
    (7, "a'b\\c", Decimal("100.10"), 2.0, False),
)
LAST = (None, "two", Decimal("2.50"), 4.0, None)

ANSWERS: dict[str, list[tuple[Any, ...]]] = {
    "select id from t order by id": [(1,), (2,), (3,), (5,), (7,), (None,)],
    "select id from t order by id desc": [(None,), (7,), (5,), (3,), (2,), (1,)],
    "select id from t order by id desc nulls last limit 2 offset 1": [(5,), (3,)],
    "select * from t where id in (1, 2, 5, 7) order by id": [ONE, TWO, FIVE, SEVEN],
    "select * from t where id is null": [LAST],
    "select count(*), count(id), count(distinct name) from t": [(6, 5, 4)],
    "select count(*) from t where false": [(0,)],
    "select sum(id), sum(price), min(name), max(ratio) from t where id <> 3": [
        (15, Decimal("100.35"), "Zoë", 2.0)
    ],
    "select sum(id), avg(ratio), string_agg(name, ',') from t where false": [(None, None, None)],
    "select name, count(*) from t group by name order by name nulls first": [
        (None, 1), ("Zoë", 1), ("a'b\\c", 1), ("one", 1), ("two", 2)
    ],
    "select id % 2, sum(price) filter (where ok) from t group by id % 2 order by 1": [
        (0, None), (1, Decimal("-2.25")), (None, None)
    ],
    "select name from t group by name having count(*) > 1": [("two",)],
    "select distinct ok from t order by ok": [(False,), (True,), (None,)],
    "select string_agg(name, '|' order by name desc) from t": [("two|two|one|a'b\\c|Zoë",)],
    "select t.id, city from t join u on t.id = u.id order by t.id, city": [
        (1, "Bonn"), (2, "Jena"), (2, "Ulm")
    ],
    "select t.id, city from t left join u on t.id = u.id and city > 'C' order by 1, 2": [
        (1, None), (2, "Jena"), (2, "Ulm"), (3, None), (5, None), (7, None), (None, None)
    ],
    "select t.id, city from t right join u on t.id = u.id order by city": [
        (1, "Bonn"), (2, "Jena"), (None, "Köln"), (None, "Trier"), (2, "Ulm")
    ],
    "select t.id, u.id from t full join u on t.id = u.id where t.id is null or u.id is null"
    " order by 1, 2": [
        (3, None), (5, None), (7, None), (None, 9), (None, None), (None, None)
    ],
    "select count(*) from t cross join u": [(30,)],
    "select id from t where exists (select 1 from u where u.id = t.id) order by id": [(1,), (2,)],
    "select id from t where not exists (select 1 from u where u.id = t.id) order by id": [
        (3,), (5,), (7,), (None,)
    ],
    "select id from t where id in (select id from u) order by id": [(1,), (2,)],
    "select id from t where id not in (select id from u) order by id": [],
    "select id from t where id not in (select id from u where id is not null) order by id": [
        (3,), (5,), (7,)
    ],
    "select id, (select count(*) from u where u.id = t.id) from t order by id": [
        (1, 1), (2, 2), (3, 0), (5, 0), (7, 0), (None, 0)
    ],
    "select id, id in (select id from u), id not in (select id from u where id > 1) from t"
    " order by id": [
        (1, True, True), (2, True, False), (3, None, True), (5, None, True), (7, None, True),
        (None, None, None),
    ],
    "select id, exists (select 1 from u where u.id = t.id) from t order by id": [
        (1, True), (2, True), (3, False), (5, False), (7, False), (None, False)
    ],
    "select id from t where id = 1 or id in (select id + 1 from u) order by id": [
        (1,), (2,), (3,)
    ],
    "select id from t where case when id > 1 then id in (select id from u) end": [(2,)],
    "select a.id, (select count(*) from (select 1 from u where u.id <= a.id) x) from t a"
    " where id < 6 order by 1": [(1, 1), (2, 3), (3, 3), (5, 3)],
    "select count(*) from (select 1 from t) x": [(6,)],
    "select count(*) from (select distinct id % 2 as a, ok from t) x": [(5,)],
    "select a.n, b.n from (select ok, count(*) n from t group by ok) a"
    " join (select ok, sum(id) n from t group by ok) b on a.ok = b.ok order by a.ok": [
        (2, 9), (2, 6)
    ],
    "select id, (select max(city) from u where u.id = t.id) from t where id < 4 order by id": [
        (1, "Bonn"), (2, "Ulm"), (3, None)
    ],
    "select id from t union select id from u order by 1": [
        (1,), (2,), (3,), (5,), (7,), (9,), (None,)
    ],
    "select id from t union all select id from u order by 1 limit 3": [(1,), (1,), (2,)],
    "select id from u intersect select id from t order by 1": [(1,), (2,), (None,)],
    "select id from u except select id from t": [(9,)],
    "select id from u except all select id from t order by 1": [(2,), (9,)],
    "select 1 + 1, 'x' || 'y'": [(2, "xy")],
    "values (1, 'a'), (2, null) order by 1 desc": [(2, None), (1, "a")],
    "select x from (values (3), (1), (2)) v(x) order by x limit 1": [(1,)],
    "with c as (select id, price from t where price > 0) select a.id from c a join c b"
    " on a.id = b.id order by 1": [(1,), (2,), (7,)],
    "select id from t where ratio = 'NaN'": [(3,)],
    "select case when id = 0 then 1 / id else id end from t where id = 1": [(1,)],
    "select upper(name), length(name) from t where name like 'Z%'": [("ZOË", 3)],
    "select name from t where name like '%\\\\c'": [("a'b\\c",)],
    "select price * 2, price / 4, price::float8 from t where id = 2": [
        (Decimal("5.00"), Decimal("0.625000000000000000"), 2.5)
    ],
    "select l.id, x.city from t l left join lateral (select city from u where u.id = l.id"
    " order by city limit 1) x on true where l.id < 4 order by 1": [
        (1, "Bonn"), (2, "Jena"), (3, None)
    ],
    "select date '2024-01-31' + 1": [(date(2024, 2, 1),)],
}  # fmt: skip


@pytest.mark.parametrize("text", ANSWERS)
def test_answers(engine: Any, text: str) -> None:
    assert query(engine, text) == ANSWERS[text]


ERRORS = {
    "select 1 / (id - 1) from t": "22012",
    "select id + 2147483647 from t": "22003",
    "select name::int from t": "22P02",
    "select (select city from u where id = 2)": "21000",
    "select (select city from u where u.id = t.id) from t": "21000",
    "select price::numeric(3,2) from t": "22003",
    "select sqrt(ratio) from t where id = 5": "2201F",
}


@pytest.mark.parametrize("text", ERRORS)
def test_errors(engine: Any, text: str) -> None:
    with pytest.raises(SqlError) as caught:
        query(engine, text)
    assert caught.value.sqlstate == ERRORS[text]


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [((2, 1), [(2,), (3,)]), ((None, 3), [(5,), (7,), (None,)]), ((0, None), [])],
)
def test_limit_and_offset_by_parameter(
    engine: Any, parameters: Sequence[Value], expected: list[tuple[Any, ...]]
) -> None:
    assert query(engine, "select id from t order by id limit $1 offset $2", parameters) == expected


@pytest.mark.parametrize(
    ("parameters", "sqlstate"), [((-1, 0), "2201W"), ((0, -1), "2201X"), ((-1, -1), "2201X")]
)
def test_negative_limit_and_offset(engine: Any, parameters: Sequence[Value], sqlstate: str) -> None:
    for text in ("select id from t limit $1 offset $2", "select 1 limit $1 offset $2"):
        with pytest.raises(SqlError) as caught:
            query(engine, text, parameters)
        assert caught.value.sqlstate == sqlstate


def test_parameters_stay_values(engine: Any) -> None:
    hostile = "a'b\\c"
    assert query(engine, "select id from t where name = $1", [hostile]) == [(7,)]
    for text in ("${env:HOME}", "`x`", "\u2028", "'; drop", "\\", "😀"):
        assert query(engine, "select $1::text", [text]) == [(text,)]


def test_identity_names_rows(engine: Any) -> None:
    source, index = (
        PlanColumn(ColumnId(90), "source", TEXT),
        PlanColumn(ColumnId(91), "index", INT8),
    )
    column = PlanColumn(ColumnId(1), "id", INT4)
    scan = Scan(RelationId(T.shard), "t", (column,), (0,), (source, index))
    file = "part-0.parquet"
    assert sorted(run_plan(engine, scan), key=repr) == sorted(
        [(1, file, 0), (2, file, 1), (3, file, 2), (5, file, 4), (7, "@100", 0), (None, "@100", 2)],
        key=repr,
    )


def test_rows_of_no_columns(engine: Any) -> None:
    assert run_plan(engine, Scan(RelationId(T.shard), "t", (), ())) == [()] * 6
    assert run_plan(engine, Project(Values((), ((),)), (), ())) == [()]


def test_batches_have_the_types_of_the_plan(engine: Any) -> None:
    executor, files = engine
    plan = plan_of("select id, price, sum(price) over_all, ok from t group by id, price, ok")

    async def first() -> pa.Schema:
        inputs = {RelationId(T.shard): view_t(files)}
        async for batch in executor.run(Run(plan, inputs)):
            return batch.schema
        raise AssertionError("no batch")

    types = [field.type for field in asyncio.run(first())]
    assert types == [pa.int32(), pa.decimal128(10, 2), pa.decimal128(38, 2), pa.bool_()]
    assert computed_numeric(38, 2, trim=False).scale == 2


def test_closing_the_iterator_ends_the_run(engine: Any) -> None:
    executor, files = engine
    plan = plan_of("select a.id from t a, t b, t c, t d, t e, t f")

    async def take_one() -> int:
        batches = executor.run(Run(plan, {RelationId(T.shard): view_t(files)}))
        async for batch in batches:
            await batches.aclose()
            return batch.num_rows
        return 0

    assert asyncio.run(take_one()) > 0
    assert query(engine, "select 1") == [(1,)]


def test_plans_nested_too_deeply(engine: Any) -> None:
    plan: Plan = plan_of("select id from t")
    truth = plan_of("select id from t where true")
    while isinstance(truth, Project):
        truth = truth.input
    assert isinstance(truth, Filter)
    for _ in range(10_000):
        plan = Filter(plan, truth.predicate)
    with pytest.raises(SqlError) as caught:
        run_plan(engine, plan)
    assert caught.value.sqlstate == "54001"


def test_is_an_executor(engine: Any) -> None:
    executor: Executor = engine[0]
    assert executor.name
    assert DataFile is not None
