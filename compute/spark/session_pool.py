"""A session pool: one Spark session, its threads and its cache of prepared statements.

    run ─▶ waits for a thread ─▶ relations pinned ─▶ emitted, analysed ─▶ collected
                                     └── the same statement over the same inputs: executed again ──┘

A statement may read relations that other statements compute first: `spark/recursion_rounds.py`.

INVARIANTS
  L1  a prepared statement belongs to one run at a time. It is cached only after it has answered, so
      that nothing that was cancelled or failed half-way is ever run again.
  L2  a statement that calls volatile functions, or holds rows of its run, is never cached.
  L3  a run that is cancelled while it waits never starts; a cancelled job group starts no further
      job.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Generator, Hashable
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar, cast

import pyarrow as pa

from compute.arrow import batch_schema
from compute.executor import Run
from compute.plan_nodes import is_volatile, relations_with_identity
from compute.spark.errors import Cancelled, translating_errors
from compute.spark.functions import SparkFunctions
from compute.spark.gateway import JavaObject
from compute.spark.recursion_rounds import ComputedRelations
from compute.spark.relations import Relations
from compute.spark.results import (
    COLLECT_ROWS_MAX,
    SPOOL_OPTIONS,
    conform_spark_batch,
    decode_batches,
    engine_schema,
    slice_batch,
)
from compute.spark.session import SessionPoolName, SparkSession
from sql.emit.emitted_query import EmittedQuery
from sql.emit.spark.dialect import emit
from sql.plan.nodes import output_columns
from storage.threads import Threads

R = TypeVar("R")

PREPARED_MAX: Final = 64
"""Prepared statements cached in a lane; each may hold shuffle files of its last execution."""

WARM_UPS: Final = 3
"""Rounds of warming up. More help the first queries, and compete with them."""
_WARM_UP: Final = (
    "select k, count(*) as n, sum(cast(v as decimal(20,2))) as s from (select id % 3 as k, id as v"
    " from range(50)) where v > 3 group by k order by k limit 2"
)


class PooledQuery:
    """One run in a lane: its job group, and whether it is cancelled."""

    def __init__(self, run: Run, number: int) -> None:
        self.run = run
        self.group = f"q{number}"
        self.cancelled = threading.Event()
        self.made: ComputedRelations | None = None
        self._last_job: Future[object] | None = None

    def began(self, job: "Future[R]") -> None:
        """Note work that now waits for a thread; the query's earlier work is over."""
        self._last_job = cast("Future[object]", job)

    def when_done(self, submit: Callable[[Callable[[], None]], None]) -> None:
        """Release the computed relations of the run when its work is over."""
        if self._last_job is not None:
            self._last_job.add_done_callback(lambda _: self._let_go(submit))

    def _let_go(self, submit: Callable[[Callable[[], None]], None]) -> None:
        if self.made is not None:
            submit(self.made.close)

    def check(self) -> None:
        """Raises Cancelled if the run is cancelled."""
        if self.cancelled.is_set():
            raise Cancelled


@dataclass(frozen=True, slots=True)
class ComputedRowFiles:
    """Where computed relations are written if they have many rows, and how many bytes they may
    take.
    """

    directory: Path
    bytes_max: int


@dataclass(frozen=True, slots=True)
class _Prepared:
    """An analysed statement, and its physical plan with bounded partitions."""

    frame: JavaObject
    limited: JavaObject


