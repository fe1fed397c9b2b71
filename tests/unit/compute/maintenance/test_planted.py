"""Faults that were made on purpose are found by the stories of `test_node_rules.py`."""

import asyncio
from typing import Any

import pyarrow as pa
import pytest

from compute import maintenance
from compute.maintenance import StoredRowsDiffer, ViewChange
from compute.reference.executor import ReferenceExecutor
from sql.incremental import node_changes
from sql.incremental.program import InputSide
from sql.plan.nodes import Const
from sql.types.sql_type import INT8
from tests.unit.compute.maintenance.stage import Stage
from tests.unit.compute.maintenance.test_node_rules import FIRST, Story


def is_found(text: str) -> bool:
    async def story() -> None:
        stage = Stage(ReferenceExecutor(), text)
        await stage.commit(FIRST)
        await stage.rebuild()
        await Story(stage).tell()

    try:
        asyncio.run(story())
    except (AssertionError, StoredRowsDiffer):
        return True
    return False


def test_the_old_side_of_a_join_instead_of_the_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "select a.k, b.v from a join b on a.g = b.g"
    assert not is_found(text)
    right = node_changes.at_side
    monkeypatch.setattr(node_changes, "at_side", lambda v, _side: right(v, InputSide.BEFORE))
    assert is_found(text)


def test_weights_that_are_not_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "select a.k, b.v + 1 as v from a join b on a.g = b.g"
    monkeypatch.setattr(node_changes, "column_reference", lambda _column: Const(1, INT8))
    assert is_found(text)


def test_equal_rows_that_count_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    right = maintenance._netted

    def once(batches: Any, columns: Any, *, units: bool) -> Any:
        rows = right(batches, columns, units=units)
        *_, weights = rows.columns
        signs = pa.array([max(-1, min(1, weight.as_py())) for weight in weights], pa.int64())
        return rows.set_column(len(columns) - 1, rows.schema.field(len(columns) - 1), signs)

    monkeypatch.setattr(maintenance, "_netted", once)
    assert is_found("select k, v from a")


def test_a_group_that_stays_without_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    right = maintenance._Running.by_key

    async def stays(running: Any, result: Any) -> ViewChange:
        found = await right(running, result)
        return found if found.came else ViewChange()

    monkeypatch.setattr(maintenance._Running, "by_key", stays)
    assert is_found("select g, count(*) from a group by g")
