"""Cursors of DECLARE: their position, and the rows that FETCH and MOVE return.

    DECLARE ─▶ rows of the query, on demand ─▶ FETCH forward: streamed
                     └─ SCROLL, WITH HOLD: buffered as they come, to go back to

INVARIANTS
  F1  `position` is the number of the row that the cursor is on; 0 before the first, the number of
      rows plus one behind the last.
  F2  a cursor reads where its transaction stood when it was declared, whatever comes later.
  F3  the buffer is bounded (54000); a cursor that only goes forward buffers nothing.
  F4  one of a subscription only goes forward, and has no last row: a FETCH ends as `ChangeReader`
      says.
"""

from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager, nullcontext

import pyarrow as pa

from coordinator.execution.context import Rows
from coordinator.session.portal import Portal
from coordinator.session.prepared_statements import FETCH_ALL_ROWS, FetchCommand
from sql.errors import SqlError, not_supported


def cursor_is_forward_only() -> SqlError:
    """55000."""
    return SqlError(
        "55000",
        "cursor can only scan forward",
        hint="Declare it with SCROLL option to enable backward scan.",
    )


class Cursor:
    """See the module."""

    def __init__(self, portal: Portal, *, scroll: bool, kept_bytes_max: int) -> None:
        assert isinstance(portal.outcome, Rows), "a cursor is declared for a query"
        self._portal = portal
        self._schema: pa.Schema | None = None
        self._kept_bytes_max = kept_bytes_max
        self._kept: list[pa.RecordBatch] = []
        self._kept_rows = 0
        self._kept_bytes = 0
        self.scroll = scroll
        self._position = 0
        self.failed = False
        """An error has ended it; a savepoint may have ended the error."""

    async def keep_all(self) -> None:
        """Buffer all remaining rows now: WITH HOLD outlives the source of the rows."""
        await self._keep(FETCH_ALL_ROWS)

    async def fetch(self, fetch: FetchCommand) -> AsyncGenerator[pa.RecordBatch, None]:
        """The rows that a FETCH returns; reading them moves the cursor."""
        steps = self._scrolled(fetch) if self.scroll or self._kept else self._forward(fetch)
        try:
            with self._waiting(fetch):
                async for batch in steps:
                    yield batch
        except SqlError:
            self.failed = True
            raise

    def _waiting(self, fetch: FetchCommand) -> AbstractContextManager[None]:
        """Of a subscription, a FETCH ends by itself. Raises 55000, 0A000."""
        assert isinstance(self._portal.outcome, Rows), "a cursor is declared for a query"
        reader = self._portal.outcome.reader
        if reader is None:
            if fetch.timeout_us is not None:
                raise not_supported("FETCH with a timeout from a cursor that follows nothing")
            return nullcontext()
        if fetch.absolute or fetch.relative:
            raise cursor_is_forward_only()
        return reader.fetching(fetch.timeout_us)

    # --- forward only ---------------------------------------------------------------------------

    async def _forward(self, fetch: FetchCommand) -> AsyncGenerator[pa.RecordBatch, None]:
        skip, take = self._steps(fetch)
        async for _ in self._next(skip):
            pass
        async for batch in self._next(take):
            yield batch

    def _steps(self, fetch: FetchCommand) -> tuple[int, int]:
        """How many rows to skip and to give. Raises 55000."""
        if fetch.absolute:
            if fetch.count <= self._position and (fetch.count, self._position) != (0, 0):
                raise cursor_is_forward_only()
            return max(fetch.count - self._position - 1, 0), min(fetch.count, 1)
        if fetch.count < 0 or (fetch.count == 0 and self._position and not self._portal.finished):
            raise cursor_is_forward_only()
        if fetch.relative:
            return max(fetch.count - 1, 0), min(fetch.count, 1)
        return 0, fetch.count

    async def _next(self, count: int) -> AsyncGenerator[pa.RecordBatch, None]:
        if count:
            async for batch in self._portal.rows(0 if count >= FETCH_ALL_ROWS else count):
                self._position += batch.num_rows
                yield batch

    # --- back and forth -------------------------------------------------------------------------

    async def _scrolled(self, fetch: FetchCommand) -> AsyncGenerator[pa.RecordBatch, None]:
        rows, self._position = await self._range(fetch)
        wanted = [row for row in rows if 1 <= row <= self._kept_rows]
        if wanted:
            table = pa.Table.from_batches(self._kept)
            places = pa.array([row - 1 for row in wanted], pa.int64())
            for batch in table.take(places).to_batches():
                yield batch

    async def _range(self, fetch: FetchCommand) -> tuple[range, int]:
        """The rows to give, as far as there are such, and where it stands then."""
        at, count = self._position, fetch.count
        if fetch.absolute or fetch.relative:
            if fetch.absolute and count < 0:
                await self._keep(FETCH_ALL_ROWS)
                target = self._kept_rows + 1 + count
            else:
                target = count if fetch.absolute else at + count
                await self._keep(target)
            target = min(max(target, 0), self._kept_rows + 1)
            return range(target, target + 1), target
        if count == 0:
            return range(at, at + 1), at
        if count > 0:
            await self._keep(FETCH_ALL_ROWS if count >= FETCH_ALL_ROWS else at + count)
            last = min(at + count, self._kept_rows + 1)
            return range(at + 1, last + 1), last
        last = max(at + count, 0)
        return range(at - 1, last - 1, -1), last

    async def _keep(self, rows: int) -> None:
        """Have at least so many rows, or all."""
        while self._kept_rows < rows and not self._portal.finished:
            wanted = 0 if rows >= FETCH_ALL_ROWS else rows - self._kept_rows
            async for batch in self._portal.rows(wanted):
                self._kept.append(batch)
                self._kept_rows += batch.num_rows
                self._kept_bytes += batch.nbytes
                if self._portal.memory is not None:
                    self._portal.memory.add(batch.nbytes)
                if self._kept_bytes > self._kept_bytes_max:
                    raise SqlError(
                        "54000",
                        "the rows of a cursor that can go back are too large",
                        hint="Declare it without SCROLL and WITH HOLD.",
                    )
