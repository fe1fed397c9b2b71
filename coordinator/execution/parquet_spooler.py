"""Spool rows into staged Parquet files of the warehouse with bounded memory.

    batches ─▶ a thread ─▶ row groups ─▶ files of FILE_BYTES ─▶ sync ─▶ DataFiles for the commit

INVARIANTS
  P1  memory holds one row group and the buffers that the Parquet writer needs for it.
  P2  files count once a commit names them; `finish` has made them durable before that (W3 of
      `storage/object_store.py`).
  P3  file names are random and never used twice, also by a server that was killed in between.
  P4  one thread at a time uses the writer. The thread of a cancelled statement goes on, and closing
      a writer beside it would crash the process. Discarded files stay discarded.
"""

import asyncio
import secrets
import threading
from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from storage.batch import DataFile
from storage.delta.files import (
    COMPRESSION,
    ROW_GROUP_ROWS,
    data_file_from_parquet,
    dictionary_leaves,
    footer_statistics,
    nan_columns,
)
from storage.delta.layout import data_path
from storage.object_store import ObjectStore
from storage.types import ShardId, Source

FILE_BYTES: Final = 128 << 20
"""Larger: fewer files to open. Smaller: more tasks that can read at once."""


class ParquetSpooler:
    """Implements `execution.Spooler` over a local object store."""

    def __init__(self, store: ObjectStore, shard: ShardId, schema: pa.Schema) -> None:
        self._store = store
        self._shard = shard
        self._schema = schema
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = 0
        self._writer: pq.ParquetWriter | None = None
        self._names: list[Source] = []
        self._done: list[DataFile] = []
        self._turn = threading.RLock()
        self._without: frozenset[str] = frozenset()
        """Columns that have held a NaN (F1 of `storage/delta/files.py`)."""

    async def write(self, batch: pa.RecordBatch) -> None:
        """See Spooler."""
        self._pending.append(batch)
        self._pending_rows += batch.num_rows
        if self._pending_rows >= ROW_GROUP_ROWS:
            await asyncio.to_thread(self._write_group)

    async def finish(self) -> Sequence[DataFile]:
        """See Spooler."""
        await asyncio.to_thread(self._close_file)
        await self._store.sync([data_path(self._shard, name) for name in self._names])
        return tuple(self._done)

    async def discard(self) -> None:
        """See Spooler."""
        await asyncio.to_thread(self._abandon)
        for name in self._names:
            await self._store.delete(data_path(self._shard, name))

    def _write_group(self) -> None:
        with self._turn:
            if self._pending:
                self._write_pending()

    def _write_pending(self) -> None:
        rows = pa.Table.from_batches(self._pending, schema=self._schema)
        self._pending, self._pending_rows = [], 0
        found = nan_columns(rows)
        if not found <= self._without:
            # A writer cannot change its mind about a column: what follows is in another file.
            self._without |= found
            self._close_file()
        writer = self._writer or self._open_file(rows)
        writer.write_table(rows, row_group_size=ROW_GROUP_ROWS)
        path = self._store.local_path(data_path(self._shard, self._names[-1]))
        if path.stat().st_size >= FILE_BYTES:
            self._close_file()

    def _open_file(self, first: pa.Table) -> pq.ParquetWriter:
        name = Source(f"part-{secrets.token_hex(16)}.parquet")
        path = self._store.local_path(data_path(self._shard, name))
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._names.append(name)
        self._writer = pq.ParquetWriter(
            path,
            self._schema,
            compression=COMPRESSION,
            use_dictionary=dictionary_leaves(self._schema, first),
            store_schema=False,
            store_decimal_as_integer=True,
            write_page_checksum=True,
            write_statistics=footer_statistics(self._schema, self._without),
        )
        return self._writer

    def _close_file(self) -> None:
        with self._turn:
            self._write_group()
            writer, self._writer = self._writer, None
            if writer is not None:
                self._close(writer)

    def _close(self, writer: pq.ParquetWriter) -> None:
        writer.close()
        name = self._names[-1]
        path = self._store.local_path(data_path(self._shard, name))
        path.chmod(0o600)
        metadata = pq.read_metadata(path)
        self._done.append(data_file_from_parquet(name, metadata, path.stat().st_size, self._schema))

    def _abandon(self) -> None:
        with self._turn:
            self._pending = []
            writer, self._writer = self._writer, None
            if writer is not None:
                writer.close()
