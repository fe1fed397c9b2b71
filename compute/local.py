"""The local engine: DuckDB in this process, for what fits one machine, at milliseconds.

    run ─▶ a thread: relations, statement, first batch ─▶ batches, one at a time, as they are wanted

INVARIANTS
  P1  nothing blocks the event loop: DuckDB is called in threads of the engine.
  P2  a run has a connection of its own; no more than two batches wait here, and no more than
      DuckDB's streaming buffer there, for a slow consumer.
  P3  when a run's iterator is closed, its query is interrupted and its connection is gone.
"""

import asyncio
import contextlib
import shutil
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Set
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from compute.arrow import arrow_type
from compute.executor import BATCH_ROWS_MAX, EngineUnavailable, Run
from compute.local_database import LocalSettings, open_database
from compute.local_errors import FAILURES, Interrupted, translated
from compute.local_functions import LocalFunctions
from compute.local_relations import Argument, Bound, LocalRelations
from compute.local_statements import LocalStatements
from compute.scan import RowReader
from sql.emit.ctes import with_relations
from sql.emit.scope import too_complex
from sql.plan import Plan, output_columns
from sql.plan_depth import check_depth
from storage.batch import DataFile
from storage.types import ShardId

R = TypeVar("R")

_INTERRUPTERS: Final = 4
"""Threads that interrupt; a query may take its time to notice."""
_INTERRUPT_SECONDS: Final = 0.05
"""Between two interrupts of a query that has not noticed the first."""


class LocalExecutor:
    """An `Executor`; see the module."""

    def __init__(self, settings: LocalSettings) -> None:
        self._settings = settings
        shutil.rmtree(settings.directory, ignore_errors=True)
        settings.directory.mkdir(parents=True, mode=0o700)
        self._database = open_database(settings)
        self._functions = LocalFunctions(self._database)
        self._relations = LocalRelations(settings.warehouse.resolve(), RowReader(self._read_file))
        workers = max(4, 2 * settings.threads)
        self._workers = ThreadPoolExecutor(workers, "local-query")
        self._interrupters = ThreadPoolExecutor(_INTERRUPTERS, "local-interrupt")
        self._statements = LocalStatements()
        self._queries: set[_Query] = set()
        self._closed = False

    @property
    def running(self) -> int:
        """How many runs have not ended."""
        return len(self._queries)

    @property
    def name(self) -> str:
        """As EXPLAIN shows it."""
        return "local"

    async def run(self, run: Run) -> AsyncIterator[pa.RecordBatch]:
        """See Executor."""
        check_depth(run.plan)
        query = _Query(self, run)
        self._queries.add(query)
        try:
            while (batch := await query.next_batch()) is not None:
                yield batch
        finally:
            query.close()

    async def close(self) -> None:
        """See Executor."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        if self._closed:
            return
        self._closed = True
        ended = threading.Event()
        interrupting = self._interrupters.submit(_interrupt_all, self._queries, ended)
        self._workers.shutdown(wait=True, cancel_futures=True)
        ended.set()
        interrupting.result()
        self._interrupters.shutdown(wait=True)
        self._database.close()
        shutil.rmtree(self._settings.directory, ignore_errors=True)

    def _read_file(self, shard: ShardId, file: DataFile) -> pa.Table:
        return pq.read_table(self._settings.warehouse / shard / file.name, partitioning=None)

    # --- what a query needs --------------------------------------------------------------------

    def connect(self) -> duckdb.DuckDBPyConnection:
        """A connection for one run."""
        return self._database.cursor()

    def start(
        self, connection: duckdb.DuckDBPyConnection, run: Run, bound: Bound
    ) -> pa.RecordBatchReader:
        """The statement of a run, at its first rows."""
        identified = self._statements.identified(run.plan)
        names = {
            relation: self._relations.relation(
                connection, view, bound, identity=relation in identified
            )
            for relation, view in run.inputs.items()
        }
        query = self._statements.emitted(run.plan, names, run.parameters)
        self._functions.register(query.calls)
        text = query.text
        if bound.relations:
            text = with_relations(text, bound.relations)
        arguments: Mapping[str, Argument] = {**query.arguments, **bound.arguments}
        # The public way, `sql(..)`, binds every statement twice.
        result = connection._submit(text, dict(arguments) or None, "stream", BATCH_ROWS_MAX)
        return result.arrow_reader()

    def release(self, query: "_Query", bound: Bound) -> None:
        """A run has ended."""
        self._relations.release(bound)
        self._queries.discard(query)

    def submit(self, work: Callable[[], R]) -> "Future[R]":
        """Do it in a thread of the engine."""
        try:
            return self._workers.submit(work)
        except RuntimeError as error:
            raise EngineUnavailable("the local engine is closed") from error

    def interrupt(self, query: "_Query", job: "Future[R]") -> None:
        """Have a query's job end soon; does not wait."""
        with contextlib.suppress(RuntimeError):
            self._interrupters.submit(_interrupt, query, job)


