"""Run the parts of a statement that come first: SELECT FOR UPDATE and its kin, queries AS OF.

    part ─▶ views ─▶ rows ─▶ their locks ─┬─ held ─▶ an input of the rest of the statement
                      ▲                   ├─ one was not free, or has changed ─▶ begins again
                      │                   └─ SKIP LOCKED: those that were free
                      └── SKIP LOCKED, LIMIT: too few of them

INVARIANTS
  R1  rows reach the rest of the statement only when the transaction holds them, unchanged since the
      snapshot that showed them.
  R2  with SKIP LOCKED the scan leaves out rows that others hold, below LIMIT: an answer that is
      short of its LIMIT has left out nothing but locked rows.
  R3  a part that reads the past locks nothing and is outside of validation. It is bound to the
      definitions of the present, so those of its tables must have been the same then.
"""

from collections.abc import Mapping, Sequence
from typing import Final, cast

from compute.reference.expressions import Row
from coordinator.core.locking.modes import LockMode, LockWait, TableTag
from coordinator.core.messages.locks import RowsToLock
from coordinator.execution.context import Execution, Inputs
from coordinator.execution.dml.transient_relations import TRANSIENT_ROWS
from coordinator.execution.keyed_access import plan_keyed_access
from coordinator.execution.locked_rows import LockedParts
from coordinator.execution.run_plan import run_plan
from coordinator.execution.time_value import time_value
from coordinator.session_errors import read_only_transaction
from coordinator.streams import closing_batches
from ingest.copy_text.arrow_types import normalize_column, to_values
from sql.catalog.catalog import SYSTEM_TIMELINE, Table
from sql.catalog.meridian_schema import is_server_state
from sql.catalog.temporary import is_temporary_schema
from sql.errors import SqlError, not_supported, undefined_table
from sql.plan.nodes import Expr, Limit, Plan, output_columns
from sql.plan.traverse import plan_nodes
from sql.statements.locking import CANDIDATES, LockedRows, LockingQuery, LockPolicy, RowLockStrength
from sql.types.sql_type import Value
from storage.types import Source

TRIES_MAX: Final = 100
"""Scans of one SKIP LOCKED query with a LIMIT whose rows others take before it does. Fewer: it is
short of its LIMIT more often when very many workers take rows from one end.
"""

_SIZED: Final = (str, bytes, tuple)
"""Types of values that may be large; elements of arrays count as little."""

