"""The reference engine: PostgreSQL's answers in plain Python, deterministic, without threads.

The twin of Spark in tests and simulations. In production it answers constant queries and small
statements that need no engine: SELECT 1, the rows of INSERT .. VALUES, RETURNING, AS OF.

INVARIANTS
  K1  the same plan, inputs and parameters give the same rows in the same order.
  K2  a run waits only for its consumer: it holds no resource when its iterator is dropped.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeAlias

import pyarrow as pa
from pyroaring import BitMap64

from compute.executor import Run
from compute.reference.arrow import to_batch, to_values
from compute.reference.decoded_rows import DecodedRows, decode_slices
from compute.reference.expressions import Row
from compute.reference.expressions import Source as CompiledSource
from compute.reference.plans import PlanCompiler
from sql.errors import not_supported
from sql.plan.depth import check_depth
from sql.plan.nodes import (
    Expr,
    Plan,
    RelationId,
    Scan,
    output_columns,
)
from sql.plan.system_columns import scans_versions
from sql.types.sql_type import Value
from storage.batch import DataFile, ShardView
from storage.row_schema import conform_to_schema
from storage.types import ShardId, Source

ReadFile: TypeAlias = Callable[[ShardId, DataFile], pa.Table]
"""Loads all rows of a data file of a shard."""

_BATCH_ROWS: Final = 4_096
"""Rows computed between two looks at the loop: more would delay a cancellation, fewer cost
switches.
"""


def _no_files(_shard: ShardId, file: DataFile) -> pa.Table:
    raise AssertionError(f"this reference executor was given no way to read {file.name}")


class ReferenceExecutor:
    """An `Executor`; see the module."""

    def __init__(self, read_file: ReadFile = _no_files) -> None:
        self._read_file = read_file

    @property
    def name(self) -> str:
        """As EXPLAIN shows it."""
        return "reference"

    async def run(self, run: Run) -> AsyncIterator[pa.RecordBatch]:
        """Stream the answer in batches of the plan's columns (E1 of `compute/executor.py`)."""
        check_depth(run.plan)
        columns = output_columns(run.plan)
        rows = execute_plan(run.plan, run.inputs, run.parameters, self._read_file)
        while batch := list(islice(rows, _BATCH_ROWS)):
            yield to_batch(batch, columns)
            await asyncio.sleep(0)

    async def close(self) -> None:
        """Nothing is held."""


def execute_plan(
    plan: Plan,
    views: Mapping[RelationId, ShardView],
    parameters: Sequence[Value] = (),
    read_file: ReadFile = _no_files,
    decoded: DecodedRows | None = None,
) -> Iterator[Row]:
    """The rows of a plan, synchronously. `decoded`: keeps rows in memory as values."""
    check_depth(plan)

    def read(scan: Scan) -> Sequence[Row]:
        return _scan_rows(scan, views[scan.relation], read_file, decoded)

    return PlanCompiler(read, parameters).compile(plan)()


@dataclass(frozen=True, slots=True)
class _EveryTime(PlanCompiler):
    """For a plan with one scan, which every run reads anew."""

    def _scan(self, plan: Scan) -> CompiledSource:
        return lambda: iter(self.read(plan))


class PreparedPlan:
    """A plan over one scan or none, compiled once and run over many rows and values.

    Not for plans with subqueries: what those compile to may belong to one run.
    """

    def __init__(self, plan: Plan) -> None:
        check_depth(plan)
        self._parameters: list[Value] = []
        self._rows: Sequence[Row] = ()
        compiler = _EveryTime(lambda _scan: self._rows, self._parameters)
        self._run = compiler.compile(plan)

    def rows(self, parameters: Sequence[Value], rows: Sequence[Row] = ()) -> list[Row]:
        """The answer over these rows of the scan; not to be called by two at once."""
        self._parameters[:] = parameters
        self._rows = rows
        return list(self._run())


def run_over_rows(plan: Plan, rows: Sequence[Row], parameters: Sequence[Value]) -> list[Row]:
    """The answer of a plan over one scan that has these rows; nothing is shared with other runs."""
    check_depth(plan)
    return list(PlanCompiler(lambda _scan: rows, parameters).compile(plan)())


def evaluate(expr: Expr, parameters: Sequence[Value] = ()) -> Value:
    """The value of an expression without columns."""

    def no_scan(scan: Scan) -> Sequence[Row]:
        raise AssertionError(f"a constant expression scans {scan.name}")

    return PlanCompiler(no_scan, parameters).expression(expr)(())


# --- inputs ------------------------------------------------------------------------------------


def _scan_rows(
    scan: Scan, view: ShardView, read_file: ReadFile, decoded: DecodedRows | None
) -> Sequence[Row]:
    if scans_versions(scan):
        raise not_supported("reading ctid or xmin on this engine", None)
    rows: list[Row] = []
    for part in view.files:
        table = conform_to_schema(read_file(view.shard, part.file), view.schema)
        rows += _slice_rows(scan, part.file.name, table, part.row_limit, part.deleted)
    inline = view.inline
    return rows + (decode_slices(scan, inline) if decoded is None else decoded.rows(scan, inline))


def _slice_rows(
    scan: Scan, source: Source, table: pa.Table, row_limit: int, deleted: BitMap64
) -> list[Row]:
    """The first `row_limit` rows without the deleted ones, with their identity if it is wanted."""
    count = min(row_limit, table.num_rows)
    columns: list[Sequence[Value]] = [
        to_values(table.column(ordinal).slice(0, count), column.type)
        for column, ordinal in zip(scan.columns, scan.ordinals, strict=True)
    ]
    if scan.identity is not None:
        columns += [[source] * count, range(count)]
    rows: list[Row] = list(zip(*columns, strict=True)) if columns else [()] * count
    if not deleted:
        return rows
    return [row for index, row in enumerate(rows) if index not in deleted]
