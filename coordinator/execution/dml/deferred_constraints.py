"""Run the checks of deferred constraints: at COMMIT, and at SET CONSTRAINTS .. IMMEDIATE.

    Pending ─▶ all of one constraint together ─▶ the transaction's own view ─▶ 23503, 23505
                                                         └─▶ predicates, validated by the commit

INVARIANTS
  J1  a check reads the transaction's own present view. Its look-ups enter the read set, as those of
      an immediate check do (A8 and A10 of `coordinator/core/validation.py`).
  J2  of several violations the one that has waited longest is reported.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import assert_never

import pyarrow as pa

from compute.access.key_predicates import NewKeys
from compute.access.located_rows import fetch_located_rows
from compute.access.row_keys import row_keys
from coordinator.execution.context import Done, Execution
from coordinator.execution.dml.foreign_keys import check_children, check_parents
from coordinator.execution.dml.unique_keys import duplicate_key
from coordinator.pgwire.messages import Severity
from coordinator.transaction.deferral import PendingCheck, PendingCheckKind
from sql.catalog.catalog import ForeignKey, Key, Table
from sql.errors import SqlError
from sql.statements.session import SetConstraints


async def execute_set_constraints(execution: Execution, statement: SetConstraints) -> Done:
    """SET CONSTRAINTS; checks that are not deferred any more run now."""
    transaction = execution.transaction
    if transaction.warns_outside:
        words = "SET CONSTRAINTS can only be used in transaction blocks"
        execution.notice(SqlError("25P01", words), Severity.WARNING)
    if statement.problem is not None:
        raise statement.problem
    transaction.deferral.set(statement.named, deferred=statement.deferred)
    if not statement.deferred:
        await check_deferred(execution, transaction.deferral.due)
    return Done("SET CONSTRAINTS")


async def check_deferred(execution: Execution, due: Sequence[PendingCheck]) -> None:
    """Raises 23503, 23505 (J1)."""
    try:
        for pending in _together(due):
            await _check(execution, pending)
    except SqlError as error:
        if error.sqlstate not in ("23503", "23505"):
            raise
        for pending in due:  # J2
            await _check(execution, pending)
        raise
    execution.transaction.deferral.settle(due)


def check_no_pending_checks(execution: Execution, tables: Sequence[Table], command: str) -> None:
    """Raises 55006 for a table with pending checks: they were bound to its present definition."""
    for table in tables:
        if execution.transaction.deferral.is_waiting_on(table.oid):
            message = f'cannot {command} "{table.name}" because it has pending trigger events'
            raise SqlError("55006", message)


def _together(due: Sequence[PendingCheck]) -> Sequence[PendingCheck]:
    """One check for all rows of a constraint and side."""
    found: dict[tuple[PendingCheckKind, int, int, str], list[PendingCheck]] = {}
    for pending in due:
        name = (pending.side, pending.table, pending.owner, pending.constraint.name)
        found.setdefault(name, []).append(pending)
    joined: list[PendingCheck] = []
    for same in found.values():
        first = same[0]
        rows = [pending.rows for pending in same if pending.rows is not None]
        if rows:
            # A column may have got another name since.
            names = rows[0].column_names
            every = pa.concat_tables([part.rename_columns(names) for part in rows])
            joined.append(
                PendingCheck(first.side, first.table, first.owner, first.constraint, every)
            )
    return joined


async def _check(execution: Execution, pending: PendingCheck) -> None:
    owner = execution.catalog().by_oid(pending.owner)
    rows, constraint = pending.rows, pending.constraint
    if owner is None or rows is None:
        return
    match constraint:
        case Key():
            key = _key_now(owner, constraint)
            if key is not None:
                await _check_key(execution, owner, key, rows)
        case ForeignKey():
            foreign = _foreign_now(owner, constraint)
            if foreign is None:
                return
            if pending.side is PendingCheckKind.CHILD:
                await check_children(execution, owner, foreign, rows)
            else:
                await check_parents(execution, owner, foreign, rows)
        case _:
            assert_never(constraint)


def _key_now(owner: Table, key: Key) -> Key | None:
    """The constraint by the name that it may have got; None: it was dropped."""
    known = [other for other in owner.keys if other.columns == key.columns and other.deferrable]
    return next((other for other in known if other.name == key.name), (*known, None)[0])


def _foreign_now(owner: Table, key: ForeignKey) -> ForeignKey | None:
    known = [
        other
        for other in owner.foreign_keys
        if (other.columns, other.table, other.references)
        == (key.columns, key.table, key.references)
    ]
    return next((other for other in known if other.name == key.name), (*known, None)[0])


async def _check_key(execution: Execution, table: Table, key: Key, rows: pa.Table) -> None:
    """Of the rows that have one of these keys no two may have the same."""
    new = NewKeys(table, key, rows)
    if not new.count:
        return
    services, transaction = execution.services, execution.transaction
    ts = await transaction.timestamp([table])
    (view,) = await services.coordination.scan(transaction.id, ts, [table], [new.predicate()])
    index = services.key_index
    places = await asyncio.to_thread(index.locate_all, view, new)
    located = await asyncio.to_thread(fetch_located_rows, view, places, index.read_rows)
    there = Counter(row_keys(key, located.rows.select(list(key.columns))))
    for values in row_keys(key, rows):
        if values is not None and there[values] > 1:
            raise duplicate_key(new, values)
