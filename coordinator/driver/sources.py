"""Run the effects of sources with the readers of their upstreams.

    StartSource ─▶ a reader of `make_reader` ─▶ PullSource ─▶ SourceBatch ─▶ PrepareBatch ─▶ rows

A reader belongs to one attempt of its source; the core drops the completions of older ones (F1 of
`core/sources`). Failures of a reader are values for the core. Anything else that a reader raises is
a bug, and stalls its source alone (F10).

The one place that knows which kinds of upstream there are is `UPSTREAM_READERS`.
"""

import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, assert_never

import pyarrow as pa

from compute.reference.arrow import BatchMaker
from coordinator.core.sources.completions import (
    BatchPrepared,
    SourceAcknowledged,
    SourceFailed,
    SourceMessage,
    SourcePulled,
    SourceStarted,
)
from coordinator.core.sources.effects import (
    AcknowledgeSource,
    PrepareBatch,
    PullSource,
    SourceEffect,
    StartSource,
    StopSource,
)
from ingest.generator import GeneratorOptions, GeneratorReader
from ingest.reader import (
    UNCHANGED,
    ChangeKind,
    ReaderFailure,
    ReadLimits,
    SourceProgress,
    SourceReader,
    UpstreamChange,
    UpstreamColumn,
    UpstreamTable,
)
from sql.catalog.catalog import Table
from sql.catalog.objects import SourceDefinition
from sql.catalog.sources import GENERATOR
from sql.types.sql_type import Value
from storage.batch import WriteBatch
from storage.types import ShardId

log = logging.getLogger("meridian.sources")

WAIT_MS: Final = 1_000
"""For what comes next. Larger: an idle source wakes the loop less often."""


class MakeReader(Protocol):
    """Makes the reader of a source; nothing is connected yet."""

    def __call__(self, source: SourceDefinition) -> SourceReader:
        """A reader that nobody has used."""
        ...


UPSTREAM_READERS: Final[Mapping[str, MakeReader]] = {
    GENERATOR: lambda source: GeneratorReader(GeneratorOptions.of(dict(source.options))),
}
"""By the kind of upstream."""


def make_reader(source: SourceDefinition) -> SourceReader:
    """The reader of a source. Raises ReaderFailure for a kind that is not read yet."""
    found = UPSTREAM_READERS.get(source.connector)
    if found is None:
        what = f"reading from {source.connector.upper()} is not supported"
        raise ReaderFailure("0A000", what, broken=True)
    return found(source)


@dataclass(frozen=True, slots=True)
class _Open:
    attempt: int
    source: SourceDefinition
    reader: SourceReader


class SourceEffects:
    """See the module. `schema_of`: of the shard of a table."""

    def __init__(self, make: MakeReader, schema_of: Callable[[Table], pa.Schema]) -> None:
        self._make = make
        self._schema_of = schema_of
        self._open: dict[int, _Open] = {}

    async def run(self, effect: SourceEffect) -> SourceMessage | None:
        """Run an effect; its completion, if it has one."""
        match effect:
            case StopSource():
                await self._stop(effect)
                return None
            case AcknowledgeSource():
                return await self._acknowledge(effect)
            case StartSource(source=source, attempt=attempt):
                return await self._watched(source.oid, attempt, self._start(effect))
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

    async def _watched(
        self, oid: int, attempt: int, work: Coroutine[object, object, SourceMessage]
    ) -> SourceMessage:
        try:
            return await work
        except ReaderFailure as failure:
            return SourceFailed(
                oid, attempt, failure.code, failure.message, failure.hint, failure.broken
            )
        except Exception as error:
            # A reader's bug costs its own source (F10); the log has where.
            log.exception("source %s failed", oid)
            return SourceFailed(oid, attempt, "XX000", f"{type(error).__name__}: {error}")

    async def _start(self, effect: StartSource) -> SourceMessage:
        source = effect.source
        earlier = self._open.pop(source.oid, None)
        if earlier is not None:
            await self._close(earlier)
        reader = self._make(source)
        self._open[source.oid] = _Open(effect.attempt, source, reader)
        tables = [_upstream_table(table) for table in _fed_rows(effect.tables)]
        if effect.record is None:
            made = await reader.prepare(tables)
            async for part in reader.snapshot():
                what = f"rows of {part.reference} before the first change"
                raise ReaderFailure("0A000", what, broken=True)
            # Nothing is read before the core has committed this position.
            identity = await reader.start(SourceProgress(made.position, made.identity), tables)
            return SourceStarted(source.oid, effect.attempt, made.position, identity)
        progress = SourceProgress(effect.record.position, effect.record.identity)
        identity = await reader.start(progress, tables)
        return SourceStarted(source.oid, effect.attempt, progress.position, identity)

    async def _pull(self, effect: PullSource) -> SourceMessage:
        reader = self._reader(effect.source, effect.attempt)
        batch = await reader.read(ReadLimits(effect.size_max, WAIT_MS))
        return SourcePulled(effect.source, effect.attempt, batch)

    async def _prepare(self, effect: PrepareBatch) -> SourceMessage:
        batch, writes = effect.batch, dict[ShardId, WriteBatch]()
        if batch.errors:
            raise ReaderFailure("0A000", "records that no column can take", broken=True)
        for table in _fed_rows(effect.tables):
            assert table.feed is not None, "it is fed"
            changes = batch.changes.get(table.feed.reference, ())
            if changes:
                rows = _inserted(table, changes)
                maker = BatchMaker([c.type for c in table.columns], self._schema_of(table))
                writes[ShardId(table.shard)] = WriteBatch(
                    pa.Table.from_batches([maker.batch(rows)])
                )
        return BatchPrepared(effect.source.oid, effect.attempt, batch.upto, writes)

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

    def _reader(self, oid: int, attempt: int) -> SourceReader:
        known = self._open.get(oid)
        if known is None or known.attempt != attempt:
            raise ReaderFailure("57014", "another attempt has begun")
        return known.reader

    async def _stop(self, effect: StopSource) -> None:
        known = self._open.pop(effect.source, None)
        if known is None:
            return
        await self._close(known)
        if effect.released:
            try:
                await known.reader.release()
            except Exception as error:
                log.warning("source %s: not released: %s", known.source.name, error)

    async def _close(self, known: _Open) -> None:
        self._open.pop(known.source.oid, None)
        try:
            await known.reader.close()
        except Exception as error:
            log.warning("source %s: not closed: %s", known.source.name, error)


def _fed_rows(tables: Sequence[Table]) -> list[Table]:
    """Without the table of errors."""
    return [table for table in tables if table.feed is not None and table.feed.reference]


def _upstream_table(table: Table) -> UpstreamTable:
    assert table.feed is not None, "it is fed"
    columns = [UpstreamColumn(c.name, c.type, c.not_null) for c in table.columns]
    return UpstreamTable(table.feed.reference, tuple(columns))


def _inserted(table: Table, changes: Sequence[UpstreamChange]) -> list[tuple[Value, ...]]:
    """The rows of changes that are all new rows. Raises ReaderFailure for others."""
    rows: list[tuple[Value, ...]] = []
    for change in changes:
        if change.kind is not ChangeKind.INSERT or change.new is None:
            what = f"{change.kind.value} upstream of a row of {table.name}"
            raise ReaderFailure("0A000", f"{what} is not supported", broken=True)
        rows.append(tuple([value for value in change.new if value is not UNCHANGED]))
        assert len(rows[-1]) == len(table.columns), "a new row has all its values"
    return rows
