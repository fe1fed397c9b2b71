"""The rows of a snapshot and of changes, as a subscriber is told them.

    Change ─┬─ rows that went ─▶ plan ─▶ diff -1 ─┐
            └─ rows that came ─▶ plan ─▶ diff +1 ─┴─ small: equal rows cancel out ─▶ batches

INVARIANTS
  D1  of one commit, rows that went come first: a client that adds up diffs never has less than none
      of a row.
  D2  two rows cancel out only if they are the same to the bit: 0 and -0 do not.
  D3  a commit with more than NETTED_ROWS_MAX rows, or of which the rows that came or those that
      went take more than NETTED_BYTES_MAX, is not netted: its rows are streamed as they are read.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from typing import Final, TypeAlias

import pyarrow as pa

from compute.arrow import batch_schema
from coordinator.execution.context import Batches
from coordinator.large_work import aside_if
from coordinator.pgwire.kernels import Column
from coordinator.streams import closing_batches
from sql.plan.nodes import output_columns
from sql.statements.bound import Subscribe
from storage.batch import ShardView
from storage.changes import Change, RowPlaces, split_places, view_of_places
from storage.types import ShardId, Timestamp

NETTED_ROWS_MAX: Final = 20_000
"""Larger: more memory for each subscriber, and longer work in a thread."""

NETTED_BYTES_MAX: Final = 8 << 20

ON_LOOP_ROWS_MAX: Final = 200
"""Rows that are compared on the loop; more of them in a thread."""

PLACES_ROWS_MAX: Final = 1_000_000
"""Rows of a commit that one run of the plan reads. Larger: larger bitmaps. Smaller: more runs."""

RunOverView: TypeAlias = Callable[[ShardView], AsyncIterator[pa.RecordBatch]]
"""The rows of the followed query over these rows of its table."""


class ChangeRows:
    """Makes the rows of one subscription; `run` reads."""

    def __init__(self, subscribe: Subscribe, schema: pa.Schema, run: RunOverView) -> None:
        """`schema`: of the table's rows."""
        self._progress = subscribe.progress
        self._shard = ShardId(subscribe.table.shard)
        self._stored = schema
        self._run = run
        rows = batch_schema(output_columns(subscribe.query.plan))
        about: list[pa.Field[pa.DataType]] = [pa.field("ts", pa.int64())]
        if self._progress:
            about.append(pa.field("progressed", pa.bool_()))
        about.append(pa.field("diff", pa.int64()))
        self._row_types = [field.type for field in rows]
        # Names may be there twice; nobody looks at them.
        named = [pa.field(f"r{at}", field.type) for at, field in enumerate(rows)]
        self._schema = pa.schema([*about, *named])

    async def snapshot(self, view: ShardView, ts: Timestamp) -> Batches:
        """All rows at a timestamp."""
        async with closing_batches(self._run(view)) as batches:
            async for batch in batches:
                yield self._told(batch.columns, batch.num_rows, ts, 1)

    async def change(self, change: Change) -> Batches:
        """What came and went with one commit (D1)."""
        went, came = self._read(change.went), self._read(change.came)
        rows = sum(len(part.rows) for part in (*change.went, *change.came))
        if not change.went or not change.came or rows > NETTED_ROWS_MAX:
            told = self._streamed(((went, -1), (came, 1)), change.ts)
        else:
            told = self._netted(went, came, change.ts)
        async with closing_batches(told) as batches:
            async for batch in batches:
                yield batch

    def progress(self, ts: Timestamp) -> pa.RecordBatch:
        """Nothing before `ts` will come any more."""
        told: list[Column] = [pa.array([ts], pa.int64()), pa.array([True])]
        told += [pa.nulls(1, type_) for type_ in (pa.int64(), *self._row_types)]
        return pa.RecordBatch.from_arrays(told, schema=self._schema)

    def none(self) -> pa.RecordBatch:
        """A batch without rows."""
        return pa.RecordBatch.from_pylist([], schema=self._schema)

    async def _read(self, parts: Sequence[RowPlaces]) -> Batches:
        """The query over rows at these places."""
        for few in _runs(parts):
            view = view_of_places(self._shard, self._stored, few)
            async with closing_batches(self._run(view)) as batches:
                async for batch in batches:
                    yield batch

    async def _streamed(self, sides: Sequence[tuple[Batches, int]], ts: Timestamp) -> Batches:
        for rows, diff in sides:
            async with closing_batches(rows) as batches:
                async for batch in batches:
                    yield self._told(batch.columns, batch.num_rows, ts, diff)

    async def _netted(self, went: Batches, came: Batches, ts: Timestamp) -> Batches:
        """Without the rows that came as they went (D2), as far as D3 lets it look."""
        gone: list[pa.RecordBatch] = []
        arrived: list[pa.RecordBatch] = []
        async with closing_batches(went), closing_batches(came):
            if await _take_some(went, gone) and await _take_some(came, arrived):
                large = sum(batch.num_rows for batch in (*gone, *arrived)) > ON_LOOP_ROWS_MAX
                gone, arrived = await aside_if(large, partial(_without_equals, gone, arrived))
            sides = ((_chained(gone, went), -1), (_chained(arrived, came), 1))
            async with closing_batches(self._streamed(sides, ts)) as told:
                async for batch in told:
                    yield batch

    def _told(
        self, columns: Sequence[Column], rows: int, ts: Timestamp, diff: int
    ) -> pa.RecordBatch:
        about: list[Column] = [pa.repeat(pa.scalar(ts, pa.int64()), rows)]
        if self._progress:
            about.append(pa.repeat(pa.scalar(False), rows))
        about.append(pa.repeat(pa.scalar(diff, pa.int64()), rows))
        return pa.RecordBatch.from_arrays([*about, *columns], schema=self._schema)


