"""Fetch Spark's answers as Arrow batches: small ones collected, large ones through Parquet files.

    small   record batches collected from the tasks ──▶ decoded, cast (E1)
    large   Parquet parts in the order of partitions, each when it is complete ──▶ cast (E1, E3)

Why files: a job that waits for a slow client would keep its cores and memory, and collecting
partition by partition holds a whole partition in the JVM. A file costs a write and a read; nobody
waits for the client.

INVARIANTS
  S1  parts are read in the order of their numbers; the reader waits for a missing number until the
      job ends.
  S2  a spool's directory is removed when its reader is closed, whatever happened.
"""

import contextlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from compute.arrow import arrow_type
from compute.executor import BATCH_ROWS_MAX
from sql.errors import SqlError
from sql.plan.nodes import (
    Const,
    CteScan,
    DistinctOn,
    DistinctRows,
    Expr,
    Filter,
    GroupBy,
    Join,
    Limit,
    Param,
    Plan,
    PlanColumn,
    Project,
    Recursive,
    RelationId,
    Scan,
    SetOp,
    SetOpKind,
    SetScan,
    Sort,
    Values,
    Window,
    With,
)
from sql.types.sql_type import Value

COLLECT_ROWS_MAX: Final = 32_768
"""Rows that one partition gives up for collection. A result that reaches it is run again into
files."""
SPOOL_OPTIONS: Final = {
    "compression": "lz4_raw",
    "parquet.enable.dictionary": "false",
    "parquet.block.size": str(32 << 20),
}
"""Spooled parts are read once, soon: speed counts, not size. Row groups bound the reader's
memory."""

_DEPTH_MAX: Final = 200
_PART: Final = re.compile(r"part-(\d{5,})-.*\.parquet")


def engine_schema(columns: Sequence[PlanColumn]) -> pa.Schema:
    """The schema of Spark's Arrow batches; an answer without columns has one (Q2 of the
    emitter).
    """
    if not columns:
        return pa.schema([pa.field("z", pa.int32())])
    return pa.schema([pa.field(f"o{n}", arrow_type(c.type)) for n, c in enumerate(columns)])


def decode_batches(messages: bytes, schema: pa.Schema) -> list[pa.RecordBatch]:
    """Decode Arrow record batch messages that follow each other."""
    stream = pa.BufferReader(schema.serialize().to_pybytes() + messages)
    with pa.ipc.open_stream(stream) as reader:
        return [batch for batch in reader if batch.num_rows]


def conform_spark_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with the names and exact types of the contract (E1)."""
    if not len(schema):
        return batch.select(list[str]())
    columns = [
        column if column.type.equals(type_) else _fitted(column, type_)
        for column, type_ in zip(batch.columns, schema.types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _fitted(column: "pa.Array[Any]", type_: pa.DataType) -> "pa.Array[Any]":
    """The column in the contract's type. A struct may be NULL though its parts are not: Arrow casts
    such parts only one by one.
    """
    if not isinstance(column, pa.StructArray):
        return column.cast(type_)
    assert isinstance(type_, pa.StructType), "a struct stays one"
    fields = [type_.field(place) for place in range(type_.num_fields)]
    parts = [part.cast(field.type) for part, field in zip(column.flatten(), fields, strict=True)]
    return pa.StructArray.from_arrays(parts, fields=fields, mask=column.is_null())


def slice_batch(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch in pieces of bounded size (E3 of `compute/executor.py`)."""
    for first in range(0, batch.num_rows, BATCH_ROWS_MAX):
        yield batch.slice(first, BATCH_ROWS_MAX)


class Spool:
    """The directory that a job writes its Parquet parts into, and the position of its reader."""

    def __init__(self, directory: Path, schema: pa.Schema, *, bytes_max: int) -> None:
        self.directory = directory
        self._schema = schema
        self._bytes_max = bytes_max
        self._next = 0
        self._reading: Iterator[pa.RecordBatch] | None = None

    def parts(self) -> dict[int, Path]:
        """The complete parts, by number."""
        if not self.directory.exists():
            return {}
        found = ((_PART.fullmatch(path.name), path) for path in self.directory.iterdir())
        return {int(match[1]): path for match, path in found if match}

    def check_size(self) -> None:
        """Raises 53400 when the parts, unfinished ones too, are too large."""
        size = 0
        # Files and directories of tasks come and go; `walk` does not mind.
        for directory, _, names in os.walk(self.directory):
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    size += os.stat(f"{directory}/{name}").st_size
        if size > self._bytes_max:
            raise SqlError(
                "53400", f"temporary file size exceeds the limit ({self._bytes_max // 1024}kB)"
            )

    def read(self, *, complete: bool) -> pa.RecordBatch | None:
        """The next batch; None if it is not there yet or, with `complete`, at the end (S1)."""
        while True:
            if self._reading is not None:
                batch = next(self._reading, None)
                if batch is not None:
                    return batch
                self._reading = None
            parts = self.parts()
            part = parts.get(self._next)
            if part is None and complete:
                later = [number for number in parts if number >= self._next]
                if later:
                    self._next = min(later)
                    part = parts[self._next]
            if part is None:
                return None
            self._next += 1
            self._reading = self._batches(part)

    def _batches(self, part: Path) -> Iterator[pa.RecordBatch]:
        with pq.ParquetFile(part) as file:
            for batch in file.iter_batches(batch_size=BATCH_ROWS_MAX):
                if batch.num_rows:
                    yield conform_spark_batch(batch, self._schema)
        part.unlink()

    def close(self) -> None:
        """Remove the directory (S2)."""
        self._reading = None
        shutil.rmtree(self.directory, ignore_errors=True)


def minimum_rows(
    plan: Plan,
    rows: Mapping[RelationId, int],
    parameters: Sequence[Value],
    depth: int = _DEPTH_MAX,
) -> int:
    """A lower bound of the rows of the answer, from the number of rows of the inputs."""
    if not depth:
        # Such a plan is refused by the emitter, in better words.
        return 0
    below = partial(minimum_rows, rows=rows, parameters=parameters, depth=depth - 1)
    match plan:
        case Scan():
            return rows[plan.relation]
        case Values():
            return len(plan.rows)
        case Project() | Sort() | Window():
            return below(plan.input)
        case With():
            return below(plan.input)
        case CteScan() | Recursive() | SetScan():
            return 0
        case Limit():
            return _limited(plan, below(plan.input), parameters)
        case SetOp(kind=SetOpKind.UNION, all=True):
            return below(plan.left) + below(plan.right)
        case GroupBy():
            return 0 if plan.keys or plan.sets is not None else 1
        case SetOp() | Filter() | Join() | DistinctRows() | DistinctOn():
            return 0


def _limited(plan: Limit, rows: int, parameters: Sequence[Value]) -> int:
    if not all(
        part is None or isinstance(part, Const | Param) for part in (plan.limit, plan.offset)
    ):
        return 0
    offset = _constant(plan.offset, parameters) or 0
    limit = _constant(plan.limit, parameters)
    rest = max(rows - offset, 0)
    return rest if limit is None else min(rest, limit)


def _constant(expr: Expr | None, parameters: Sequence[Value]) -> int | None:
    value: Value = None
    if isinstance(expr, Const):
        value = expr.value
    elif isinstance(expr, Param):
        value = parameters[expr.index - 1]
    return value if isinstance(value, int) else None
