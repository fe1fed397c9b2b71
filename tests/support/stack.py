"""The real stack in one process: server, sessions, driver, core; memory stores; reference engine.

INVARIANTS
  K1  a server listens on a free loopback port, and is gone when its block ends.
  K2  time is the wall clock's, but nothing is asserted about it.
"""

import asyncio
import contextlib
import io
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from compute.access.key_index import KeyIndex
from compute.access.warm_columns import warm_columns
from compute.arrow import table_schema
from compute.executor import Executor
from compute.reference.executor import ReferenceExecutor
from coordinator.config import Settings
from coordinator.core.settings import CoreSettings
from coordinator.driver.driver import Driver
from coordinator.driver.sources import SourceComponents, SourceReaders
from coordinator.driver.upstreams import Upstreams
from coordinator.execution.context import ExecutionLimits, Services
from coordinator.execution.in_process import ReferenceInProcess
from coordinator.execution.views.maintain import ViewMaintenance
from coordinator.planning.plan_cache import PlanCache
from coordinator.server.connection import Connection
from coordinator.server.recovery import recover_timelines
from coordinator.server.serve import secret_rules
from coordinator.server.server import Server
from coordinator.session.temporary_tables import drop_leftover_temporaries
from sql.catalog.catalog import Table
from storage.batch import DataFile
from storage.clock import SystemClock
from storage.delta.statistics import table_statistics
from storage.memory import MemoryObjectStore, MemoryStash
from storage.types import ShardId, Source

WITHOUT_CUTS = CoreSettings(cut_age_us=1 << 60)
"""Rows stay in the tail, in the order in which they came, however slow the machine is: PostgreSQL's
answers to queries without ORDER BY are in that order."""


WITHOUT_LOCKS = CoreSettings(locks=False)
"""Nobody waits for tables and rows: tests of validation see what it decides alone (K6)."""


def schema_of(table: Table) -> pa.Schema:
    """What a table's shard stores."""
    return table_schema(table.stored_columns, table.numbers, change_feed=table.change_feed)


class MemorySpooler:
    """Rows on their way into a staged file of a memory store. Vacuum takes it for one by its name
    (Y3 of `vacuum.py`).
    """

    def __init__(
        self, store: MemoryObjectStore, shard: ShardId, schema: pa.Schema, name: str
    ) -> None:
        self._store = store
        self._path = f"{shard}/{name}"
        self._name = name
        self._schema = schema
        self._batches: list[pa.RecordBatch] = []

    async def write(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)

    async def finish(self) -> Sequence[DataFile]:
        table = pa.Table.from_batches(self._batches, schema=self._schema)
        content = io.BytesIO()
        pq.write_table(table, content)
        await self._store.create(self._path, content.getvalue())
        file = Source(self._name)
        return [DataFile(file, table.num_rows, len(content.getvalue()), table_statistics(table))]

    async def discard(self) -> None:
        self._batches.clear()
        await self._store.delete(self._path)


def _selected(table: pa.Table, names: Sequence[str]) -> pa.Table:
    return table.select([name for name in names if name in table.schema.names])


@dataclass
class Stack:
    """What a test sees."""

    port: int
    server: Server
    driver: Driver
    services: Services
    group: asyncio.TaskGroup

    @property
    def dsn(self) -> str:
        return f"postgresql://meridian@127.0.0.1:{self.port}/meridian?sslmode=disable"


@contextlib.asynccontextmanager
async def running(
    settings: Settings | None = None,
    *,
    limits: ExecutionLimits | None = None,
    stash: MemoryStash | None = None,
    store: MemoryObjectStore | None = None,
    engine: Executor | None = None,
    local: Executor | None = None,
    core: CoreSettings | None = None,
    has_warm_engine: Callable[[], bool] = lambda: True,
    maintained: bool = False,
    readers: SourceReaders | None = None,
) -> AsyncIterator[Stack]:
    """A server for the length of the block (K1). Its sessions use an `engine` that is given, its
    sources these `readers`. `maintained`: commits maintain views; otherwise each write of an input
    leaves them behind.
    """
    settings = replace(settings or Settings(), listen="127.0.0.1:0")
    if engine is not None:
        settings = replace(settings, variables={"engine": "spark", **settings.variables})
    stash = stash or MemoryStash()
    kept = store or MemoryObjectStore()
    names = iter(range(1_000_000))
    upstreams = Upstreams(secret_rules(settings))

    def read_file(shard: ShardId, file: DataFile) -> pa.Table:
        return pq.read_table(io.BytesIO(kept.peek(f"{shard}/{file.name}")))

    def spool(shard: ShardId, schema: pa.Schema) -> MemorySpooler:
        name = f"part-{stash.epoch:024x}-{next(names):05}.parquet"
        return MemorySpooler(kept, shard, schema, name)

    index = KeyIndex(
        # A column that came later is not in the file.
        lambda shard, file, names: _selected(read_file(shard, file), names),
        lambda shard, file, rows: read_file(shard, file).take(pa.array(rows, pa.int64())),
        warm_row=lambda shard, file, row: (warm_columns(read_file(shard, file)), row),
    )
    components = SourceComponents(readers or upstreams, index, spool)
    timelines = await recover_timelines(
        stash, kept, SystemClock(), core or CoreSettings(), schema_of, sources=components
    )
    services = Services(
        coordination=timelines,
        clock=SystemClock(),
        engine=engine or ReferenceExecutor(read_file),
        in_process=ReferenceInProcess(),
        spool=spool,
        plans=PlanCache(),
        key_index=index,
        limits=limits or ExecutionLimits(),
        local=local,
        has_warm_engine=has_warm_engine,
        upstreams=upstreams,
    )
    server = Server(settings, Connection)
    port = await server.bind()
    async with asyncio.TaskGroup() as group:
        driving = group.create_task(timelines.run())
        await drop_leftover_temporaries(timelines)
        await server.accept(group, services)
        timelines.system.on_views = server.views_changed
        if maintained:
            timelines.system.maintain_views = ViewMaintenance(services, services.engine).maintain
        try:
            yield Stack(port, server, timelines.system, services, group)
        finally:
            await server.stop()
            await timelines.stop()
            await driving


@contextlib.contextmanager
def serving(
    settings: Settings | None = None,
    *,
    stash: MemoryStash | None = None,
    store: MemoryObjectStore | None = None,
    local: Executor | None = None,
    core: CoreSettings | None = None,
    maintained: bool = False,
) -> Iterator[str]:
    """The same server on a loop of its own, for clients that block; its DSN."""
    started: Future[tuple[str, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serve() -> None:
        done = asyncio.Event()
        server = running(
            settings, stash=stash, store=store, local=local, core=core, maintained=maintained
        )
        async with server as stack:
            started.set_result((stack.dsn, asyncio.get_running_loop(), done))
            await done.wait()

    with ThreadPoolExecutor(1) as threads:
        ended = threads.submit(lambda: asyncio.run(serve()))
        ended.add_done_callback(lambda future: _tell_failure(future, started))
        dsn, loop, done = started.result()
        try:
            yield dsn
        finally:
            loop.call_soon_threadsafe(done.set)
            ended.result()


def _tell_failure(ended: Future[None], started: Future[Any]) -> None:
    error = ended.exception()
    if error is not None and not started.done():
        started.set_exception(error)
