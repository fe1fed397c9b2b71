"""Groups that are added to: with the state that a view keeps, and by what it shows alone.

The stored rows, hidden columns and all, are those that the query gives anew, to the bit.
"""

import asyncio
import random
from collections.abc import Mapping, Sequence
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from compute.duckdb.database import LocalSettings
from compute.duckdb.executor import LocalExecutor
from compute.executor import Executor
from compute.reference.executor import ReferenceExecutor
from sql.incremental import added_groups
from sql.incremental.added_groups import GroupSums
from sql.incremental.program import Strategy
from sql.plan.nodes import Const, output_columns
from sql.types.sql_type import BOOL
from tests.unit.compute.maintenance.random_changes import RandomChanges
from tests.unit.compute.maintenance.stage import Stage, plan_of, row_of
from tests.unit.compute.maintenance.test_node_rules import FIRST, Story

NUMBERS = ("i::int2", "i", "l", "n", "n::numeric", "n::numeric(38, 20)", "n * n * 7")
ORDERED = ("i", "l", "n", "s", "b::int", "d", "ts", "s::bytea")
BOOLEANS = ("b", "i > 0", "l is null")
AGGREGATES: Mapping[str, Sequence[str]] = {
    "counts": ("count(*)", "count(s)", "count(*) filter (where b)"),
    "sums": tuple(f"sum({x})" for x in NUMBERS),
    "averages": tuple(f"avg({x})" for x in NUMBERS),
    "averages of some": tuple(f"avg({x}) filter (where b)" for x in NUMBERS[1:4]),
    "booleans": tuple(f"{f}({x})" for f in ("bool_and", "bool_or", "every") for x in BOOLEANS),
    "booleans of some": ("bool_and(b) filter (where i = 1)", "bool_or(i > 0) filter (where b)"),
    "extremes": tuple(f"{f}({x})" for f in ("min", "max") for x in ORDERED),
}
"""Every kind that is added to, over every type that it takes."""

COMMITS = 40
CHANGES_MIN = 1_000


@asynccontextmanager
async def engine_of(kind: str, place: Path) -> Any:
    if kind == "reference":
        yield ReferenceExecutor()
        return
    engine = LocalExecutor(LocalSettings(place, place / "spill"))
    try:
        yield engine
    finally:
        await engine.close()


async def follow(engine: Executor, text: str, commits: int, *, keeps_state: bool) -> int:
    """Random changes, a look after each; how many rows have changed."""
    changes = RandomChanges(random.Random(text))
    stage = Stage(engine, text, ("t1",), keeps_state=keeps_state)
    await stage.commit({"t1": changes.rows("t1", 9)})
    assert await stage.rebuild(), stage.behind
    assert stage.program.strategy is Strategy.SUMS
    changed = 0
    for _ in range(commits):
        come, go = changes.commit(stage)
        more = changes.rows("t1", 4)
        assert await stage.commit({"t1": [*come.get("t1", ()), *more]}, go) is not None, text
        await stage.check()
        changed += len(more) + sum(map(len, (*come.values(), *go.values())))
    return changed


@pytest.mark.parametrize("keys", ["", "b", "i, s"])
def test_a_thousand_changes_to_every_aggregate(keys: str, tmp_path: Path) -> None:
    async def story() -> int:
        total = 0
        async with engine_of("reference", tmp_path) as engine:
            for calls in AGGREGATES.values():
                text = f"select {', '.join(calls)} from t1" + (f" group by {keys}" if keys else "")
                total += await follow(engine, text, COMMITS, keeps_state=True)
        return total

    assert asyncio.run(story()) >= CHANGES_MIN