def _interrupt(query: "_Query", job: "Future[R]") -> None:
    ended = threading.Event()
    job.add_done_callback(lambda _job: ended.set())
    _interrupt_all({query}, ended)


def _interrupt_all(queries: "Set[_Query]", ended: threading.Event) -> None:
    """Again until it has ended: an interrupt between two statements is lost."""
    while not ended.is_set():
        for query in tuple(queries):
            query.interrupt()
        ended.wait(_INTERRUPT_SECONDS)


class _Query:
    """One run: its connection and where its rows come from. Jobs run one at a time."""

    def __init__(self, engine: LocalExecutor, run: Run) -> None:
        self._engine = engine
        self._run = run
        self._schema = output_schema(run.plan)
        self._bound = Bound()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._reader: pa.RecordBatchReader | None = None
        self._ahead: pa.RecordBatch | None = None
        self._job: Future[pa.RecordBatch | None] | None = None
        self._cancelled = False
        self._ended = False

    async def next_batch(self) -> pa.RecordBatch | None:
        """The next rows, None at the end."""
        if self._ended:
            return None
        self._job = self._engine.submit(self._next)
        try:
            return await asyncio.wrap_future(self._job)
        except RecursionError as error:
            raise too_complex() from error

    def interrupt(self) -> None:
        """End the statement that runs at this moment, if one does."""
        connection = self._connection
        if connection is not None:
            with contextlib.suppress(duckdb.Error):
                connection.interrupt()

    def close(self) -> None:
        """Let go of everything, when the job at hand has ended; does not wait."""
        self._cancelled = True
        job = self._job
        if job is not None and not job.done() and not job.cancel():
            self._engine.interrupt(self, job)
            job.add_done_callback(lambda _job: self._let_go())
        elif self._reader is None:
            self._let_go()
        else:
            self._let_go_elsewhere()

    def _let_go_elsewhere(self) -> None:
        """In a thread: a stream that is not at its end may have to be waited for."""
        try:
            self._engine.submit(self._let_go)
        except EngineUnavailable:
            self._let_go()

    def _let_go(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            with contextlib.suppress(*FAILURES):
                reader.close()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        self._engine.release(self, self._bound)

    def _next(self) -> pa.RecordBatch | None:
        try:
            return self._read()
        except FAILURES as error:
            found = translated(error)
            if isinstance(found, Interrupted):
                raise EngineUnavailable("the query was cancelled") from error
            raise found from error

    def _read(self) -> pa.RecordBatch | None:
        if self._connection is None:
            self._connection = self._engine.connect()
        if self._reader is None:
            self._reader = self._engine.start(self._connection, self._run, self._bound)
        if self._cancelled:
            raise EngineUnavailable("the query was cancelled")
        batch, self._ahead = self._ahead or self._read_rows(), None
        if batch is not None and batch.num_rows < BATCH_ROWS_MAX:
            # Most likely the last one: looking now saves another turn through the threads.
            self._ahead = self._read_rows()
        if self._ahead is None and (batch is None or batch.num_rows < BATCH_ROWS_MAX):
            self._ended = True
            self._let_go()
        return None if batch is None else shaped(batch, self._schema)

    def _read_rows(self) -> pa.RecordBatch | None:
        assert self._reader is not None, "the statement has begun"
        while True:
            try:
                batch = self._reader.read_next_batch()
            except StopIteration:
                return None
            if batch.num_rows:
                return batch


def output_schema(plan: Plan) -> pa.Schema:
    """The schema of a plan's batches (E1)."""
    return pa.schema(
        [pa.field(column.name, arrow_type(column.type)) for column in output_columns(plan)]
    )


def shaped(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """DuckDB's batch with the plan's names and types."""
    if not len(schema):
        return batch.select(list[str]())
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
