"""Make what sources need upstream (a slot), and remove it.

    make ─▶ leads? ─▶ prepare ─▶ leads? ─▶ yes: the position of the slot
                         │           └───▶ no:  taken back
    release ─▶ leads? ─▶ all of the source goes ─▶ its record goes

INVARIANTS
  E2  nothing is left upstream that no definition and no record names (F8 of `ingest`). Who makes a
      slot leads at some moment after it is there, or takes it back: a successor may have removed
      all that the source had before. A source that was released gets nothing more.
  E3  what is taken back has the epoch of this coordinator in its name (F11 of `ingest/postgres`),
      and no position was told for it: nobody else reads from it, and no record names it.

Not here: a coordinator that is killed between the two questions, when a successor has removed the
source already. Upstream has the slot then until somebody drops it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from coordinator.core.sources.completions import UpstreamReleased
from coordinator.core.sources.records import Leftover
from ingest.reader import ReaderFailure, SourceProgress, SourceReader, UpstreamTable
from sql.catalog.objects import ConnectionDefinition, SourceDefinition

log = logging.getLogger("meridian.sources")

_TAKE_BACK_S: Final = 5.0
"""Larger: a deposed coordinator ends later, if upstream is away. Smaller: it leaves a slot."""
_TAKE_BACK_AGAIN_S: Final = 0.25

_Remove: TypeAlias = Callable[[SourceDefinition, ConnectionDefinition | None], Awaitable[None]]


class UpstreamSlots:
    """See the module. `leads`: raises ReaderFailure if another coordinator has taken over, or
    nobody can say. `remove`: all that stands upstream for a source. `forget`: a leftover's record.
    """

    def __init__(
        self,
        leads: Callable[[], Awaitable[None]],
        remove: _Remove,
        forget: Callable[[str], Awaitable[None]],
    ) -> None:
        self._leads = leads
        self._remove = remove
        self._forget = forget
        self._changing: dict[str, asyncio.Lock] = {}
        self._released: dict[str, int] = {}
        """Up to which generation, by the source's `feed_id`."""

    async def make(
        self,
        source: SourceDefinition,
        reader: SourceReader,
        tables: Sequence[UpstreamTable],
        *,
        joins: bool = False,
    ) -> SourceProgress:
        """Make what reading needs (E2), or raise ReaderFailure. `joins`: it ends with the reader
        anyway.
        """
        async with self._changes(source):
            if source.generation <= self._released.get(source.feed_id, 0):
                raise ReaderFailure("57014", "the source is gone")
            await self._leads()
            if joins:
                return await reader.prepare(tables)
            try:
                made = await reader.prepare(tables)
            except Exception:
                # Maybe it is made. While we lead the next attempt makes it again.
                await self._lead_or_take_back(source, reader)
                raise
            except BaseException:
                # The driver ends, maybe since it is deposed.
                await _take_back(source, reader)
                raise
            await self._lead_or_take_back(source, reader)
            return made

    async def release(self, leftover: Leftover) -> UpstreamReleased:
        """Remove what a source has left, and then the record of that (F8)."""
        source = leftover.source
        try:
            async with self._changes(source):
                await self._leads()
                before = self._released.get(source.feed_id, 0)
                self._released[source.feed_id] = max(before, source.generation)
                await self._remove(source, leftover.connection)
                await self._forget(leftover.name)
        except Exception as error:
            log.warning("source %s: not released: %s", source.name, error)
            return UpstreamReleased(leftover.name, done=False)
        return UpstreamReleased(leftover.name, done=True)

    def _changes(self, source: SourceDefinition) -> asyncio.Lock:
        """Held by whoever changes what stands upstream: first come, first served, so that nothing
        is made after it was released (F8).
        """
        return self._changing.setdefault(source.feed_id, asyncio.Lock())

    async def _lead_or_take_back(self, source: SourceDefinition, reader: SourceReader) -> None:
        try:
            await self._leads()
        except BaseException:
            await _take_back(source, reader)
            raise


async def _take_back(source: SourceDefinition, reader: SourceReader) -> None:
    """Remove what this reader has made (E3); upstream may be away for a moment."""
    try:
        async with asyncio.timeout(_TAKE_BACK_S):
            while True:
                if await _is_taken_back(source, reader):
                    return
                await asyncio.sleep(_TAKE_BACK_AGAIN_S)
    except TimeoutError:
        log.warning("source %s: a slot is left upstream", source.name)


async def _is_taken_back(source: SourceDefinition, reader: SourceReader) -> bool:
    try:
        await reader.release()
    except Exception as error:
        # Whatever a reader raises, its slot is tried again (F10).
        log.warning("source %s: a slot is not taken back: %s", source.name, error)
        return False
    return True
