"""COPY FROM STDIN and COPY TO STDOUT: rows between the client's stream and a table.

    CopyData ─▶ pieces ─▶ a thread: CopyReader ─▶ batches ─▶ RowSink ─▶ the transaction
    query ─▶ batches ─▶ a thread: CopyWriter ─▶ CopyData

INVARIANTS
  M1  memory is a few pieces and what the sink holds, whatever comes; the client waits meanwhile.
  M2  rows count when the client has said CopyDone and the transaction commits; never before.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np
import pyarrow as pa

from coordinator.execute_query import start_query
from coordinator.execution import Done, Execution
from coordinator.key_check import check_keys
from coordinator.pgwire.arrow_types import to_array
from coordinator.pgwire.copy_in import CopyReader
from coordinator.pgwire.copy_out import CopyWriter
from coordinator.pgwire.kernels import Column as Values
from coordinator.pgwire.messages import (
    BackendMessage,
    CopyData,
    CopyDone,
    CopyFail,
    CopyFrames,
    CopyInResponse,
    CopyOutResponse,
    FrontendMessage,
)
from coordinator.portal import close_batches
from coordinator.row_sink import RowSink
from coordinator.spilling import write_rows
from sql.catalog import Column, Table
from sql.errors import SqlError
from sql.statements import CopyIn, CopyOut
from storage.types import Timestamp

PIECE_BYTES: Final = 1 << 20
"""Input handed to a thread at once. Larger: more memory. Smaller: more hand-overs."""

PIECE_ROWS: Final = 8_192
"""Rows written by a thread at once."""


class CopyStream(Protocol):
    """The client during a COPY; a part of `session.Client`."""

    def send(self, message: BackendMessage) -> None:
        """Queue a message."""
        ...

    async def flush(self) -> None:
        """Write what is queued; waits while the client does not read."""
        ...

    async def relieve(self) -> None:
        """Like flush, if much is queued."""
        ...

    async def receive(self) -> FrontendMessage:
        """The next message. Raises EOFError when there will be none."""
        ...


async def execute_copy_in(execution: Execution, copy: CopyIn, stream: CopyStream) -> Done:
    """Take the client's rows and buffer them into the transaction (M2)."""
    execution.transaction.check_writable("COPY FROM")
    sink = RowSink(
        copy.table,
        execution.services.spool,
        inline_bytes_max=execution.services.limits.inline_bytes_max,
    )
    try:
        await _receive(copy, execution.variables.timezone, stream, sink)
        batch = await sink.finish()
        await check_keys(execution, copy.table, sink.keyed)
    except BaseException:
        await sink.discard()
        raise
    if sink.rows:
        await write_rows(execution, copy.table, batch)
    return Done(f"COPY {sink.rows}")


async def _receive(copy: CopyIn, timezone: str, stream: CopyStream, sink: RowSink) -> None:
    columns = [copy.table.columns[ordinal] for ordinal in copy.ordinals]
    reader = CopyReader(
        copy.options,
        [column.type for column in columns],
        [column.name for column in columns],
        relation=copy.table.name,
        timezone=timezone,
    )
    stream.send(CopyInResponse((0,) * len(columns)))
    await stream.flush()
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await stream.receive()
        match message:
            case CopyData(data=data):
                pieces.append(data)
                size += len(data)
                if size >= PIECE_BYTES:
                    piece = b"".join(pieces)
                    pieces, size = [], 0
                    await _add(copy, await asyncio.to_thread(_parsed, reader, piece), sink)
            case CopyDone():
                piece = b"".join(pieces)
                await _add(copy, await asyncio.to_thread(_rest, reader, piece), sink)
                return
            case CopyFail(message=reason):
                raise SqlError("57014", f"COPY from stdin failed: {reason}")
            case _:
                raise EOFError("the client left in the middle of a COPY")


def _parsed(reader: CopyReader, piece: bytes) -> Sequence[pa.RecordBatch]:
    return list(reader.feed(piece))


def _rest(reader: CopyReader, piece: bytes) -> Sequence[pa.RecordBatch]:
    return [*reader.feed(piece), *reader.finish()]


async def _add(copy: CopyIn, batches: Sequence[pa.RecordBatch], sink: RowSink) -> None:
    for batch in batches:
        await sink.add(_completed(copy.table, copy.ordinals, batch))


def _completed(table: Table, ordinals: Sequence[int], batch: pa.RecordBatch) -> Sequence[Values]:
    """All columns of the table: those of the data, and the defaults of the others."""
    given = dict(zip(ordinals, batch.columns, strict=True))
    return [
        given[ordinal] if ordinal in given else _defaults(column, batch.num_rows)
        for ordinal, column in enumerate(table.columns)
    ]


def _defaults(column: Column, rows: int) -> Values:
    one = to_array([column.default], column.type)
    return one.take(np.zeros(rows, dtype=np.int64))


async def execute_copy_out(
    execution: Execution, copy: CopyOut, stream: CopyStream, *, as_of: Timestamp | None
) -> Done:
    """Send the rows of a query or table as they come (M1)."""
    columns = copy.query.columns
    writer = CopyWriter(
        copy.options,
        [column.type for column in columns],
        [column.name for column in columns],
        execution.variables.timezone,
    )
    batches = await start_query(execution, copy.query, as_of=as_of)
    stream.send(CopyOutResponse((0,) * len(columns)))
    header = writer.header()
    if header:
        stream.send(CopyFrames(header, 1))
    rows = 0
    try:
        async for batch in batches:
            for start in range(0, batch.num_rows, PIECE_ROWS):
                piece = batch.slice(start, PIECE_ROWS)
                stream.send(await asyncio.to_thread(writer.message, piece))
                await stream.relieve()
            rows += batch.num_rows
    finally:
        await close_batches(batches)
    stream.send(CopyDone())
    return Done(f"COPY {rows}")
