"""Copy tables at the moment that a new slot has exported, as Arrow batches.

    COPY's lines ─▶ block ─ plain, and all values fit? ─▶ columns by `copy_text` ─▶ part
                            └ else ─▶ row by row: what no column can take is a bad record

INVARIANTS
  C1  all tables are copied in one transaction on the exported snapshot: they are of one moment,
      the slot's position.
  C2  the loop is never held for longer than a piece.
  C3  both ways give the same rows for the same lines.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final

import pyarrow as pa

from compute.arrow import arrow_type
from compute.reference.arrow import to_array
from ingest.copy_text.columns import column_parser
from ingest.copy_text.kernels import Column, greatest_number
from ingest.copy_text.plain_blocks import BlockCutter
from ingest.postgres.libpq_link import LibpqLink, quote_text
from ingest.postgres.table_decoder import RowDecoder, split_copy_line
from ingest.postgres.upstream_tables import PublishedTable
from ingest.reader import BadRecord, RecordPlace, SnapshotPart, UpstreamTable
from sql.errors import SqlError
from sql.statements.copy_options import CopyOptions
from sql.types.last_year import last_stored
from sql.types.sql_type import Value

PIECE_SECONDS: Final = 0.004
"""So long decoding may hold the loop; other clients wait for so long."""
_LOCK_MS: Final = 5000
_PART_ROWS: Final = 2048
_PART_BYTES: Final = 4 << 20


async def begin_snapshot(link: LibpqLink, snapshot: str) -> None:
    """Make the moment of the slot that of the connection (C1). Who holds a table locked may wait
    for us, in a COMMIT that waits for what we read.
    """
    await link.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    await link.query(f"SET TRANSACTION SNAPSHOT {quote_text(snapshot)}")
    await link.query(f"SET LOCAL lock_timeout = {_LOCK_MS}")


async def copy_table(
    link: LibpqLink, published: PublishedTable, table: UpstreamTable, position: str
) -> AsyncIterator[SnapshotPart]:
    """The rows of a table; at least one part, so that an empty table is told."""
    copy = _TableCopy(table, position)
    lines: list[bytes] = []
    size = 0
    async for line in link.copy_out(published.copy_statement(table.columns)):
        lines.append(line)
        size += len(line)
        if len(lines) >= _PART_ROWS or size >= _PART_BYTES:
            yield await copy.part(lines)
            lines, size = [], 0
    if lines or not copy.rows:
        yield await copy.part(lines)


class _TableCopy:
    """Makes rows of the lines of one table."""

    def __init__(self, table: UpstreamTable, position: str) -> None:
        self._table = table
        self._position = position
        self._decoder = RowDecoder(table, range(len(table.columns)))
        self._cutter = BlockCutter(CopyOptions())
        self._parsers = [column_parser(column.type, "UTC") for column in table.columns]
        self._last = [last_stored(column.type) for column in table.columns]
        self._schema = pa.schema(
            [pa.field(one.name, arrow_type(one.type)) for one in table.columns]
        )
        self.rows = 0
        """How many lines there were before."""

    async def part(self, lines: Sequence[bytes]) -> SnapshotPart:
        """The rows of some lines. A key that cannot be read fails with `broken`."""
        rows = self._at_once(b"".join(lines))
        if rows is not None:
            self.rows += len(lines)
            await asyncio.sleep(0)
            return SnapshotPart(self._table.reference, rows)
        return await self._one_by_one(lines)

    def _at_once(self, block: bytes) -> pa.RecordBatch | None:
        """None: a line is not plain, or a value does not fit."""
        if not self._parsers or not self._cutter.is_plain(block, columns=len(self._parsers)):
            return None
        try:
            texts = self._cutter.columns(block, len(self._parsers))
            arrays: list[Column] = [
                parse(column) for parse, column in zip(self._parsers, texts, strict=True)
            ]
            rows = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
            return None if self._has_later(arrays) else rows
        except (SqlError, pa.ArrowInvalid):
            return None

    def _has_later(self, columns: Sequence[Column]) -> bool:
        """Whether one is after the last moment that a table stores."""
        return any(
            last is not None and greatest_number(column) > last
            for column, last in zip(columns, self._last, strict=True)
        )

    async def _one_by_one(self, lines: Sequence[bytes]) -> SnapshotPart:
        loop = asyncio.get_running_loop()
        began = loop.time()
        rows: list[tuple[Value, ...]] = []
        errors: list[BadRecord] = []
        for line in lines:
            self.rows += 1
            place: RecordPlace = {"lsn": self._position, "row": self.rows}
            row = self._decoder.snapshot_row(split_copy_line(line), place)
            if isinstance(row, BadRecord):
                errors.append(row)
            else:
                rows.append(row)  # type: ignore[arg-type]  # a copy has all values
            if loop.time() - began > PIECE_SECONDS:
                await asyncio.sleep(0)
                began = loop.time()
        arrays = [
            to_array([row[at] for row in rows], column.type)
            for at, column in enumerate(self._table.columns)
        ]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        return SnapshotPart(self._table.reference, batch, errors)
