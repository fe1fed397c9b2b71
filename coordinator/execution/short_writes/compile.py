"""Compile statements that fit the short way; the others go the general one (I1, I2).

A statement fits if it changes rows of one table by a whole unique key that is no deferrable one,
and neither it nor the table has anything beyond plain columns and such keys.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from compute.access.bounded_plans import is_bounded
from compute.access.point_reads import scan_of, unique_point
from compute.access.rows_in_memory import KEY_TYPES
from compute.reference.executor import PreparedPlan
from compute.reference.expressions import Row
from coordinator.core.short_writes.by_key import CannotEvaluate, WriteByKey, row_bytes
from coordinator.execution.context import Services
from coordinator.execution.short_writes.statements import (
    KeyedDelete,
    KeyedInsert,
    KeyedUpdate,
    RowOfKey,
    RowPlan,
    TargetTable,
    Upsert,
)
from sql.catalog.catalog import SYSTEM_TIMELINE, Key, NameDependency, Table
from sql.catalog.foreign_keys import referencing_keys
from sql.errors import SqlError
from sql.plan.nodes import Plan, Values
from sql.plan.traverse import is_volatile_plan, plan_has_subquery
from sql.statements.bound import Modify, ModifyKind, OnConflict, ParameterizedStatement
from sql.types.sql_type import Value

ROWS_MAX: Final = 64
"""Rows of one INSERT. Larger: groups wait for longer look-ups."""

VALUES_BYTES_MAX: Final = 64 << 10
"""Of the rows or values of one statement."""

Names: TypeAlias = Collection[NameDependency]

Statement: TypeAlias = Callable[[Sequence[Value], Names], WriteByKey | None]
"""A statement that is given its values; None: the general way must say what is wrong (I3)."""


def compile_short_write(prepared: ParameterizedStatement, services: Services) -> Statement | None:
    """A statement that fits, compiled; None if it goes the general way."""
    modify = prepared.bound
    if not isinstance(modify, Modify) or not _is_plain(prepared, modify):
        return None
    table = modify.table
    if not _is_plain_table(table) or services.in_process.refusal(modify.source) is not None:
        return None
    target = TargetTable(table, services.key_index)
    match modify.kind:
        case ModifyKind.INSERT:
            update = None if modify.conflict is None else modify.conflict.update
            if update is not None and services.in_process.refusal(update) is not None:
                return None
            return _insert(modify, target)
        case ModifyKind.UPDATE:
            return _update(modify, target)
        case ModifyKind.DELETE:
            if referencing_keys(services.coordination.newest_catalog, table.oid):
                # Who adds such a key gives its parent another version, too.
                return None
            return _delete(modify, target)
        case ModifyKind.MERGE:
            return None


def _is_plain(prepared: ParameterizedStatement, modify: Modify) -> bool:
    if prepared.supplied or prepared.filled or prepared.rebind or prepared.uses_now:
        return False
    if prepared.tells_timestamp or prepared.fails is not None:
        return False
    if prepared.read is not None and prepared.read.of_clock:
        return False
    if modify.locking or modify.returning is not None or modify.extras:
        return False
    return modify.view_checks is None and modify.calls is None


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


def _insert(modify: Modify, target: TargetTable) -> Statement | None:
    source = modify.source
    if modify.tables or not isinstance(source, Values) or not 0 < len(source.rows) <= ROWS_MAX:
        return None
    if plan_has_subquery(source):
        return None
    if modify.conflict is not None:
        return _upsert(PreparedPlan(source), modify.conflict, target)
    plan = PreparedPlan(source)

    def insert(parameters: Sequence[Value], names: Names) -> WriteByKey | None:
        rows = _new_rows(plan, parameters, target)
        if rows is None:
            return None
        return KeyedInsert(target, names, sum(map(row_bytes, rows)), rows)

    return insert


def _upsert(plan: PreparedPlan, conflict: OnConflict, target: TargetTable) -> Statement | None:
    keys = target.table.keys
    keyed = {ordinal for key in keys for ordinal in key.columns}
    if conflict.indexes or conflict.tables or not keyed.isdisjoint(conflict.assigned):
        return None
    update = None if conflict.update is None else _row_plan(conflict.update)
    if conflict.update is not None and update is None:
        return None
    # Without a target every key decides, as the binder says.
    arbiters = [keys[place] for place in conflict.arbiters]
    others = [key for place, key in enumerate(keys) if place not in conflict.arbiters]
    if not arbiters:
        return None

    def upsert(parameters: Sequence[Value], names: Names) -> WriteByKey | None:
        rows = _new_rows(plan, parameters, target)
        if rows is None:
            return None
        nbytes = sum(map(row_bytes, rows))
        values = tuple(parameters)
        return Upsert(target, names, nbytes, rows, arbiters, others, update, values)

    return upsert


def _new_rows(
    plan: PreparedPlan, parameters: Sequence[Value], target: TargetTable
) -> Sequence[Row] | None:
    """The rows of VALUES, as they are stored; None if they must go the general way."""
    try:
        rows = [target.stored(row) for row in plan.rows(parameters)]
    except (SqlError, CannotEvaluate):
        return None
    return rows if sum(map(row_bytes, rows)) <= VALUES_BYTES_MAX else None


@dataclass(frozen=True, slots=True)
class _Change:
    """An UPDATE or DELETE."""

    of: RowOfKey
    target: TargetTable
    kind: type[KeyedUpdate] | type[KeyedDelete]

    def __call__(self, parameters: Sequence[Value], names: Names) -> WriteByKey | None:
        nbytes = row_bytes(tuple(parameters))
        if nbytes > VALUES_BYTES_MAX:
            return None
        return self.kind(self.target, names, nbytes, self.of, tuple(parameters))


def _update(modify: Modify, target: TargetTable) -> Statement | None:
    keyed = {ordinal for key in target.table.keys for ordinal in key.columns}
    of = _row_of_key(modify, target.table)
    if of is None or not keyed.isdisjoint(modify.old):
        return None
    return _Change(of, target, KeyedUpdate)


def _delete(modify: Modify, target: TargetTable) -> Statement | None:
    of = _row_of_key(modify, target.table)
    return None if of is None else _Change(of, target, KeyedDelete)


def _row_of_key(modify: Modify, table: Table) -> RowOfKey | None:
    if len(modify.tables) != 1 or modify.tables[0] is not table:
        return None
    plan = _row_plan(modify.source)
    point = None if plan is None else unique_point(modify.source, table)
    return None if plan is None or point is None else RowOfKey(*point, plan, modify.source)


def _row_plan(plan: Plan) -> RowPlan | None:
    if not is_bounded(plan) or is_volatile_plan(plan):
        return None
    return RowPlan(PreparedPlan(plan), scan_of(plan))
