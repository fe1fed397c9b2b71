"""Execute SELECT, VALUES and WITH: choose an engine, pin the inputs, stream the rows.

    constant ──▶ in process, at once
    tables ────▶ views at the transaction's timestamp ─┬─▶ few rows by key, in process
                                                       └─▶ the engine ──▶ batches

`AS OF` reads at a timestamp of its own, outside of the transaction's read set, and never sees the
transaction's own writes.
"""

from collections.abc import AsyncIterator, Mapping
from functools import partial

import pyarrow as pa

from coordinator.execution.context import Execution, Rows, stream_table, tag_with_count
from coordinator.execution.dml.transient_relations import run_over_transient
from coordinator.execution.engine_choice import is_answered_at_once
from coordinator.execution.keyed_query import plan_point_read, read_rows_by_key
from coordinator.execution.locking_queries import run_locking_parts
from coordinator.execution.reg_names import oid_naming
from coordinator.execution.run_plan import run_plan
from coordinator.execution.sequence_calls import evaluate_row_calls
from coordinator.large_work import aside_if
from sql.plan.nodes import RelationId
from sql.statements.bound import BoundQuery
from storage.batch import ShardView
from storage.types import Timestamp


async def execute_query(
    execution: Execution, query: BoundQuery, *, as_of: Timestamp | None, tag: str = "SELECT"
) -> Rows:
    """Start a query; its rows are computed on demand (Q2 of `context.py`)."""
    batches = await start_query(execution, query, as_of=as_of)
    if query.calls is not None:
        batches = evaluate_row_calls(execution, batches, query.calls)
    return Rows(
        query.columns, batches, tag_with_count(tag), oid_naming(query.columns, execution.context)
    )


async def start_query(
    execution: Execution, query: BoundQuery, *, as_of: Timestamp | None
) -> AsyncIterator[pa.RecordBatch]:
    """The rows of a query as a stream. `as_of`: the timestamp that the query was bound at."""
    alone = not query.tables and not query.locking
    at_once = partial(is_answered_at_once, execution, query.plan)
    if alone and await aside_if(execution.is_large, at_once):
        in_process = execution.services.in_process
        return stream_table(await in_process.answer(execution.run(query.plan, {})))
    inputs = await query_inputs(execution, query, as_of=as_of)
    return await run_query(execution, query, inputs)


async def query_inputs(
    execution: Execution, query: BoundQuery, *, as_of: Timestamp | None
) -> dict[RelationId, ShardView]:
    """The pinned views that a query reads, after its parts that lock rows have run."""
    done = await run_locking_parts(execution, query.locking)
    plan = done.plan(query.plan)
    views = await execution.views(query.tables, as_of=as_of, plan=plan)
    return {**views, **done.inputs([query.plan], query.calls)}


async def run_query(
    execution: Execution, query: BoundQuery, inputs: Mapping[RelationId, ShardView]
) -> AsyncIterator[pa.RecordBatch]:
    """Run by key, or on the chosen engine."""
    if query.locking:
        return run_over_transient(execution, query.plan, inputs)
    point_read = partial(plan_point_read, execution, query.plan, query.tables)
    reading = await aside_if(execution.is_large, point_read)
    if reading is not None:
        (view,) = inputs.values()
        rows = await read_rows_by_key(execution, reading, view)
        if rows is not None:
            batch = reading.batch(reading.rows_of_plan(rows, execution.parameters))
            return stream_table(pa.Table.from_batches([batch]))
    return run_plan(execution, query.plan, inputs)
