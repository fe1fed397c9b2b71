"""Q1 to Q3 of `places.py`: short statements and checks come in beside any number of long ones."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace

import pyarrow as pa
import pytest

from compute.duckdb.places import OVERDUE_S, Place, PlaceKind, Places, place_kind
from compute.executor import Run
from sql.types.sql_type import INT8
from storage.batch import ShardView
from tests.engines.duckdb.local_engine import Engine, Shard, T, plan_of, rows_of
from tests.engines.duckdb.test_streaming import until

LONG, SHORT, CHECK = PlaceKind.LONG, PlaceKind.SHORT, PlaceKind.CHECK
COLUMNS = [("id", INT8)]
ENDLESS = "select count(*) from t a, t b where a.id * b.id % 7 = b.id % 11"


def some(limit: int) -> Places:
    """As many of each kind."""
    return Places(dict.fromkeys(PlaceKind, limit))


def play(story: Coroutine[object, object, None]) -> None:
    """Run a story."""
    asyncio.run(story)


def test_each_kind_has_places_of_its_own_and_they_come_in_by_turn() -> None:
    async def story() -> None:
        places, came = some(1), list[int]()
        first = await places.enter(LONG)
        told: list[bool] = []

        async def come(number: int) -> None:
            place = await places.enter(LONG, told.append)
            came.append(number)
            place.leave()

        async with asyncio.TaskGroup() as group:
            for number in range(3):
                group.create_task(come(number))
            await asyncio.sleep(0)
            (await places.enter(SHORT)).leave()
            (await places.enter(CHECK)).leave()
            assert (places.waiting(LONG), came, told) == (3, [], [True] * 3)
            first.leave()
        assert came == [0, 1, 2]
        assert sum(told) == 3
        assert len(told) == 6
        assert places.taken(LONG) == 0

    play(story())


def test_one_that_turns_out_long_gives_its_place_back() -> None:
    async def story() -> None:
        places = some(1)
        held: list[Place] = [await places.enter(SHORT)]
        # Nobody leaves, and yet everybody comes in.
        held += [await places.enter(SHORT) for _ in range(3)]
        assert places.taken(LONG) == 3
        assert places.taken(SHORT) == 1
        for place in held:
            place.leave()
        assert places.taken(LONG) == places.taken(SHORT) == 0
        await asyncio.sleep(2 * OVERDUE_S)
        assert places.taken(LONG) == 0

    play(story())


@pytest.mark.parametrize("is_let_in", [False, True])
def test_who_is_cancelled_while_it_waits_has_no_place(is_let_in: bool) -> None:
    async def story() -> None:
        places = some(1)
        first = await places.enter(LONG)
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(places.enter(LONG))
            await asyncio.sleep(0)
            if is_let_in:
                first.leave()
            waiting.cancel()
        assert places.waiting(LONG) == 0
        if not is_let_in:
            first.leave()
        assert places.taken(LONG) == 0

    play(story())


@pytest.fixture(scope="module")
def wide(engine: Engine) -> ShardView:
    shard = Shard(engine, pa.schema([("id", pa.int64())]))
    shard.file("0.parquet", pa.table({"id": pa.array(range(300_000), pa.int64())}))
    return shard.view([("0.parquet", None, [])])


@pytest.fixture(scope="module")
def narrow(engine: Engine) -> ShardView:
    shard = Shard(engine, pa.schema([("id", pa.int64())]))
    shard.file("0.parquet", pa.table({"id": pa.array(range(1_000), pa.int64())}))
    return shard.view([("0.parquet", None, [])])


def run_over(text: str, view: ShardView) -> Run:
    """A statement over a table."""
    return Run(plan_of(text, COLUMNS), {T: view})


def test_estimates(wide: ShardView, narrow: ShardView) -> None:
    assert place_kind(run_over("select sum(id) from t", wide)) is LONG
    short = run_over("select sum(id) from t", narrow)
    assert place_kind(short) is SHORT
    assert place_kind(replace(short, is_check=True)) is CHECK
    pairs = "select count(*) from t a, t b, t c where a.id = b.id and {}"
    assert place_kind(run_over(pairs.format("b.id = c.id"), narrow)) is SHORT
    assert place_kind(run_over(pairs.format("b.id < c.id"), narrow)) is SHORT
    of_three = "select count(*) from t a, t b, t c where a.id < b.id and b.id < c.id"
    assert place_kind(run_over(of_three, narrow)) is LONG
    of_one = "select count(*) from t a, t b, (select max(id) as id from t) c where a.id < b.id"
    assert place_kind(run_over(of_one, narrow)) is SHORT
    beside = "select (select count(*) from t b, t c, t d where b.id < c.id + d.id) from t a"
    assert place_kind(run_over(beside, narrow)) is LONG
    series = "select count(*) from generate_series(1, {}) s(x)"
    assert place_kind(run_over(series.format(1_000), narrow)) is SHORT
    assert place_kind(run_over(series.format(1_000_000_000), narrow)) is LONG
    endless = (
        "with recursive r(x) as (select 1 union all select x + 1 from r) select count(*) from r"
    )
    assert place_kind(run_over(endless, narrow)) is LONG


def test_a_short_statement_is_answered_beside_long_ones(
    engine: Engine, wide: ShardView, narrow: ShardView
) -> None:
    async def story() -> None:
        places = engine.executor.places
        async with asyncio.TaskGroup() as group:
            # Long by estimate: some of them wait. And, from a small table, long in truth.
            hopeless = "select count(*) from t a, t b, t c, t d where a.id % 2 = b.id % 2"
            hopeless += " and b.id % 2 = c.id % 2 and c.id % 2 = d.id % 2"
            runs = [run_over(ENDLESS, wide)] * 12 + [run_over(hopeless, narrow)] * 12
            assert place_kind(runs[-1]) is SHORT
            queries = [group.create_task(rows_of(engine.executor.run(run))) for run in runs]
            await until(lambda: places.waiting(LONG) > 0 and places.waiting(SHORT) == 0)
            short = run_over("select count(*), sum(id) from t", narrow)
            for run in (short, replace(short, is_check=True)):
                assert await rows_of(engine.executor.run(run)) == [(1_000, 499_500)]
            for query in queries:
                query.cancel()
        assert places.taken(LONG) == places.taken(SHORT) == 0
        await until(lambda: not engine.executor.running)

    play(story())
