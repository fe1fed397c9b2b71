"""COPY FROM STDIN and COPY TO STDOUT: stream rows between the client and a table.

    CopyData ─▶ pieces ─▶ a thread: CopyReader ─▶ batches ─▶ RowSink ─▶ the transaction
    query ─▶ batches ─▶ a thread: CopyWriter ─▶ CopyData

INVARIANTS
  M1  memory is a few pieces and the sink's buffer, however much data comes; the client waits
      meanwhile.
  M2  rows count when the client has said CopyDone and the transaction commits; never before.
  M3  an error in the data is found before what follows it is taken, and without it if the client
      waits: Sync is the COPY's while it runs, and the session's when it has failed.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import Final, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from compute.plan_nodes import is_volatile
from coordinator.execution.context import Done, Execution
from coordinator.execution.dml.foreign_keys import UPDATED, RowChange, check_foreign_keys
from coordinator.execution.dml.modify_part import NEW
from coordinator.execution.dml.row_sink import RowSink
from coordinator.execution.dml.transient_relations import (
    IN_PROCESS_ROWS_MAX,
    run_over_transient,
    transient_batch,
    transient_view,
)
from coordinator.execution.dml.unique_keys import DuplicateKey, check_keys_free
from coordinator.execution.query import start_query
from coordinator.execution.reg_names import oid_naming
from coordinator.execution.sequence_calls import evaluate_row_calls
from coordinator.execution.spill import write_rows
from coordinator.pgwire.copy_binary import BinaryReader, BinaryWriter
from coordinator.pgwire.copy_in import CopyReader
from coordinator.pgwire.copy_out import CopyWriter
from coordinator.pgwire.messages import (
    BINARY_FORMAT,
    TEXT_FORMAT,
    BackendMessage,
    CopyData,
    CopyDone,
    CopyFail,
    CopyFrames,
    CopyInResponse,
    CopyOutResponse,
    FrontendMessage,
    Malformed,
    Severity,
)
from coordinator.streams import closing_batches
from coordinator.transaction.progress import CopyProgress
from ingest.copy_text.kernels import Column as Values
from sql.errors import SqlError, not_supported
from sql.statements.bound import CopyIn, CopyOut, OutputColumn
from sql.statements.copy_options import CopyOptions
from storage.types import Timestamp

PIECE_BYTES: Final = 1 << 20
"""Input handed to a thread at once. Larger: more memory. Smaller: more hand-overs."""

QUIET_S: Final = 0.05
"""A client that says nothing for so long may wait to hear of an error in what it has sent. Longer:
it hears it later. Shorter: pauses of the network make small pieces.
"""

PIECE_ROWS: Final = 8_192
"""Rows written by a thread at once."""


Reader: TypeAlias = CopyReader | BinaryReader


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

    def take(self) -> FrontendMessage | None:
        """The next message if it has come."""
        ...

    def peek(self) -> FrontendMessage | None:
        """The message that `take` would give or refuse."""
        ...

    async def more(self) -> None:
        """After `peek` has found nothing: wait. Raises EOFError when there will be nothing."""
        ...


async def execute_copy_in(execution: Execution, copy: CopyIn, stream: CopyStream) -> Done:
    """Take the client's rows and buffer them into the transaction (M2)."""
    transaction = execution.transaction
    transaction.check_writable("COPY FROM", [copy.table])
    if copy.freeze and copy.table.oid not in transaction.fresh:
        raise _not_fresh()
    sink = RowSink.of(execution, copy.table)
    try:
        with transaction.progress.copying("COPY FROM", copy.table.oid) as progress:
            reader = await _receive(execution, copy, stream, sink, progress)
        batch = await sink.finish()
        try:
            await check_keys_free(execution, copy.table, sink.keyed)
        except DuplicateKey as error:
            # WHERE has passed over rows, and nobody knows how many.
            if copy.where is None:
                error.context = f"COPY {copy.table.name}, line {reader.line_of(error.row)}"
            raise
    except BaseException:
        await sink.discard()
        raise
    summary = reader.summary()
    if summary is not None:
        execution.notice(summary, Severity.NOTICE)
    if sink.rows:
        await write_rows(execution, copy.table, batch)
        change = RowChange(copy.table, sink.keyed, {}, None, UPDATED)
        await check_foreign_keys(execution, [change])
    return Done(f"COPY {sink.rows}")


def _not_fresh() -> SqlError:
    message = (
        "cannot perform COPY FREEZE because the table was not created or truncated "
        "in the current subtransaction"
    )
    return SqlError("55000", message)