LOCK_MODES: Final[Mapping[RowLockStrength, LockMode]] = {
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


async def run_locking_parts(execution: Execution, parts: Sequence[LockingQuery]) -> LockedParts:
    """The rows of the parts, all locked (R1). Raises StatementRestart, 40001, 40P01, 55P03."""
    done = LockedParts()
    if not parts:
        return done
    transaction = execution.transaction
    strengths = [rows.strength for part in parts for rows in part.rows]
    if strengths and transaction.read_only:
        raise read_only_transaction(_WORDS[max(strengths)])
    if strengths and execution.alone:
        # A statement that is its whole transaction takes locks, too, and may begin again.
        transaction.begin_reads()
    for part in parts:
        made = done.inputs([part.plan], None)
        if part.as_of is not None:
            done.add(part, await _dated_rows(execution, part, part.as_of, made))
            continue
        for rows in part.rows:
            await _lock_table(execution, rows)
        done.add(part, await _locked_rows(execution, part, made))
    return done


async def _dated_rows(
    execution: Execution, part: LockingQuery, time: Expr, made: Inputs
) -> Sequence[Row]:
    """The rows of a part that reads the past, at a timestamp with a hold of its own (R3)."""
    ts = await time_value(execution, time, "AS OF")
    tables = [table for table in part.tables if not is_server_state(table)]
    lines = {table.timeline for table in tables}
    if len(lines) > 1:
        raise not_supported("AS OF of tables of several timelines")
    timeline = next(iter(lines), SYSTEM_TIMELINE.name)
    snapshot = await execution.services.coordination.snapshot(
        execution.transaction.id, as_of=ts, at_least=part.as_of_at_least, timeline=timeline
    )
    if timeline == SYSTEM_TIMELINE.name:
        then = {table.oid: table.version for table in snapshot.catalog.tables.values()}
        for table in tables:
            _check_same(table, then.get(table.oid))
    views = await execution.views(part.tables, as_of=snapshot.ts, plan=part.plan)
    return await _rows_of_inputs(execution, part, {**views, **made})


def _check_same(table: Table, version: int | None) -> None:
    if version is None:
        raise undefined_table(table.name)
    if version != table.version:
        raise not_supported(
            f'AS OF in a subquery, of a time when table "{table.name}" was defined otherwise,',
            hint="A query of its own may have AS OF there.",
        )


async def _lock_table(execution: Execution, rows: LockedRows) -> None:
    table = rows.table
    if is_temporary_schema(table.schema):
        return
    # NOWAIT is about rows, as in PostgreSQL.
    await execution.transaction.lock(
        TableTag(table.oid), LockMode.ROW_SHARE, timeline=table.timeline
    )


async def _locked_rows(execution: Execution, part: LockingQuery, made: Inputs) -> Sequence[Row]:
    tries = 0
    while True:
        tries += 1
        rows = await _rows(execution, part, made)
        if part.limit is not None:
            chosen = await _free_rows(execution, part, rows, part.limit)
            if chosen is None:
                continue
            return chosen
        count = len(rows)
        for one in part.rows:
            if one.policy is LockPolicy.SKIP:
                rows = await _unlocked(execution, one, rows)
            else:
                await _lock(execution, one, rows)
        if len(rows) < count and tries < TRIES_MAX and _is_limited(part.plan):
            continue  # There may be others in the place of those that were taken meanwhile.
        return rows


def _is_limited(plan: Plan) -> bool:
    return any(isinstance(node, Limit) for node in plan_nodes(plan))


async def _unlocked(execution: Execution, locked: LockedRows, rows: Sequence[Row]) -> Sequence[Row]:
    """SKIP LOCKED without LIMIT: those that nobody holds, and that are locked now."""
    if is_temporary_schema(locked.table.schema):
        return rows
    wanted = _to_lock(locked, rows)
    answer = await execution.transaction.lock_rows(
        wanted, LOCK_MODES[locked.strength], wait=LockWait.NO, limit=len(rows)
    )
    return [rows[at] for at in answer.taken]


async def _free_rows(
    execution: Execution, part: LockingQuery, rows: Sequence[Row], limit: int
) -> Sequence[Row] | None:
    """The first rows that were free, and are locked now; None: look again, there may be more."""
    (locked,) = part.rows
    if is_temporary_schema(locked.table.schema):
        return rows[:limit]
    wanted = _to_lock(locked, rows)
    answer = await execution.transaction.lock_rows(
        wanted, LOCK_MODES[locked.strength], wait=LockWait.NO, limit=limit
    )
    if not answer.granted and len(rows) == limit + CANDIDATES:
        return None
    return [rows[at] for at in answer.taken]


async def _rows(execution: Execution, part: LockingQuery, made: Inputs) -> Sequence[Row]:
    skipped = {
        rows.table.oid: LOCK_MODES[rows.strength]
        for rows in part.rows
        if rows.policy is LockPolicy.SKIP
    }
    views = await execution.views(part.tables, plan=part.plan, skipped=skipped)
    access = None if made else await plan_keyed_access(execution, part.plan, part.tables, views)
    if access is not None:
        return await access.rows_of_plan(execution, views)
    return await _rows_of_inputs(execution, part, {**views, **made})


async def _rows_of_inputs(
    execution: Execution, part: LockingQuery, inputs: Inputs
) -> Sequence[Row]:
    in_process = execution.services.in_process
    if in_process.refusal(part.plan, inputs, TRANSIENT_ROWS) is None:
        rows = await in_process.rows(execution.run(part.plan, inputs))
        _check_size(execution, part, sum([_bytes_of(value) for row in rows for value in row]))
        return rows
    return await _rows_of_engine(execution, part, inputs)


async def _rows_of_engine(
    execution: Execution, part: LockingQuery, inputs: Inputs
) -> Sequence[Row]:
    rows: list[Row] = []
    columns = output_columns(part.plan)
    size = 0
    running = run_plan(execution, part.plan, inputs)
    async with closing_batches(running) as found:
        async for batch in found:
            values = [
                to_values(normalize_column(column, shown.type), shown.type)
                for column, shown in zip(batch.columns, columns, strict=True)
            ]
            rows += zip(*values, strict=True)
            size += batch.nbytes
            _check_size(execution, part, size)
    return rows


def _check_size(execution: Execution, part: LockingQuery, size: int) -> None:
    if size <= execution.services.limits.returning_bytes_max:
        return
    if part.as_of is not None:
        raise SqlError(
            "54000",
            "the rows of a subquery with AS OF are too large",
            hint="Read fewer rows of the past at once.",
        )
    raise SqlError(
        "54000",
        "the rows of a query that locks them are too large",
        hint="Lock fewer rows at once, or LOCK TABLE.",
    )


def _bytes_of(value: Value) -> int:
    return len(value) if isinstance(value, _SIZED) else 0


async def _lock(execution: Execution, locked: LockedRows, rows: Sequence[Row]) -> None:
    """Hold all rows. Raises 55P03 with NOWAIT."""
    if is_temporary_schema(locked.table.schema):
        return
    wanted = _to_lock(locked, rows)
    if not wanted.sources:
        return
    waits = locked.policy is LockPolicy.WAIT
    answer = await execution.transaction.lock_rows(
        wanted,
        LOCK_MODES[locked.strength],
        wait=LockWait.UNTIL_GRANTED if waits else LockWait.NO,
    )
    if not answer.granted:
        name = locked.table.name
        raise SqlError("55P03", f'could not obtain lock on row in relation "{name}"')


def _to_lock(locked: LockedRows, rows: Sequence[Row]) -> RowsToLock:
    """The rows that were found; an outer join may have found none."""
    place = locked.place
    there = [row for row in rows if row[place] is not None]
    return RowsToLock(
        locked.table,
        [Source(str(row[place])) for row in there],
        [int(cast("int", row[place + 1])) for row in there],
        [tuple([row[key] for key in locked.keys]) for row in there] if locked.keys else None,
    )
