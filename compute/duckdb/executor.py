"""The `local` engine: run plans on DuckDB in this process, with answers within milliseconds.

    run ─▶ a thread: relations, statement ─┬─▶ Python values at once, if the last run gave few rows
                                           └─▶ else Arrow batches, one at a time, on demand

INVARIANTS
  P1  nothing blocks the event loop: DuckDB is called in threads of the engine.
  P2  a run has a connection of its own. For a slow consumer no more than one batch waits here, of
      about BATCH_BYTES, and no more than DuckDB's streaming buffer there.
  P3  when a run's iterator is closed, its query is interrupted and its connection is closed. It
      keeps no place meanwhile (`places.py`).
  P4  if an answer fetched as Python values has too many rows, or values that Python lacks, the run
      starts again as a stream: its consumer has seen nothing of it.
  P6  a run computes only while it has a place (`places.py`).
  P5  if another run's error invalidates the database, a run whose consumer has seen nothing starts
      again in the next database (`instance.py`), once.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import AsyncIterator, Callable, Set
from concurrent.futures import Future
from typing import Final, TypeVar

import duckdb
import pyarrow as pa

from compute.arrow import batch_schema
from compute.duckdb.database import LocalSettings
from compute.duckdb.errors import (
    DUCKDB_EXCEPTIONS,
    Interrupted,
    is_database_invalidated,
    may_invalidate_database,
    translate_duckdb_error,
)
from compute.duckdb.functions import RUN_ARGUMENT, with_run_argument
from compute.duckdb.instance import LocalInstance, LocalInstances
from compute.duckdb.places import PlaceKind, Places, place_kind
from compute.duckdb.relations import StatementRelations
from compute.duckdb.rows import conform_duckdb_batch, small_batch
from compute.duckdb.statements import FEW_ROWS, LocalStatements, PreparedStatementText
from compute.duckdb.waiting_results import SLOW_S, SLOW_STREAMS_MAX, WaitingResult
from compute.executor import BATCH_BYTES, BATCH_ROWS_MAX, EngineUnavailable, Run
from compute.interruption import Computation
from compute.scan import RowColumns, RowReader, read_table_columns, read_version_columns
from sql.emit.ctes import prepend_ctes
from sql.errors import SqlError, statement_too_complex
from sql.plan.depth import check_depth
from sql.plan.nodes import Plan, output_columns
from storage.batch import DataFile
from storage.threads import Threads
from storage.types import ShardId

log = logging.getLogger(__name__)

R = TypeVar("R")

LONG_PLACES_MIN: Final = 4
"""Long statements that compute at once, and short ones. Larger: each has less of the memory."""
CHECK_PLACES: Final = 4
THREADS_MAX: Final = 1_024
"""Threads of all kinds, among them those of statements that were taken for short ones, and of
cancelled ones that have not noticed yet. Larger than the number of sessions: when there are no more
threads, short statements wait for long ones. They are made when they are needed."""
_INTERRUPTERS: Final = 4
"""Threads that interrupt; a query may take its time to notice."""
_INTERRUPT_SECONDS: Final = 0.05
"""Between two interrupts of a query that has not noticed the first."""


class LocalExecutor:
    """An `Executor`; see the module."""

    def __init__(self, settings: LocalSettings) -> None:
        self._settings = settings
        self.instances = LocalInstances(settings, self._row_reader(), self._close_instance)
        long = max(LONG_PLACES_MIN, 2 * settings.threads)
        self.places = Places(
            {PlaceKind.LONG: long, PlaceKind.SHORT: long, PlaceKind.CHECK: CHECK_PLACES}
        )
        # Admission is what bounds them; a thread that is left over costs nothing.
        self._workers = Threads(THREADS_MAX, "local-query")
        self._interrupters = Threads(_INTERRUPTERS, "local-interrupt")
        self.statements = LocalStatements()
        self._queries: set[_Query] = set()
        self.slow: set[_Query] = set()
        """Runs with an open stream whose consumers are slow (`waiting_results.py`)."""
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
        self.instances.close()

    def _read_file(self, shard: ShardId, file: DataFile) -> pa.Table:
        return read_table_columns(self._settings.warehouse / shard / file.name)

    def _row_reader(self) -> RowReader:
        warehouse = self._settings.warehouse
        return RowReader(
            self._read_file,
            lambda shard, file: read_version_columns(warehouse / shard / file.name),
        )

    def _close_instance(self, instance: LocalInstance) -> None:
        try:
            self.submit(instance.close)
        except EngineUnavailable:
            instance.close()

    # --- what a query needs --------------------------------------------------------------------

    def prepare(
        self,
        instance: LocalInstance,
        connection: duckdb.DuckDBPyConnection,
        run: Run,
        bound: StatementRelations,
        number: int,
    ) -> PreparedStatementText:
        """Prepare the statement of a run: its relations, functions and arguments; `number`: of the
        run in the instance's functions.
        """
        identified = self.statements.identified(run.plan)
        versioned = self.statements.versioned(run.plan)
        names = {
            relation: instance.relations.relation(
                connection,
                view,
                bound,
                RowColumns(identity=relation in identified, versions=relation in versioned),
            )
            for relation, view in run.inputs.items()
        }
        query = self.statements.emitted(run.plan, names, run.parameters)
        instance.functions.register(query.calls)
        text, arguments = query.text, dict[str, object](query.arguments)
        if query.calls:
            text, arguments[RUN_ARGUMENT] = with_run_argument(text), number
        if bound.relations:
            text = prepend_ctes(text, bound.relations)
        return PreparedStatementText(text, {**arguments, **bound.arguments})

    def few_rows(
        self,
        connection: duckdb.DuckDBPyConnection,
        plan: Plan,
        prepared: PreparedStatementText,
        schema: pa.Schema,
    ) -> pa.RecordBatch | None:
        """The whole answer; None if it is not few rows of values that Python has."""
        statement = self.statements.parsed(connection, prepared.text)
        connection.execute(statement, prepared.arguments or None)
        batch = small_batch(connection.fetchmany(FEW_ROWS + 1), schema)
        if batch is None:
            connection.abort()
            self.statements.has_given(plan, FEW_ROWS + 1)
        return batch

    def waiting_result(self, schema: pa.Schema) -> WaitingResult:
        """A file for the rest of a result."""
        return WaitingResult(self._settings.directory / "waiting", schema)

    def release(self, query: "_Query") -> None:
        """Forget a run that has ended."""
        self._queries.discard(query)

    def submit(self, work: Callable[[], R]) -> "Future[R]":
        """Run work in a thread of the engine."""
        try:
            return self._workers.submit(work)
        except RuntimeError as error:
            raise EngineUnavailable("the local engine is closed") from error

    def interrupt(self, query: "_Query", job: "Future[R]") -> None:
        """Interrupt the job of a query; does not wait."""
        with contextlib.suppress(RuntimeError):
            self._interrupters.submit(_interrupt, query, job)


def _interrupt(query: "_Query", job: "Future[R]") -> None:
    ended = threading.Event()
    job.add_done_callback(lambda _job: ended.set())
    _interrupt_all({query}, ended)


def _interrupt_all(queries: "Set[_Query]", ended: threading.Event) -> None:
    """Repeat until the job has ended: an interrupt between two statements is lost."""
    while not ended.is_set():
        for query in tuple(queries):
            query.interrupt()
        ended.wait(_INTERRUPT_SECONDS)


class _Query:
    """One run: its connection and where its rows come from. Jobs run one at a time."""

    def __init__(self, engine: LocalExecutor, run: Run) -> None:
        self._engine = engine
        self._run = run
        self._schema = batch_schema(output_columns(run.plan))
        self._bound = StatementRelations()
        self._instance: LocalInstance | None = None
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._reader: pa.RecordBatchReader | None = None
        self._is_read = False
        self._job: Future[pa.RecordBatch | None] | None = None
        self._computation = Computation()
        self._number = 0
        self._cancelled = False
        self._ended = False
        self._given = 0
        self._seen = False
        self._again = False
        self._has_begun = False
        self._timer: asyncio.TimerHandle | None = None
        self._file: WaitingResult | None = None
        self._failure: Exception | None = None
        self._wanted = threading.Event()
        self._kind = place_kind(run)

    async def next_batch(self) -> pa.RecordBatch | None:
        """The next rows, None at the end."""
        if self._ended:
            return None
        self._is_asked()
        place = await self._engine.places.enter(self._kind, self._run.tell_waiting)
        try:
            if self._job is not None and not self._job.done():
                await asyncio.wrap_future(self._job)  # what it writes is wanted now
            self._job = self._engine.submit(self._next)
            batch = await asyncio.wrap_future(self._job)
            if batch is not None and not self._ended:
                self._watch()
            return batch
        except RecursionError as error:
            raise statement_too_complex() from error
        finally:
            place.leave()

    # --- a consumer that is slow ---------------------------------------------------------------

    def _watch(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(SLOW_S, self._is_slow)

    def _is_asked(self) -> None:
        self._wanted.set()
        self._engine.slow.discard(self)
        if self._timer is not None:
            self._timer.cancel()

    def _is_slow(self) -> None:
        """Put the rest into a file, if there are many such streams and a place to do it in."""
        if self._cancelled or self._file is not None or self._reader is None:
            return
        if not len(self._schema):
            return
        self._engine.slow.add(self)
        places = self._engine.places
        many = len(self._engine.slow) > SLOW_STREAMS_MAX
        place = places.enter_now(PlaceKind.LONG) if many else None
        if place is None:
            self._watch()
            return
        self._engine.slow.discard(self)
        self._wanted.clear()
        loop = asyncio.get_running_loop()
        self._job = self._engine.submit(self._set_aside)

        def leave(_job: object) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is over
                loop.call_soon_threadsafe(place.leave)

        self._job.add_done_callback(leave)

    def _set_aside(self) -> pa.RecordBatch | None:
        """Write what comes to a file until it is wanted; gives none. Failures are told in their
        turn (W1 of `waiting_results.py`).
        """
        file: WaitingResult | None = None
        try:
            file = self._engine.waiting_result(self._schema)
            self._fill(file)
            file.finish()
            self._file = file
        except OSError as error:
            log.warning("a result that waits could not be written: %s", error)
            self._failure = SqlError("53100", "could not write a result that waits for its client")
            if file is not None:
                file.close()
        if self._is_read or self._failure is not None:
            self._leave()
        return None

    def _fill(self, file: WaitingResult) -> None:
        while file.has_room and not (self._wanted.is_set() or self._is_read):
            try:
                batch = self._read_rows()
            except DUCKDB_EXCEPTIONS as error:
                self._failure = _failure(error)
                return
            if batch is not None:
                file.write(batch)

    def interrupt(self) -> None:
        """Interrupt the statement that runs at this moment, if one does, also inside of functions
        in Python.
        """
        self._computation.stop()
        connection = self._connection
        if connection is not None:
            with contextlib.suppress(duckdb.Error):
                connection.interrupt()

    def close(self) -> None:
        """Release everything when the current job has ended; does not wait."""
        self._cancelled = True
        self._is_asked()
        job = self._job
        if job is not None and not job.done() and not job.cancel():
            self._engine.interrupt(self, job)
            job.add_done_callback(lambda _job: self._let_go())
        elif self._reader is None:
            self._let_go()
        else:
            self._let_go_elsewhere()

    def _let_go_elsewhere(self) -> None:
        """Release everything in a thread: closing an unfinished stream may block."""
        try:
            self._engine.submit(self._let_go)
        except EngineUnavailable:
            self._let_go()

    def _let_go(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()
        self._leave()
        self._engine.release(self)

    def _leave(self) -> None:
        """Release the database and everything in it."""
        reader, self._reader = self._reader, None
        if reader is not None:
            with contextlib.suppress(*DUCKDB_EXCEPTIONS):
                reader.close()
        instance, self._instance = self._instance, None
        connection, self._connection = self._connection, None
        if instance is not None:
            instance.functions.leave(self._number)
            instance.relations.release(self._bound)
            assert connection is not None, "who is in a database has a connection"
            self._engine.instances.leave(instance, connection)

    def _next(self) -> pa.RecordBatch | None:
        try:
            batch = self._read()
        except DUCKDB_EXCEPTIONS as error:
            if not self._is_anothers(error):
                raise _failure(error) from error
            if self._seen or self._again or self._cancelled:
                raise EngineUnavailable("its database was given up") from error
        else:
            self._seen = True
            return batch
        self._again, self._has_begun = True, False
        self._leave()
        self._bound, self._is_read, self._given = StatementRelations(), False, 0
        return self._next()

    def _is_anothers(self, error: Exception) -> bool:
        """Whether the run failed because another run's error invalidated its database (P5)."""
        instance = self._instance
        if instance is None:
            return False
        if may_invalidate_database(error):
            self._engine.instances.examine(instance)
            return is_database_invalidated(error)
        return instance.given_up and isinstance(translate_duckdb_error(error), Interrupted)

    def _read(self) -> pa.RecordBatch | None:
        if not self._has_begun:
            whole = self._begin()
            self._has_begun = True
            if whole is not None:
                self._given = whole.num_rows
                self._end()
                return whole
        if self._cancelled:
            raise EngineUnavailable("the query was cancelled")
        batch = self._set_aside_rows()
        if batch is None and self._failure is not None:
            raise self._failure
        if batch is None and not self._is_read:
            batch = self._read_rows()
        if self._is_read and self._file is None:
            self._end()
        return batch

    def _begin(self) -> pa.RecordBatch | None:
        """Start the statement; return its whole answer if that is fetched at once."""
        engine, statements = self._engine, self._engine.statements
        self._instance, self._connection = engine.instances.enter()
        number = self._number = self._instance.functions.enter(self._computation)
        prepared = engine.prepare(self._instance, self._connection, self._run, self._bound, number)
        if statements.gives_few(self._run.plan):
            whole = engine.few_rows(self._connection, self._run.plan, prepared, self._schema)
            if whole is not None:
                return whole
        self._reader = prepared.stream(self._connection)
        return None

    def _end(self) -> None:
        """All rows are read."""
        self._ended = True
        self._engine.statements.has_given(self._run.plan, self._given)
        self._let_go()

    def _set_aside_rows(self) -> pa.RecordBatch | None:
        """The next rows of the file, None if there are no more (W1)."""
        if self._file is None:
            return None
        batch = self._file.read()
        if batch is None:
            self._file.close()
            self._file = None
        return batch

    def _read_rows(self) -> pa.RecordBatch | None:
        """The next rows, many if they are narrow; None if there are none (P2)."""
        assert self._reader is not None, "the statement has begun"
        parts: list[pa.RecordBatch] = []
        rows = nbytes = 0
        while rows < BATCH_ROWS_MAX and nbytes < BATCH_BYTES:
            try:
                part = self._reader.read_next_batch()
            except StopIteration:
                self._is_read = True
                break
            if part.num_rows:
                parts.append(part)
                rows += part.num_rows
                nbytes += part.nbytes
        self._given += rows
        if not parts:
            return None
        if len(parts) > 1:
            [*parts] = pa.Table.from_batches(parts).combine_chunks().to_batches()
        assert len(parts) == 1, "so few bytes are one chunk"
        return conform_duckdb_batch(parts[0], self._schema)


def _failure(error: Exception) -> Exception:
    found = translate_duckdb_error(error)
    return EngineUnavailable("the query was cancelled") if isinstance(found, Interrupted) else found
