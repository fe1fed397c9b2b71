"""Faults that were made on purpose are found by the stories of `test_node_rules.py`."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

from compute import maintenance
from compute.access import narrowed_plans
from compute.access.key_index import KeyIndex
from compute.access.narrowed_plans import LargeTables, NarrowedPlans, NotNarrowed
from compute.executor import Executor
from compute.maintenance import StoredRowsDiffer, ViewChange
from compute.reference.executor import ReferenceExecutor
from sql.incremental import narrowed_scans, node_changes
from sql.incremental.program import InputSide
from sql.plan.nodes import Const, Join, Plan, RelationId
from sql.types.sql_type import INT8
from tests.unit.compute.maintenance.narrowed import NarrowedEngine, nothing_is_small
from tests.unit.compute.maintenance.stage import Stage
from tests.unit.compute.maintenance.test_node_rules import FIRST, Story


def is_found(text: str, engine: Executor | None = None) -> bool:
    async def story() -> None:
        stage = Stage(engine or ReferenceExecutor(), text)
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


# --- rows that are found by key -------------------------------------------------------------------

JOINED = "select a.k, b.v from a left join b on a.g = b.g"
GROUPED = "select g, k, min(f) as least from a group by g, k"


def is_found_by_key(text: str) -> bool:
    return is_found(text, NarrowedEngine())


def test_the_kept_side_of_an_outer_join_narrowed_by_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nothing_is_small(monkeypatch)
    assert not is_found_by_key(JOINED)

    def sides(join: Join) -> Iterator[tuple[Plan, Plan]]:
        yield join.right, join.left

    monkeypatch.setattr(narrowed_scans, "_narrowing_sides", sides)
    assert is_found_by_key(JOINED)


def test_a_key_of_which_no_row_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing_is_small(monkeypatch)
    assert not is_found_by_key(GROUPED)
    right = narrowed_plans._Run._places

    def fewer(*args: Any, **options: Any) -> Any:
        found = right(*args, **options)
        return found if isinstance(found, NotNarrowed) else found[1:]

    monkeypatch.setattr(narrowed_plans._Run, "_places", fewer)
    assert is_found_by_key(GROUPED)


def test_columns_that_are_no_key_as_if_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing_is_small(monkeypatch)
    right = narrowed_plans._Run._key

    def unique(*args: Any) -> Any:
        found = right(*args)
        return found if isinstance(found, NotNarrowed) else (found[0], True)

    assert not is_found_by_key(JOINED)
    monkeypatch.setattr(narrowed_plans._Run, "_key", unique)
    assert is_found_by_key(JOINED)


def test_files_of_a_relation_without_keys_that_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> NotNarrowed | Sequence[object]:
        engine = NarrowedEngine()
        stage = Stage(engine, "select k, v from a")
        await stage.commit(FIRST)
        view = stage.tables["a"].view()
        assert view.files
        plans = NarrowedPlans(KeyIndex(engine._columns, engine._rows))
        return plans.rows_now(stage.plan, {RelationId(view.shard): view}, LargeTables({}))

    nothing_is_small(monkeypatch)
    assert asyncio.run(story()) is NotNarrowed.ENGINE
