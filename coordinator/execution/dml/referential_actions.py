"""CASCADE, SET NULL and SET DEFAULT: change the rows that refer to deleted or updated keys.

INVARIANTS
  J1  an action applies to every row with the key, also to rows that the statement itself has
      written. It applies even if another row has the key by now: PostgreSQL acts row by row, and
      does not check for that.
  J2  rows that an action writes obey the child's own constraints and keys; actions of tables that
      refer to the child follow in turn (`dml/foreign_keys.py`).
  J3  a block holds the rows that an action changes, like those that its statements change (W5 of
      `changed_rows.py`); but the statement has written by then, and is undone if it begins again.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from compute.access.located_rows import fetch_located_rows
from compute.access.row_keys import RowKey, row_keys
from compute.arrow import batch_schema
from coordinator.core.locking.modes import LockMode, TableTag
from coordinator.execution.context import Execution
from coordinator.execution.dml.changed_rows import ChangedRows
from coordinator.execution.dml.row_sink import RowSink, stored_schema
from coordinator.execution.dml.unique_keys import ReplacedRows, check_keys_free
from coordinator.execution.dml.updated_keys import UpdatedKeys, UpdatedKeysCollector
from coordinator.execution.run_plan import run_plan
from coordinator.execution.spill import buffer_rows
from ingest.copy_text.kernels import Column
from sql.binder.state import Binding
from sql.binder.stored.column_expressions import default_value
from sql.binder.stored.table_changes import with_generated_columns
from sql.catalog.catalog import ForeignKey, Key, Table
from sql.errors import SqlError, not_supported
from sql.plan.nodes import Plan, Values, output_columns
from sql.plan.traverse import is_volatile_expression
from sql.types.sql_type import format_type
from storage.batch import Deletes, RowIdentity, ShardView, WriteBatch
from storage.types import Source


@dataclass(frozen=True, slots=True)
class ActionResult:
    """The effect of an action on the child. `assigned`: its columns with new values; none: rows
    were deleted.
    """

    keyed: pa.Table | None
    deletes: Deletes
    moved: UpdatedKeys | None = None
    assigned: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ReferringRows:
    """The rows of the child that have one of the keys, in the child's columns `foreign`."""

    child: Table
    foreign: ForeignKey
    view: ShardView
    places: Sequence[RowIdentity]

    @property
    def deletes(self) -> dict[Source, BitMap64]:
        """The rows by where they are."""
        deletes: dict[Source, BitMap64] = {}
        for source, row in self.places:
            deletes.setdefault(source, BitMap64()).add(row)
        return deletes

    async def rows(self, execution: Execution) -> pa.Table:
        """The rows' contents."""
        index = execution.services.key_index
        return (
            await asyncio.to_thread(fetch_located_rows, self.view, self.places, index.read_rows)
        ).rows


async def cascade_delete(execution: Execution, referring: ReferringRows) -> ActionResult:
    """ON DELETE CASCADE."""
    deletes = referring.deletes
    if not execution.alone:
        rows = await referring.rows(execution)
        await _lock(execution, referring, dict(enumerate(_columns(rows))), None)
    buffer_rows(execution, referring.child, WriteBatch(deletes=deletes))
    return ActionResult(None, deletes)


async def set_null(
    execution: Execution, referring: ReferringRows, columns: Sequence[int]
) -> ActionResult:
    """SET NULL of some columns of the foreign key, or all of them."""
    schema = stored_schema(referring.child)
    count = len(referring.places)
    nulls = {ordinal: pa.nulls(count, schema.field(ordinal).type) for ordinal in columns}
    return await _replaced(execution, referring, await referring.rows(execution), nulls)


async def set_default(
    execution: Execution, referring: ReferringRows, columns: Sequence[int]
) -> tuple[ActionResult, pa.Table]:
    """SET DEFAULT, likewise; also the foreign keys that the rows have now."""
    rows = await referring.rows(execution)
    defaults = await _defaults(execution, referring.child, columns)
    schema = stored_schema(referring.child)
    made = {
        ordinal: pa.concat_arrays([column.cast(schema.field(ordinal).type)] * rows.num_rows)
        for ordinal, column in zip(columns, defaults, strict=True)
    }
    acted = await _replaced(execution, referring, rows, made)
    assert acted.keyed is not None, "columns of a foreign key are kept"
    own = [referring.child.columns[ordinal].field for ordinal in referring.foreign.columns]
    return acted, acted.keyed.select(own)


async def cascade_update(
    execution: Execution, referring: ReferringRows, before: pa.Table, after: pa.Table
) -> ActionResult:
    """ON UPDATE CASCADE. `before` and `after`: keys as the child stores them."""
    own = Key(referring.foreign.name, referring.foreign.columns)
    rows = await referring.rows(execution)
    by = {values: at for at, values in enumerate(row_keys(own, before)) if values is not None}
    keys: Sequence[RowKey | None] = row_keys(own, rows.select(list(own.columns)))
    chosen = pa.array([by[values] for values in keys if values is not None], pa.int64())
    assert len(chosen) == rows.num_rows, "a row that refers to a key has one"
    now = after.take(chosen)
    made = {
        ordinal: now.column(place).combine_chunks() for place, ordinal in enumerate(own.columns)
    }
    return await _replaced(execution, referring, rows, made)


