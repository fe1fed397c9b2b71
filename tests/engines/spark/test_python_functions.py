"""The reference evaluator in Spark's workers: laziness, errors, joins, cancellation, bounds."""

import asyncio
from typing import Any, cast
from unittest import mock

import pyarrow as pa
import pytest

from compute.spark.executor import SparkExecutor
from compute.spark.session import SessionPoolName
from sql.errors import SqlError
from sql.types.sql_type import INT8, TEXT, SqlType
from storage.batch import ShardView
from tests.engines.spark.shared_engine import Shard, answer, forced, plan_of, rows_of, until
from tests.engines.spark.test_interruptions import active_jobs, one

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("id", pa.int64()), ("doc", pa.string()), ("name", pa.string())])
COLUMNS = [("id", INT8), ("doc", SqlType("jsonb")), ("name", TEXT)]
ROWS = {
    "id": [1, 2, 3, 4],
    "doc": ['{"a": {"b": 7}}', '{"a": 1}', None, '{"a": {"b": 7.0}}'],
    "name": ["[1, 2]", "x", None, "[]"],
}


@pytest.fixture(scope="module")
def views() -> dict[str, ShardView]:
    view = Shard.new(SCHEMA).view(inline=[("@1", pa.table(ROWS, schema=SCHEMA), [])])
    return {"t": view, "u": view}


@pytest.fixture(params=[SessionPoolName.SMALL, SessionPoolName.LARGE], autouse=True)
def lane(request: pytest.FixtureRequest) -> Any:
    with forced(request.param):
        yield request.param


def ask(spark: SparkExecutor, text: str, views: dict[str, ShardView]) -> list[tuple[Any, ...]]:
    plan = plan_of(text, t=COLUMNS, u=COLUMNS)
    return answer(spark, plan, {name: views[name] for name in ("t", "u") if f" {name}" in text})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "select id, doc -> 'a' ->> 'b' from t order by 1",
            [(1, "7"), (2, None), (3, None), (4, "7.0")],
        ),
        # For id 2 the cast would fail: no branch that is not taken fails.
        (
            "select id, case when id in (1, 4) then jsonb_array_length(name::jsonb) end"
            " from t order by 1",
            [(1, 2), (2, None), (3, None), (4, 0)],
        ),
        ("select id from t where id <> 2 and name::jsonb = '[]'", [(4,)]),
        ("select coalesce(name, name::jsonb::text) from t where id = 2", [("x",)]),
        (
            "select id from t where id = 2 or name::jsonb in ('[]', '[1, 2]') order by 1",
            [(1,), (2,), (4,)],
        ),
        ("select count(distinct name::jsonb) filter (where id <> 2) from t", [(2,)]),
        # jsonb compares by what it holds, in joins, groups and orders.
        (
            "select t.id, u.id from t join u on t.doc = u.doc order by 1, 2",
            [(1, 1), (1, 4), (2, 2), (4, 1), (4, 4)],
        ),
        (
            "select t.id, u.id from t left join u on t.doc -> 'a' -> 'b' = u.doc -> 'a'"
            " order by 1, 2",
            [(1, None), (2, None), (3, None), (4, None)],
        ),
        ("select count(*) from t group by doc order by doc", [(1,), (2,), (1,)]),
        (
            "select id, value from t, jsonb_array_elements(name::jsonb) where id = 1",
            [(1, "1"), (1, "2")],
        ),
        (
            "select id from t where exists (select 1 from u where u.doc ->> 'a' = t.id::text)",
            [(1,)],
        ),
        (
            "select id, jsonb_agg(id) filter (where id > 1) over (order by id) from t",
            [(1, None), (2, "[2]"), (3, "[2, 3]"), (4, "[2, 3, 4]")],
        ),
        ("select jsonb_agg(name order by id desc) from t where id < 3", [('["x", "[1, 2]"]',)]),
        ("select jsonb_agg(name) from t where id > 4", [(None,)]),
        # The rows of a subquery as an array: in its order, NULL too, and no rows as well.
        (
            "select id, array(select u.name from u where u.id < t.id order by u.id desc)"
            " from t order by 1",
            [(1, []), (2, ["[1, 2]"]), (3, ["x", "[1, 2]"]), (4, [None, "x", "[1, 2]"])],
        ),
        (
            "select id from t where id = any(array(select u.id + 1 from u where u.id < t.id))"
            " order by 1",
            [(2,), (3,), (4,)],
        ),
        (
            "select id from t where id = any(array(select u.id + 1 from u)) order by 1",
            [(2,), (3,), (4,)],
        ),
        # Spark itself takes no volatile functions there: they are computed below.
        ("select sum(random(1, 6)) between 4 and 24 from t", [(True,)]),
        ("select t.id from t join u on t.id = u.id and random(1, 6) > 0 where t.id < 2", [(1,)]),
        ("select count(distinct r) = 1 from (select random(1, 1000000) as r) s, t", [(True,)]),
    ],
)
def test_rows(
    spark: SparkExecutor, views: dict[str, ShardView], text: str, expected: list[tuple[Any, ...]]
) -> None:
    assert ask(spark, text, views) == expected


@pytest.mark.parametrize(
    ("text", "sqlstate", "message", "context"),
    [
        (
            "select name::jsonb from t",
            "22P02",
            "invalid input syntax for type json",
            "JSON data, line 1: x",
        ),
        (
            "select jsonb_object_agg(name, id) from t",
            "22023",
            "field name must not be null",
            None,
        ),
        (
            "select t.id from t left join u on t.doc @> u.doc",
            "0A000",
            "a function that Spark lacks, over both sides of an outer join or of EXISTS,"
            " on the spark engine is not supported",
            None,
        ),
    ],
)
def test_failures(
    spark: SparkExecutor,
    views: dict[str, ShardView],
    text: str,
    sqlstate: str,
    message: str,
    context: str | None,
) -> None:
    with pytest.raises(SqlError) as caught:
        ask(spark, text, views)
    error = caught.value
    assert (error.sqlstate, error.message, error.context) == (sqlstate, message, context)


def test_functions_do_not_pile_up(
    spark: SparkExecutor, views: dict[str, ShardView], lane: SessionPoolName
) -> None:
    text = "select id from t where doc ->> '{}' is not null"
    with mock.patch("compute.spark.functions.REGISTERED_MAX", 2):
        for number in range(5):
            assert ask(spark, text.format(number), views) == []
    engine = cast("Any", spark)._engine
    catalog = engine.lanes[lane].session.java.sessionState().catalog()
    assert str(catalog.listTemporaryFunctions().mkString(" ")).count("out_") == 2


def test_a_function_that_runs_is_cancelled(
    spark: SparkExecutor, views: dict[str, ShardView]
) -> None:
    rows = pa.table({"id": range(4000), "doc": ["{}"] * 4000, "name": [None] * 4000}, schema=SCHEMA)
    view = Shard.new(SCHEMA).view(inline=[("@1", rows, [])])
    endless = plan_of(
        # Not of three: Spark holds all pairs of the inner two for each row of the first.
        "select count(*) from t a, t b where jsonb_build_array(a.id, b.id) ->> 0 = 'never'",
        t=COLUMNS,
    )

    async def story() -> None:
        await spark.ready()
        await until(lambda: not active_jobs(spark))
        task = asyncio.create_task(rows_of(spark, endless, {"t": view}))  # noqa: TID251
        await until(lambda: active_jobs(spark))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: not active_jobs(spark))
        assert await one(spark, view) == [(4000,)]

    asyncio.run(story())
