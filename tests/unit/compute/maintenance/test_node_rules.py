"""Each rule of `sql/incremental` beside each kind of change, on two engines."""

import asyncio
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path

import pytest
from pyroaring import BitMap64

from compute.duckdb.database import LocalSettings
from compute.duckdb.executor import LocalExecutor
from compute.executor import Executor
from compute.maintenance import StoredRowsDiffer
from compute.reference.executor import ReferenceExecutor
from sql.incremental.derive import maintenance_program
from sql.incremental.program import NotIncremental, Strategy
from storage.types import Source
from tests.unit.compute.maintenance.narrowed import NarrowedEngine, nothing_is_small
from tests.unit.compute.maintenance.stage import Row, Stage, plan_of, row_of

CHANGES, KEYS, SUMS, FULL = Strategy.CHANGES, Strategy.KEYS, Strategy.SUMS, Strategy.FULL
VIEWS: dict[str, Strategy] = {
    "select k, v + 1 as x, s from a where v > 1": CHANGES,
    "select f, n from a": CHANGES,
    "select k, s from a union all select g, s from b where v = 2": CHANGES,
    "select k, x from a, generate_series(1, v) x": CHANGES,
    "select a.k, b.v from a join b on a.g = b.g": CHANGES,
    "select a.k, b.v from a, b": CHANGES,
    "select a.k, b.v from a join b on a.g = b.g and a.v in (select v from c)": CHANGES,
    "select x.k, y.k as l from a x join a y on x.g = y.g": CHANGES,
    "select x.k, y.v, z.v as w from a x join a y on x.g = y.g join a z on y.k = z.k": CHANGES,
    "select a.k, b.v, c.s from a left join b on a.k = b.k left join c on c.k = b.v": CHANGES,
    "select a.k, b.v from a right join b on a.k = b.k and a.v < b.v": CHANGES,
    "select a.k, b.v from a full join b on a.k = b.k": CHANGES,
    "select a.k, b.v from a left join b on a.k < b.k": CHANGES,
    "select k, v from a where exists (select from b where b.k = a.k and b.v > a.v)": CHANGES,
    "select k, v from a where not exists (select from b where b.k = a.k)": CHANGES,
    "select k, v from a where k in (select g from b)": CHANGES,
    "select k, v from a where k not in (select g from b)": CHANGES,
    "select k, v from a where k not in (select g from b where b.v = a.v)": CHANGES,
    "select k, (select sum(v) from b where b.g = a.k) from a": CHANGES,
    "select k, v from a where v > (select avg(v) from b)": CHANGES,
    "select a.k, l.v from a cross join lateral (select v from b where b.k = a.k) l": CHANGES,
    "select q.g, q.x, b.k from (select g, sum(v) as x from a group by g) q join b on b.g = q.g":
        CHANGES,
    "select sum(v) as x from a group by g": CHANGES,
    "with w as (select g, count(*) as n from a group by g)"
    " select w.g, w.n, x.n as m from w join w x on x.g = w.g": CHANGES,
    "select g, sum(v), count(*), string_agg(s, ',' order by s) from a group by g": KEYS,
    "select g, sum(f) from a where f < 5 group by g": KEYS,
    "select g, min(v), max(v), avg(n), bool_and(v > 1) from a group by g": KEYS,
    "select g, k, count(*) filter (where v > 1) as n from a group by k, g": SUMS,
    "select g, count(*) from a group by g having count(*) > 1": SUMS,
    "select a.g, count(b.k) from a left join b on a.k = b.k group by a.g": SUMS,
    "select g, sum(v), sum(n), sum(k::int8) from a group by g": SUMS,
    "select g, min(s) as least, max(n) filter (where v > 1), count(n) from a group by g": SUMS,
    "select count(v), g, sum(n) filter (where k > 1) from a where v < 5 group by g, k > 1, k > 1":
        KEYS,
    "select max(v) + 1 as x from a": FULL,
    "select g, avg(v) from a group by g": KEYS,
    "select sum(q.n), max(q.g) from (select g, count(*) as n from a group by g) q": SUMS,
    "select distinct g, s from a": KEYS,
    "select distinct on (g) g, k from a order by g, k": KEYS,
    "select g, v, sum(k) from a group by g, rollup (v)": KEYS,
    "select k, g, rank() over (partition by g order by k) from a": KEYS,
    "select g from a union select g from b": KEYS,
    "select g, k from a intersect all select g, k from b": KEYS,
    "select g from a except select g from b": KEYS,
    "select g from a except all select g from b": KEYS,
    "select sum(v), count(*) from a": SUMS,
    "select max(x) from (select sum(v) as x from a group by g) q": SUMS,
    "select sum(f) from a": FULL,
    "select k, rank() over (order by k) from a": FULL,
    "select k, v from a where v > (select avg(v) from a)": FULL,
    "select k from a order by k limit 2": FULL,
    "with recursive r (k) as (select k from a union select r.k + 1 from r where r.k < 3)"
    " select k from r": FULL,
}  # fmt: skip

NAN = float("nan")
FIRST: Mapping[str, Sequence[Row]] = {
    "a": [
        row_of(1, 1, 2, s="a", n=Decimal("1.00"), f=1.5, unused=1),
        row_of(2, 1, 3, s="b", n=Decimal("2.50"), f=0.0, unused=1),
        row_of(3, 2, 1, s=None, n=None, f=NAN, unused=1),
        row_of(None, None, 2, s="a", f=-0.0, unused=1),
    ],
    "b": [row_of(1, 1, 3), row_of(1, 2, 1), row_of(2, 3, 2), row_of(None, 1, 0)],
    "c": [row_of(1, 1, 3, s="x"), row_of(3, 2, 2, s="y")],
}


