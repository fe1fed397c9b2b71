"""Copy tables at the moment that a new slot has exported, as Arrow batches.

INVARIANTS
  C1  all tables are copied in one transaction on the exported snapshot: they are of one moment,
      the slot's position.
  C2  the loop is never held for longer than a piece.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final

import pyarrow as pa

from compute.arrow import arrow_type
from compute.reference.arrow import to_array
from ingest.postgres.libpq_link import LibpqLink, quote_text
from ingest.postgres.table_decoder import RowDecoder, split_copy_line
from ingest.postgres.upstream_tables import PublishedTable
from ingest.reader import BadRecord, RecordPlace, SnapshotPart, UpstreamTable
from sql.types.sql_type import Value

PIECE_SECONDS: Final = 0.004
"""So long decoding may hold the loop; other clients wait for so long."""
_PART_ROWS: Final = 2048
_PART_BYTES: Final = 4 << 20


async def begin_snapshot(link: LibpqLink, snapshot: str) -> None:
    """Make the moment of the slot that of the connection (C1)."""
    await link.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    await link.query(f"SET TRANSACTION SNAPSHOT {quote_text(snapshot)}")


async def copy_table(
    link: LibpqLink, published: PublishedTable, table: UpstreamTable, position: str
) -> AsyncIterator[SnapshotPart]:
    """The rows of a table; at least one part, so that an empty table is told."""
    decoder = RowDecoder(table, range(len(table.columns)))
    loop = asyncio.get_running_loop()
    rows: list[tuple[Value, ...]] = []
    errors: list[BadRecord] = []
    size, number, parts = 0, 0, 0
    began = loop.time()
    async for line in link.copy_out(published.copy_statement(table.columns)):
        number += 1
        size += len(line)
        place: RecordPlace = {"lsn": position, "row": number}
        row = decoder.snapshot_row(split_copy_line(line), place)
        if isinstance(row, BadRecord):
            errors.append(row)
        else:
            rows.append(row)  # type: ignore[arg-type]  # a copy has all values
        if len(rows) + len(errors) >= _PART_ROWS or size >= _PART_BYTES:
            yield SnapshotPart(table.reference, _batch(rows, table), errors)
            rows, errors, size, parts = [], [], 0, parts + 1
        if loop.time() - began > PIECE_SECONDS:
            await asyncio.sleep(0)
            began = loop.time()
    if rows or errors or not parts:
        yield SnapshotPart(table.reference, _batch(rows, table), errors)


def _batch(rows: Sequence[tuple[Value, ...]], table: UpstreamTable) -> pa.RecordBatch:
    schema = pa.schema([pa.field(one.name, arrow_type(one.type)) for one in table.columns])
    arrays = [
        to_array([row[at] for row in rows], column.type) for at, column in enumerate(table.columns)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
