"""The rows that came and those that went, without the rows that are in both.

INVARIANTS
  D2  two rows cancel out only if they are the same to the bit: 0 and -0 do not.
"""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Final

import pyarrow as pa

from compute.row_images import row_images
from coordinator.execution.context import Batches
from coordinator.large_work import aside_if
from coordinator.streams import closing_batches
from sql.errors import SqlError

NETTED_BYTES_MAX: Final = 8 << 20

ON_LOOP_ROWS_MAX: Final = 200
"""Rows that are compared on the loop; more of them in a thread."""

WHOLE_ROWS_MAX: Final = 100_000
"""Rows that are looked at together: an answer that is compared, the changes of one timestamp that
are ordered or grouped by key. Larger: more memory for each subscriber, and longer work."""

WHOLE_BYTES_MAX: Final = 32 << 20


async def take_some(rows: Batches, taken: list[pa.RecordBatch]) -> bool:
    """Read up to NETTED_BYTES_MAX of them; whether these are all."""
    nbytes = 0
    async for batch in rows:
        taken.append(batch)
        nbytes += batch.nbytes
        if nbytes > NETTED_BYTES_MAX:
            return False
    return True


async def take_whole(rows: AsyncIterator[pa.RecordBatch], what: str) -> list[pa.RecordBatch]:
    """All of them. Raises 0A000 if there are too many."""
    taken: list[pa.RecordBatch] = []
    count = nbytes = 0
    async with closing_batches(rows) as batches:
        async for batch in batches:
            count += batch.num_rows
            nbytes += batch.nbytes
            if count > WHOLE_ROWS_MAX or nbytes > WHOLE_BYTES_MAX:
                limit = f"{WHOLE_ROWS_MAX} rows or {WHOLE_BYTES_MAX >> 20} MiB"
                raise SqlError("0A000", f"SUBSCRIBE to {what} of more than {limit}")
            if batch.num_rows:
                taken.append(batch)
    return taken


async def listed(rows: Sequence[pa.RecordBatch]) -> Batches:
    """Rows in memory, as a stream."""
    for batch in rows:
        yield batch


async def chained(first: Sequence[pa.RecordBatch], rest: Batches) -> Batches:
    """Rows in memory, then those of a stream."""
    for batch in first:
        yield batch
    async for batch in rest:
        yield batch


async def net(
    gone: Sequence[pa.RecordBatch], arrived: Sequence[pa.RecordBatch]
) -> tuple[Sequence[pa.RecordBatch], Sequence[pa.RecordBatch]]:
    """Without the rows that are in both, each as often as it is (D2)."""
    if not gone or not arrived:
        return gone, arrived
    large = sum(batch.num_rows for batch in (*gone, *arrived)) > ON_LOOP_ROWS_MAX
    return await aside_if(large, partial(without_equals, gone, arrived))


def without_equals(
    gone: Sequence[pa.RecordBatch], arrived: Sequence[pa.RecordBatch]
) -> tuple[list[pa.RecordBatch], list[pa.RecordBatch]]:
    """What `net` does, on the loop."""
    left: Counter[object] = Counter(
        image for batch in gone for image in row_images(batch.columns, batch.num_rows)
    )
    came = [
        _chosen(
            batch,
            [
                at
                for at, row in enumerate(row_images(batch.columns, batch.num_rows))
                if not _cancel(left, row)
            ],
        )
        for batch in arrived
    ]
    # What is left of equal rows is any of them.
    went = [
        _chosen(
            batch,
            [
                at
                for at, row in enumerate(row_images(batch.columns, batch.num_rows))
                if _cancel(left, row)
            ],
        )
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
