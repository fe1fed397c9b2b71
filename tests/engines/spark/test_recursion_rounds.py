"""Recursions in rounds: in memory and in files, in every lane, cancelled, what is left behind."""

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pytest

from compute.spark.executor import SparkExecutor
from compute.spark.recursion_rounds import ComputedRelations
from compute.spark.session import SessionPoolName
from sql.errors import SqlError
from sql.types.sql_type import FLOAT8, INT8, TEXT
from storage.batch import ShardView
from tests.engines.spark.shared_engine import (
    Shard,
    answer,
    directory,
    forced,
    plan_of,
    rows_of,
    until,
)

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("f", pa.float64()), ("s", pa.string())])
COLUMNS = [("a", INT8), ("b", INT8), ("f", FLOAT8), ("s", TEXT)]
REACH = (
    "with recursive r(a, b, f, s) as (select a, b, f, s from t union"
    " select r.a, t.b, t.f, t.s from r, t where r.b = t.a)"
)
ENDLESS = "with recursive r(x) as (select 1::bigint union select x + 1 from r, t where a = 0)"


@pytest.fixture(scope="module")
def ring() -> ShardView:
    """Ten nodes in a ring; floats and texts that are not easily told apart."""
    floats = [float("nan"), -0.0, 0.0, None, 1.5, float("inf"), 2.5, 3.5, None, float("nan")]
    texts = ["", None, " ", "a", "A", "a ", "b", "c", "", "é"]
    table = pa.table([range(10), [*range(1, 10), 0], floats, texts], schema=SCHEMA)
    return Shard.new(SCHEMA).view(inline=[("@1", table, [])])


@contextmanager
def in_files(rows: int = 0) -> Iterator[None]:
    """Rounds of so many rows are too many to be collected."""
    with (
        mock.patch("compute.spark.recursion_rounds.COLLECT_ROWS_MAX", rows),
        mock.patch("compute.spark.recursion_rounds.MEMORY_BYTES_MAX", rows),
    ):
        yield


@contextmanager
def counted(name: str) -> Iterator[mock.Mock]:
    """A method whose calls are counted."""
    method = getattr(ComputedRelations, name)
    with mock.patch.object(ComputedRelations, name, autospec=True, side_effect=method) as calls:
        yield calls


def left() -> list[Path]:
    return list((directory() / "spark" / "spools").iterdir())


def relations(spark: SparkExecutor, lane: SessionPoolName) -> list[str]:
    """The names of what was made that Spark knows."""
    engine = spark._engine
    assert engine is not None
    catalog = engine.lanes[lane].session.java.sessionState().catalog()
    return str(catalog.listLocalTempViews("q*").mkString(" ")).split()


@pytest.mark.parametrize("lane", list(SessionPoolName))
@pytest.mark.parametrize("files", [False, True])
def test_the_rows_are_the_same_however_rounds_are_kept(
    spark: SparkExecutor, ring: ShardView, lane: SessionPoolName, *, files: bool
) -> None:
    plan = plan_of(
        f"{REACH} select a, b, count(*), count(f), min(s) from r group by a, b", t=COLUMNS
    )
    expected = {(a, b) for a, b in itertools.product(range(10), range(10))}
    with forced(lane), in_files(0 if files else 1 << 20):
        found = answer(spark, plan, {"t": ring})
    assert {row[:2] for row in found} == expected
    assert {row[2] for row in found} == {1}
    assert sum(row[3] for row in found) == 80
    assert sum(row[4] is None for row in found) == 10
    assert relations(spark, lane) == []
    asyncio.run(until(lambda: not left()))


def test_a_round_that_is_too_large_goes_to_files_and_later_ones_do_not(
    spark: SparkExecutor, ring: ShardView
) -> None:
    text = (
        "with recursive r(x) as (select a from t union select x * 100 + u.a from r, t u, t v"
        " where x < 10 and x > 0) select count(*), sum(x) from r"
    )
    with mock.patch("compute.spark.recursion_rounds.COLLECT_ROWS_MAX", 50):
        found = answer(spark, plan_of(text, t=COLUMNS), {"t": ring})
    made = {x * 100 + y for x in range(1, 10) for y in range(10)} | set(range(10))
    assert found == [(len(made), sum(made))]
    asyncio.run(until(lambda: not left()))


def test_rows_are_made_once_for_an_answer_that_turns_out_long(
    spark: SparkExecutor, ring: ShardView
) -> None:
    plan = plan_of(f"{REACH} select r.a, x.a from r, r x, t where r.a >= 0", t=COLUMNS)
    with (
        counted("_rows_of") as made,
        mock.patch("compute.spark.session_pool.COLLECT_ROWS_MAX", 1000),
    ):
        found = answer(spark, plan, {"t": ring})
    assert len(found) == 100_000
    assert made.call_count == 1
    asyncio.run(until(lambda: not left()))


def test_files_of_rounds_have_a_limit(spark: SparkExecutor, ring: ShardView) -> None:
    engine = spark._engine
    assert engine is not None
    lane = engine.lanes[SessionPoolName.SMALL]
    tight = mock.Mock(directory=lane._files.directory, bytes_max=1000)
    with in_files(), mock.patch.object(lane, "_files", tight), pytest.raises(SqlError) as caught:
        answer(spark, plan_of(f"{REACH} select count(*) from r", t=COLUMNS), {"t": ring})
    assert caught.value.sqlstate == "53400"
    assert relations(spark, SessionPoolName.SMALL) == []
    asyncio.run(until(lambda: not left()))


@pytest.mark.parametrize("files", [False, True])
def test_an_endless_recursion_is_cancelled(
    spark: SparkExecutor, ring: ShardView, *, files: bool
) -> None:
    async def story(rounds: mock.Mock) -> None:
        await spark.ready()
        plan = plan_of(f"{ENDLESS} select max(x) from r", t=COLUMNS)
        task = asyncio.create_task(rows_of(spark, plan, {"t": ring}))  # noqa: TID251
        await until(lambda: rounds.call_count > 3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: not relations(spark, SessionPoolName.SMALL))
        begun = rounds.call_count
        assert await rows_of(spark, plan_of("select count(*) from t", t=COLUMNS), {"t": ring}) == [
            (10,)
        ]
        assert rounds.call_count == begun
        await until(lambda: not left())

    with counted("_round") as rounds, in_files(0 if files else 1 << 20):
        asyncio.run(story(rounds))


def test_a_failure_in_a_later_round_leaves_nothing(spark: SparkExecutor, ring: ShardView) -> None:
    text = (
        "with recursive r(x) as (select 3::bigint union select x - 1 from r, t"
        " where a = 0 and 1 / x < 2) select x from r"
    )
    for rows in (0, 1 << 20):
        with in_files(rows), pytest.raises(SqlError) as caught:
            answer(spark, plan_of(text, t=COLUMNS), {"t": ring})
        assert caught.value.sqlstate == "22012"
        assert relations(spark, SessionPoolName.SMALL) == []
        asyncio.run(until(lambda: not left()))


def test_an_endless_recursion_under_a_limit_ends(spark: SparkExecutor, ring: ShardView) -> None:
    plan = plan_of(f"{ENDLESS} select x from r limit 4", t=COLUMNS)
    assert answer(spark, plan, {"t": ring}) == [(1,), (2,), (3,), (4,)]