def _runs(parts: Sequence[RowPlaces]) -> Iterator[list[RowPlaces]]:
    """The places in pieces that one run of a plan reads."""
    few: list[RowPlaces] = []
    rows = 0
    for part in split_places(parts, PLACES_ROWS_MAX):
        if few and rows + len(part.rows) > PLACES_ROWS_MAX:
            yield few
            few, rows = [], 0
        few.append(part)
        rows += len(part.rows)
    if few:
        yield few


async def _chained(first: Sequence[pa.RecordBatch], rest: Batches) -> Batches:
    for batch in first:
        yield batch
    async for batch in rest:
        yield batch


async def _take_some(rows: Batches, taken: list[pa.RecordBatch]) -> bool:
    """Read up to NETTED_BYTES_MAX of them; whether these are all."""
    nbytes = 0
    async for batch in rows:
        taken.append(batch)
        nbytes += batch.nbytes
        if nbytes > NETTED_BYTES_MAX:
            return False
    return True


def _without_equals(
    gone: Sequence[pa.RecordBatch], arrived: Sequence[pa.RecordBatch]
) -> tuple[list[pa.RecordBatch], list[pa.RecordBatch]]:
    """Without the rows that are in both, each as often as it is (D2)."""
    left: Counter[object] = Counter(image for batch in gone for image in _images(batch))
    came = [
        _chosen(batch, [at for at, row in enumerate(_images(batch)) if not _cancel(left, row)])
        for batch in arrived
    ]
    # What is left of equal rows is any of them.
    went = [
        _chosen(batch, [at for at, row in enumerate(_images(batch)) if _cancel(left, row)])
        for batch in gone
    ]
    return went, came


def _chosen(batch: pa.RecordBatch, kept: Sequence[int]) -> pa.RecordBatch:
    if len(kept) == batch.num_rows:
        return batch
    return batch.take(pa.array(kept, pa.int64()))


def _cancel(left: Counter[object], image: object) -> bool:
    """Take one of these rows away, if there is one."""
    if left[image] <= 0:
        return False
    left[image] -= 1
    return True


def _images(batch: pa.RecordBatch) -> Iterator[tuple[object, ...]]:
    """Each row as something that is equal for the same row only (D2)."""
    columns = [_column_images(column) for column in batch.columns]
    return zip(*columns, strict=True) if columns else iter([()] * batch.num_rows)


def _column_images(column: Column) -> Sequence[object]:
    values = [value.as_py() for value in column]
    if pa.types.is_floating(column.type):
        return [value.hex() if isinstance(value, float) else value for value in values]
    # Values with parts cannot be hashed, and have floats in them: their text tells all apart.
    return list(map(repr, values)) if pa.types.is_nested(column.type) else values
