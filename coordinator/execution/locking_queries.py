"""Run the parts of a statement that lock rows: SELECT FOR UPDATE and its kin.

    part ─▶ views ─▶ rows ─▶ their locks ─┬─ held ─▶ an input of the rest of the statement
                      ▲                   ├─ one was not free, or has changed ─▶ begins again
                      │                   └─ SKIP LOCKED: those that were free
                      └── SKIP LOCKED, LIMIT: too few of them

INVARIANTS
  R1  rows reach the rest of the statement only when the transaction holds them, unchanged since the
      snapshot that showed them.
  R2  with SKIP LOCKED the scan leaves out rows that others hold, below LIMIT: an answer that is
      short of its LIMIT has left out nothing but locked rows.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, cast

import pyarrow as pa

from compute.arrow import batch_schema
from coordinator.core.locking.modes import LockMode, LockWait, TableTag
from coordinator.core.messages import RowsToLock
from coordinator.execution.context import Execution, Inputs
from coordinator.execution.dml.transient_relations import (
    run_over_transient,
    transient_table,
    transient_view,
)
from coordinator.execution.keyed_access import plan_keyed_access
from coordinator.pgwire.arrow_types import normalize_column, to_values
from coordinator.pgwire.kernels import Column
from coordinator.session_errors import read_only_transaction
from coordinator.streams import closing_batches
from sql.catalog.temporary import is_temporary_schema
from sql.errors import SqlError
from sql.plan.known_rows import ROWS_MAX, KnownColumns, with_known_rows
from sql.plan.nodes import Const, Limit, Plan, RelationId, output_columns
from sql.plan.traverse import plan_nodes
from sql.statements.bound import Modify
from sql.statements.locking import CANDIDATES, LockedRows, LockingQuery, LockPolicy, RowLockStrength
from storage.batch import ShardView
from storage.types import Source

TRIES_MAX: Final = 100
"""Scans of one SKIP LOCKED query with a LIMIT whose rows others take before it does. Fewer: it is
short of its LIMIT more often when very many workers take rows from one end.
"""

_MODES: Final[Mapping[RowLockStrength, LockMode]] = {
    RowLockStrength.KEY_SHARE: LockMode.ROW_KEY_SHARE,
    RowLockStrength.SHARE: LockMode.ROW_SHARED,
    RowLockStrength.NO_KEY_UPDATE: LockMode.ROW_NO_KEY_UPDATE,
    RowLockStrength.UPDATE: LockMode.ROW_UPDATE,
}
_WORDS: Final[Mapping[RowLockStrength, str]] = {
    RowLockStrength.KEY_SHARE: "SELECT FOR KEY SHARE",
    RowLockStrength.SHARE: "SELECT FOR SHARE",
    RowLockStrength.NO_KEY_UPDATE: "SELECT FOR NO KEY UPDATE",
    RowLockStrength.UPDATE: "SELECT FOR UPDATE",
}


@dataclass(frozen=True, slots=True)
class LockedParts:
    """The rows of the parts, as inputs of the rest of the statement, and as values."""

    inputs: dict[RelationId, ShardView] = field(default_factory=dict[RelationId, ShardView])
    known: dict[RelationId, KnownColumns] = field(default_factory=dict[RelationId, KnownColumns])

    def plan(self, plan: Plan) -> Plan:
        """A plan of the statement, which reads by the keys of the rows if it may."""
        return with_known_rows(plan, self.known) if self.known else plan

    def modify(self, modify: Modify) -> Modify:
        """A part that writes, likewise."""
        return replace(modify, source=self.plan(modify.source)) if self.known else modify


async def run_locking_parts(execution: Execution, parts: Sequence[LockingQuery]) -> LockedParts:
    """The rows of the parts, all locked (R1). Raises StatementRestart, 40001, 40P01, 55P03."""
    done = LockedParts()
    made = done.inputs
    if not parts:
        return done
    transaction = execution.transaction
    if transaction.read_only:
        raise read_only_transaction(_WORDS[max(rows.strength for p in parts for rows in p.rows)])
    if execution.alone:
        # A statement that is its whole transaction takes locks, too, and may begin again.
        transaction.begin_reads()
    for part in parts:
        for rows in part.rows:
            await _lock_table(execution, rows)
        found = await _locked_rows(execution, part, made)
        made[part.relation] = transient_view(part.relation, found)
        if found.num_rows <= ROWS_MAX:
            done.known[part.relation] = _as_constants(part, found)
    return done


def _as_constants(part: LockingQuery, rows: pa.Table) -> KnownColumns:
    types = [column.type for column in output_columns(part.plan)[: part.shown]]
    return [
        [Const(value, type_) for value in to_values(normalize_column(column, type_), type_)]
        for column, type_ in zip(_columns(rows), types, strict=True)
    ]


def _columns(rows: pa.Table) -> Sequence[Column]:
    return [cast("Column", column.combine_chunks()) for column in rows.columns]


async def _lock_table(execution: Execution, rows: LockedRows) -> None:
    table = rows.table
    if is_temporary_schema(table.schema):
        return
    # NOWAIT is about rows, as in PostgreSQL.
    await execution.transaction.lock(
        TableTag(table.oid), LockMode.ROW_SHARE, timeline=table.timeline
    )


async def _locked_rows(execution: Execution, part: LockingQuery, made: Inputs) -> pa.Table:
    tries = 0
    while True:
        tries += 1
        rows = await _rows(execution, part, made)
        if part.limit is not None:
            chosen = await _free_rows(execution, part, rows, part.limit)
            if chosen is None:
                continue
            columns = [column.combine_chunks() for column in chosen.columns[: part.shown]]
            return transient_table(columns)
        count = rows.num_rows
        for one in part.rows:
            if one.policy is LockPolicy.SKIP:
                rows = await _unlocked(execution, one, part, rows)
            else:
                await _lock(execution, one, part, rows)
        if rows.num_rows < count and tries < TRIES_MAX and _is_limited(part.plan):
            continue  # There may be others in the place of those that were taken meanwhile.
        columns = [column.combine_chunks() for column in rows.columns[: part.shown]]
        return transient_table(columns)


def _is_limited(plan: Plan) -> bool:
    return any(isinstance(node, Limit) for node in plan_nodes(plan))


async def _unlocked(
    execution: Execution, locked: LockedRows, part: LockingQuery, rows: pa.Table
) -> pa.Table:
    """SKIP LOCKED without LIMIT: those that nobody holds, and that are locked now."""
    if is_temporary_schema(locked.table.schema):
        return rows
    wanted = _to_lock(locked, part, rows)
    answer = await execution.transaction.lock_rows(
        wanted, _MODES[locked.strength], wait=LockWait.NO, limit=rows.num_rows
    )
    return rows.take(pa.array(answer.taken, pa.int64()))


async def _free_rows(
    execution: Execution, part: LockingQuery, rows: pa.Table, limit: int
) -> pa.Table | None:
    """The first rows that were free, and are locked now; None: look again, there may be more."""
    (locked,) = part.rows
    if is_temporary_schema(locked.table.schema):
        return rows.slice(0, limit)
    wanted = _to_lock(locked, part, rows)
    answer = await execution.transaction.lock_rows(
        wanted, _MODES[locked.strength], wait=LockWait.NO, limit=limit
    )
    if not answer.granted and rows.num_rows == limit + CANDIDATES:
        return None
    return rows.take(pa.array(answer.taken, pa.int64()))


async def _rows(execution: Execution, part: LockingQuery, made: Inputs) -> pa.Table:
    skipped = {
        rows.table.oid: _MODES[rows.strength]
        for rows in part.rows
        if rows.policy is LockPolicy.SKIP
    }
    views = await execution.views(part.tables, plan=part.plan, skipped=skipped)
    access = None if made else await plan_keyed_access(execution, part.plan, part.tables, views)
    if access is not None:
        return pa.Table.from_batches([await access.answer(execution, views)])
    batches: list[pa.RecordBatch] = []
    size = 0
    running = run_over_transient(execution, part.plan, {**views, **made})
    async with closing_batches(running) as found:
        async for batch in found:
            batches.append(batch)
            size += batch.nbytes
            if size > execution.services.limits.returning_bytes_max:
                raise SqlError(
                    "54000",
                    "the rows of a query that locks them are too large",
                    hint="Lock fewer rows at once, or LOCK TABLE.",
                )
    schema = batch_schema(output_columns(part.plan))
    return pa.Table.from_batches(batches) if batches else schema.empty_table()


async def _lock(
    execution: Execution, locked: LockedRows, part: LockingQuery, rows: pa.Table
) -> None:
    """Hold all rows. Raises 55P03 with NOWAIT."""
    if is_temporary_schema(locked.table.schema):
        return
    wanted = _to_lock(locked, part, rows)
    if not wanted.sources:
        return
    waits = locked.policy is LockPolicy.WAIT
    answer = await execution.transaction.lock_rows(
        wanted,
        _MODES[locked.strength],
        wait=LockWait.UNTIL_GRANTED if waits else LockWait.NO,
    )
    if not answer.granted:
        name = locked.table.name
        raise SqlError("55P03", f'could not obtain lock on row in relation "{name}"')


def _to_lock(locked: LockedRows, part: LockingQuery, rows: pa.Table) -> RowsToLock:
    """The rows that were found; an outer join may have found none."""
    types = [column.type for column in output_columns(part.plan)]

    def values(place: int) -> Sequence[Hashable]:
        column = cast("Column", rows.column(place).combine_chunks())
        normal = normalize_column(column, types[place])
        return cast("Sequence[Hashable]", to_values(normal, types[place]))

    sources, indexes = values(locked.place), values(locked.place + 1)
    there = [at for at, source in enumerate(sources) if source is not None]
    keys = [values(place) for place in locked.keys]
    return RowsToLock(
        locked.table,
        [Source(str(sources[at])) for at in there],
        [int(cast("int", indexes[at])) for at in there],
        [tuple([key[at] for key in keys]) for at in there] if keys else None,
    )
