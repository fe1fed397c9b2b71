"""Check foreign keys at the end of a statement, and run the actions of those that were broken.

    new rows of the child ──▶ is the key in the parent's view? ──no──▶ 23503
    rows that the parent lost ─▶ does it still have the key? ─no─▶ children with it ─┬▶ 23503
                              CASCADE, SET NULL, SET DEFAULT (`referential_actions.py`) ◀┘

INVARIANTS
  R1  keys are looked up in the transaction's own view, its own writes included, after the whole
      statement. A violation of a deferred constraint then waits (`transaction/deferral.py`).
  R2  the commit repeats the look-ups, at every isolation level: a key that was there is still
      there, and no new row refers to a key that was removed (A10 of
      `coordinator/core/validation.py`).
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from compute.access.foreign_key_probe import ForeignKeyProbe
from compute.access.key_predicates import NewKeys, key_violation_text
from compute.access.located_rows import fetch_located_rows
from compute.access.row_keys import RowKey, row_keys
from compute.arrow import table_schema
from coordinator.execution.context import Execution
from coordinator.execution.dml.referential_actions import (
    ActionResult,
    ReferringRows,
    action_columns,
    cascade_delete,
    cascade_update,
    changed_keys,
    check_key_fits,
    set_default,
    set_null,
)
from coordinator.execution.dml.row_sink import Mask
from coordinator.execution.dml.updated_keys import UpdatedKeys
from coordinator.transaction.deferral import PendingCheck, PendingCheckKind
from sql.catalog.catalog import ForeignKey, Key, Table
from sql.catalog.foreign_keys import referencing_keys
from sql.catalog.objects import INT_BOUNDS
from sql.errors import SqlError
from storage.batch import Deletes, RowIdentity, ShardView
from storage.known_rows import Column

DELETED: Final = "delete"
UPDATED: Final = "update"


@dataclass(frozen=True, slots=True)
class RowChange:
    """The effect of a statement on a table. `keyed`: the key columns of its new rows; `view`: the
    view whose rows `deletes` identifies. `kind`: whether its old rows were deleted or updated.
    `moved`: the keys of the updated ones. `assigned`: the columns that an action has changed; None:
    the statement itself made the change.
    """

    table: Table
    keyed: pa.Table | None
    deletes: Deletes
    view: ShardView | None
    kind: str
    moved: UpdatedKeys | None = None
    assigned: tuple[int, ...] | None = None
    same: Mapping[str, Mask] = field(default_factory=dict[str, Mask])
    """By name of NOT VALID foreign keys: which rows of `keyed` have kept theirs."""


async def check_foreign_keys(execution: Execution, changes: Sequence[RowChange]) -> None:
    """Check foreign keys and run CASCADE, SET NULL and SET DEFAULT (R1). Raises 23503."""
    waiting = list(changes)
    while waiting:
        # One after the other, as PostgreSQL fires its triggers; what actions did comes last.
        change = waiting.pop(0)
        waiting += await _parents_lost(execution, change)
        await _check_new(execution, change)


# --- the child's side --------------------------------------------------------------------------


async def _check_new(execution: Execution, change: RowChange) -> None:
    keyed, table = change.keyed, change.table
    if keyed is None or not keyed.num_rows:
        return
    deferral = execution.transaction.deferral
    for foreign in table.foreign_keys:
        if change.assigned is not None and set(foreign.columns).isdisjoint(change.assigned):
            continue
        rows = _columns(keyed, table, foreign.columns)
        if foreign.match_full:
            _check_full(table, foreign, rows)
        if foreign.name in change.same:
            rows = rows.filter(pa.array(~change.same[foreign.name]))
        unmet = await _unmet(execution, foreign, rows)
        if not deferral.defers(table.oid, foreign):
            if unmet:
                # A row that an action has replaced since is not there any more.
                await _check_left(execution, table, foreign, rows, unmet)
            continue
        waiting = rows.take(pa.array([at for at, _ in unmet], pa.int64())) if unmet else None
        if waiting is not None or not change.deletes:
            deferral.add(
                PendingCheck(PendingCheckKind.CHILD, table.oid, table.oid, foreign, waiting)
            )


def _check_full(table: Table, foreign: ForeignKey, rows: pa.Table) -> None:
    """23503 for a key that is NULL in part, of MATCH FULL."""
    absent = [column.is_null().to_numpy() for column in rows.columns]
    if (np.any(absent, axis=0) & ~np.all(absent, axis=0)).any():
        raise SqlError(
            "23503",
            f'insert or update on table "{table.name}" violates foreign key constraint '
            f'"{foreign.name}"',
            detail="MATCH FULL does not allow mixing of null and nonnull key values.",
            schema=table.schema,
            table=table.name,
            constraint=foreign.name,
        )


def _parent(execution: Execution, foreign: ForeignKey) -> Table:
    parent = execution.catalog().by_oid(foreign.table)
    assert parent is not None, "a table that is referred to is not dropped"
    return parent


async def _unmet(
    execution: Execution, foreign: ForeignKey, rows: pa.Table
) -> list[tuple[int, RowKey]]:
    """Which of these keys of the child the parent does not have, and where they stand."""
    parent = _parent(execution, foreign)
    key = _referenced(parent, foreign)
    fitted = _cast(rows, parent, key)
    new = NewKeys(parent, key, fitted)
    found: set[RowKey] = set()
    if new.count:
        view = await _look(execution, parent, new)
        found = await _locate(execution, view, new)
    elif _nulls(fitted) == _nulls(rows):
        return []
    keys = row_keys(key, fitted)
    # What does not fit into the parent's columns is a key, and not there.
    given = keys if _nulls(fitted) == _nulls(rows) else row_keys(key, rows)
    return [
        (at, values)
        for at, values in enumerate(given)
        if values is not None and (keys[at] is None or values not in found)
    ]


def _nulls(rows: pa.Table) -> Sequence[int]:
    return [column.null_count for column in rows.columns]


async def check_children(
    execution: Execution, child: Table, foreign: ForeignKey, rows: pa.Table
) -> None:
    """Raises 23503 if the parent lacks one of these keys of rows that are still there."""
    unmet = await _unmet(execution, foreign, rows)
    if unmet:
        await _check_left(execution, child, foreign, rows, unmet)


async def _check_left(
    execution: Execution,
    child: Table,
    foreign: ForeignKey,
    rows: pa.Table,
    unmet: Sequence[tuple[int, RowKey]],
) -> None:
    """Raises 23503 for the first of these rows that is still there."""
    own = Key(foreign.name, foreign.columns)
    left = NewKeys(child, own, rows.take(pa.array([at for at, _ in unmet], pa.int64())))
    view = await _look(execution, child, left)
    there = await _locate(execution, view, left)
    keys = row_keys(own, rows)
    for at, values in unmet:
        if keys[at] in there:
            raise _absent(child, _parent(execution, foreign), foreign, values)


def _absent(table: Table, parent: Table, foreign: ForeignKey, values: RowKey) -> SqlError:
    shown = key_violation_text(table, Key(foreign.name, foreign.columns), values, named=str)
    return SqlError(
        "23503",
        f'insert or update on table "{table.name}" violates foreign key constraint '
        f'"{foreign.name}"',
        detail=f'Key {shown} is not present in table "{parent.name}".',
        schema=table.schema,
        table=table.name,
        constraint=foreign.name,
    )


# --- the parent's side -------------------------------------------------------------------------


async def _parents_lost(execution: Execution, change: RowChange) -> list[RowChange]:
    """Look after the children of rows that went; what that does to them."""
    if change.view is None or not any(change.deletes.values()):
        return []
    found = referencing_keys(execution.catalog(), change.table.oid)
    if not found:
        return []
    old = await _old_rows(execution, change)
    done: list[RowChange] = []
    for child, foreign in found:
        more = await _child_of(execution, change, child, foreign, old)
        if more is not None:
            done.append(more)
    return done


async def _old_rows(execution: Execution, change: RowChange) -> pa.Table:
    assert change.view is not None, "rows that were deleted were seen"
    places = [(source, row) for source, rows in change.deletes.items() for row in rows]
    read = execution.services.key_index.read_rows
    found = await asyncio.to_thread(fetch_located_rows, change.view, places, read)
    return found.rows


async def _child_of(
    execution: Execution, change: RowChange, child: Table, foreign: ForeignKey, old: pa.Table
) -> RowChange | None:
    parent = change.table
    key = _referenced(parent, foreign)
    fields = [parent.columns[ordinal].field for ordinal in key.columns]
    action = foreign.on_delete if change.kind == DELETED else foreign.on_update
    went = old.select(list(key.columns)).rename_columns(fields)
    lost: pa.Table | None = went
    after: pa.Table | None = None
    if action == "no action":
        lost = await _gone(execution, parent, key, went)
    elif change.kind == UPDATED:
        if change.moved is None:
            return None
        moved = changed_keys(change.moved, key, fields)
        lost, after = moved.before, moved.after
    if lost is None or not lost.num_rows:
        return None
    own = Key(foreign.name, foreign.columns)
    view, places = await _referring(execution, child, own, lost)
    if action == "no action" and execution.transaction.deferral.defers(child.oid, foreign):
        waiting = lost if places else None
        pending = PendingCheck(PendingCheckKind.PARENT, parent.oid, child.oid, foreign, waiting)
        execution.transaction.deferral.add(pending)
        return None
    if not places:
        return None
    if action in ("no action", "restrict"):
        values = await _first_key(execution, own, view, places)
        raise _referred_to(parent, child, foreign, key, values, action)
    referring = ReferringRows(child, foreign, view, places)
    acted = await _act(execution, parent, referring, action, lost, after)
    kind = UPDATED if acted.assigned else DELETED
    return RowChange(child, acted.keyed, acted.deletes, view, kind, acted.moved, acted.assigned)


async def _act(
    execution: Execution,
    parent: Table,
    referring: ReferringRows,
    action: str,
    lost: pa.Table,
    after: pa.Table | None,
) -> ActionResult:
    """Do what the foreign key wants. `after`: the keys as they are now, of rows that are left."""
    child, foreign = referring.child, referring.foreign
    own = Key(foreign.name, foreign.columns)
    columns = action_columns(foreign, deleted=after is None)
    if action == "set null":
        return await set_null(execution, referring, columns)
    if action == "set default":
        acted, now = await set_default(execution, referring, columns)
        await _check_default(execution, parent, referring, lost, now)
        return acted
    if after is None:
        return await cascade_delete(execution, referring)
    fitted = _cast(after, child, own)
    check_key_fits(child, foreign, parent, fitted, after)
    return await cascade_update(execution, referring, _cast(lost, child, own), fitted)


async def _check_default(
    execution: Execution, parent: Table, referring: ReferringRows, lost: pa.Table, now: pa.Table
) -> None:
    """23503 of the parent if the default is the very key that is lost."""
    key = _referenced(parent, referring.foreign)
    gone = await _gone(execution, parent, key, lost)
    if gone is None:
        return
    own = Key(referring.foreign.name, referring.foreign.columns)
    missing = {*row_keys(own, _cast(gone, referring.child, own))}
    for values in row_keys(own, now):
        if values is not None and values in missing:
            raise _referred_to(parent, referring.child, referring.foreign, key, values, "no action")


async def check_parents(
    execution: Execution, child: Table, foreign: ForeignKey, rows: pa.Table
) -> None:
    """Raises 23503 if one of these keys, which the parent had, is missing and referred to."""
    parent = _parent(execution, foreign)
    key = _referenced(parent, foreign)
    gone = await _gone(execution, parent, key, rows)
    if gone is None:
        return
    own = Key(foreign.name, foreign.columns)
    view, places = await _referring(execution, child, own, gone)
    if places:
        values = await _first_key(execution, own, view, places)
        raise _referred_to(parent, child, foreign, key, values, "no action")


async def _referring(
    execution: Execution, child: Table, own: Key, gone: pa.Table
) -> tuple[ShardView, Sequence[RowIdentity]]:
    """The rows of the child that have one of the keys that went, and the view they are named in."""
    wanted = NewKeys(child, own, _cast(gone, child, own))
    view = await _look(execution, child, wanted)
    index = execution.services.key_index
    return view, await asyncio.to_thread(index.locate_all, view, wanted)


async def _first_key(
    execution: Execution, own: Key, view: ShardView, places: Sequence[RowIdentity]
) -> RowKey:
    index = execution.services.key_index
    located = await asyncio.to_thread(fetch_located_rows, view, places[:1], index.read_rows)
    (values,) = row_keys(own, located.rows.select(list(own.columns)))
    assert values is not None, "a row that refers to a key has one"
    return values


def _referred_to(
    parent: Table, child: Table, foreign: ForeignKey, key: Key, values: RowKey, action: str
) -> SqlError:
    shown = key_violation_text(parent, key, values, named=str)
    strict = action == "restrict"
    setting = "RESTRICT setting of " if strict else ""
    still = "is referenced" if strict else "is still referenced"
    return SqlError(
        "23001" if strict else "23503",
        f'update or delete on table "{parent.name}" violates {setting}foreign key constraint '
        f'"{foreign.name}" on table "{child.name}"',
        detail=f'Key {shown} {still} from table "{child.name}".',
        schema=child.schema,
        table=child.name,
        constraint=foreign.name,
    )


async def _gone(execution: Execution, parent: Table, key: Key, rows: pa.Table) -> pa.Table | None:
    """Those of the keys that the parent had that it has no more."""
    new = NewKeys(parent, key, rows)
    if not new.count:
        return None
    view = await _look(execution, parent, new)
    left = await _locate(execution, view, new)
    keys = row_keys(key, rows)
    chosen = [at for at, value in enumerate(keys) if value is not None and value not in left]
    return rows.take(pa.array(chosen, pa.int64())) if chosen else None


# --- looking -----------------------------------------------------------------------------------


def _referenced(parent: Table, foreign: ForeignKey) -> Key:
    ordinals = tuple(parent.ordinal_of(number) for number in foreign.references)
    return Key(foreign.name, ordinals)


def _columns(keyed: pa.Table, table: Table, ordinals: Sequence[int]) -> pa.Table:
    return keyed.select([table.columns[ordinal].field for ordinal in ordinals])


def _cast(rows: pa.Table, table: Table, key: Key) -> pa.Table:
    """Values of one side as the other side stores them; NULL for what does not fit there."""
    schema = table_schema([table.columns[ordinal] for ordinal in key.columns])
    arrays = [
        _fitted(column, table.columns[ordinal].type.name, field.type)
        for ordinal, column, field in zip(key.columns, rows.columns, schema, strict=True)
    ]
    return pa.table(arrays, names=schema.names)


def _fitted(column: Column, name: str, type_: pa.DataType) -> Column:
    if column.type == type_:
        return column
    if name in INT_BOUNDS:
        low, high = (pa.scalar(bound, pa.int64()) for bound in INT_BOUNDS[name])
        wide = column.cast(pa.int64())
        fits = pc.and_(pc.greater_equal(wide, low), pc.less_equal(wide, high))
        column = pc.if_else(fits, wide, pa.scalar(None, pa.int64()))
    elif _is_narrower(type_, column.type):
        bound = Decimal(10**type_.precision - 1).scaleb(-type_.scale)
        least, most = (pa.scalar(value, column.type) for value in (-bound, bound))
        fits = pc.and_(pc.greater_equal(column, least), pc.less_equal(column, most))
        column = pc.if_else(fits, column, pa.scalar(None, column.type))
    return column.cast(type_)


def _is_narrower(one: pa.DataType, other: pa.DataType) -> TypeGuard[pa.Decimal128Type]:
    if not isinstance(one, pa.Decimal128Type) or not isinstance(other, pa.Decimal128Type):
        return False
    return bool(one.precision < other.precision)


async def _look(execution: Execution, table: Table, keys: NewKeys) -> ShardView:
    """The table as the transaction sees it now; the commit looks for these keys again (R2)."""
    ts = await execution.transaction.timestamp([table])
    coordination = execution.services.coordination
    predicate = ForeignKeyProbe(keys.predicate())
    (view,) = await coordination.scan(execution.transaction.id, ts, [table], [predicate])
    return view


async def _locate(execution: Execution, view: ShardView, keys: NewKeys) -> set[RowKey]:
    index = execution.services.key_index
    return set(await asyncio.to_thread(index.locate, view, keys, {}, index.files(view, keys)))
