"""Run the effects of sources with the readers of their upstreams.

    StartSource ─▶ a reader of `upstreams`  ─▶ [CopyTables ─▶ all rows]
                                             ─▶ PullSource ─▶ SourceBatch ─▶ PrepareBatch ─▶ rows

A reader belongs to one attempt of its source; the core drops the completions of older ones (F1 of
`core/sources`). Failures of a reader are values for the core. Anything else that a reader raises is
a bug, and stalls its source alone (F10).

INVARIANTS
  E1  a coordinator that was deposed and does not know it, since it stood still or its stash is
      away, does no harm upstream. What it makes there has its epoch in its name. It leads at some
      moment after it has taken the slot, or gives up what it took: so nothing is acknowledged once
      a successor has taken the slot, whose tables it may not know.

What is made and removed upstream goes through `upstream_slots.py`. The one place that knows which
kinds of upstream there are is `upstreams.py`.
"""

import json
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, assert_never

import pyarrow as pa

from compute.access.key_index import KeyIndex
from coordinator.core.sources.completions import (
    AsideCopied,
    AsideFailed,
    AsideMessage,
    BatchPrepared,
    PartPrepared,
    SourceAcknowledged,
    SourceFailed,
    SourceMessage,
    SourcePulled,
    SourceStarted,
    TablesCopied,
    UpstreamReleased,
    UpstreamReported,
)
from coordinator.core.sources.effects import (
    AcknowledgeSource,
    AskUpstream,
    CopyAside,
    CopyTables,
    PrepareBatch,
    PullSource,
    ReleaseUpstream,
    SourceEffect,
    StartSource,
    StopSource,
)
from coordinator.driver.fed_rows import FedRows, RowSpool
from coordinator.driver.fed_tables import fed_tables, progress_of, reference_of, upstream_table
from coordinator.driver.large_transactions import OWN_BYTES_MAX, LargeTransaction, OwnRowsBudget
from coordinator.driver.maintenance_effects import RunBlocking, in_thread
from coordinator.driver.reading_hold import ReadingHold
from coordinator.driver.upstream_slots import UpstreamSlots
from coordinator.failures import staging_failure
from ingest.reader import (
    BadRecord,
    ReaderFailure,
    ReadLimits,
    SourceProgress,
    SourceReader,
)
from sql.catalog.catalog import Table
from sql.catalog.objects import ConnectionDefinition, SourceDefinition
from storage.batch import WriteBatch
from storage.errors import Fenced, StorageError
from storage.known_rows import OldRows
from storage.types import Epoch, ShardId, Timestamp

log = logging.getLogger("meridian.sources")

_NO_WRITE: Final = WriteBatch()

WAIT_MS: Final = 1_000
"""For what comes next. Larger: an idle source wakes the loop less often."""


class SourceReaders(Protocol):
    """Makes readers of upstreams."""

    async def reader(
        self,
        source: SourceDefinition,
        connection: ConnectionDefinition | None,
        *,
        joins: bool = False,
        epoch: int = 0,
    ) -> SourceReader:
        """A reader that nobody has used; nothing is connected yet. Raises ReaderFailure. `joins`:
        it copies, beside the source's reader, and whatever it makes upstream ends with it. `epoch`:
        of the coordinator that it is for (E1).
        """
        ...

    async def release(
        self, source: SourceDefinition, connection: ConnectionDefinition | None
    ) -> None:
        """Remove all that stands upstream for a source, or raise ReaderFailure."""
        ...


@dataclass(frozen=True, slots=True)
class SourceComponents:
    """What sources need of their server. Without an index and a spool only rows that come can be
    taken in.
    """

    readers: SourceReaders
    index: KeyIndex | None = None
    spool: RowSpool | None = None
    own_bytes_max: int = OWN_BYTES_MAX
    """Rows of large transactions that are in memory."""


@dataclass(frozen=True, slots=True)
class _Open:
    attempt: int
    source: SourceDefinition
    reader: SourceReader
    begins: SourceProgress | None = None
    """What a new source has told: where its copy is."""