class SessionPool:
    """See the module. `run` and `call` return futures of the lane's threads."""

    def __init__(
        self, session: SparkSession, relations: Relations, files: ComputedRowFiles, *, threads: int
    ) -> None:
        self.session = session
        self._relations = relations
        self._files = files
        self._functions = SparkFunctions(session)
        self._lock = threading.Lock()
        self._prepared: OrderedDict[Hashable, _Prepared] = OrderedDict()
        self._pool = Threads(threads, f"spark-{session.lane}", initializer=session.enter_thread)

    def close(self) -> None:
        """Start nothing more; does not wait for running work."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def warm_up(self) -> None:
        """Run something small in the background, so that the JVM has loaded its classes before the
        first query.
        """
        for _ in range(WARM_UPS):
            # Nobody looks at how it went: a failure will show in the first query too.
            self._pool.submit(self._warm_up)

    def _warm_up(self) -> None:
        frame = self.session.statement(_WARM_UP, {})
        self.session.collect(frame, self.session.limited(frame, COLLECT_ROWS_MAX))

    def call(self, query: PooledQuery, work: Callable[[], R]) -> "Future[R]":
        """Run work of a query in a thread of this lane, when one is free."""
        job = self._pool.submit(self._guarded, query, work)
        query.began(job)
        return job

    def _guarded(self, query: PooledQuery, work: Callable[[], R]) -> R:
        query.check()
        with translating_errors(self.session.jvm):
            self.session.context.setJobGroup(query.group, "", True)
            return work()

    def collect(self, query: PooledQuery) -> list[pa.RecordBatch] | None:
        """The whole answer; None if it may have more rows than are collected."""
        columns = output_columns(query.run.plan)
        key, prepared = self._prepared_for(query)
        messages = self.session.collected(prepared.frame, prepared.limited)
        if messages is None:
            return None
        batches = decode_batches(messages, engine_schema(columns))
        if sum(batch.num_rows for batch in batches) >= COLLECT_ROWS_MAX:
            return None
        if key is not None:
            self._keep(key, prepared)
        schema = batch_schema(columns)
        return [
            part for batch in batches for part in slice_batch(conform_spark_batch(batch, schema))
        ]

    def write(self, query: PooledQuery, directory: Path) -> None:
        """Run and write the answer as Parquet parts."""
        names = engine_schema(output_columns(query.run.plan)).names
        with self._emitted(query) as emitted:
            frame = self.session.statement(emitted.text, emitted.arguments)
        self.session.write(frame, names, SPOOL_OPTIONS, directory)

    @contextmanager
    def _emitted(self, query: PooledQuery) -> Generator[EmittedQuery, None, None]:
        """The statement for a run; Spark can analyse it until the context ends."""
        run = query.run
        identified = relations_with_identity(run.plan)
        with ExitStack() as pins:
            names = {
                relation: pins.enter_context(
                    self._relations.pinned(view, identity=relation in identified)
                )
                for relation, view in run.inputs.items()
            }
            emitted = emit(run.plan, names, run.parameters, prefix=query.group)
            if emitted.made:
                pins.enter_context(self._made_for(query).known_for(emitted))
            pins.enter_context(self._functions.registered(emitted.functions))
            yield emitted

    def _made_for(self, query: PooledQuery) -> ComputedRelations:
        """The computed relations of the run, created once (W2 of `spark/recursion_rounds.py`)."""
        if query.made is None:
            query.made = ComputedRelations(
                self.session,
                self._relations,
                self._functions,
                self._files.directory / f"{query.group}-made",
                files_bytes_max=self._files.bytes_max,
                check=query.check,
            )
        return query.made

    def _prepared_for(self, query: PooledQuery) -> tuple[Hashable | None, _Prepared]:
        """The statement for a run, for this run alone (L1); the key if it may be cached
        afterwards.
        """
        with self._emitted(query) as emitted:
            # The names of relations are part of the text, and never used twice.
            key = (emitted.text, tuple(emitted.arguments.items()))
            with self._lock:
                prepared = self._prepared.pop(key, None)
            if prepared is None:
                frame = self.session.statement(emitted.text, emitted.arguments)
                prepared = _Prepared(frame, self.session.limited(frame, COLLECT_ROWS_MAX))
        once = bool(emitted.made) or is_volatile(query.run.plan)
        kept = self.session.lane is not SessionPoolName.LARGE and not once
        return (key if kept else None), prepared

    def _keep(self, key: Hashable, prepared: _Prepared) -> None:
        with self._lock:
            self._prepared[key] = prepared
            self._prepared.move_to_end(key)
            while len(self._prepared) > PREPARED_MAX:
                self._prepared.popitem(last=False)
