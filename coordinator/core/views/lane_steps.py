"""Steps of lanes: have views maintained, take the answer, and release what units have held.

    formed ─▶ MaintainViews ─▶ ViewsMaintained, or too late ─▶ ready: the next group

Functions over the core's state; the invariants are those of `lanes.py`.
"""

from collections.abc import Iterable, Sequence

from coordinator.core.effects import Effect
from coordinator.core.locking.lock_table import GROUP_TXN
from coordinator.core.locking.requests import serve_waiters
from coordinator.core.state import CoreState
from coordinator.core.views.deltas import (
    EarlierInput,
    InputRows,
    MaintainedView,
    MaintainViews,
    ViewRows,
)
from coordinator.core.views.lanes import LaneUnit
from sql.catalog.catalog import Table
from storage.batch import ShardView, WriteBatch
from storage.shard import ShardState
from storage.types import ShardId, Timestamp

_NEWEST = Timestamp((1 << 63) - 1)


def maintain_views(core: CoreState, units: Iterable[LaneUnit], now: Timestamp) -> list[Effect]:
    """Have the views of units maintained that were just taken, at the present state."""
    effects: list[Effect] = []
    for unit in units:
        core.holds.release(unit.txn)
        core.holds.acquire(unit.txn, core.oracle.read_ts())
        budget = core.settings.view_budget_us
        attempt = core.groups.lanes.begin(unit, Timestamp(now + budget))
        catalog = core.catalog.current
        attach = unit.attach
        if attach is not None:
            core.holds.acquire(unit.txn, Timestamp(attach.rows.exact.computed_at))
        attached = None if attach is None else attach.oid
        views = [
            view
            for view in unit.lane.views
            if view.oid == attached or catalog.exact_views.get(view.oid) == view.exact
        ]
        read = {oid for view in views for oid in view.exact.inputs}
        tables = catalog.named_tables.by_oid
        effects.append(
            MaintainViews(
                attempt,
                catalog,
                tuple(
                    ViewRows(
                        view,
                        _rows(core, view.table),
                        _earlier(core, view) if view.oid == attached else {},
                    )
                    for view in views
                ),
                {oid: _input_rows(core, tables[oid], unit) for oid in sorted(read)},
                budget,
                core.groups.lanes.rows_max,
            )
        )
    return effects


def _state(core: CoreState, table: Table) -> ShardState:
    return core.shards[ShardId(table.shard)]


def _rows(core: CoreState, table: Table, own: WriteBatch | None = None) -> ShardView:
    state = _state(core, table)
    schema = core.schema_of(table) if state.definitions else None
    return state.view(_NEWEST, own=own, schema=schema)


def _earlier(core: CoreState, view: MaintainedView) -> dict[int, EarlierInput]:
    """The inputs of a view that is to be attached, as they were when its rows were computed."""
    tables = core.catalog.current.named_tables.by_oid
    at = Timestamp(view.exact.computed_at)
    return {
        oid: EarlierInput(_state(core, tables[oid]), core.schema_of(tables[oid]), at)
        for oid in view.exact.inputs
    }


def _input_rows(core: CoreState, table: Table, unit: LaneUnit) -> InputRows:
    before = _rows(core, table)
    batch = unit.work.batches.get(ShardId(table.shard))
    if batch is None:
        return InputRows(table, before, before, WriteBatch())
    state = _state(core, table)
    batch = WriteBatch(batch.rows, deletes=state.surviving(batch.deletes))
    return InputRows(table, before, _rows(core, table, batch), batch)


def release_group(core: CoreState, units: Sequence[LaneUnit] = ()) -> list[Effect]:
    """A group is over, and units with it: serve those who wait for what they have held (K3)."""
    lanes = core.groups.lanes
    over = {GROUP_TXN, *lanes.over, *(unit.txn for unit in units)}
    lanes.over.clear()
    for txn in over:
        core.holds.release(txn)
    return serve_waiters(core, core.locks.group_landed(over))
