"""Batches on their way into staged Parquet files of a table's directory; needs no JVM.

    batches ─▶ pending ─(a row group)─▶ a thread ─▶ part-<token>-<n>.parquet, of bounded size

INVARIANTS
  G1  a staged file counts only when a commit names it. Nothing here syncs: the caller does, before
      it commits.
  G2  what is aborted leaves no file behind; what a killed process leaves is nobody's, by its name.
  G3  files keep the order of the rows: by number, then by position.
  G4  memory holds at most two row groups and what the writer needs for one, whatever the number of
      rows: one is gathered while the one before is written.
"""

import asyncio
import contextlib
import os
import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from storage.types import Source

FILE_BYTES_MAX: Final = 96 << 20
"""When a file is closed and the next one begun. Larger: fewer, and less parallel, scans."""
ROW_GROUP_BYTES_MAX: Final = 32 << 20
"""Bytes of one row group, in memory. Larger compresses better; it is held until it is written."""
ROW_GROUP_ROWS_MAX: Final = 1 << 20
"""The same, in rows."""
COMPRESSION: Final = "snappy"


class ParquetSpooler:
    """See the module. Methods are not to be called concurrently; `write` waits while two batches
    are waiting.
    """

    def __init__(
        self, directory: Path, schema: pa.Schema, *, file_bytes_max: int = FILE_BYTES_MAX
    ) -> None:
        self._directory = directory
        self._schema = schema
        self._file_bytes_max = file_bytes_max
        # Unique among all processes that ever stage into this directory.
        self._token = secrets.token_hex(12)
        self._thread = ThreadPoolExecutor(1, "spooler")
        self._writing: asyncio.Future[None] | None = None
        self._names: list[Source] = []
        self._pending: list[pa.RecordBatch] = []
        self._pending_bytes = 0
        self._pending_rows = 0
        self._writer: pq.ParquetWriter | None = None
        self._file: pa.OSFile | None = None

    @property
    def names(self) -> Sequence[Source]:
        """The files begun so far."""
        return tuple(self._names)

    async def write(self, batch: pa.RecordBatch) -> None:
        """Add rows, of exactly the schema's types, in order."""
        assert batch.schema.types == self._schema.types, "rows of the table's types"
        self._pending.append(batch)
        self._pending_bytes += batch.nbytes
        self._pending_rows += batch.num_rows
        if self._pending_bytes >= ROW_GROUP_BYTES_MAX or self._pending_rows >= ROW_GROUP_ROWS_MAX:
            await self._flush()

    async def finish(self) -> Sequence[Source]:
        """Close the files; their names, in order (G3). They are not synced yet (G1)."""
        await self._flush()
        await self._settled()
        await self._in_thread(self._close_file)
        self._thread.shutdown(wait=False)
        return self.names

    async def abort(self) -> None:
        """Remove whatever was written (G2)."""
        self._pending.clear()
        with contextlib.suppress(Exception):  # it is thrown away, however it went
            await self._settled()
        await self._in_thread(self._remove)
        self._thread.shutdown(wait=False)

    async def _flush(self) -> None:
        """Hand what is pending to the thread; one row group at a time (G4)."""
        await self._settled()
        batches, self._pending = self._pending, []
        self._pending_bytes = self._pending_rows = 0
        if batches:
            loop = asyncio.get_running_loop()
            self._writing = loop.run_in_executor(self._thread, self._write_group, batches)

    async def _settled(self) -> None:
        """Wait until the thread has written what it was given; raises what went wrong."""
        if self._writing is not None:
            writing = self._writing
            # A cancelled waiter must not forget the write: `abort` waits for it again.
            await asyncio.shield(writing)
            self._writing = None

    async def _in_thread(self, work: Callable[[], None]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _write_group(self, batches: Sequence[pa.RecordBatch]) -> None:
        if self._writer is None:
            self._open_file()
        assert self._writer is not None, "a file is open"
        assert self._file is not None, "a file is open"
        rows = pa.Table.from_batches([b.cast(self._schema) for b in batches], self._schema)
        self._writer.write_table(rows, row_group_size=ROW_GROUP_ROWS_MAX)
        if self._file.tell() >= self._file_bytes_max:
            self._close_file()

    def _open_file(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        name = Source(f"part-{self._token}-{len(self._names):05}.parquet")
        path = self._directory / name
        # Exclusive: a name that is taken is never written over.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        self._names.append(name)
        self._file = pa.OSFile(str(path), "wb")
        self._writer = pq.ParquetWriter(
            self._file,
            self._schema,
            compression=COMPRESSION,
            store_schema=False,
            store_decimal_as_integer=True,
        )

    def _close_file(self) -> None:
        writer, file = self._writer, self._file
        self._writer = self._file = None
        if writer is not None:
            writer.close()
        if file is not None:
            file.close()

    def _remove(self) -> None:
        with contextlib.suppress(OSError, pa.ArrowException):
            self._close_file()
        for name in self._names:
            (self._directory / name).unlink(missing_ok=True)
        self._names.clear()
