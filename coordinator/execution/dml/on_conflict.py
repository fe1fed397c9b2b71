"""ON CONFLICT: decide which proposed rows are inserted, which are skipped, and which update a row.

    proposed ─▶ keys of the arbiters ─┬─ free ─────────────▶ insert
                                      ├─ row of the table ──▶ the update's plan over `conflicts`
                                      └─ row of this statement ─▶ left out, or 21000

Rows are decided in order, as if one came after the other; the update's plan runs for as many of
them at once as cannot influence each other.

INVARIANTS
  V1  keys that are found, and keys that are found missing, are validated at the commit at every
      isolation level. So a concurrent statement makes no duplicate and loses no update.
  V2  a row that this statement has inserted or updated is not updated again: 21000.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from compute.access.computed_keys import key_ordinals
from compute.access.key_predicates import KeyPredicate, NewKeys, columns_of_key
from compute.access.located_rows import are_rows_in_memory, fetch_located_rows
from compute.access.row_keys import RowKey, row_keys
from coordinator.execution.context import Execution
from coordinator.execution.dml.claimed_rows import ClaimedRows
from coordinator.execution.dml.computed_keys import computed_keys
from coordinator.execution.dml.row_constraints import RowConstraints
from coordinator.execution.dml.row_sink import stored_schema
from coordinator.execution.dml.statement_work import StatementEffects
from coordinator.execution.dml.transient_relations import (
    run_over_transient,
    transient_batch,
    transient_table,
    transient_view,
)
from ingest.copy_text.kernels import Column
from sql.catalog.catalog import Key, Table
from sql.errors import SqlError
from sql.plan.nodes import RelationId
from sql.statements.bound import OnConflict
from storage.batch import RowIdentity, ShardView

CONFLICTS = RelationId("conflicts")

ON_LOOP_MAX = 100
"""Keys that are looked up on the loop, if no file has to be read. Larger: longer stalls."""


@dataclass(frozen=True, slots=True)
class UpsertResult:
    """The result of a batch. `old`: for each of `rows` its previous version, or NULLs; `replaced`:
    the previous versions of those that existed, `places` their identities. `numbers`: of the
    proposed rows that were taken.
    """

    numbers: Sequence[int]
    rows: pa.RecordBatch
    old: pa.RecordBatch
    replaced: pa.RecordBatch
    places: Sequence[RowIdentity] = ()


@dataclass(frozen=True, slots=True)
class _Arbiter:
    """One key that decides. `made`: keys of rows that this statement has inserted or updated.
    `table`: with the columns that are computed for the key.
    """

    table: Table
    key: Key
    made: set[RowKey] = field(default_factory=set[RowKey])


@dataclass(slots=True)
class _Batch:
    """Proposed rows, their keys by arbiter, the rows that have one of them, and what is decided.

    `old`: the rows that may be updated, `old_row` where each of them is. `updates`: new values of
    the rows `updated`, beside `replaced`, in the order of the statement's rows.
    """

    rows: pa.Table
    keys: Sequence[Sequence[RowKey | None]]
    there: Sequence[Mapping[RowKey, RowIdentity]]
    old: pa.Table
    old_row: Mapping[RowIdentity, int]
    inserted: list[int] = field(default_factory=list[int])
    updated: list[int] = field(default_factory=list[int])
    replaced: list[int] = field(default_factory=list[int])
    updates: list[pa.Table] = field(default_factory=list[pa.Table])


@dataclass(slots=True)
class _Waiting:
    """Rows to be updated, by the proposed row, that no other row depends on yet."""

    rows: dict[int, RowIdentity] = field(default_factory=dict[int, RowIdentity])
    places: set[RowIdentity] = field(default_factory=set[RowIdentity])

    def add(self, row: int, place: RowIdentity) -> None:
        """One more."""
        self.rows[row] = place
        self.places.add(place)

    def clear(self) -> None:
        """They are done."""
        self.rows.clear()
        self.places.clear()


def _refuse_deferrable(table: Table, key: Key) -> None:
    """55000 for the first row that asks for it, as in PostgreSQL."""
    if key.deferrable:
        message = (
            "ON CONFLICT does not support deferrable unique constraints/exclusion "
            "constraints as arbiters"
        )
        raise SqlError("55000", message, schema=table.schema, table=table.name, constraint=key.name)


class Upserter:
    """The rows of one INSERT .. ON CONFLICT."""

    def __init__(
        self, execution: Execution, table: Table, conflict: OnConflict, work: StatementEffects
    ) -> None:
        self._execution = execution
        self._table = table
        self._conflict = conflict
        self._work = work
        self._rules = RowConstraints(execution, table)
        self._arbiters = [_Arbiter(table, table.keys[place]) for place in conflict.arbiters]
        self._arbiters += [
            _Arbiter(index.table, index.key)
            for index in computed_keys(execution, table)
            if index.key.oid in conflict.indexes
        ]
        ordinals = {at for arbiter in self._arbiters for at in key_ordinals(arbiter.key)}
        self._moves_keys = not ordinals.isdisjoint(conflict.assigned)

    @property
    def decided(self) -> Sequence[Key]:
        """Keys that need no further check: no new row repeats one or finds one that exists."""
        return () if self._moves_keys else [arbiter.key for arbiter in self._arbiters]

    async def take(self, proposed: pa.RecordBatch, claims: ClaimedRows) -> UpsertResult:
        """Decide about the rows of a batch."""
        schema = stored_schema(self._table)
        rows = pa.RecordBatch.from_arrays(proposed.columns, schema=schema)
        # PostgreSQL looks at a row's own rules before it looks for conflicts.
        rows = await self._rules.complete(rows)
        await self._rules.check(rows)
        batch = await self._found(pa.Table.from_batches([rows]))
        waiting = _Waiting()
        for row in range(rows.num_rows):
            if not self._decide(batch, row, waiting, claims):
                await self._update(batch, waiting, claims)
                decided = self._decide(batch, row, waiting, claims)
                assert decided, "nothing waits, so nothing keeps the row from being decided"
        await self._update(batch, waiting, claims)
        return _result(batch)

    # --- looking up -----------------------------------------------------------------------------

    async def _found(self, rows: pa.Table) -> _Batch:
        """The rows that are there, under predicates (V1)."""
        columns = [columns_of_key(arbiter.key, rows, live=True) for arbiter in self._arbiters]
        keys = [row_keys(a.key, c) for a, c in zip(self._arbiters, columns, strict=True)]
        new = [NewKeys(a.table, a.key, c) for a, c in zip(self._arbiters, columns, strict=True)]
        view = await self._view([one.predicate(decides=True) for one in new])
        try:
            there, places, found = await self._located(rows, view, new)
        except Exception:
            await self._execution.services.coordination.examine([view])
            raise
        return _Batch(rows, keys, there, found, {place: n for n, place in enumerate(places)})

    async def _located(
        self, rows: pa.Table, view: ShardView, new: Sequence[NewKeys]
    ) -> tuple[Sequence[Mapping[RowKey, RowIdentity]], Sequence[RowIdentity], pa.Table]:
        """By arbiter, the places of rows with one of the keys; all places; the rows there, if any
        may be updated.
        """
        index, gone = self._execution.services.key_index, self._work.gone(self._table)
        there: list[Mapping[RowKey, RowIdentity]] = []
        for one in new:
            files = index.files(view, one)
            locate = partial(index.locate, view, one, gone, files)
            few = one.count <= ON_LOOP_MAX and not files
            warm = few or index.is_warm(view, one, files)
            there.append(locate() if warm else await asyncio.to_thread(locate))
        places = list(dict.fromkeys(place for found in there for place in found.values()))
        if self._conflict.update is None:
            places = []
        found = rows.slice(0, 0)
        if places:
            read = partial(fetch_located_rows, view, places, index.read_rows)
            warm = are_rows_in_memory(view, places, index)
            found = (read() if warm else await asyncio.to_thread(read)).rows
        return there, places, found

    async def _view(self, predicates: Sequence[KeyPredicate]) -> ShardView:
        """The table as the statement sees it; the look-ups enter the read set."""
        table, transaction = self._table, self._execution.transaction
        ts = await transaction.timestamp([table])
        coordination = self._execution.services.coordination
        if predicates:
            tables = [table] * len(predicates)
            views = await coordination.scan(transaction.id, ts, tables, predicates)
            # A cut may have come since the first look: the same rows, by other names.
            self._work.views.setdefault(RelationId(table.shard), views[0])
        view = self._work.view_of(table)
        return view or transient_view(CONFLICTS, stored_schema(table).empty_table())

    # --- deciding -------------------------------------------------------------------------------

    def _decide(self, batch: _Batch, row: int, waiting: _Waiting, claims: ClaimedRows) -> bool:
        """Decide about a row; False: it depends on updates that wait."""
        keys = [keys[row] for keys in batch.keys]
        updates = self._conflict.update is not None
        for arbiter, key, there in zip(self._arbiters, keys, batch.there, strict=True):
            _refuse_deferrable(self._table, arbiter.key)
            if key is None:
                continue
            if key in arbiter.made:
                if updates:
                    raise _second_time()
                return True
            place = there.get(key)
            if place is None or claims.has(*place):
                continue
            if not updates:
                return True
            if place in waiting.places or (waiting.rows and self._moves_keys):
                return False
            waiting.add(row, place)
            return True
        if waiting.rows and self._moves_keys:
            return False
        batch.inserted.append(row)
        self._made(keys)
        return True

    def _made(self, keys: Sequence[RowKey | None]) -> None:
        for arbiter, key in zip(self._arbiters, keys, strict=True):
            if key is not None:
                arbiter.made.add(key)

    async def _update(self, batch: _Batch, waiting: _Waiting, claims: ClaimedRows) -> None:
        """Run the update for all rows that wait for it."""
        plan = self._conflict.update
        if not waiting.rows or plan is None:
            return
        rows = list(waiting.rows)
        old = batch.old.take(pa.array([batch.old_row[place] for place in waiting.rows.values()]))
        proposed = batch.rows.take(pa.array(rows))
        pairs = transient_table([pa.array(rows, pa.int64()), *old.columns, *proposed.columns])
        inputs = self._work.inputs(self._conflict.tables)
        inputs[CONFLICTS] = transient_view(CONFLICTS, pairs)
        batches = [part async for part in run_over_transient(self._execution, plan, inputs)]
        if batches:
            answer = pa.Table.from_batches(batches)
            done = answer.take(pc.sort_indices(answer.column(0)))
            await self._updated(batch, done, waiting, claims)
        waiting.clear()

    async def _updated(
        self, batch: _Batch, done: pa.Table, waiting: _Waiting, claims: ClaimedRows
    ) -> None:
        schema = stored_schema(self._table)
        columns = [column.combine_chunks() for column in done.columns[1:]]
        rows = pa.RecordBatch.from_arrays(columns, schema=schema)
        made = pa.Table.from_batches([await self._rules.complete(rows)])
        numbers: list[int] = done.column(0).to_numpy().tolist()
        for row in numbers:
            assert claims.claim(*waiting.rows[row]), (
                "V2: a row that is claimed is not updated again"
            )
            batch.updated.append(row)
            batch.replaced.append(batch.old_row[waiting.rows[row]])
        batch.updates.append(made)
        keys = [row_keys(a.key, columns_of_key(a.key, made, live=True)) for a in self._arbiters]
        for row in range(made.num_rows):
            self._made([column[row] for column in keys])


def _result(batch: _Batch) -> UpsertResult:
    if not batch.updated:
        return _inserted(batch)
    order = np.argsort(np.array([*batch.inserted, *batch.updated], dtype=np.int64))
    inserted = batch.rows.take(pa.array(batch.inserted, pa.int64()))
    replaced = batch.old.take(pa.array(batch.replaced, pa.int64()))
    rows = _joined([inserted, *batch.updates], order)
    nothing = transient_table(
        [_nulls(inserted.num_rows, type_) for type_ in batch.rows.schema.types]
    )
    places = {number: place for place, number in batch.old_row.items()}
    return UpsertResult(
        [*batch.inserted, *batch.updated],
        rows,
        _joined([nothing, replaced], order),
        _joined([replaced], None),
        [places[number] for number in batch.replaced],
    )


def _inserted(batch: _Batch) -> UpsertResult:
    """No row was there, or all that were there stay as they are."""
    rows = batch.rows
    if len(batch.inserted) < rows.num_rows:
        rows = rows.take(pa.array(batch.inserted, pa.int64()))
    nothing = [_nulls(rows.num_rows, type_) for type_ in rows.schema.types]
    empty = [_nulls(0, type_) for type_ in rows.schema.types]
    return UpsertResult(
        batch.inserted,
        _joined([rows], None),
        transient_batch(nothing, rows.num_rows),
        transient_batch(empty, 0),
    )


def _joined(parts: Sequence[pa.Table], order: npt.NDArray[np.int64] | None) -> pa.RecordBatch:
    """Tables below each other, in this order of rows, as one batch."""
    columns: list[Column] = []
    for pieces in zip(*[part.columns for part in parts], strict=True):
        chunks = [chunk for piece in pieces for chunk in piece.chunks]
        column: Column = pa.concat_arrays(chunks) if chunks else _nulls(0, pieces[0].type)
        columns.append(column if order is None else column.take(order))
    return transient_batch(columns, sum(part.num_rows for part in parts))


def _nulls(count: int, type_: pa.DataType) -> Column:
    return pa.array([None] * count, type_)


def _second_time() -> SqlError:
    return SqlError(
        "21000",
        "ON CONFLICT DO UPDATE command cannot affect row a second time",
        hint="Ensure that no rows proposed for insertion within the same command have duplicate"
        " constrained values.",
    )
