"""Answer plans that select rows by key in process, over only the rows that have the keys.

    plan ─▶ conditions of its scans ─▶ keys ─▶ KeyIndex.locate ─▶ rows ─▶ the plan, in process
    one table, one value for each column ─▶ `compute/access/point_reads.py`: the same, with less ado

A row for which no condition of its scans is true changes nothing of a plan's result (D1 of
`sql/plan/read_conditions.py`), so the plan may as well run over the other rows alone.

INVARIANTS
  A1  the path is taken only if the plan selects from every table by a whole key, or the table has
      few rows in memory. The reference engine must have all of the plan's functions.
  A2  functions of long values are computed in a thread (`compute/computed_values.py`).
"""

import asyncio
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, cast

import pyarrow as pa

from compute.access.key_index import KeyIndex
from compute.access.key_predicates import NewKeys
from compute.access.located_rows import (
    LocatedRows,
    are_rows_in_memory,
    fetch_located_rows,
    run_plan_over_rows,
)
from compute.access.point_reads import PointRead, plan_point_change
from compute.computed_values import ComputedValues, computed_values
from compute.identity_cache import IdentityCache
from compute.reference.arrow import to_array, to_batch
from compute.reference.expressions import Row
from coordinator.driver.damage_check import may_be_file_damage
from coordinator.execution.context import Execution
from coordinator.execution.keyed_query import read_rows_by_key
from coordinator.execution.read_predicates import read_predicates
from coordinator.large_work import aside_if
from sql.catalog.catalog import Key, Table
from sql.catalog.meridian_schema import is_server_state
from sql.plan.nodes import Plan, RelationId, output_columns
from sql.types.sql_type import Value
from storage.batch import RowIdentity, ShardView
from storage.known_rows import Points

KEYS_MAX: Final = 100
"""Keys looked up at once. Larger: rows of many files are read in process, one row group each."""

SMALL_ROWS_MAX: Final = 200
"""Rows in memory of another table of the plan: joins are nested loops here."""


@dataclass(frozen=True, slots=True)
class _ByKey:
    """A table, and the keys of the rows to read from it."""

    table: Table
    key: Key
    values: pa.Table


@dataclass(frozen=True, slots=True)
class KeyedRows:
    """The rows of a plan's only table that can affect its result."""

    reading: PointRead
    rows: list[Row]

    async def answer(
        self, execution: Execution, _inputs: Mapping[RelationId, ShardView]
    ) -> pa.RecordBatch:
        """The rows of the plan."""
        return self.reading.batch(await self.rows_of_plan(execution, _inputs))

    async def rows_of_plan(
        self, execution: Execution, _inputs: Mapping[RelationId, ShardView]
    ) -> Sequence[Row]:
        """The same, as values."""
        return await run_point_plan(execution, self.reading, self.rows, execution.parameters)


@dataclass(frozen=True, slots=True)
class KeyedAccess:
    """How to read the tables of a plan: by key, or all rows of those with few."""

    plan: Plan
    by_key: Sequence[_ByKey]
    small: Sequence[Table]

    async def answer(
        self, execution: Execution, inputs: Mapping[RelationId, ShardView]
    ) -> pa.RecordBatch:
        """The rows of the plan."""
        return to_batch(await self.rows_of_plan(execution, inputs), output_columns(self.plan))

    async def rows_of_plan(
        self, execution: Execution, inputs: Mapping[RelationId, ShardView]
    ) -> Sequence[Row]:
        """The same, as values."""
        try:
            return await self._rows(execution, inputs)
        except Exception as error:
            if may_be_file_damage(error):
                await execution.services.coordination.examine([*inputs.values()])
            raise

    async def _rows(
        self, execution: Execution, inputs: Mapping[RelationId, ShardView]
    ) -> Sequence[Row]:
        index = execution.services.key_index
        located: dict[RelationId, LocatedRows] = {}
        for asked in self.by_key:
            view = inputs[RelationId(asked.table.shard)]
            try:
                rows_by_key = await _rows_by_key(index, view, asked)
            except Exception:
                await execution.services.coordination.examine([view])
                raise
            located[RelationId(asked.table.shard)] = rows_by_key
        for table in self.small:
            view = inputs[RelationId(table.shard)]
            located[RelationId(table.shard)] = fetch_located_rows(
                view, _all_places(view), index.read_rows
            )
        run = partial(run_plan_over_rows, self.plan, located, execution.parameters)
        if _is_short(self.plan, located, execution.parameters):
            return run()
        return await execution.services.in_process.apart(run)


_values: IdentityCache[Plan, ComputedValues | None] = IdentityCache()


