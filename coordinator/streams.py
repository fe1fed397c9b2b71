"""Streams of record batches whose source is closed as soon as the consumer stops.

INVARIANTS
  E1  the engine's work behind a stream ends when its consumer ends. Without this, a generator that
      is left in the middle of `async for` ends only when it is garbage-collected.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from time import perf_counter

import pyarrow as pa


async def close_batches(batches: AsyncIterator[pa.RecordBatch]) -> None:
    """End the engine's work behind a stream."""
    closer = getattr(batches, "aclose", None)
    if closer is not None:
        await closer()


@asynccontextmanager
async def closing_batches(
    batches: AsyncIterator[pa.RecordBatch],
) -> AsyncGenerator[AsyncIterator[pa.RecordBatch], None]:
    """The stream, which is closed at the end of the block (E1)."""
    try:
        yield batches
    finally:
        await close_batches(batches)


async def timed_batches(
    batches: AsyncIterator[pa.RecordBatch], note: Callable[[float], None]
) -> AsyncGenerator[pa.RecordBatch, None]:
    """The stream; at its end `note` hears for how many seconds its consumer has waited for it."""
    spent, began, waits = 0.0, perf_counter(), True
    try:
        async with closing_batches(batches) as source:
            async for batch in source:
                spent, waits = spent + perf_counter() - began, False
                yield batch
                began, waits = perf_counter(), True
    finally:
        note(spent + perf_counter() - began if waits else spent)
