"""Complete new rows with generated values, and check NOT NULL, CHECK and domain constraints.

    rows of a statement ─▶ complete ─▶ check ─▶ 23502, 23514   every writer calls it (`row_sink.py`)

INVARIANTS
  L1  no row reaches a transaction that breaks a constraint of the table as the statement was bound.
  L2  the error names the first row that breaks a constraint. Of its constraints the domains of its
      columns come first, then NOT NULL, by the order of columns, then CHECK, by name.
  L3  an engine does the work if it is much; the loop is not held up for longer than `PIECE_ROWS`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from compute.executor import Executor, Run
from coordinator.execution.context import Execution
from coordinator.execution.dml.domain_constraints import DomainConstraints, FirstViolation
from coordinator.execution.row_text import failing_row
from ingest.copy_text.kernels import Column
from sql.binder.ddl.generated import generated_plan
from sql.binder.state import Binding
from sql.binder.stored.column_expressions import NEW_ROWS, check_plan, sequence_default_plan
from sql.catalog.catalog import CheckConstraint, Table
from sql.catalog.catalog import Column as TableColumn
from sql.catalog.objects import SequenceDefinition
from sql.errors import SqlError, out_of_range
from sql.plan.nodes import Plan, RelationId
from sql.types.sql_type import format_type
from storage.batch import InlineSlice, ShardView
from storage.types import OWN, ShardId

PIECE_ROWS: Final = 1_000
"""Rows checked on the loop at once. Larger: longer stalls."""

ENGINE_ROWS_MIN: Final = 10_000
"""Larger batches are checked by the local engine, where there is one."""


def _not_null_violation(table: Table, column: TableColumn, shown: str) -> SqlError:
    """23502, with the row that fails as PostgreSQL shows it."""
    return SqlError(
        "23502",
        f'null value in column "{column.name}" of relation "{table.name}" violates'
        " not-null constraint",
        detail=f"Failing row contains ({shown}).",
        schema=table.schema,
        table=table.name,
        column=column.name,
    )


def _check_violation(table: Table, check: CheckConstraint, shown: str) -> SqlError:
    """23514, likewise."""
    return SqlError(
        "23514",
        f'new row for relation "{table.name}" violates check constraint "{check.name}"',
        detail=f"Failing row contains ({shown}).",
        schema=table.schema,
        table=table.name,
        constraint=check.name,
    )


class RowConstraints:
    """The constraints of one table, for one statement."""

    def __init__(self, execution: Execution, table: Table, *, checked: bool = True) -> None:
        self._checked = checked
        self._domains = DomainConstraints(table, execution.context)
        self._filled = execution.filled.get(table.oid, {})
        self._generated: Plan | None = None
        self._makes_own = any(column.generated is not None for column in table.columns)
        self._execution = execution
        self._table = table
        self._required = [at for at, column in enumerate(table.columns) if column.not_null]
        # PostgreSQL looks at them in the order of their names.
        self._checks = sorted(table.checks, key=lambda check: check.name.encode())
        self._plan: Plan | None = None

    async def fill(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """New rows with the next values of sequences, taken row by row."""
        if not batch.num_rows or not self._filled:
            return batch
        filled = sorted(self._filled.items())
        called = [sequence for _, one in filled for sequence in one.sequences]
        taken = await self._next_values(called, batch.num_rows)
        columns = batch.columns
        for ordinal, one in filled:
            values, taken = taken[: len(one.sequences)], taken[len(one.sequences) :]
            if one.text is None:
                columns[ordinal] = self._fitting(ordinal, values[0], batch.schema)
            else:
                columns[ordinal] = await self._default(ordinal, one.text, values)
        return pa.RecordBatch.from_arrays(columns, schema=batch.schema)

    def _fitting(self, ordinal: int, values: Sequence[int], schema: pa.Schema) -> Column:
        try:
            column: Column = pa.array(values, schema.field(ordinal).type)
        except pa.ArrowInvalid:
            raise out_of_range(format_type(self._table.columns[ordinal].type)) from None
        return column

    async def _default(self, ordinal: int, text: str, taken: Sequence[Sequence[int]]) -> Column:
        column, calls = self._table.columns[ordinal], len(taken)
        part = "default", ordinal, text, calls
        plan = self._stored(
            part, lambda binding: sequence_default_plan(binding, column, text, calls)
        )
        arrays = [pa.array(values, pa.int64()) for values in taken]
        values = pa.RecordBatch.from_arrays(arrays, [f"value{at}" for at in range(calls)])
        return (await self._run_pieces(plan, values)).column(0).combine_chunks()

    async def _next_values(
        self, called: Sequence[SequenceDefinition], rows: int
    ) -> list[Sequence[int]]:
        """The values of each call, as if the rows were made one after the other."""
        taken: dict[int, Sequence[int]] = {}
        for sequence in {sequence.oid: sequence for sequence in called}.values():
            calls = sum(other.oid == sequence.oid for other in called)
            coordination = self._execution.services.coordination
            values = await coordination.next_values(sequence, rows * calls)
            self._execution.transaction.sequences.took(sequence, values[-1])
            taken[sequence.oid] = values
        places = [[other.oid for other in called[:at]].count(s.oid) for at, s in enumerate(called)]
        steps = [[other.oid for other in called].count(s.oid) for s in called]
        parts = zip(called, places, steps, strict=True)
        return [taken[sequence.oid][place::step] for sequence, place, step in parts]

    async def complete(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Rows, new or replaced, with their generated columns."""
        return await self._with_generated(batch) if self._makes_own else batch

    async def _with_generated(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self._generated is None:
            make = partial(generated_plan, table=self._table)
            self._generated = self._stored("generated", make)
        pieces = [
            await self._run(self._generated, batch.slice(start, PIECE_ROWS))
            for start in range(0, batch.num_rows, PIECE_ROWS)
        ]
        if not pieces:
            return batch
        made = pa.concat_tables(pieces).combine_chunks()
        columns = [
            column.combine_chunks() if self._table.columns[at].generated is not None else before
            for at, (column, before) in enumerate(zip(made.columns, batch.columns, strict=True))
        ]
        return pa.RecordBatch.from_arrays(columns, schema=batch.schema)

    async def check(self, batch: pa.RecordBatch) -> None:
        """Raises 23502 or 23514 for the first row that violates a constraint (L2)."""
        if not self._checked:
            return
        broken: FirstViolation | None = None
        if self._domains.exist:
            broken = await self._domains.first(batch, self._stored, self._run_pieces)
            batch = batch if broken is None else batch.slice(0, broken[0])
        await self._check_rows(batch)
        if broken is not None:
            raise broken[1]

    async def _run_pieces(self, plan: Plan, batch: pa.RecordBatch) -> pa.Table:
        """The plan over all rows, without holding up the loop (L3)."""
        pieces: list[pa.Table] = []
        for start in range(0, batch.num_rows, PIECE_ROWS):
            pieces.append(await self._run(plan, batch.slice(start, PIECE_ROWS)))
            await asyncio.sleep(0)
        return pa.concat_tables(pieces)

    async def _check_rows(self, batch: pa.RecordBatch) -> None:
        first: int | None = None
        for ordinal in self._required:
            column = batch.column(ordinal)
            if column.null_count:
                row = column.is_null().index(True).as_py()
                first = row if first is None else min(first, row)
        if self._checks:
            # A row with NULL comes before what its checks say, and before all rows after it.
            await self._check(batch if first is None else batch.slice(0, first))
        if first is not None:
            raise self._null_in(batch.slice(first, 1))

    def _null_in(self, row: pa.RecordBatch) -> SqlError:
        ordinal = next(at for at in self._required if row.column(at).null_count)
        return _not_null_violation(self._table, self._table.columns[ordinal], self._shown(row))

    def _shown(self, row: pa.RecordBatch) -> str:
        return failing_row(self._execution.variables, self._table.columns, row)

    async def _check(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        plan = self._bound()
        local = self._execution.services.local
        if local is not None and batch.num_rows >= ENGINE_ROWS_MIN:
            inputs = await self._execution.with_catalog(plan, _input(self._table, batch))
            verdicts = local.run(self._execution.run(plan, inputs))
            if not await _any_false(verdicts):
                return
        for start in range(0, batch.num_rows, PIECE_ROWS):
            piece = batch.slice(start, PIECE_ROWS)
            found = await self._first(plan, piece)
            if found is not None:
                shown = self._shown(piece.slice(found[1], 1))
                raise _check_violation(self._table, found[0], shown)
            await asyncio.sleep(0)

    async def _first(self, plan: Plan, piece: pa.RecordBatch) -> tuple[CheckConstraint, int] | None:
        """The first constraint that the first bad row breaks, and its row."""
        verdicts = await self._run(plan, piece)
        broken = [
            (column.index(pa.scalar(False)).as_py(), check)
            for check, column in zip(self._checks, verdicts.columns, strict=True)
        ]
        rows = [row for row, _ in broken if row >= 0]
        if not rows:
            return None
        return next((check, row) for row, check in broken if row == min(rows))

    async def _run(self, plan: Plan, piece: pa.RecordBatch) -> pa.Table:
        in_process = self._execution.services.in_process
        inputs = await self._execution.with_catalog(plan, _input(self._table, piece))
        run = replace(self._execution.run(plan, inputs), is_check=True)
        if in_process.refusal(plan) is None:
            return await in_process.answer(run)
        return await _collected(self._execution.services.engine, run)

    def _bound(self) -> Plan:
        if self._plan is None:
            make = partial(check_plan, table=self._table, checks=self._checks)
            self._plan = self._stored("checks", make)
        return self._plan

    def _stored(self, part: Hashable, make: Callable[[Binding], Plan]) -> Plan:
        return self._execution.stored_plan(self._table, part, make)


def _input(table: Table, batch: pa.RecordBatch) -> dict[RelationId, ShardView]:
    rows = pa.Table.from_batches([batch])
    piece = InlineSlice(OWN, rows, BitMap64())
    view = ShardView(ShardId(NEW_ROWS), rows.schema, f"{table.shard} new", (), (piece,))
    return {RelationId(NEW_ROWS): view}


async def _any_false(verdicts: AsyncIterator[pa.RecordBatch]) -> bool:
    found = False
    async for batch in verdicts:
        found = found or any(pc.any(pc.invert(column)).as_py() for column in batch.columns)
    return found


async def _collected(engine: Executor, run: Run) -> pa.Table:
    return pa.Table.from_batches([batch async for batch in engine.run(run)])
