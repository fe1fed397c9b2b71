"""Rows into staged files: a statement that is cancelled leaves its thread at work."""

import asyncio
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coordinator.execution.parquet_spooler import ParquetSpooler
from storage.delta.files import ROW_GROUP_ROWS
from storage.local_store import LocalObjectStore
from storage.types import ShardId
from tests.support.connections import on_a_loop

SCHEMA = pa.schema([("a", pa.int64())])


@on_a_loop
async def test_a_writer_is_not_closed_under_who_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P4: Arrow ends the process otherwise."""
    told: list[str] = []
    writing, goes_on = threading.Event(), threading.Event()
    write_table, close = pq.ParquetWriter.write_table, pq.ParquetWriter.close

    def write_slowly(writer: pq.ParquetWriter, rows: pa.Table, row_group_size: int) -> None:
        writing.set()
        goes_on.wait()
        write_table(writer, rows, row_group_size)
        told.append("written")

    def close_and_tell(writer: pq.ParquetWriter) -> None:
        told.append("closed")
        close(writer)

    monkeypatch.setattr(pq.ParquetWriter, "write_table", write_slowly)
    monkeypatch.setattr(pq.ParquetWriter, "close", close_and_tell)
    store = LocalObjectStore(tmp_path)
    spooler = ParquetSpooler(store, ShardId("s"), SCHEMA)
    rows = pa.RecordBatch.from_arrays([pa.array(range(ROW_GROUP_ROWS))], schema=SCHEMA)
    async with asyncio.TaskGroup() as tasks:
        statement = tasks.create_task(spooler.write(rows))
        await asyncio.to_thread(writing.wait)
        statement.cancel()
        tasks.create_task(spooler.discard())
        # Threads that were asked later than the one which discards have had their turn.
        for _ in range(10):
            await asyncio.to_thread(lambda: None)
        goes_on.set()
    assert told == ["written", "closed"]
    assert await store.list("") == []
