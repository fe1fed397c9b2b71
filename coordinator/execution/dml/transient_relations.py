"""Use rows in memory as inputs of plans: RETURNING, ON CONFLICT DO UPDATE, data-modifying CTEs.

    rows in memory ─▶ made_view ─▶ run_over: in process while they are few, else an engine

Such a relation belongs to one statement and is never stored.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final, TypeAlias

import pyarrow as pa
from pyroaring import BitMap64

from compute.reference.support import RowsAllowed
from coordinator.execution.context import Batches, Execution
from coordinator.execution.run_plan import run_plan
from ingest.copy_text.kernels import Column
from sql.plan.nodes import Plan, RelationId
from storage.batch import InlineSlice, ShardView
from storage.types import OWN, ShardId

ChunkedColumn: TypeAlias = "pa.ChunkedArray[pa.Scalar[pa.DataType]]"

IN_PROCESS_ROWS_MAX: Final = 5_000
"""Made rows that are looked at on the loop. Larger: longer stalls for everybody."""

JOINED_ROWS_MAX: Final = 200
"""The same for plans whose work may be the square of it."""

TRANSIENT_ROWS: Final = RowsAllowed(JOINED_ROWS_MAX, linear=IN_PROCESS_ROWS_MAX)
"""The inputs of a plan that runs in process."""


def transient_batch(columns: Sequence[Column], rows: int) -> pa.RecordBatch:
    """Columns as a batch; their names say nothing."""
    if not columns:
        # A batch of no columns still has rows.
        return pa.RecordBatch.from_pydict({"z": [0] * rows}).select(list[str]())
    names = [f"f{place}" for place in range(len(columns))]
    return pa.RecordBatch.from_arrays(list(columns), names=names)


def transient_table(columns: "Sequence[Column | ChunkedColumn]") -> pa.Table:
    """Columns as a table; their names say nothing."""
    return pa.table(list(columns), names=[f"f{place}" for place in range(len(columns))])


def transient_view(relation: RelationId, rows: pa.Table) -> ShardView:
    """Rows as an input."""
    piece = (InlineSlice(OWN, rows, BitMap64()),) if rows.num_rows else ()
    return ShardView(ShardId(relation), rows.schema, str(relation), (), piece)


def run_over_transient(
    execution: Execution, plan: Plan, inputs: Mapping[RelationId, ShardView]
) -> AsyncIterator[pa.RecordBatch]:
    """Run a plan of which at least one input is a transient relation."""
    in_process = execution.services.in_process
    if in_process.refusal(plan, inputs, TRANSIENT_ROWS) is None:
        return _in_process(execution, plan, inputs)
    return run_plan(execution, plan, inputs)


async def _in_process(
    execution: Execution, plan: Plan, inputs: Mapping[RelationId, ShardView]
) -> Batches:
    answer = await execution.services.in_process.answer(execution.run(plan, inputs))
    for batch in answer.to_batches():
        yield batch
