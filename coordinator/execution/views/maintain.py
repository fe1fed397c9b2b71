"""Maintain views in the commits that change their inputs: run the programs for one unit of a lane.

    MaintainViews ─▶ cheapest view first ─▶ compute/maintenance.py ─▶ rows that go and come ─▶ delta
                     └ time is up, an error: the others are given up ─▶ ViewsMaintained

INVARIANTS
  I1  it always answers, and in time: an error or a slow view costs this view's exactness alone, and
      never a commit (V3 of `coordinator/core/views`).
  I2  plans run in process or on the local engine, beside the queries of sessions. Where neither can
      run one, the view is given up.
  I3  a delta has what the view's table may store. Where a value does not fit, REFRESH fails, and
      the view is given up.
"""

import asyncio
import logging
from asyncio import to_thread
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from time import perf_counter
from typing import Final

import pyarrow as pa
from pyroaring import BitMap64

from compute.access.located_rows import are_rows_in_memory, fetch_located_rows
from compute.access.narrowed_plans import LOOP_ROWS_MAX, LargeTables, NarrowedPlans, NotNarrowed
from compute.duckdb.support import local_support
from compute.executor import EngineUnavailable, Executor, Run
from compute.maintenance import (
    InputChange,
    StoredRowsDiffer,
    TooManyChanges,
    ViewChange,
    maintain_view,
    rows_in_memory,
)
from compute.reference.support import RowsAllowed
from coordinator.core.views.deltas import (
    EarlierInput,
    InputRows,
    MaintainViews,
    ViewDelta,
    ViewRows,
    ViewsMaintained,
)
from coordinator.execution.context import Services
from coordinator.execution.dml.last_year import LastYear
from coordinator.execution.dml.row_sink import stored_schema
from coordinator.streams import closing_batches
from sql.catalog.catalog import Key, Table
from sql.errors import SqlError
from sql.incremental.program import STORED_ROWS, InputSide, MaintenanceProgram, side_of_input
from sql.plan.nodes import Plan, RelationId
from storage.batch import Deletes, ShardView, WriteBatch
from storage.changes import Change, changes, places_in, view_of_places
from storage.known_rows import KnownRows, OldRows
from storage.row_schema import conform_to_schema
from storage.shard_view import selected_rows
from storage.types import ShardId

log = logging.getLogger("meridian.views")

FETCHED_ROWS_MAX: Final = 1_000
"""Deleted rows of an input that are read one by one. Larger: more row groups of files in memory."""

_LOOP_S: Final = 0.005
"""After so long on the event loop others have their turn, between two plans of a program. Larger:
they wait longer. Smaller: more switches."""

SHARE_OF_BUDGET: Final = 0.8
"""Of the time that a unit waits: what was computed by then is still taken along."""


