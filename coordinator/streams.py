"""Rows as a stream, whose source ends with who takes them.

INVARIANTS
  E1  the engine's work behind a stream has ended when its taker has: a generator that is left in
      the middle of `async for` ends when it is collected, whenever that is.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import pyarrow as pa


async def close_batches(batches: AsyncIterator[pa.RecordBatch]) -> None:
    """End the engine's work behind a stream."""
    closer = getattr(batches, "aclose", None)
    if closer is not None:
        await closer()


@asynccontextmanager
async def ending(
    batches: AsyncIterator[pa.RecordBatch],
) -> AsyncGenerator[AsyncIterator[pa.RecordBatch], None]:
    """The stream, which ends with the block (E1)."""
    try:
        yield batches
    finally:
        await close_batches(batches)
