"""The engines of a server: chosen by the settings, imported and started after `ready`.

    spark_start = eager                    ─▶ SparkExecutor, and its JVM, right after `ready`
    spark_start = lazy                     ─▶ the same, at the first query that needs it
    spark_start = off, spark_master = none ─▶ the local engine: no JVM, ever
    spark_master = reference               ─▶ the reference engine: no JVM, slow, for tests
    local, beside any of them              ─▶ LocalExecutor, at its first query

INVARIANTS
  G1  nothing heavy is imported before `ready`; a query waits for its engine, a commit never does.
  G2  who needs no engine starts none: an idle server has neither DuckDB nor a JVM, unless the
      settings ask for a JVM (`eager`).
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import pyarrow as pa

from compute.executor import Executor, Run
from compute.reference.executor import ReferenceExecutor
from coordinator.config import Settings
from coordinator.monitoring.observation import ObservedJvm
from coordinator.server.open_storage import Storage
from storage.batch import DataFile
from storage.object_store import ObjectStore
from storage.types import ShardId

if TYPE_CHECKING:
    from compute.spark.executor import SparkExecutor

REFERENCE: Final = "reference"


class LateEngine:
    """An engine that is made in a thread, when `warm` or the first query asks for it (G1)."""

    def __init__(
        self,
        name: str,
        make: Callable[[], Executor],
        is_warm: Callable[[Executor], bool] = lambda _engine: True,
    ) -> None:
        """`is_warm`: whether an engine that was made answers without starting anything else."""
        self._name = name
        self._make = make
        self._is_warm = is_warm
        self._made: asyncio.Future[Executor] | None = None

    @property
    def name(self) -> str:
        """See Executor."""
        return self._name

    @property
    def is_warm(self) -> bool:
        """Whether a query would be answered at once, without waiting for a start."""
        made = self.made
        return made is not None and self._is_warm(made)

    @property
    def made(self) -> Executor | None:
        """The engine, if it was made."""
        made = self._made
        if made is None or not made.done() or made.cancelled() or made.exception() is not None:
            return None
        return made.result()

    async def warm(self) -> Executor:
        """The engine, made by the first who asks; everybody waits for the same one."""
        if self._made is None:
            loop = asyncio.get_running_loop()
            self._made = loop.run_in_executor(None, self._make)
        made = self._made
        try:
            # A query that is cancelled while it waits must not cancel the engine for the others.
            return await asyncio.shield(made)
        except Exception:
            # It may work next time, whatever it was (a full disk, say). Another one may be in the
            # making by now: it must be found again, to be closed.
            if self._made is made:
                self._made = None
            raise

    async def run(self, run: Run) -> AsyncIterator[pa.RecordBatch]:
        """See Executor."""
        engine = await self.warm()
        batches = cast("AsyncGenerator[pa.RecordBatch, None]", engine.run(run))
        async with aclosing(batches):
            async for batch in batches:
                yield batch

    async def close(self) -> None:
        """See Executor."""
        made, self._made = self._made, None
        if made is not None:
            await (await made).close()


@dataclass(frozen=True, slots=True)
class Engines:
    """The server's engine for queries over tables, and the local one; they may be the same."""

    main: Executor
    local: Executor

    def has_warm_engine(self) -> bool:
        """Whether the former would answer at once."""
        return not isinstance(self.main, LateEngine) or self.main.is_warm


def open_engines(settings: Settings, storage: Storage) -> Engines:
    """See the module; nothing is started yet (G1)."""
    local = LateEngine("local", lambda: _local(settings, storage))
    if settings.has_spark:
        spark = LateEngine("spark", lambda: _spark(settings, storage), _is_spark_ready)
        return Engines(spark, local)
    if settings.spark_start != "off" and settings.spark_master == REFERENCE:
        return Engines(ReferenceExecutor(partial(read_data_file, storage.store)), local)
    return Engines(local, local)


def _is_spark_ready(engine: Executor) -> bool:
    return cast("SparkExecutor", engine).is_ready


def observed_jvm(settings: Settings, engine: Executor) -> ObservedJvm:
    """The JVM of the server's engine as it is; one that was never started has 0 starts."""
    made = engine.made if settings.has_spark and isinstance(engine, LateEngine) else None
    heap_bytes = settings.spark_heap_mb << 20
    if made is None:
        return ObservedJvm(heap_bytes=heap_bytes)
    spark = cast("SparkExecutor", made)
    return ObservedJvm(spark.is_ready, spark.starts, spark.pid, heap_bytes)


def _local(settings: Settings, storage: Storage) -> Executor:
    from compute.duckdb.database import LocalSettings
    from compute.duckdb.executor import LocalExecutor

    return LocalExecutor(
        LocalSettings(
            warehouse=storage.warehouse,
            directory=storage.directory.scratch / "local",
            memory_mb=settings.local_memory_mb,
            threads=settings.local_threads,
            spill_bytes_max=settings.local_spill_bytes_max,
        )
    )


def _spark(settings: Settings, storage: Storage) -> Executor:
    from compute.spark.executor import SparkExecutor
    from compute.spark.session import ClusterSettings, SparkSettings

    cluster = ClusterSettings(
        driver_host=settings.spark_driver_host,
        driver_bind=settings.spark_driver_bind,
        driver_port=settings.spark_driver_port,
        executor_memory_mb=settings.spark_executor_memory_mb,
        cores_max=settings.spark_cores_max,
        wait_s=settings.spark_wait_s,
    )

    # The protocol asks for a property where the class has a constant: the same to a reader.
    executor = SparkExecutor(
        SparkSettings(
            directory=storage.directory.scratch / "spark",
            warehouse=storage.warehouse,
            master=settings.spark_master,
            java_home=Path(settings.java_home) if settings.java_home else None,
            heap_mb=settings.spark_heap_mb,
            conf=settings.spark_conf,
            cluster=cluster if settings.has_spark_cluster else None,
            archive_directory=storage.directory.root / "classes",
            spool_bytes_max=settings.result_spool_bytes_max,
        )
    )
    return cast("Executor", executor)


def read_columns(
    store: ObjectStore, shard: ShardId, file: DataFile, names: Sequence[str]
) -> pa.Table:
    """Some columns of all rows of a data file of a local warehouse, as far as it has them."""
    import pyarrow.parquet as pq

    path = store.local_path(f"{shard}/{file.name}")
    there = set(pq.read_schema(path).names)
    found = [name for name in names if name in there]
    return pq.read_table(path, columns=found or None, partitioning=None)


def read_data_file(store: ObjectStore, shard: ShardId, file: DataFile) -> pa.Table:
    """All rows of a data file of a local warehouse."""
    import pyarrow.parquet as pq

    return pq.read_table(store.local_path(f"{shard}/{file.name}"), partitioning=None)
