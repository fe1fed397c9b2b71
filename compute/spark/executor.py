"""The `spark` engine: run plans as SQL over pinned table views, and stream the answers back.

    run ─▶ JVM ready? ─▶ session pool by input size ─▶ collected ─(too many rows)▶ spooled
             │                                              └─────────▶ batches ◀───────┘
             └─ a JVM that dies is started again; runs without any answer so far run once more

INVARIANTS
  P1  nothing blocks the event loop: py4j is called in threads of the session pools (lanes), files
      are read in threads too.
  P2  a run that has yielded a batch is never started again; one that has not, at most once.
  P3  when a run's iterator is closed, its jobs are cancelled and its files are deleted.
"""

import asyncio
import contextlib
import itertools
import logging
import shutil
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

import pyarrow as pa

from compute.arrow import batch_schema
from compute.executor import EngineUnavailable, NoExecutors, Run
from compute.scan import (
    RowReader,
    deleted_row_count,
    is_small_view,
    read_table_columns,
    row_count_bound,
    view_bytes,
)
from compute.spark.cluster import ClusterWatch, StartWatch, executor_count
from compute.spark.errors import JvmDied, translating_errors
from compute.spark.jvm import Jvm, JvmSettings
from compute.spark.relations import Relations
from compute.spark.results import COLLECT_ROWS_MAX, Spool, minimum_rows
from compute.spark.session import (
    SessionPoolName,
    SparkSession,
    SparkSettings,
    launch_conf,
    verify_settings,
    write_scheduler_pools,
)
from compute.spark.session_pool import ComputedRowFiles, PooledQuery, SessionPool
from compute.spark.supervisor import JvmState, JvmSupervisor
from sql.errors import not_supported, statement_too_complex
from sql.plan.nodes import output_columns
from sql.plan.system_columns import relations_with_versions
from storage.batch import DataFile, ShardView
from storage.threads import Threads
from storage.types import ShardId

log = logging.getLogger(__name__)

R = TypeVar("R")

MEDIUM_ROWS_MAX: Final = 2_000_000
"""Above it adaptive execution pays for itself."""
MEDIUM_BYTES_MAX: Final = 128 << 20
"""The same, in bytes of the inputs."""
SMALL_TOTAL_ROWS_MAX: Final = 20_000
"""Input rows of a query in the small session pool, which runs on one core and without generated
code."""
SPOOL_POLL_SECONDS: Final = 0.02
"""How often a spool is checked for its next part."""
READERS: Final = 4
"""Threads that read spooled parts."""


@dataclass(frozen=True, slots=True)
class SparkEngine:
    """One JVM, ready to answer."""

    jvm: Jvm
    lanes: Mapping[SessionPoolName, SessionPool]
    control: Threads
    wait_s: float | None
    """How long a query waits for executors; None: there is no cluster."""

    def watch(self) -> ClusterWatch | None:
        """For one query: it does not wait for ever for executors."""
        if self.wait_s is None:
            return None
        return ClusterWatch(self._executors, self.control, wait_s=self.wait_s)

    def _executors(self) -> int:
        with translating_errors(self.jvm):
            return executor_count(self.lanes[SessionPoolName.SMALL].session.context)

    def cancel(self, query: PooledQuery) -> None:
        """Cancel a query's jobs, now or when they are submitted; does not wait."""
        query.cancelled.set()
        # Without control threads the engine is closed, and its jobs with it.
        with contextlib.suppress(RuntimeError):
            self.control.submit(self._cancel, query.group)

    def _cancel(self, group: str) -> None:
        with translating_errors(self.jvm):
            context = self.lanes[SessionPoolName.SMALL].session.context
            context.cancelJobGroupAndFutureJobs(group)

    def close(self) -> None:
        """End the threads."""
        self.control.shutdown(wait=False, cancel_futures=True)
        for lane in self.lanes.values():
            lane.close()