class SourceEffects:
    """See the module. `schema_of`: of the shard of a table. `leading`: raises if another
    coordinator has taken over.
    """

    def __init__(
        self,
        components: SourceComponents,
        schema_of: Callable[[Table], pa.Schema],
        forget_leftover: Callable[[str], Awaitable[None]],
        leading: Callable[[], Awaitable[None]],
        epoch: Epoch,
        run_blocking: RunBlocking = in_thread,
    ) -> None:
        self._epoch = epoch
        self._readers = components.readers
        self._leading = leading
        self._slots = UpstreamSlots(self._leads, components.readers.release, forget_leftover)
        self._rows = FedRows(components.index, components.spool, schema_of, run_blocking)
        self._open: dict[int, _Open] = {}
        self._budget = OwnRowsBudget(components.own_bytes_max)
        self._large: dict[int, LargeTransaction] = {}
        """Whose end has not come, by the source."""
        self._wanted: dict[int, int] = {}
        """The attempt of each source that was asked for last; none of a source that is stopped."""
        self._holds: dict[int, ReadingHold] = {}

    async def run(
        self, effect: SourceEffect
    ) -> SourceMessage | AsideMessage | UpstreamReleased | None:
        """Run an effect; its completion, if it has one."""
        match effect:
            case StopSource():
                await self._stop(effect)
                return None
            case ReleaseUpstream():
                return await self._slots.release(effect.leftover)
            case AcknowledgeSource():
                return await self._acknowledge(effect)
            case AskUpstream():
                return await self._ask(effect)
            case StartSource(source=source, attempt=attempt):
                return await self._watched(source.oid, attempt, self._start(effect))
            case CopyTables(source=source, attempt=attempt):
                return await self._watched(source.oid, attempt, self._copy(effect))
            case CopyAside():
                return await self._copy_aside(effect)
            case PullSource(source=oid, attempt=attempt):
                return await self._watched(oid, attempt, self._pull(effect))
            case PrepareBatch(source=source, attempt=attempt):
                return await self._watched(source.oid, attempt, self._prepare(effect))
            case _:
                assert_never(effect)

    async def close(self) -> None:
        """The driver ends: nothing is read any more, and what stands upstream stays."""
        for known in list(self._open.values()):
            await self._close(known)
        for oid in list(self._large):
            await self._discard(oid)

    async def _watched(
        self, oid: int, attempt: int, work: Coroutine[object, object, SourceMessage]
    ) -> SourceMessage:
        try:
            return await work
        except ReaderFailure as failure:
            place = "" if failure.place is None else json.dumps({**failure.place})
            return SourceFailed(
                oid, attempt, failure.code, failure.message, failure.hint, failure.broken, place
            )
        except (StorageError, OSError) as error:
            said = staging_failure(error)
            return SourceFailed(oid, attempt, said.sqlstate, said.message, said.hint or "")
        except Exception as error:
            # A reader's bug costs its own source (F10); the log has where.
            log.exception("source %s failed", oid)
            return SourceFailed(oid, attempt, "XX000", f"{type(error).__name__}: {error}")

    async def _start(self, effect: StartSource) -> SourceMessage:
        source = effect.source
        self._wanted[source.oid] = effect.attempt
        self._holds.setdefault(source.oid, ReadingHold()).given = {}
        earlier = self._open.pop(source.oid, None)
        if earlier is not None:
            await self._close(earlier)
        await self._discard(source.oid)
        await self._leads()
        self._check_wanted(effect)
        reader = await self._readers.reader(source, effect.connection, epoch=self._epoch)
        self._check_wanted(effect)
        opened = self._open[source.oid] = _Open(effect.attempt, source, reader)
        try:
            return await self._started(effect, opened)
        except BaseException:
            # It must not hold the slot while it is not read.
            if self._open.get(source.oid) is opened:
                del self._open[source.oid]
            await self._close_reader(source, reader)
            raise

    async def _started(self, effect: StartSource, opened: _Open) -> SourceMessage:
        source, reader = effect.source, opened.reader
        tables = [upstream_table(source, table) for table in fed_tables(effect.tables)]
        if effect.record is None:
            made = await self._slots.make(source, reader, tables)
            self._check_wanted(effect)
            self._open[source.oid] = _Open(effect.attempt, source, reader, made)
            return SourceStarted(source.oid, effect.attempt, made.position, made.identity)
        progress = progress_of(source, effect.record, effect.tables)
        identity = await reader.start(progress, tables)
        await self._leads()
        self._check_wanted(effect)
        return SourceStarted(source.oid, effect.attempt, progress.position, identity)

    def _check_wanted(self, effect: StartSource) -> None:
        """Raises if the source was started again meanwhile, or stopped."""
        if self._wanted.get(effect.source.oid) != effect.attempt:
            raise ReaderFailure("57014", "another attempt has begun")

    async def _leads(self) -> None:
        """Raises unless this coordinator leads at some moment after the call (E1)."""
        try:
            await self._leading()
        except Fenced:
            raise ReaderFailure("57P01", "another coordinator has taken over") from None
        except StorageError as error:
            log.warning("a source waits for the stash: %s", error)
            raise ReaderFailure("58030", "the stash does not answer") from None

    async def _copy(self, effect: CopyTables) -> SourceMessage:
        oid, attempt = effect.source.oid, effect.attempt
        reader = self._reader(oid, attempt)
        begins = self._open[oid].begins
        assert begins is not None, "a source is started before it is copied"
        fed = fed_tables(effect.tables)
        writes, errors = await self._taken(reader, fed)
        # Nothing is read before the core has committed this position.
        progress = SourceProgress(begins.position, begins.identity)
        identity = await reader.start(progress, [upstream_table(effect.source, one) for one in fed])
        writes |= self._errors(effect.tables, errors, effect.began)
        return TablesCopied(oid, attempt, begins.position, identity, writes, len(errors))

    async def _copy_aside(self, effect: CopyAside) -> AsideCopied | AsideFailed:
        source, attempt = effect.source, effect.attempt
        reader: SourceReader | None = None
        try:
            reader = await self._readers.reader(
                source, effect.connection, joins=effect.joins, epoch=self._epoch
            )
            tables = [upstream_table(source, table) for table in effect.tables]
            hold = self._holds.setdefault(source.oid, ReadingHold())
            async with hold.copying():
                async with hold.making():
                    made = await self._slots.make(source, reader, tables, joins=effect.joins)
                if effect.joins:
                    hold.check(made.position)
                writes, errors = await self._taken(reader, effect.tables)
            every = (*effect.tables, *effect.errors)
            writes |= self._errors(every, errors, effect.began)
            return AsideCopied(
                source.oid, attempt, made.position, made.identity, writes, len(errors)
            )
        except ReaderFailure as failure:
            code, hint, broken = failure.code, failure.hint, failure.broken
            return AsideFailed(source.oid, attempt, code, failure.message, hint, broken)
        except (StorageError, OSError) as error:
            said = staging_failure(error)
            return AsideFailed(source.oid, attempt, said.sqlstate, said.message, said.hint or "")
        except Exception as error:
            # As of a reader that is read (F10).
            log.exception("source %s: a copy failed", source.name)
            return AsideFailed(source.oid, attempt, "XX000", f"{type(error).__name__}: {error}")
        finally:
            if reader is not None:
                await self._close_reader(source, reader)

    async def _taken(
        self, reader: SourceReader, fed: Sequence[Table]
    ) -> tuple[dict[ShardId, WriteBatch], list[BadRecord]]:
        """All rows of tables at the position that the reader has told."""
        taking = {reference_of(table): self._rows.snapshot_of(table) for table in fed}
        errors: list[BadRecord] = []
        try:
            async for part in reader.snapshot():
                await taking[part.reference].take(part.rows)
                errors += part.errors
            found = {
                ShardId(table.shard): await taking[reference_of(table)].finish() for table in fed
            }
        except BaseException:
            for one in taking.values():
                await one.discard()
            raise
        return {shard: batch for shard, batch in found.items() if batch.new_rows}, errors

    def _errors(
        self, tables: Sequence[Table], errors: Sequence[BadRecord], now: Timestamp
    ) -> Mapping[ShardId, WriteBatch]:
        """The rows of the table of errors."""
        if not errors:
            return {}
        table = next(one for one in tables if one.feed is not None and not one.feed.reference)
        names = {reference_of(one): one.name for one in fed_tables(tables)}
        return {ShardId(table.shard): self._rows.errors_of(table, errors, names, now)}

    async def _pull(self, effect: PullSource) -> SourceMessage:
        hold = self._holds.setdefault(effect.source, ReadingHold())
        async with hold.reading():
            reader = self._reader(effect.source, effect.attempt)
            batch = await reader.read(ReadLimits(effect.size_max, WAIT_MS))
            hold.given = batch.upto
        return SourcePulled(effect.source, effect.attempt, batch)

    async def _prepare(self, effect: PrepareBatch) -> SourceMessage:
        if effect.goes_on or not effect.batch.ends:
            return await self._prepare_part(effect)
        batch, writes = effect.batch, dict[ShardId, WriteBatch]()
        replaced: dict[ShardId, Sequence[OldRows]] = {}
        errors = list(batch.errors)
        for table in fed_tables(effect.tables):
            changes = batch.changes.get(reference_of(table), ())
            if changes:
                shard = ShardId(table.shard)
                view = effect.views.get(shard)
                done = await self._rows.write_of(table, changes, view, {**batch.upto})
                if done.batch != _NO_WRITE:
                    writes[shard] = done.batch
                replaced[shard] = done.old
                errors += done.errors
        writes |= self._errors(effect.tables, errors, effect.began)
        return BatchPrepared(
            effect.source.oid, effect.attempt, batch.upto, writes, len(errors), replaced
        )

    async def _prepare_part(self, effect: PrepareBatch) -> SourceMessage:
        """Of a transaction that is too large for memory; with its last part all of it."""
        oid, attempt, batch = effect.source.oid, effect.attempt, effect.batch
        self._reader(oid, attempt)
        if not effect.goes_on:
            await self._discard(oid)
            tables = {reference_of(table): table for table in fed_tables(effect.tables)}
            others = [table for table in effect.tables if table not in tables.values()]
            self._large[oid] = LargeTransaction(
                self._rows, tables, others[0] if others else None, effect.views, self._budget
            )
        large = self._large[oid]
        # Another attempt may begin meanwhile, and discard it.
        try:
            await large.take(batch, effect.began)
            if not batch.ends:
                return PartPrepared(oid, attempt, large.errors)
            writes = await large.finish()
        except BaseException:
            await large.discard()
            raise
        if self._large.get(oid) is large:
            del self._large[oid]
        # Of so many rows that go nothing is known (W3 of `fed_rows`).
        return BatchPrepared(oid, attempt, batch.upto, writes, large.errors)

    async def _discard(self, oid: int) -> None:
        """The transaction whose parts are at hand is read again, or nobody wants it."""
        large = self._large.pop(oid, None)
        if large is not None:
            await large.discard()

    async def _acknowledge(self, effect: AcknowledgeSource) -> SourceMessage:
        known = self._open.get(effect.source)
        done = known is not None and known.attempt == effect.attempt
        if known is not None and done:
            try:
                await known.reader.acknowledge(effect.upto)
            except Exception as error:
                # What is not heard is told with the next one, and after the next start.
                log.warning("source %s: not acknowledged: %s", known.source.name, error)
                done = False
        return SourceAcknowledged(effect.source, effect.attempt, effect.upto, done)

    async def _ask(self, effect: AskUpstream) -> SourceMessage:
        oid, attempt, request = effect.source, effect.attempt, effect.request
        try:
            position = await self._reader(oid, attempt).newest()
        except Exception as error:
            # What is wrong with the connection is found where it is read; who asks, asks again.
            return UpstreamReported(oid, attempt, request, None, str(error))
        return UpstreamReported(oid, attempt, request, position)

    def _reader(self, oid: int, attempt: int) -> SourceReader:
        known = self._open.get(oid)
        if known is None or known.attempt != attempt:
            raise ReaderFailure("57014", "another attempt has begun")
        return known.reader

    async def _stop(self, effect: StopSource) -> None:
        self._wanted.pop(effect.source, None)
        known = self._open.pop(effect.source, None)
        if known is not None:
            await self._close(known)
        await self._discard(effect.source)

    async def _close(self, known: _Open) -> None:
        self._open.pop(known.source.oid, None)
        await self._close_reader(known.source, known.reader)

    async def _close_reader(self, source: SourceDefinition, reader: SourceReader) -> None:
        try:
            await reader.close()
        except Exception as error:
            log.warning("source %s: not closed: %s", source.name, error)