def _reader(execution: Execution, copy: CopyIn) -> Reader:
    columns = [copy.table.columns[ordinal] for ordinal in copy.ordinals]
    types, names = [column.type for column in columns], [column.name for column in columns]
    if copy.options.is_binary:
        _refuse_binary(execution)
        return BinaryReader(types, names, relation=copy.table.name)
    return CopyReader(
        _in_clients_encoding(execution, copy.options),
        types,
        names,
        relation=copy.table.name,
        timezone=execution.variables.timezone,
        styles=execution.variables.styles,
    )


async def _receive(
    execution: Execution,
    copy: CopyIn,
    stream: CopyStream,
    sink: RowSink,
    progress: CopyProgress,
) -> Reader:
    defaults = _Defaults(execution, copy)
    reader = _reader(execution, copy)
    code = BINARY_FORMAT if copy.options.is_binary else TEXT_FORMAT
    stream.send(CopyInResponse((code,) * len(copy.ordinals), code))
    await stream.flush()
    pieces: list[bytes] = []

    async def take_in(read: Callable[[Reader, bytes], Sequence[pa.RecordBatch]]) -> None:
        piece = b"".join(pieces)
        pieces.clear()
        progress.bytes += len(piece)
        read_rows = await _read(execution, reader, read, piece)
        before = sink.rows
        await _add(execution, copy, read_rows, sink, defaults)
        progress.rows += sink.rows - before
        progress.excluded += sum(each.num_rows for each in read_rows) - (sink.rows - before)
        progress.skipped = reader.skipped

    size = 0
    while True:
        message = await _next(stream, progress, in_time=size > 0)
        if isinstance(message, CopyData):
            stream.take()
            pieces.append(message.data)
            size += len(message.data)
            if size >= PIECE_BYTES:
                await take_in(_parsed)
                size = 0
            continue
        await take_in(_rest if isinstance(message, CopyDone) else _whole_rows)
        size = 0
        # M3: taken, or refused, when the data before it has turned out to be right.
        match message if message is None else stream.take():
            case CopyDone():
                return reader
            case CopyFail(message=reason):
                raise reader.located(SqlError("57014", f"COPY from stdin failed: {reason}"))
            case Malformed(error=error):
                raise reader.located(error)
            case _:
                pass


async def _next(
    stream: CopyStream, progress: CopyProgress, *, in_time: bool
) -> FrontendMessage | None:
    """The next message, which is left to be taken; None if it does not come `in_time`."""
    if (message := stream.peek()) is not None:
        return message
    progress.waits_for_client = True
    try:
        async with asyncio.timeout(QUIET_S if in_time else None):
            while (message := stream.peek()) is None:
                await stream.more()
            return message
    except TimeoutError:
        return None
    finally:
        progress.waits_for_client = False


async def _read(
    execution: Execution,
    reader: Reader,
    read: Callable[[Reader, bytes], Sequence[pa.RecordBatch]],
    piece: bytes,
) -> Sequence[pa.RecordBatch]:
    """The rows of a piece; notices about other rows are sent, also if an error ends it."""
    try:
        return await asyncio.to_thread(read, reader, piece)
    finally:
        for notice in reader.take_told():
            execution.notice(notice, Severity.NOTICE)


def _parsed(reader: Reader, piece: bytes) -> Sequence[pa.RecordBatch]:
    return list(reader.feed(piece))


def _whole_rows(reader: Reader, piece: bytes) -> Sequence[pa.RecordBatch]:
    return [*reader.feed(piece), *reader.drain()]


def _rest(reader: Reader, piece: bytes) -> Sequence[pa.RecordBatch]:
    return [*reader.feed(piece), *reader.finish()]


class _Defaults:
    """The columns that the data of a COPY does not have."""

    def __init__(self, execution: Execution, copy: CopyIn) -> None:
        self._execution = execution
        self._row = copy.defaults
        self._volatile = copy.defaults is not None and is_volatile(copy.defaults)

    async def columns(self, rows: int) -> Sequence[Values]:
        """They, for so many rows."""
        if self._row is None:
            return []
        plan = (
            replace(self._row, rows=tuple(self._row.rows) * rows) if self._volatile else self._row
        )
        in_process = self._execution.services.in_process
        in_process.require(self._row, "COPY with this default")
        run = self._execution.run(plan, await self._execution.with_catalog(plan, {}))
        (found,) = (await in_process.answer(run)).combine_chunks().to_batches()
        if self._volatile:
            return found.columns
        return [column.take(np.zeros(rows, dtype=np.int64)) for column in found.columns]


