"""Compile SELECT FOR UPDATE and its kin for blocks: of one row by its key, of the first free rows.

    locking part ─┬▶ row by row, without LIMIT and ORDER BY ─▶ RowOfKey ─▶ KeyedLock
                  └▶ SKIP LOCKED with a LIMIT ─▶ QueueQuery ─▶ TakenRows

One row at most has the key, so neither an order nor a limit of one or more changes the answer.
"""

from collections.abc import Sequence

from compute.access.point_reads import unique_point
from compute.reference.joins import KEY_TYPES
from coordinator.core.short_writes.by_key import WriteByKey, row_bytes
from coordinator.execution.context import Services
from coordinator.execution.locking_queries import LOCK_MODES
from coordinator.execution.short_read import SHORT_TYPES
from coordinator.execution.short_writes.compile import (
    VALUES_BYTES_MAX,
    CompiledWrite,
    is_plain_statement,
)
from coordinator.execution.short_writes.given_values import compile_runtime_values
from coordinator.execution.short_writes.row_plans import ShownRows, compile_row_plan
from coordinator.execution.short_writes.skip_locked import (
    GivenQueueQuery,
    TakenRows,
    compile_queue_query,
)
from coordinator.execution.short_writes.statements import (
    KeyedLock,
    MakeWrite,
    Names,
    RowOfKey,
    TargetTable,
)
from sql.catalog.catalog import SYSTEM_TIMELINE, Table
from sql.catalog.meridian_schema import is_server_state
from sql.plan.nodes import Const, Limit, Plan, Scan, Sort
from sql.plan.traverse import rewrite_inputs
from sql.statements.bound import BoundQuery, ParameterizedStatement
from sql.statements.locking import LockingQuery, LockPolicy
from sql.types.sql_type import Value


def compile_locking_read(
    prepared: ParameterizedStatement, services: Services
) -> CompiledWrite | None:
    """The query, if it shows and locks the row of a key and does nothing else."""
    query = prepared.bound
    if not isinstance(query, BoundQuery) or len(query.locking) != 1:
        return None
    if query.as_of is not None or query.calls is not None or not is_plain_statement(prepared):
        return None
    if prepared.supplied:
        return None
    (part,) = query.locking
    shown = query.plan
    if not isinstance(shown, Scan) or shown.relation != part.relation or not query.columns:
        return None
    if any(column.type.name not in SHORT_TYPES for column in query.columns):
        return None
    runtime = compile_runtime_values(())
    make = _taking(part, shown, services) or _locking(part, shown, services)
    if make is None or runtime is None:
        return None
    waits = part.rows[0].policy is LockPolicy.WAIT
    return CompiledWrite(make, runtime, ShownRows(query.columns, shown), True, waits)


def _taking(part: LockingQuery, shown: Scan, services: Services) -> MakeWrite | None:
    """The first free rows (`skip_locked.py`)."""
    queue = compile_queue_query(part, services, shown.ordinals)
    if queue is None or not _is_plain(queue.target.table):
        return None

    def take(parameters: Sequence[Value], names: Names) -> WriteByKey | None:
        given = GivenQueueQuery(queue, tuple(parameters))
        if row_bytes(given.parameters) > VALUES_BYTES_MAX:
            return None
        return TakenRows(queue.target, names, 0, None, given)

    return take


def _locking(part: LockingQuery, shown: Scan, services: Services) -> MakeWrite | None:
    """The row of a key."""
    of = _row_of_key(part, services)
    if of is None:
        return None
    target = TargetTable(part.tables[0], services.key_index)
    mode = LOCK_MODES[part.rows[0].strength]

    def lock(parameters: Sequence[Value], names: Names) -> WriteByKey | None:
        nbytes = row_bytes(tuple(parameters))
        if nbytes > VALUES_BYTES_MAX:
            return None
        return KeyedLock(target, names, 0, None, of, tuple(parameters), mode, shown.ordinals)

    return lock


def _row_of_key(part: LockingQuery, services: Services) -> RowOfKey | None:
    if part.as_of is not None or part.limit is not None or len(part.rows) != 1:
        return None
    (locked,) = part.rows
    if len(part.tables) != 1 or part.tables[0] is not locked.table or not _is_plain(locked.table):
        return None
    if locked.policy is LockPolicy.SKIP:
        return None
    source = _of_one_row(part.plan)
    if services.in_process.refusal(source) is not None:
        return None
    plan = compile_row_plan(source)
    point = None if plan is None else unique_point(source, locked.table)
    if plan is None or point is None:
        return None
    key, wanted = point
    kinds = [locked.table.columns[ordinal].type.name for ordinal in key.columns]
    if key.deferrable or not KEY_TYPES.issuperset(kinds):
        return None
    return RowOfKey(key, wanted, plan, source)


def _is_plain(table: Table) -> bool:
    if table.timeline != SYSTEM_TIMELINE.name or is_server_state(table):
        return False
    return not any(column.generated or column.domain for column in table.columns)


def _of_one_row(plan: Plan) -> Plan:
    """The plan without what makes no difference to a single row."""
    match plan:
        case Sort():
            return _of_one_row(plan.input)
        case Limit(limit=Const(value=int(most)), offset=None) if most > 0:
            return _of_one_row(plan.input)
        case _:
            return rewrite_inputs(plan, _of_one_row)