@pytest.mark.parametrize("shown", AGGREGATES)
def test_the_local_engine_gives_the_same(shown: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with engine_of("local", tmp_path) as engine:
            calls = ", ".join(AGGREGATES[shown])
            await follow(engine, f"select i, {calls} from t1 group by i", 15, keeps_state=True)

    asyncio.run(story())


@pytest.mark.parametrize("keys", ["", "i"])
def test_what_is_shown_alone(keys: str) -> None:
    shown = "count(*), count(l), sum(l), sum(n), avg(l), min(d), max(n), max(s)"
    group = f" group by {keys}" if keys else ""
    text = f"select {keys}{', ' if keys else ''}{shown} from t1{group}"
    asyncio.run(follow(ReferenceExecutor(), text, COMMITS, keeps_state=False))


@pytest.mark.parametrize(
    "text",
    [
        "select g, avg(k), bool_and(v > 1), min(s), max(n) from a group by g",
        "select avg(v) * 2 as x, sum(n) / count(*) as y from a where v < 5",
        "select g, avg(n) from a group by g, s having count(*) > 1",
        "select 1 + sum(v) as x from a group by g, s",
        "with w as (select g, v from a where v < 5) select g, avg(v) from w group by g",
        "select a.g, avg(b.v), bool_or(b.v > a.v) from a left join b on a.k = b.k group by a.g",
    ],
)
def test_every_kind_of_change_of_a_view_with_state(text: str) -> None:
    async def story() -> None:
        stage = Stage(ReferenceExecutor(), text, keeps_state=True)
        await stage.commit(FIRST)
        assert await stage.rebuild(), stage.behind
        assert stage.program.strategy is Strategy.SUMS
        assert stage.program.reason is None
        await Story(stage).tell()

    asyncio.run(story())


def test_which_queries_keep_state() -> None:
    for text, hidden in {
        "select g, count(*) from a group by g": 0,
        "select g, sum(v), count(v), count(*) from a group by g": 0,
        "select g, count(v) from a group by g": 1,
        "select g, sum(v) from a group by g": 2,
        "select avg(v) from a": 2,
        "select avg(v), sum(v), count(v) from a": 0,
        "select count(*) from a group by g, s": 2,
        "select max(v) from a": 0,
        "select bool_and(v > 1) and bool_or(v > 2) as x from a": 6,
        # Recomputed anyway.
        "select g, sum(f), avg(v) from a group by g": 0,
        "select avg(v) from a group by f": 0,
        "select g, sum(distinct v) from a group by g": 0,
        "select g, avg(v) from a group by rollup (g)": 0,
        "select g, avg(v) from (select g, v from a limit 3) q group by g": 0,
        "select g, v from a": 0,
        "select g, avg(v) over (partition by g) from a": 0,
    }.items():
        width = len(output_columns(plan_of(text)))
        assert len(output_columns(plan_of(text, keeps_state=True))) - width == hidden, text


def test_rows_of_groups_are_not_looked_at() -> None:
    async def story() -> None:
        text = "select g, avg(v), bool_and(v > 1), min(v) from a group by g"
        stage = Stage(ReferenceExecutor(), text, keeps_state=True)
        await stage.commit(FIRST)
        await stage.rebuild()

        assert await stage.sides_read(
            [row_of(7, 1, 5), row_of(8, 99, 1), row_of(9, None, None)]
        ) == {"came"}
        # 5 is not the least value of its group; NULL is none.
        assert await stage.sides_read([], k=7) == {"went"}
        assert await stage.sides_read([], k=9) == {"went"}
        # The group goes, but min cannot know that.
        assert await stage.sides_read([], k=8) == {"went", "after"}
        assert await stage.sides_read([row_of(1, 1, 1)], k=1) == {"came", "went"}
        assert await stage.sides_read([row_of(1, 1, 2)], k=1) == {"came", "went", "after"}

    asyncio.run(story())


def test_a_sum_at_the_end_of_its_range() -> None:
    """What overflows leaves the view behind, and no sum overflows on its way."""
    most = Decimal("9" * 10).scaleb(-2)
    factor = "1e28::numeric"

    async def story() -> None:
        text = f"select g, sum(n * {factor}) as s, avg(n) from a group by g"
        stage = Stage(ReferenceExecutor(), text, keeps_state=True)
        await stage.commit({"a": [row_of(1, 1, n=Decimal("9.00"))]})
        assert await stage.rebuild(), stage.behind
        changed = await stage.commit(
            {"a": [row_of(2, 1, n=Decimal("8.00"))]},
            {"a": [one[:2] for one in stage.tables["a"].live()]},
        )
        assert changed is not None
        await stage.check()
        assert await stage.commit({"a": [row_of(3, 1, n=most)]}) is None
        assert stage.behind is not None
        assert not await stage.rebuild()

    asyncio.run(story())


# --- faults that were made on purpose -------------------------------------------------------------


def is_found(text: str = "select g, avg(k), bool_and(v > 1), max(k) from a group by g") -> bool:
    async def story() -> None:
        stage = Stage(ReferenceExecutor(), text, keeps_state=True)
        await stage.commit(FIRST)
        await stage.rebuild()
        await Story(stage).tell()

    try:
        asyncio.run(story())
    except AssertionError:
        return True
    return False


def test_nothing_is_found_without_a_fault() -> None:
    assert not is_found()


def test_a_group_that_stays_without_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GroupSums, "remains", lambda _self, _old: Const(True, BOOL))
    assert is_found("select g, avg(k) from a group by g")


def test_an_extreme_that_went_unnoticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(added_groups._SumOfCall, "is_known", lambda *_args, **_others: None)
    assert is_found()


def test_a_value_that_decides_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    decided = {**added_groups._DECIDED_BY, "bool_and": added_groups._DECIDED_BY["bool_or"]}
    monkeypatch.setattr(added_groups, "_DECIDED_BY", decided)
    assert is_found()


def test_an_average_of_what_it_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    right = added_groups._values
    monkeypatch.setattr(added_groups, "_values", lambda call: added_groups.ALL_ROWS or right(call))
    assert is_found()


def test_what_goes_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    right = added_groups._sum
    monkeypatch.setattr(added_groups, "_sum", lambda _op, left, right_: right("+", left, right_))
    assert is_found()
