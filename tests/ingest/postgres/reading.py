"""Reading all that is committed, for tests of the reader."""

from __future__ import annotations

from ingest.postgres.reader import PostgresReader
from ingest.reader import ReaderFailure, ReadLimits, SourceBatch, SourceProgress, UpstreamTable
from tests.ingest.upstream_database import UpstreamDatabase

Started = tuple[PostgresReader, SourceProgress, list[UpstreamTable]]


async def started(database: UpstreamDatabase, *tables: UpstreamTable, **others: object) -> Started:
    """With all tables of the publication, or these; no snapshot is taken."""
    reader = database.reader(**others)
    wanted = list(tables or (await reader.inspect()).tables)
    progress = await reader.prepare(wanted)
    identity = await reader.start(progress, wanted)
    return reader, SourceProgress(progress.position, identity), wanted


async def read_all(reader: PostgresReader) -> list[SourceBatch]:
    """All that is committed by now."""
    newest = (await reader.newest())["lsn"]
    batches = [await reader.read(ReadLimits(wait_ms=1000))]
    while batches[-1].upto["lsn"] < newest:
        batches.append(await reader.read(ReadLimits(wait_ms=1000)))
    return batches


async def read_until_failure(
    reader: PostgresReader, upto: int | None = None
) -> tuple[list[SourceBatch], ReaderFailure | None]:
    """What is given before a failure, and the failure; None if `upto` was reached without one."""
    batches: list[SourceBatch] = []
    while upto is None or not batches or batches[-1].upto["lsn"] < upto:
        try:
            batches.append(await reader.read(ReadLimits(wait_ms=1000)))
        except ReaderFailure as failure:
            return batches, failure
    return batches, None


def new_rows(batches: list[SourceBatch], reference: str = "public.t") -> list[object]:
    """Rows that came, or came to be."""
    changes = [one for batch in batches for one in batch.changes.get(reference, ())]
    return [change.new for change in changes if change.new is not None]
