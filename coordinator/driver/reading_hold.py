"""While a source is copied beside its stream, the stream stands, so that it does not pass the copy.

    reading ─┐          ┌─ copying: the slot is made ─▶ position ─▶ rows
             └── lock ──┘

INVARIANTS
  K1  a copy is never of a position before one that the stream has given: what was committed in
      between would be missing in the copied tables, or show them as they were before.
  K2  no circle: making a slot waits for transactions upstream, which may wait for what we read. So
      reading goes on after a while, and a copy that the stream has passed is made again.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from coordinator.core.sources.records import is_behind
from ingest.reader import Position, ReaderFailure

_MAKING_S: Final = 1.0


class ReadingHold:
    """Of one source. `given`: how far its stream was read; empty if nothing is read."""

    def __init__(self) -> None:
        self.given: Position = {}
        self._lock = asyncio.Lock()
        self._is_held = False

    @asynccontextmanager
    async def reading(self) -> AsyncGenerator[None]:
        """While nobody copies."""
        async with self._lock:
            yield

    @asynccontextmanager
    async def copying(self) -> AsyncGenerator[None]:
        """Nothing is read meanwhile, but in `making`."""
        await self._take()
        try:
            yield
        finally:
            self._give_up()

    @asynccontextmanager
    async def making(self) -> AsyncGenerator[None]:
        """Something is made upstream: after a while reading goes on meanwhile (K2)."""
        timer = asyncio.get_running_loop().call_later(_MAKING_S, self._give_up)
        try:
            yield
        finally:
            timer.cancel()
        if not self._is_held:
            await self._take()

    def check(self, position: Position) -> None:
        """Raises if the stream has passed the position (K1); the copy is tried again."""
        if is_behind(position, self.given):
            raise ReaderFailure("40001", "upstream went on while a slot was made")

    async def _take(self) -> None:
        await self._lock.acquire()
        self._is_held = True

    def _give_up(self) -> None:
        if self._is_held:
            self._is_held = False
            self._lock.release()