class Story:
    """Every kind of change, one after the other; the rows must be right after each."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    def _find(self, table: str, *, k: int | None) -> list[tuple[Source, int, Row]]:
        return [one for one in self.stage.tables[table].live() if one[2][0] == k]

    async def change(
        self,
        come: Mapping[str, Sequence[Row]],
        go: Mapping[str, Sequence[tuple[Source, int, Row]]] | None = None,
    ) -> int:
        gone = {name: [one[:2] for one in rows] for name, rows in (go or {}).items()}
        made = await self.stage.commit(come, gone)
        assert made is not None, self.stage.behind
        await self.stage.check()
        return made.rows

    async def update(self, table: str, k: int | None, at: int, value: object) -> int:
        rows = self._find(table, k=k)
        assert rows
        new = [(*row[:at], value, *row[at + 1 :]) for _, _, row in rows]
        return await self.change({table: new}, {table: rows})

    async def tell(self) -> None:
        for table in "abc":
            assert await self.change({}) == 0
            await self.change({table: [row_of(2, 2, 2, s="c", f=-0.0)]})
            # A column that no view uses: nothing changes.
            assert await self.update(table, 2, 6, 9) == 0
            await self.update(table, 2, 2, 5)
            await self.update(table, 2, 1, None)
            await self.update(table, 2, 0, 7)
            # Equal rows, of which one goes.
            await self.change({table: [row_of(1, 1, 2, s="a"), row_of(1, 1, 2, s="a")]})
            await self.change({}, {table: self._find(table, k=1)[-1:]})
            await self.change({table: [row_of(), row_of(4, None, 1, f=NAN), row_of(None, 2, 2)]})
            await self.update(table, 4, 5, 0.0)
            await self.update(table, 4, 5, -0.0)
            await self.change({}, {table: self._find(table, k=1)})
        new = {name: [row_of(3, 1, 3, s="z"), row_of(1, 2, 2)] for name in "abc"}
        await self.change(new, {name: self._find(name, k=7) for name in "abc"})
        for table in "bca":
            await self.change({}, {table: self.stage.tables[table].live()})
        await self.change(FIRST)


@pytest.mark.parametrize("text", VIEWS)
@pytest.mark.parametrize("kind", ["reference", "local", "narrowed"])
def test_a_view_follows_every_kind_of_change(
    text: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing_is_small(monkeypatch)

    async def story() -> None:
        engine: Executor = NarrowedEngine() if kind == "narrowed" else ReferenceExecutor()
        if kind == "local":
            engine = LocalExecutor(LocalSettings(tmp_path, tmp_path / "spill"))
        try:
            stage = Stage(engine, text)
            await stage.commit(FIRST)
            assert await stage.rebuild(), stage.behind
            assert stage.program.strategy is VIEWS[text]
            assert (stage.program.reason is None) == (VIEWS[text] is not FULL)
            await Story(stage).tell()
        finally:
            await engine.close()

    asyncio.run(story())


def test_what_no_program_can_follow() -> None:
    for text, reason in {
        "select random() from a": "volatile functions",
        "select k, xmin from a": "ctid or xmin",
        "select from a": "no columns",
    }.items():
        assert maintenance_program(plan_of(text)) == NotIncremental(reason)


def test_an_input_that_the_view_does_not_use_costs_no_plan() -> None:
    async def story() -> None:
        stage = Stage(ReferenceExecutor(), "select a.k, b.v from a join b on a.k = b.k")
        await stage.commit(FIRST)
        await stage.rebuild()
        stage.runs = 0
        await stage.commit({"c": [row_of(1)]})
        assert stage.runs == 0
        await stage.commit({"a": [row_of(1)]})
        # What came, the join, and no stored rows: none go.
        assert stage.runs == 2

    asyncio.run(story())


def test_stored_rows_that_are_not_those_of_the_query_are_noticed() -> None:
    async def story() -> None:
        stage = Stage(ReferenceExecutor(), "select k, v from a")
        await stage.commit(FIRST)
        await stage.rebuild()
        (source, at, _), *_ = stage.stored.live()
        stage.store([], {source: BitMap64([at])})
        (source, at, _), *_ = stage.tables["a"].live()
        with pytest.raises(StoredRowsDiffer):
            await stage.commit({}, {"a": [(source, at)]})

    asyncio.run(story())


def test_a_group_is_added_to_without_a_look_at_its_rows() -> None:
    async def story() -> None:
        stage = Stage(ReferenceExecutor(), "select g, sum(v), count(*) from a group by g")
        await stage.commit(FIRST)
        await stage.rebuild()

        changes = {"came", "went"}
        assert await stage.sides_read([row_of(7, 1, 5)]) == {"came"}
        assert await stage.sides_read([row_of(7, 1, 6)], k=7) == changes
        # Many at once, of which one value is NULL.
        assert await stage.sides_read([row_of(8, 1, 6), row_of(8, 1), row_of(8, 1, 6)]) == {"came"}
        # Whether the group has other rows, and the sum other values, is not known.
        assert await stage.sides_read([], k=7) == {"went", "after"}
        assert await stage.sides_read([row_of(9, 1)], k=2) == {*changes, "after"}
        # The view shows how many rows a group has, and leaves none out: this one is new.
        assert await stage.sides_read([row_of(10, 99, 1)]) == {"came"}

    asyncio.run(story())