async def _add(
    execution: Execution,
    copy: CopyIn,
    batches: Sequence[pa.RecordBatch],
    sink: RowSink,
    defaults: _Defaults,
) -> None:
    for batch in batches:
        columns = await _completed(copy, batch, defaults)
        whole = pa.RecordBatch.from_arrays(columns, schema=sink.schema)
        whole = await sink.fill(whole)
        if copy.where is None:
            await sink.take(whole)
            continue
        columns = whole.columns
        rows = transient_batch(columns, batch.num_rows)
        for start in range(0, rows.num_rows, IN_PROCESS_ROWS_MAX):
            piece = pa.Table.from_batches([rows.slice(start, IN_PROCESS_ROWS_MAX)])
            kept = run_over_transient(execution, copy.where, {NEW: transient_view(NEW, piece)})
            async for found in kept:
                await sink.add(found.columns)
            await asyncio.sleep(0)


async def _completed(copy: CopyIn, batch: pa.RecordBatch, defaults: _Defaults) -> Sequence[Values]:
    """All columns of the table: those of the data, and the defaults of the others."""
    given = dict(zip(copy.ordinals, batch.columns, strict=True))
    made = iter(await defaults.columns(batch.num_rows))
    return [
        given[ordinal] if ordinal in given else next(made)
        for ordinal in range(len(copy.table.columns))
    ]


def _writer(
    execution: Execution, columns: Sequence[OutputColumn], options: CopyOptions
) -> CopyWriter | BinaryWriter:
    types, names = [column.type for column in columns], [column.name for column in columns]
    if options.is_binary:
        _refuse_binary(execution)
        return BinaryWriter(types)
    variables = execution.variables
    options = _in_clients_encoding(execution, options)
    return CopyWriter(options, types, names, variables.timezone, variables.styles)


def _in_clients_encoding(execution: Execution, options: CopyOptions) -> CopyOptions:
    encoding = options.encoding or execution.variables.encoding
    return replace(options, encoding=encoding)


def _refuse_binary(execution: Execution) -> None:
    """Texts stand inside of other bytes there (E3 of `pgwire/client_encodings.py`)."""
    encoding = execution.variables.encoding
    if encoding is not None:
        raise not_supported(f"COPY in binary for a client whose encoding is {encoding.name}")


async def execute_copy_out(
    execution: Execution, copy: CopyOut, stream: CopyStream, *, as_of: Timestamp | None
) -> Done:
    """Send the rows of a query or table as they come (M1)."""
    writer = _writer(execution, copy.query.columns, copy.options)
    batches = await start_query(execution, copy.query, as_of=as_of)
    batches = evaluate_row_calls(execution, batches, copy.query.calls)
    relation = 0 if copy.table is None else copy.table.oid
    return await _send_copied(execution, copy.query.columns, writer, batches, stream, relation)


async def send_copied(
    execution: Execution,
    columns: Sequence[OutputColumn],
    options: CopyOptions,
    batches: AsyncIterator[pa.RecordBatch],
    stream: CopyStream,
) -> Done:
    """Send rows as they come; they are closed in any case (M1)."""
    async with closing_batches(batches):
        writer = _writer(execution, columns, options)
        return await _send_copied(execution, columns, writer, batches, stream)


async def _send_copied(
    execution: Execution,
    columns: Sequence[OutputColumn],
    writer: CopyWriter | BinaryWriter,
    batches: AsyncIterator[pa.RecordBatch],
    stream: CopyStream,
    relation: int = 0,
) -> Done:
    code = BINARY_FORMAT if isinstance(writer, BinaryWriter) else TEXT_FORMAT
    stream.send(CopyOutResponse((code,) * len(columns), code))
    await stream.flush()
    header = writer.header()
    if header:
        stream.send(CopyFrames(header, 1))
    rows = 0
    named = oid_naming(columns, execution.context)
    copying = execution.transaction.progress.copying("COPY TO", relation)
    with copying as progress:
        async with closing_batches(batches):
            async for batch in batches:
                if named is not None:
                    batch = named(batch, [True] * len(columns))  # noqa: PLW2901
                for start in range(0, batch.num_rows, PIECE_ROWS):
                    piece = batch.slice(start, PIECE_ROWS)
                    message = await asyncio.to_thread(writer.message, piece)
                    stream.send(message)
                    progress.bytes += len(message.data)
                    progress.rows += piece.num_rows
                    await stream.relieve()
                rows += batch.num_rows
    trailer = writer.trailer()
    if trailer:
        stream.send(CopyFrames(trailer, 1))
    stream.send(CopyDone())
    return Done(f"COPY {rows}")
