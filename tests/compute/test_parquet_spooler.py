"""Batches on their way into Parquet files: all of them, in order, or nothing."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compute import parquet_spooler
from compute.parquet_spooler import ParquetSpooler

SCHEMA = pa.schema([("id", pa.int64()), ("price", pa.decimal128(7, 2))])


@pytest.fixture(autouse=True)
def _small_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_spooler, "ROW_GROUP_ROWS_MAX", 100)


def batches(count: int, rows: int = 30) -> Iterator[pa.RecordBatch]:
    for first in range(0, count * rows, rows):
        ids = pa.array(range(first, first + rows), pa.int64())
        yield pa.record_batch([ids, pa.nulls(rows, SCHEMA.field(1).type)], schema=SCHEMA)


async def write_all(spooler: ParquetSpooler, count: int) -> None:
    for batch in batches(count):
        await spooler.write(batch)


def test_rows_keep_their_order_over_files(tmp_path: Path) -> None:
    async def story() -> list[str]:
        spooler = ParquetSpooler(tmp_path / "new", SCHEMA, file_bytes_max=2000)
        for batch in batches(40):
            await spooler.write(batch)
        return list(await spooler.finish())

    names = asyncio.run(story())
    assert len(names) > 2
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == names
    found = pa.concat_tables([pq.read_table(tmp_path / "new" / name) for name in names])
    assert found.column(0).to_pylist() == list(range(1200))
    assert found.schema.types == SCHEMA.types
    assert not any((tmp_path / "new" / name).stat().st_mode & 0o077 for name in names)


def test_nothing_makes_no_file(tmp_path: Path) -> None:
    assert asyncio.run(ParquetSpooler(tmp_path, SCHEMA).finish()) == ()
    assert list(tmp_path.iterdir()) == []


def test_what_is_aborted_is_gone(tmp_path: Path) -> None:
    async def story() -> None:
        spooler = ParquetSpooler(tmp_path, SCHEMA, file_bytes_max=2000)
        for batch in batches(40):
            await spooler.write(batch)
        await spooler.write(next(batches(1)))
        assert spooler.names
        await spooler.abort()

    asyncio.run(story())
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_is_told_and_aborted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    async def story() -> None:
        spooler = ParquetSpooler(tmp_path, SCHEMA)
        for batch in batches(4):
            await spooler.write(batch)
        monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
        with pytest.raises(OSError, match="No space"):
            await write_all(spooler, 12)
        await spooler.abort()

    asyncio.run(story())
    assert list(tmp_path.iterdir()) == []


def test_names_of_two_spoolers_differ(tmp_path: Path) -> None:
    async def story() -> None:
        for _ in range(3):
            spooler = ParquetSpooler(tmp_path, SCHEMA)
            await spooler.write(next(batches(1)))
            await spooler.finish()

    asyncio.run(story())
    assert len(list(tmp_path.iterdir())) == 3