async def _replaced(
    execution: Execution, referring: ReferringRows, rows: pa.Table, made: dict[int, Column]
) -> ActionResult:
    """The rows with new values in some columns (J2)."""
    child = referring.child
    schema = stored_schema(child)
    old = {
        ordinal: rows.column(ordinal).combine_chunks().cast(field.type)
        for ordinal, field in enumerate(schema)
    }
    columns = [made.get(ordinal, column) for ordinal, column in old.items()]
    sink = RowSink.of(execution, child)
    new = await sink.take(pa.RecordBatch.from_arrays(columns, schema=schema))
    deletes, assigned = referring.deletes, with_generated_columns(child, made)
    await check_keys_free(
        execution, child, sink.keyed, ReplacedRows(referring.view, deletes, assigned)
    )
    moved = UpdatedKeysCollector(execution, child, assigned)
    moved.keep(old, new.columns)
    keeps_keys = await _lock(execution, referring, old, new.columns)
    buffer_rows(execution, child, await sink.finish(deletes), keeps_keys=keeps_keys)
    return ActionResult(sink.keyed, deletes, moved.moved, assigned)


async def _lock(
    execution: Execution,
    referring: ReferringRows,
    before: dict[int, Column],
    after: Sequence[Column] | None,
) -> bool:
    """Hold the rows before they change (J3); whether they come again with their keys. Raises
    StatementRestart, 40001, 40P01, 55P03.
    """
    child, transaction = referring.child, execution.transaction
    changed = ChangedRows(execution, child)
    sources = [source for source, _ in referring.places]
    changed.keep(sources, [row for _, row in referring.places], before, after)
    wanted = changed.to_lock()
    if wanted:
        tag = TableTag(child.oid)
        await transaction.lock(tag, LockMode.ROW_EXCLUSIVE, timeline=child.timeline)
    for rows, mode in wanted:
        await transaction.lock_rows(rows, mode, implicit=True)
    return changed.keeps_keys


def _columns(rows: pa.Table) -> list[Column]:
    return [column.combine_chunks() for column in rows.columns]


async def _defaults(execution: Execution, child: Table, columns: Sequence[int]) -> Sequence[Column]:
    """The defaults of these columns, one row of them."""

    def make(binding: Binding) -> Plan:
        wanted = [child.columns[ordinal] for ordinal in columns]
        exprs = tuple([default_value(binding, column) for column in wanted])
        if any(map(is_volatile_expression, exprs)):
            raise not_supported("SET DEFAULT with a volatile default")
        made = tuple([binding.new_column(column.name, column.type) for column in wanted])
        return Values(made, (exprs,))

    plan = execution.stored_plan(child, ("set default", tuple(columns)), make)
    batches = [batch async for batch in run_plan(execution, plan, {})]
    schema = batch_schema(output_columns(plan))
    table = pa.Table.from_batches(batches) if batches else schema.empty_table()
    return [column.combine_chunks() for column in table.columns]


def check_key_fits(
    child: Table, foreign: ForeignKey, parent: Table, cast: pa.Table, keys: pa.Table
) -> None:
    """Raises 22003 for a key that does not fit the child's columns."""
    pairs = zip(foreign.columns, foreign.references, cast.columns, keys.columns, strict=True)
    for ordinal, number, fitted, given in pairs:
        own = child.columns[ordinal].type
        theirs = parent.columns[parent.ordinal_of(number)].type
        if fitted.null_count != given.null_count:
            raise SqlError("22003", f"{format_type(own)} out of range")
        if own.typmod not in (-1, theirs.typmod) and pc.any(pc.is_valid(fitted)).as_py():
            raise not_supported(f"ON UPDATE CASCADE into a {format_type(own)}")


def action_columns(foreign: ForeignKey, *, deleted: bool) -> Sequence[int]:
    """The columns that SET NULL and SET DEFAULT change."""
    chosen = foreign.set_columns if deleted else ()
    return [foreign.columns[place] for place in chosen] or foreign.columns


def changed_keys(moved: UpdatedKeys, key: Key, fields: Sequence[str]) -> UpdatedKeys:
    """The rows whose key has changed, with the columns of the key only, by field."""
    before, after = moved.before.select(list(fields)), moved.after.select(list(fields))
    pairs = zip(row_keys(key, before), row_keys(key, after), strict=True)
    other = pa.array([at for at, (old, new) in enumerate(pairs) if old is not None and old != new])
    chosen = other.cast(pa.int64())
    return replace(moved, before=before.take(chosen), after=after.take(chosen))
