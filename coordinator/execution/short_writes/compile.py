"""Compile statements that fit the short way; the others go the general one (I1, I2).

A statement fits if it changes rows of one table by a whole unique key that is no deferrable one, or
inserts them, and neither it nor the table has anything beyond plain columns and such keys.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from compute.access.point_reads import unique_point
from compute.computed_values import ComputedValues, computed_values
from compute.reference.executor import PreparedPlan
from compute.reference.expressions import Row
from compute.reference.joins import KEY_TYPES
from coordinator.core.short_writes.by_key import CannotEvaluate, RowValues, WriteByKey, row_bytes
from coordinator.execution.context import Services
from coordinator.execution.short_writes.given_values import RuntimeValues, compile_runtime_values
from coordinator.execution.short_writes.row_plans import (
    ReturningPlan,
    ShownRows,
    compile_returning,
    compile_row_plan,
)
from coordinator.execution.short_writes.skip_locked import (
    GivenQueueQuery,
    QueueQuery,
    TakingWrite,
    with_taken_row,
)
from coordinator.execution.short_writes.statements import (
    KeyedDelete,
    KeyedInsert,
    KeyedUpdate,
    MakeWrite,
    Names,
    RowOfKey,
    TargetTable,
    Upsert,
)
from sql.catalog.catalog import SYSTEM_TIMELINE, Key, Table
from sql.catalog.foreign_keys import referencing_keys
from sql.errors import SqlError
from sql.plan.nodes import Values
from sql.plan.traverse import plan_has_subquery
from sql.statements.bound import (
    Modify,
    ModifyKind,
    OnConflict,
    OutputColumn,
    ParameterizedStatement,
)
from sql.types.sql_type import Value

ROWS_MAX: Final = 64
"""Rows of one INSERT. Larger: groups wait for longer look-ups."""

VALUES_BYTES_MAX: Final = 64 << 10
"""Of the rows or values of one statement."""

_Shows: TypeAlias = Callable[[RowValues], RowValues]


@dataclass(frozen=True, slots=True)
class CompiledWrite:
    """A statement that fits. `returning`: None without RETURNING. `only_locks`: it changes nothing,
    and is one for blocks (`locking_reads.py`). `waits`: for rows that others hold.
    """

    make: MakeWrite
    runtime: RuntimeValues
    returning: ShownRows | None
    only_locks: bool = False
    waits: bool = True

    @property
    def columns(self) -> tuple[OutputColumn, ...] | None:
        """Of RETURNING."""
        return None if self.returning is None else self.returning.columns


def compile_short_write(
    prepared: ParameterizedStatement, services: Services
) -> CompiledWrite | None:
    """A statement that fits, compiled; None if it goes the general way."""
    modify = prepared.bound
    if not isinstance(modify, Modify) or not is_plain_statement(prepared):
        return None
    if modify.extras or modify.view_checks or modify.calls:
        return None
    queue: QueueQuery | None = None
    count = len(prepared.parameters) + len(prepared.supplied)
    if modify.locking:
        taking = with_taken_row(modify, count, services)
        if taking is None:
            return None
        modify, queue = taking
    table = modify.table
    if not _is_plain_table(table) or services.in_process.refusal(modify.source) is not None:
        return None
    runtime = compile_runtime_values(prepared.supplied)
    returning = None if modify.returning is None else compile_returning(modify)
    if runtime is None or (modify.returning is not None and returning is None):
        return None
    target = TargetTable(table, services.key_index)
    make = _compiled(modify, target, returning, services)
    if make is not None and queue is not None:
        make = _Taking(target, queue, make, count)
    return None if make is None else CompiledWrite(make, runtime, returning)


def _compiled(
    modify: Modify, target: TargetTable, returning: ReturningPlan | None, services: Services
) -> MakeWrite | None:
    match modify.kind:
        case ModifyKind.INSERT:
            update = None if modify.conflict is None else modify.conflict.update
            if update is not None and services.in_process.refusal(update) is not None:
                return None
            return _insert(modify, target, returning)
        case ModifyKind.UPDATE:
            return _update(modify, target, returning)
        case ModifyKind.DELETE:
            if referencing_keys(services.coordination.newest_catalog, target.table.oid):
                # Who adds such a key gives its parent another version, too.
                return None
            return _delete(modify, target, returning)
        case ModifyKind.MERGE:
            return None


def is_plain_statement(prepared: ParameterizedStatement) -> bool:
    """Whether it means the same whenever it runs, under one catalog."""
    if prepared.filled or prepared.rebind or prepared.uses_now:
        return False
    if prepared.tells_timestamp or prepared.fails is not None:
        return False
    return prepared.read is None or not prepared.read.of_clock


def _is_plain_table(table: Table) -> bool:
    if table.checks or table.foreign_keys or table.on_commit or table.unique_indexes:
        return False
    if table.timeline != SYSTEM_TIMELINE.name:
        return False
    if any(column.generated or column.domain for column in table.columns):
        return False
    return all(_is_plain_key(table, key) for key in table.keys)


def _is_plain_key(table: Table, key: Key) -> bool:
    if key.deferrable or not key.nulls_distinct:
        return False
    return all(table.columns[ordinal].type.name in KEY_TYPES for ordinal in key.columns)


def _shows(returning: ReturningPlan | None, parameters: Sequence[Value]) -> _Shows | None:
    return None if returning is None else partial(returning.row, tuple(parameters))


@dataclass(frozen=True, slots=True)
class _NewRows:
    """The rows of VALUES. `values`: what its functions read."""

    plan: PreparedPlan
    values: ComputedValues | None

    def stored(self, parameters: Sequence[Value], target: TargetTable) -> Sequence[Row] | None:
        """They, as they are stored; None if they must go the general way."""
        if self.values is not None and not self.values.are_few(parameters):
            return None
        try:
            rows = [target.stored(row) for row in self.plan.rows(parameters)]
        except (SqlError, CannotEvaluate):
            return None
        return rows if sum(map(row_bytes, rows)) <= VALUES_BYTES_MAX else None


def _insert(
    modify: Modify, target: TargetTable, returning: ReturningPlan | None
) -> MakeWrite | None:
    source = modify.source
    if modify.tables or not isinstance(source, Values) or not 0 < len(source.rows) <= ROWS_MAX:
        return None
    values = computed_values(source)
    if plan_has_subquery(source) or (values is not None and values.may_grow):
        return None
    plan = _NewRows(PreparedPlan(source), values)
    if modify.conflict is not None:
        if returning is not None and len(source.rows) > 1:
            return None  # the general way shows them in another order
        return _upsert(plan, modify.conflict, target, returning)

    def insert(parameters: Sequence[Value], names: Names) -> WriteByKey | None:
        rows = plan.stored(parameters, target)
        if rows is None:
            return None
        nbytes = sum(map(row_bytes, rows))
        return KeyedInsert(target, names, nbytes, _shows(returning, parameters), rows)

    return insert


def _upsert(
    plan: _NewRows,
    conflict: OnConflict,
    target: TargetTable,
    returning: ReturningPlan | None,
) -> MakeWrite | None:
    keys = target.table.keys
    keyed = {ordinal for key in keys for ordinal in key.columns}
    if conflict.indexes or conflict.tables or not keyed.isdisjoint(conflict.assigned):
        return None
    update = None if conflict.update is None else compile_row_plan(conflict.update)
    if conflict.update is not None and update is None:
        return None
    # Without a target every key decides, as the binder says.
    arbiters = [keys[place] for place in conflict.arbiters]
    others = [key for place, key in enumerate(keys) if place not in conflict.arbiters]
    if not arbiters:
        return None

    def upsert(parameters: Sequence[Value], names: Names) -> WriteByKey | None:
        rows = plan.stored(parameters, target)
        if rows is None:
            return None
        nbytes = sum(map(row_bytes, rows))
        values = tuple(parameters)
        shows = _shows(returning, values)
        return Upsert(target, names, nbytes, shows, rows, arbiters, others, update, values)

    return upsert


@dataclass(frozen=True, slots=True)
class _Change:
    """An UPDATE or DELETE."""

    of: RowOfKey
    target: TargetTable
    returning: ReturningPlan | None
    kind: type[KeyedUpdate] | type[KeyedDelete]

    def __call__(self, parameters: Sequence[Value], names: Names) -> WriteByKey | None:
        nbytes = row_bytes(tuple(parameters))
        if nbytes > VALUES_BYTES_MAX:
            return None
        shows = _shows(self.returning, parameters)
        return self.kind(self.target, names, nbytes, shows, self.of, tuple(parameters))


@dataclass(frozen=True, slots=True)
class _Taking:
    """The same of the row that a query takes; `count`: of the parameters."""

    target: TargetTable
    queue: QueueQuery
    change: MakeWrite
    count: int

    def __call__(self, parameters: Sequence[Value], names: Names) -> WriteByKey | None:
        nbytes = row_bytes(tuple(parameters))
        if nbytes > VALUES_BYTES_MAX or len(parameters) != self.count:
            return None
        given = GivenQueueQuery(self.queue, tuple(parameters))
        return TakingWrite(self.target, names, nbytes, None, given, self.change)


def _update(
    modify: Modify, target: TargetTable, returning: ReturningPlan | None
) -> MakeWrite | None:
    keyed = {ordinal for key in target.table.keys for ordinal in key.columns}
    of = _row_of_key(modify, target.table)
    if of is None or not keyed.isdisjoint(modify.old):
        return None
    return _Change(of, target, returning, KeyedUpdate)


def _delete(
    modify: Modify, target: TargetTable, returning: ReturningPlan | None
) -> MakeWrite | None:
    of = _row_of_key(modify, target.table)
    return None if of is None else _Change(of, target, returning, KeyedDelete)


def _row_of_key(modify: Modify, table: Table) -> RowOfKey | None:
    if len(modify.tables) != 1 or modify.tables[0] is not table:
        return None
    plan = compile_row_plan(modify.source)
    point = None if plan is None else unique_point(modify.source, table)
    return None if plan is None or point is None else RowOfKey(*point, plan, modify.source)
