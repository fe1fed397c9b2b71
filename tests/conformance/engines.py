"""The engines that `test_executor.py` runs on, and the data files they read."""

import asyncio
import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compute.duckdb.database import LocalSettings
from compute.duckdb.executor import LocalExecutor
from compute.executor import Executor
from compute.reference.executor import ReferenceExecutor
from compute.spark.session import SessionPoolName
from storage.batch import DataFile
from storage.types import ShardId, Source
from tests.engines.spark import shared_engine


class Files:
    """Data files below a directory, one directory a shard."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def write(self, shard: ShardId, name: str, table: pa.Table) -> DataFile:
        """A Parquet file of the shard."""
        path = self.directory / shard / name
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            pq.write_table(table, path)
        return DataFile(Source(name), table.num_rows, path.stat().st_size, "{}")

    def read(self, shard: ShardId, file: DataFile) -> pa.Table:
        """All rows of a file."""
        return pq.read_table(self.directory / shard / file.name)


@contextlib.contextmanager
def reference(files: Files) -> Iterator[Executor]:
    """The reference engine."""
    yield ReferenceExecutor(files.read)


def local(*, small: bool) -> "Engine":
    """The local engine; unless `small`, all files are read by DuckDB itself."""

    @contextlib.contextmanager
    def opened(files: Files) -> Iterator[Executor]:
        never = mock.patch("compute.duckdb.relations.is_small_view", return_value=False)
        with tempfile.TemporaryDirectory() as spill, contextlib.nullcontext() if small else never:
            executor = LocalExecutor(LocalSettings(files.directory, Path(spill) / "spill"))
            yield executor
            asyncio.run(executor.close())

    return opened


def spark(lane: SessionPoolName, *, spooled: bool = False) -> "Engine":
    """Spark, in one of its lanes; all of them must give the same answers."""

    @contextlib.contextmanager
    def opened(files: Files) -> Iterator[Executor]:
        with shared_engine.forced(lane, spooled=spooled):
            yield shared_engine.Elsewhere(shared_engine.executor(), files.directory)

    return opened


Engine = Callable[[Files], contextlib.AbstractContextManager[Executor]]
ENGINES = [
    pytest.param(reference, id="reference"),
    pytest.param(local(small=True), id="local"),
    pytest.param(local(small=False), id="local-files"),
    pytest.param(spark(SessionPoolName.SMALL), id="spark", marks=pytest.mark.spark),
    pytest.param(spark(SessionPoolName.MEDIUM), id="spark-files", marks=pytest.mark.spark),
    pytest.param(
        spark(SessionPoolName.LARGE, spooled=True), id="spark-large", marks=pytest.mark.spark
    ),
]
