"""INSERT, UPDATE, DELETE: run the source plan, collect identities and rows, write them.

    INSERT VALUES   source in process ────────────────────────────▶ inserts        (blind: no scan)
    the others      views ─▶ engine ─▶ (source, index | new rows) ─▶ deletes + inserts
                                                └─▶ RETURNING over relation `new`

INVARIANTS
  W1  a row is deleted once: a join that finds it twice changes it once, by the first match.
  W2  rows for RETURNING are held until the commit is acknowledged (Q1); they are bounded.
  W3  every scan is at the transaction's timestamp, so the commit is refused if it went stale.
  W4  what the rows held before goes with the write, so that others can be validated row by row; it
      is bounded, and never made durable.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Final

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from coordinator.execute_query import run_plan
from coordinator.execution import Done, Execution, ExecutionLimits, Outcome, Rows, held
from coordinator.key_check import Going, check_keys
from coordinator.row_sink import RowSink, stored_schema
from coordinator.spilling import write_rows
from sql.errors import SqlError
from sql.plan import Plan, RelationId
from sql.statements import Modify, ModifyKind
from storage.batch import Deletes, InlineSlice, ShardView
from storage.known_rows import Column, KnownRows, OldRows
from storage.types import OWN, ShardId, Source

NEW: Final = RelationId("new")


async def execute_modify(execution: Execution, modify: Modify, tag: str) -> Outcome:
    """Run the statement and buffer what it writes into the transaction."""
    execution.transaction.check_writable(modify.kind.value.upper())
    sink = RowSink.of(execution, modify.table)
    work = _Modification(execution, modify, sink)
    try:
        inputs = await execution.views(modify.tables, plan=modify.source)
        async for rows in _source(execution, modify, inputs):
            await work.take(rows)
        batch = await sink.finish(work.deletes)
        if modify.kind is ModifyKind.INSERT:
            await check_keys(execution, modify.table, sink.keyed)
        elif modify.kind is ModifyKind.UPDATE:
            going = Going(inputs[RelationId(modify.table.shard)], work.deletes, modify.old)
            await check_keys(execution, modify.table, sink.keyed, going)
    except BaseException:
        await sink.discard()
        raise
    if work.affected:
        await write_rows(execution, modify.table, batch, work.old_rows())
    complete = f"{tag} {work.affected}"
    if modify.returning is None:
        return Done(complete)
    answer = await work.returned(modify.returning)
    return Rows(modify.columns, held(answer), lambda _count: complete)


def _source(
    execution: Execution, modify: Modify, inputs: Mapping[RelationId, ShardView]
) -> AsyncIterator[pa.RecordBatch]:
    if not modify.tables and execution.services.in_process.can_run(modify.source):
        run = execution.run(modify.source, {})
        schema = stored_schema(modify.table) if modify.kind is ModifyKind.INSERT else None
        return held(execution.services.in_process.evaluate(run, schema))
    return run_plan(execution, modify.source, inputs)


class _Modification:
    """What one run of the source plan adds up to."""

    def __init__(self, execution: Execution, modify: Modify, sink: RowSink) -> None:
        self._execution = execution
        self._modify = modify
        self._sink = sink
        self._kept: list[pa.RecordBatch] = []
        self._kept_bytes = 0
        self.deletes: dict[Source, BitMap64] = {}
        self.affected = 0
        self._width = len(modify.table.columns)
        self._old = _OldRowsInMemory(modify, execution.services.limits)

    async def take(self, batch: pa.RecordBatch) -> None:
        """Take a batch of the source plan's output; its shape is that of `sql/statements.py`."""
        if self._modify.kind is ModifyKind.INSERT:
            same = batch.schema is self._sink.schema or batch.schema.equals(self._sink.schema)
            rows = await (self._sink.take(batch) if same else self._sink.add(batch.columns))
        else:
            batch = self._claimed(batch)
            if self._modify.kind is ModifyKind.UPDATE:
                rows = await self._sink.add(batch.columns[2 : 2 + self._width])
            elif self._modify.returning is not None:
                schema = stored_schema(self._modify.table)
                rows = pa.RecordBatch.from_arrays(batch.columns[2:], schema=schema)
            else:
                rows = batch
            self._old.keep(batch)
        self.affected += batch.num_rows
        if self._modify.returning is not None:
            self._keep(rows)

    def _claimed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of the batch that nobody has deleted yet; they are now (W1)."""
        sources = batch.column(0).dictionary_encode()
        assert isinstance(sources, pa.DictionaryArray), "what was encoded is a dictionary"
        codes = sources.indices.to_numpy(zero_copy_only=False)
        indexes = batch.column(1).to_numpy(zero_copy_only=False)
        fresh = np.ones(batch.num_rows, dtype=bool)
        for code, name in enumerate(sources.dictionary.to_pylist()):
            chosen = np.flatnonzero(codes == code)
            known = self.deletes.setdefault(Source(str(name)), BitMap64())
            before = len(known)
            known_before = known.copy() if before else known
            known.update(indexes[chosen].tolist())
            if len(known) - before != len(chosen):
                seen = set(known_before) if before else set[int]()
                for position in chosen:
                    fresh[position] = indexes[position] not in seen
                    seen.add(int(indexes[position]))
        if fresh.all():
            return batch
        return batch.filter(pa.array(fresh))

    def _keep(self, rows: pa.RecordBatch) -> None:
        self._kept.append(rows)
        self._kept_bytes += rows.nbytes
        if self._kept_bytes > self._execution.services.limits.returning_bytes_max:
            raise SqlError(
                "54000",
                "the rows of RETURNING are too large",
                hint="Write the rows first and read them with a query.",
            )

    def old_rows(self) -> OldRows | None:
        """What is known about the rows that were deleted (W4)."""
        return self._old.rows(self.deletes)

    async def returned(self, plan: Plan) -> pa.Table:
        """The rows of RETURNING (W2)."""
        schema = stored_schema(self._modify.table)
        rows = pa.Table.from_batches(self._kept, schema=schema)
        piece = InlineSlice(OWN, rows, BitMap64())
        view = ShardView(ShardId("new"), schema, "new", (), (piece,))
        in_process = self._execution.services.in_process
        run = self._execution.run(plan, {NEW: view})
        if in_process.can_run(plan):
            return in_process.evaluate(run)
        batches = [batch async for batch in self._execution.services.engine.run(run)]
        return pa.Table.from_batches(batches) if batches else schema.empty_table()


class _OldRowsInMemory:
    """Collects the old values of the first rows that a statement deletes (W4)."""

    def __init__(self, modify: Modify, limits: ExecutionLimits) -> None:
        self._modify = modify
        self._limits = limits
        self._batches: list[pa.RecordBatch] = []
        self._rows = 0
        self._bytes = 0
        self._full = False

    def keep(self, batch: pa.RecordBatch) -> None:
        """Rows of the source plan that are about to go."""
        if self._full or not batch.num_rows:
            return
        self._batches.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows > self._limits.old_rows_max or self._bytes > self._limits.old_bytes_max:
            # Half of the rows would not spare anybody a conflict.
            self._full = True
            self._batches.clear()

    def rows(self, identities: Deletes) -> OldRows | None:
        """They, and who they were; None if there are none, or too many."""
        if not self._batches:
            return None
        rows = pa.Table.from_batches(self._batches)
        width = len(self._modify.table.columns)
        columns: dict[int, Column] = {}
        first_old = 2
        if self._modify.kind is ModifyKind.UPDATE:
            # What was not assigned is as it was.
            columns = {at: rows.column(2 + at) for at in range(width)}
            first_old += width
        for place, ordinal in enumerate(self._modify.old):
            columns[ordinal] = rows.column(first_old + place)
        known = {source: rows.copy() for source, rows in identities.items()}
        return OldRows(known, KnownRows(rows.num_rows, columns))