class ViewMaintenance:
    """See the module."""

    def __init__(self, services: Services, local: Executor | None = None) -> None:
        """`local`: the engine, if it is not the server's local one."""
        self._services = services
        self._given = local
        self._narrowed = _narrowed_plans(services)
        self._since = 0.0

    async def maintain(self, effect: MaintainViews) -> ViewsMaintained:
        """The deltas of the views that could be had in time (I1)."""
        deltas: dict[int, ViewDelta] = {}
        self._since = perf_counter()
        known = self._services.catch_up.upkeep_of
        try:
            async with asyncio.timeout(SHARE_OF_BUDGET * effect.budget_us / 1_000_000):
                for rows in sorted(effect.views, key=lambda one: known(one.view.oid).last_s):
                    began = perf_counter()
                    try:
                        delta = await self._delta(effect, rows)
                    finally:
                        self._services.catch_up.computed_s += perf_counter() - began
                    if delta is not None:
                        deltas[rows.view.oid] = delta
                        known(rows.view.oid).last_s = perf_counter() - began
        except TimeoutError:
            for rows in effect.views:
                if rows.view.oid not in deltas:
                    known(rows.view.oid).give_up("it took too long")
        return ViewsMaintained(effect.attempt, deltas)

    async def rehearse(
        self,
        program: MaintenanceProgram,
        inputs: Mapping[RelationId, ShardView],
        stored: ShardView,
        tables: LargeTables,
    ) -> None:
        """Run a program as if a row of each input had come and another one had gone: what takes
        time at first is done then, and no commit waits for it. Nothing comes of it.
        """
        try:
            changes = {name: await self._as_if(view) for name, view in inputs.items()}
            most = self._services.coordination.followed_views.rows_max
            run = partial(self._run, tables)
            await maintain_view(program, changes, stored, run, rows_max=most)
        except (SqlError, EngineUnavailable, StoredRowsDiffer, TooManyChanges) as error:
            log.debug("rehearsing the maintenance of a view: %s", error)
        except Exception:
            # CREATE and catch-up go on: a commit that meets it again leaves the view behind (I1).
            log.exception("rehearsing the maintenance of a view has failed")

    async def _as_if(self, view: ShardView) -> InputChange:
        """Two rows of an input, one that comes and one that goes, if it has any."""
        places = [(part.file.name, part.row_limit, part.deleted) for part in view.files]
        places += [(part.source, part.num_rows, part.deleted) for part in view.inline]
        found: list[ShardView] = []
        for source, count, deleted in places[:2]:
            # Of a log whose old rows were deleted, the first millions are not there.
            for at in islice(deleted.flip(0, count), 2):
                if at >= count:
                    break
                row = await self._rows_at(view, {source: BitMap64([at])})
                found.append(rows_in_memory(RelationId(view.shard), row))
        none = rows_in_memory(RelationId(view.shard), view.schema.empty_table())
        came, went = (*found[:2], none, none)[:2]
        return InputChange(view, view, came, went)

    async def _delta(self, effect: MaintainViews, rows: ViewRows) -> ViewDelta | None:
        """What becomes of one view; None: it is given up."""
        program = rows.view.program
        assert isinstance(program, MaintenanceProgram), "nobody else has made it"
        failed = False
        try:
            inputs: dict[RelationId, InputChange] = {}
            for oid in rows.view.exact.inputs:
                one, earlier = effect.inputs[oid], rows.earlier.get(oid)
                went = await self._went(one)
                found = _change(one, went, earlier, effect.rows_max)
                inputs[RelationId(one.table.shard)] = found
            tables = [effect.inputs[oid].table for oid in rows.view.exact.inputs]
            run = partial(self._run, program_tables(program, rows.view.table, tables))
            change = await maintain_view(
                program, inputs, rows.stored, run, rows_max=effect.rows_max
            )
            return await self._stored(rows, change)
        except SqlError as error:
            reason, failed = f"{error.sqlstate}: {error}", True
        except TooManyChanges:
            reason = f"more than {effect.rows_max:,} rows came and went"
        except (EngineUnavailable, StoredRowsDiffer) as error:
            reason = f"{type(error).__name__}: {error}"
        except Exception as error:
            # A task boundary: the driver would end with it.
            log.exception("the maintenance of a materialized view has failed")
            reason, failed = f"XX000: {type(error).__name__}", True
        self._services.catch_up.upkeep_of(rows.view.oid).give_up(reason, failed=failed)
        return None

    async def _stored(self, rows: ViewRows, change: ViewChange) -> ViewDelta:
        """A change as rows of the view's shard (I3)."""
        table = rows.view.table
        schema = stored_schema(table)
        made = [pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in change.came]
        last_year = LastYear(table)
        for batch in made:
            last_year.check(batch)
        came = pa.Table.from_batches(made, schema=schema) if made else None
        if not change.gone:
            return ViewDelta(WriteBatch(came))
        fetched = await self._rows_at(rows.stored, change.gone)
        went = pa.Table.from_arrays(fetched.columns, schema=schema)
        known = OldRows(change.gone, KnownRows.of(went))
        return ViewDelta(WriteBatch(came, deletes=change.gone), (known,))

    async def _went(self, rows: InputRows) -> ShardView:
        """The rows of an input that a unit deletes."""
        deletes = rows.changes.deletes
        if sum(map(len, deletes.values())) > FETCHED_ROWS_MAX:
            return selected_rows(rows.before, deletes)
        name = RelationId(rows.table.shard)
        if not deletes:
            return rows_in_memory(name, rows.before.schema.empty_table())
        dead = {part.file.name: part.deleted for part in rows.before.files}
        dead |= {part.source: part.deleted for part in rows.before.inline}
        live = {source: gone - dead[source] for source, gone in deletes.items() if source in dead}
        return rows_in_memory(name, await self._rows_at(rows.before, live))

    async def _rows_at(self, view: ShardView, rows: Deletes) -> pa.Table:
        """The rows of a view with these names, in any order, all columns."""
        index = self._services.key_index
        places = [(source, row) for source, numbers in rows.items() for row in numbers]
        fetch = partial(fetch_located_rows, view, places, index.read_rows)
        warm = are_rows_in_memory(view, places, index, at_most=LOOP_ROWS_MAX)
        found = fetch() if warm else await to_thread(fetch)
        return found.rows

    async def _run(
        self, tables: LargeTables, plan: Plan, views: Mapping[RelationId, ShardView]
    ) -> AsyncIterator[pa.RecordBatch]:
        """I2."""
        narrowed = self._narrowed
        if perf_counter() - self._since > _LOOP_S:
            await asyncio.sleep(0)
            self._since = perf_counter()
        found = narrowed.rows_now(plan, views, tables)
        if found is NotNarrowed.COLD:
            found = await to_thread(narrowed.rows_in_thread, plan, views, tables)
        if not isinstance(found, NotNarrowed):
            if found:
                yield narrowed.batch(plan, found)
            return
        run, services = Run(plan, views, is_check=True), self._services
        few = RowsAllowed(services.limits.auto_rows_max)
        if services.in_process.refusal(plan, views, few) is None:
            for batch in (await services.in_process.answer(run)).to_batches():
                yield batch
            return
        engine = self._engine(plan)
        async with closing_batches(engine.run(run)) as batches:
            async for batch in batches:
                yield batch

    def _engine(self, plan: Plan) -> Executor:
        if self._given is not None:
            return self._given
        local = self._services.local
        if local is None:
            raise EngineUnavailable("this server has no local engine")
        refused = local_support(plan, ()).refusal
        if refused is not None:
            raise EngineUnavailable(refused)
        return local