def _is_short(
    plan: Plan, located: Mapping[RelationId, LocatedRows], parameters: Sequence[Value]
) -> bool:
    values = _values.found(plan, partial(computed_values, plan))
    if values is None:
        return True
    tables = {relation: rows.rows for relation, rows in located.items()}
    return values.are_few_in_tables(parameters, tables)


async def run_point_plan(
    execution: Execution, reading: PointRead, rows: list[Row], parameters: Sequence[Value]
) -> list[Row]:
    """The plan over rows that were found by key, in a thread if its functions may take long."""
    if not reading.may_take_long(rows, parameters):
        return reading.rows_of_plan(rows, parameters)
    apart = partial(reading.rows_of_plan_apart, rows, parameters)
    return await execution.services.in_process.apart(apart)


async def plan_keyed_access(
    execution: Execution,
    plan: Plan,
    tables: Sequence[Table],
    inputs: Mapping[RelationId, ShardView],
) -> KeyedAccess | KeyedRows | None:
    """How to answer the plan by keys; None if an engine has to (A1)."""
    if not tables or len(tables) != len(inputs) or any(map(is_server_state, tables)):
        return None
    refusal = partial(execution.services.in_process.refusal, plan)
    if await aside_if(execution.is_large, refusal) is not None:
        return None
    reading = plan_point_change(plan, tables[0]) if len(tables) == 1 else None
    if reading is not None:
        rows = await read_rows_by_key(execution, reading, inputs[RelationId(tables[0].shard)])
        return None if rows is None else KeyedRows(reading, rows)
    access = partial(_point_access, execution, plan, tables, inputs)
    return await aside_if(execution.is_large, access)


def _point_access(
    execution: Execution,
    plan: Plan,
    tables: Sequence[Table],
    inputs: Mapping[RelationId, ShardView],
) -> KeyedAccess | None:
    by_key: list[_ByKey] = []
    small: list[Table] = []
    predicates = read_predicates(plan, tables, execution.parameters)
    for table, predicate in zip(tables, predicates, strict=True):
        asked = None if predicate is None else _asked(table, predicate.points)
        if asked is not None:
            by_key.append(asked)
        elif _is_small(inputs[RelationId(table.shard)]):
            small.append(table)
        else:
            return None
    return KeyedAccess(plan, by_key, small) if by_key else None


def _asked(table: Table, points: Points | None) -> _ByKey | None:
    if points is None or len(points.keys) > KEYS_MAX:
        return None
    for key in table.keys:
        # Rows may share a key as long as its constraint waits.
        if not key.deferrable and set(key.columns) <= set(points.ordinals):
            places = [points.ordinals.index(ordinal) for ordinal in key.columns]
            wanted = {tuple([values[place] for place in places]) for values in points.keys}
            # In an order of its own: that of a set changes from one process to the next.
            return _ByKey(table, key, _key_rows(table, key, sorted(wanted, key=repr)))
    return None


def _key_rows(table: Table, key: Key, wanted: Sequence[tuple[Hashable, ...]]) -> pa.Table:
    """Keys as rows of their columns, without those that no row can have."""
    columns = [table.columns[ordinal] for ordinal in key.columns]
    kept: list[Sequence[Value]] = []
    for key_values in wanted:
        values = cast("Sequence[Value]", key_values)
        try:
            for value, column in zip(values, columns, strict=True):
                to_array([value], column.type)
        except (pa.ArrowInvalid, OverflowError):
            continue  # a number that the column's type does not have
        kept.append(values)
    arrays = [
        to_array([values[place] for values in kept], column.type)
        for place, column in enumerate(columns)
    ]
    return pa.table(arrays, names=[column.name for column in columns])


async def _rows_by_key(index: KeyIndex, view: ShardView, asked: _ByKey) -> LocatedRows:
    places: Sequence[RowIdentity] = ()
    if asked.values.num_rows:
        keys = NewKeys(asked.table, asked.key, asked.values)
        files = index.files(view, keys)
        locate = partial(index.locate, view, keys, {}, files)
        warm = index.is_warm(view, keys, files)
        found = locate() if warm else await asyncio.to_thread(locate)
        places = list(found.values())
    if len(places) > 1:
        names = [part.file.name for part in view.files] + [part.source for part in view.inline]
        order = {name: place for place, name in enumerate(names)}
        places = sorted(places, key=lambda place: (order[place[0]], place[1]))
    read = partial(fetch_located_rows, view, places, index.read_rows)
    return read() if are_rows_in_memory(view, places, index) else await asyncio.to_thread(read)


def _is_small(view: ShardView) -> bool:
    return not view.files and view.inline_rows <= SMALL_ROWS_MAX


def _all_places(view: ShardView) -> Sequence[RowIdentity]:
    return [
        (part.source, row)
        for part in view.inline
        for row in range(part.num_rows)
        if row not in part.deleted
    ]