class SparkExecutor:
    """See the module. Spark starts in the background; `run` waits for it."""

    def __init__(self, settings: SparkSettings) -> None:
        self._settings = settings
        self._numbers = itertools.count(1)
        self._engine: SparkEngine | None = None
        self._reader = RowReader(self._read_file)
        self._spools = settings.directory / "spools"
        self._inbox = settings.directory / "inbox"
        for directory in (self._spools, self._inbox):
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(parents=True, mode=0o700)
        write_scheduler_pools(settings)
        cluster = settings.cluster
        self._start = None if cluster is None else StartWatch(cluster.wait_s)
        self._readers = Threads(READERS, "spark-results")
        self._supervisor: JvmSupervisor[SparkEngine] = JvmSupervisor(
            JvmSettings(
                directory=settings.directory / "jvm",
                conf=launch_conf(settings),
                java_home=settings.java_home,
                heap_mb=settings.heap_mb,
            ),
            self._prepare,
            archive_directory=settings.archive_directory or settings.directory / "classes",
        )

    @property
    def name(self) -> str:
        """See Executor."""
        return "spark"

    @property
    def state(self) -> JvmState:
        """The state of the JVM."""
        return self._supervisor.state

    @property
    def pid(self) -> int | None:
        """The JVM's process id, if there is one."""
        return self._supervisor.pid

    @property
    def starts(self) -> int:
        """How often a JVM was started."""
        return self._supervisor.starts

    @property
    def is_ready(self) -> bool:
        """Whether a query would be answered without waiting for a JVM."""
        return self._supervisor.state is JvmState.READY

    async def ready(self) -> None:
        """Wait until queries can be answered. Raises EngineUnavailable if the start failed."""
        await asyncio.shield(asyncio.wrap_future(self._supervisor.current().ready))

    async def run(self, run: Run) -> AsyncIterator[pa.RecordBatch]:
        """See Executor."""
        if relations_with_versions(run.plan):
            raise not_supported("reading ctid or xmin on this engine", None)
        for attempt in (1, 2):
            generation = self._supervisor.current()
            start = asyncio.wrap_future(generation.ready)
            engine = await (self._start.ready(start) if self._start else asyncio.shield(start))
            yielded = False
            try:
                async with aclosing(self._answer(engine, run)) as batches:
                    async for batch in batches:
                        yielded = True
                        yield batch
                return
            except RecursionError as error:
                raise statement_too_complex() from error
            except JvmDied as error:
                # Also when the process lives: what it says cannot be relied on any more.
                engine.jvm.kill()
                if yielded or attempt == 2:
                    raise EngineUnavailable("the engine died during the query") from error
                await asyncio.shield(asyncio.wrap_future(generation.gone))

    async def close(self) -> None:
        """See Executor."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        engine = self._engine
        if engine is not None:
            engine.close()
        self._supervisor.close()
        self._readers.shutdown(wait=True, cancel_futures=True)
        shutil.rmtree(self._spools, ignore_errors=True)
        shutil.rmtree(self._inbox, ignore_errors=True)

    # --- one answer ----------------------------------------------------------------------------

    async def _answer(self, engine: SparkEngine, run: Run) -> AsyncGenerator[pa.RecordBatch, None]:
        query = PooledQuery(run, next(self._numbers))
        try:
            async with aclosing(self._batches(engine, query)) as batches:
                async for batch in batches:
                    yield batch
        finally:
            query.when_done(self._submit)

    async def _batches(
        self, engine: SparkEngine, query: PooledQuery
    ) -> AsyncGenerator[pa.RecordBatch, None]:
        """The answer, collected or through files."""
        run = query.run
        lane = engine.lanes[choose_session_pool(run)]
        rows = {
            name: row_count_bound(view) - deleted_row_count(view)
            for name, view in run.inputs.items()
        }
        if minimum_rows(run.plan, rows, run.parameters) < COLLECT_ROWS_MAX:
            collected = await _finished(
                engine, query, lane.call(query, partial(lane.collect, query))
            )
            if collected is not None:
                for batch in collected:
                    yield batch
                return
        async with aclosing(self._spooled(engine, lane, query)) as batches:
            async for batch in batches:
                yield batch

    async def _spooled(
        self, engine: SparkEngine, lane: SessionPool, query: PooledQuery
    ) -> AsyncGenerator[pa.RecordBatch, None]:
        """The answer through files."""
        schema = batch_schema(output_columns(query.run.plan))
        spool = Spool(self._spools / query.group, schema, bytes_max=self._settings.spool_bytes_max)
        job = lane.call(query, partial(lane.write, query, spool.directory))
        writing = asyncio.wrap_future(job)
        # If it fails after the client has gone, nobody wants to know.
        writing.add_done_callback(lambda done: done.cancelled() or done.exception())
        watch = engine.watch()
        try:
            while True:
                if watch is not None:
                    await watch.check()
                complete = writing.done()
                if complete:
                    writing.result()
                else:
                    await self._read(spool.check_size)
                batch = await self._read(partial(spool.read, complete=complete))
                if batch is not None:
                    yield batch
                elif complete:
                    return
                else:
                    await asyncio.wait({writing}, timeout=SPOOL_POLL_SECONDS)
        finally:
            if not job.cancel() and not job.done():
                engine.cancel(query)
            # The job may still be writing: its directory goes when it has ended.
            job.add_done_callback(lambda _: self._submit(spool.close))

    async def _read(self, work: Callable[[], R]) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._readers, work)

    def _submit(self, work: Callable[[], None]) -> None:
        # When there are no readers any more, the executor is closed and has removed all spools.
        with contextlib.suppress(RuntimeError):
            self._readers.submit(work)

    # --- one JVM -------------------------------------------------------------------------------

    def _prepare(self, jvm: Jvm) -> SparkEngine:
        """Open sessions on a new JVM and verify them (K1 of `spark/session.py`)."""
        with translating_errors(jvm):
            root = jvm.java.org.apache.spark.sql.classic.SparkSession.builder().getOrCreate()
            if self._start is not None:
                # Sessions are verified by jobs, too, which would wait for ever.
                self._start.until_there(root.sparkContext())
            lanes = {name: self._lane(jvm, root, name) for name in SessionPoolName}
        cluster = self._settings.cluster
        wait_s = None if cluster is None else cluster.wait_s
        previous = self._engine
        engine = SparkEngine(jvm, lanes, Threads(1, "spark-control"), wait_s)
        if previous is not None:
            previous.close()
        self._engine = engine
        for lane in lanes.values():
            lane.warm_up()
        return engine

    def _lane(self, jvm: Jvm, root: object, name: SessionPoolName) -> SessionPool:
        settings = self._settings
        session = SparkSession(jvm, root, name, settings.cores)
        session.enter_thread()
        verify_settings(session)
        relations = Relations(
            session, self._reader, warehouse=settings.warehouse, inbox=self._inbox
        )
        threads = (
            max(2, settings.cores) if name is SessionPoolName.LARGE else max(4, 2 * settings.cores)
        )
        files = ComputedRowFiles(self._spools, settings.spool_bytes_max)
        return SessionPool(session, relations, files, threads=threads)

    def _read_file(self, shard: ShardId, file: DataFile) -> pa.Table:
        return read_table_columns(self._settings.warehouse / shard / file.name)


async def _finished(engine: SparkEngine, query: PooledQuery, future: "Future[R]") -> R:
    """The result of a query's work; the work is cancelled if nobody waits for it any more."""
    watch, work = engine.watch(), asyncio.wrap_future(future)
    try:
        return await (work if watch is None else watch.until(work))
    except (asyncio.CancelledError, GeneratorExit, NoExecutors):
        engine.cancel(query)
        raise


def choose_session_pool(run: Run) -> SessionPoolName:
    """The session pool for a run, by the size of all its inputs."""
    views: Sequence[ShardView] = tuple(run.inputs.values())
    if (
        all(is_small_view(view) for view in views)
        and sum(map(row_count_bound, views)) <= SMALL_TOTAL_ROWS_MAX
    ):
        return SessionPoolName.SMALL
    if (
        sum(map(row_count_bound, views)) <= MEDIUM_ROWS_MAX
        and sum(map(view_bytes, views)) <= MEDIUM_BYTES_MAX
    ):
        return SessionPoolName.MEDIUM
    return SessionPoolName.LARGE