def _narrowed_plans(services: Services) -> NarrowedPlans:
    """Those of the server: what was found out about tables is found out once."""
    known = services.catch_up.narrowed
    if known is None:
        known = services.catch_up.narrowed = NarrowedPlans(services.key_index)
    return known


def _change(
    rows: InputRows, went: ShardView, earlier: EarlierInput | None, rows_max: int
) -> InputChange:
    """The sides of an input. `went`: the rows that the unit deletes. `earlier`: the input as it was
    when the rows of the view were computed. Raises TooManyChanges.
    """
    name, came = RelationId(rows.table.shard), rows.changes.inserts
    schema = rows.before.schema
    arrived = schema.empty_table() if came is None else conform_to_schema(came, schema)
    arriving = rows_in_memory(name, arrived)
    if earlier is None:
        return InputChange(rows.before, rows.after, arriving, went)
    state, after, shard = earlier.state, earlier.after, ShardId(name)
    since = list(_few(changes(state, after, state.last_write, earlier.schema), rows_max))
    came_since = [part for one in since for part in one.came]
    went_since = [part for one in since for part in one.went]
    view = view_of_places(shard, earlier.schema, came_since)
    return InputChange(
        before=state.view(after, schema=earlier.schema),
        after=rows.after,
        came=replace(view, inline=(*view.inline, *arriving.inline)),
        went=view_of_places(
            shard, earlier.schema, [*went_since, *places_in(rows.before, rows.changes.deletes)]
        ),
    )


def _few(found: Iterable[Change], rows_max: int) -> Iterator[Change]:
    """Changes, as long as they are not too many."""
    count = 0
    for change in found:
        count += sum(len(part.rows) for part in (*change.came, *change.went))
        if count > rows_max:
            raise TooManyChanges
        yield change


def program_tables(
    program: MaintenanceProgram, view: Table, inputs: Iterable[Table]
) -> LargeTables:
    """The relations of a program whose rows are found by key. No two rows of a view have the same
    values in the columns that its program calls its keys, which may be hidden ones.
    """
    keys = (Key("", program.keys),) if program.keys else ()
    stored = replace(view, columns=view.stored_columns, query=None, keys=keys)
    tables = {STORED_ROWS: stored}
    for table in inputs:
        for side in (InputSide.BEFORE, InputSide.AFTER):
            tables[side_of_input(RelationId(table.shard), side)] = table
    return LargeTables(tables)
