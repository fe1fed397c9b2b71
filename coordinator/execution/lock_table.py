"""LOCK TABLE, and the table locks that other statements of a block take.

    BEGIN; ALTER TABLE t ..; UPDATE t ..; COMMIT      takes t for itself: writers wait until its end

Statements that are their whole transaction take none: they are compared with the locks of others
when they commit (`core/group_commit.py`).

INVARIANTS
  L1  a block holds the lock of a table before it reads or changes anything of it.
  L2  LOCK TABLE in SHARE or stronger leaves the whole table in the read set, at every level: locks
      are never what keeps answers right (A9 of `core/validation.py`).
"""

from collections.abc import Iterable, Iterator
from typing import Final

from coordinator.core.locking.modes import LockMode, LockWait, TableTag
from coordinator.execution.context import Done, Execution
from coordinator.session_errors import only_in_block
from sql.catalog.catalog import SYSTEM_TIMELINE, Table
from sql.catalog.meridian_schema import is_server_state
from sql.catalog.objects import IndexDefinition
from sql.catalog.temporary import is_temporary_schema
from sql.errors import SqlError
from sql.statements.bound import (
    AlterTable,
    BoundStatement,
    CopyIn,
    CreateTable,
    CreateTableAs,
    DropSchema,
    DropTable,
    Explain,
    Modify,
    ModifyingWith,
    RefreshMaterializedView,
    Truncate,
)
from sql.statements.ddl import ChangeObjects, CreateObject
from sql.statements.locking import LockTables

_ACCESS_SHARE: Final = 1
_OF_ROWS: Final = (Modify, CopyIn, ModifyingWith, LockTables, Truncate, Explain)
"""Statements that read or write rows of the tables that they lock."""


async def execute_lock(execution: Execution, statement: LockTables, tag: str) -> Done:
    """Put all rows of the tables into the read set; their locks are held already (L2)."""
    transaction = execution.transaction
    if transaction.warns_outside:
        raise only_in_block(tag)
    if statement.from_writers and not transaction.read_only:
        ts = await transaction.timestamp(statement.tables)
        oids = frozenset(table.oid for table in statement.tables)
        coordination = execution.services.coordination
        await coordination.scan(transaction.id, ts, statement.tables, (), oids)
    return Done(tag)


async def take_table_locks(execution: Execution, bound: BoundStatement) -> None:
    """Take what a statement of a block needs (L1). Raises StatementRestart, 40001, 40P01, 55P03."""
    wait = LockWait.UNTIL_GRANTED
    if isinstance(bound, LockTables) and bound.nowait:
        wait = LockWait.NO
    for table, mode in dict.fromkeys(_table_locks(execution, bound)):
        if is_temporary_schema(table.schema) or is_server_state(table):
            continue  # nobody else sees it
        if table.timeline != SYSTEM_TIMELINE.name and not isinstance(bound, _OF_ROWS):
            continue  # its definition is of `system`: who alters it does not join its timeline
        answer = await execution.transaction.lock(
            TableTag(table.oid), mode, wait=wait, timeline=table.timeline
        )
        if not answer.granted:
            raise SqlError("55P03", f'could not obtain lock on relation "{table.name}"')
    if isinstance(bound, LockTables):
        await execution.services.coordination.confirm_locks(execution.transaction.id)


def _table_locks(execution: Execution, bound: BoundStatement) -> Iterator[tuple[Table, LockMode]]:
    """The tables that a statement locks, and the modes, as PostgreSQL's statements do."""
    match bound:
        case Modify(table=table) | CopyIn(table=table):
            yield table, LockMode.ROW_EXCLUSIVE
        case ModifyingWith(modifications=modifications):
            yield from _all((part.table for part in modifications), LockMode.ROW_EXCLUSIVE)
        case LockTables(tables=tables, mode=mode) if mode > _ACCESS_SHARE:
            yield from _all(tables, LockMode(1 << (mode - 1)))
        case RefreshMaterializedView(table=table, is_concurrent=is_concurrent):
            yield table, LockMode.EXCLUSIVE if is_concurrent else LockMode.ACCESS_EXCLUSIVE
        case Truncate(tables=tables):
            yield from _all(tables, LockMode.ACCESS_EXCLUSIVE)
        case AlterTable():
            changed = (change.before for change in bound.tables)
            yield from _all(changed, LockMode.ACCESS_EXCLUSIVE)
            yield from _all(bound.parents, LockMode.SHARE_ROW_EXCLUSIVE)
        case DropTable() | DropSchema():
            changed = (change.before for change in bound.changed)
            yield from _all((*bound.tables, *changed), LockMode.ACCESS_EXCLUSIVE)
        case ChangeObjects():
            changes = (*bound.tables, *(item.change for item in bound.rewritings))
            tables = (*(change.before for change in changes), *bound.dropped_tables)
            yield from _all(tables, LockMode.ACCESS_EXCLUSIVE)
        case CreateTable(parents=parents) | CreateTableAs(table=CreateTable(parents=parents)):
            yield from _all(parents, LockMode.SHARE_ROW_EXCLUSIVE)
        case CreateObject(object=IndexDefinition(table=oid)):
            indexed = execution.catalog().by_oid(oid)
            yield from _all(() if indexed is None else (indexed,), LockMode.SHARE)
        case Explain(statement=statement, runs=runs) if runs is not None:
            yield from _table_locks(execution, statement)
        case _:
            pass


def _all(tables: Iterable[Table], mode: LockMode) -> Iterator[tuple[Table, LockMode]]:
    return ((table, mode) for table in tables)
