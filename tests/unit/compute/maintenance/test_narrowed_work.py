"""W3 of `compute/access/narrowed_plans.py`: the event loop does no work that is too much for it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from compute.access import narrowed_plans
from compute.access.key_index import KeyIndex
from compute.access.narrowed_plans import LargeTables, NarrowedPlans, NotNarrowed
from sql.catalog.catalog import Key
from sql.plan.nodes import RelationId
from tests.unit.compute.maintenance.narrowed import NarrowedEngine
from tests.unit.compute.maintenance.stage import TABLES, Row, Stage, row_of

CROSSED = "select t1.i from a cross join b cross join c join t1 on t1.i = a.k and t1.l = b.k"
PAIRED = "select t1.i from a cross join b join t1 on t1.i = a.k and t1.l = b.k"


class _Beside:
    """A plan over small relations of so many rows each, beside t1, which is looked up by a key of
    two columns.
    """

    def __init__(self, text: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(narrowed_plans, "SMALL_ROWS_MAX", 0)
        engine = NarrowedEngine()
        stage = Stage(engine, text, ("a", "b", "c", "t1"))
        for rows in stage.tables.values():
            rows.files = None
        for name in ("a", "b", "c"):
            rows = stage.tables[name]
            rows.change(rows.table([row_of(at) for at in range(count)]), {})
        t1 = stage.tables["t1"]
        t1.change(t1.table([(1, 2, *[None] * 6)]), {})
        self.plan = stage.plan
        self.views = {RelationId(rows.name): rows.view() for rows in stage.tables.values()}
        self.table = replace(TABLES["t1"], keys=(Key("", (0, 1)),))
        self.index = KeyIndex(engine._columns, engine._rows)
        self.plans = NarrowedPlans(self.index)
        self.looked_up: list[bool] = []
        """For each key, whether a file might have been read."""
        right = self.index.places

        def places(*args: Any, may_read: bool, **options: Any) -> Any:
            self.looked_up.append(may_read)
            return right(*args, may_read=may_read, **options)

        monkeypatch.setattr(self.index, "places", places)

    def now(self) -> Sequence[Row] | NotNarrowed:
        return self.plans.rows_now(self.plan, self.views, self._tables())

    def in_thread(self) -> Sequence[Row] | NotNarrowed:
        return self.plans.rows_in_thread(self.plan, self.views, self._tables())

    def _tables(self) -> LargeTables:
        return LargeTables({RelationId(self.table.shard): self.table})


def test_rows_that_are_too_many_to_make(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    right = narrowed_plans._Run._located

    def located(run: Any, narrowed: Any, beside: Sequence[Row], most: int) -> Any:
        made.append(len(beside))
        return right(run, narrowed, beside, most)

    monkeypatch.setattr(narrowed_plans._Run, "_located", located)
    few = _Beside(CROSSED, 4, monkeypatch)
    assert few.now() == few.in_thread() == [(1,)] * 4
    assert made == [64, 64]
    many = _Beside(CROSSED, 40, monkeypatch)
    assert many.now() is NotNarrowed.COLD
    assert made == [64, 64]
    assert many.in_thread() == [(1,)] * 40
    assert made == [64, 64, 64_000]


def test_keys_that_are_too_many_to_look_up(monkeypatch: pytest.MonkeyPatch) -> None:
    few = _Beside(PAIRED, 4, monkeypatch)
    assert few.now() == [(1,)]
    assert few.looked_up == [False] * 16
    many = _Beside(PAIRED, 30, monkeypatch)
    assert many.now() is NotNarrowed.COLD
    assert not many.looked_up
    assert many.in_thread() == [(1,)]
    assert many.looked_up == [True] * 900
