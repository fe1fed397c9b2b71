"""Compute shared queries and the iterations of recursions on Spark, before the main statement.

    Made ─▶ base ─▶ rows ─┬─▶ the relation `last` ─▶ step ─▶ rows, until there are none
                          └─▶ the relation that the statement reads: all iterations
    rows: collected in Arrow ─(too many)▶ written as Parquet

An iteration (round) is rows, not a plan: the next one is planned as if it read a table. A step that
removes duplicates also reads the rows of all iterations so far. They go to the JVM in pieces that
are merged as they grow, so that n rows are sent log n times.

INVARIANTS
  W1  an iteration is computed once. It runs again only if it was too large to be collected; then
      nothing of the first answer is used.
  W2  names of computed relations belong to the run. Spark knows them while the run's statements are
      analysed, and their rows live until the run's last job is over.
  W3  rows in memory are bounded by `MEMORY_BYTES_MAX` and one iteration. The rest is in files, with
      the limit of a large result's files (53400), which is checked after each iteration.
  W4  no iteration begins after the run is cancelled; the jobs of a running one are cancelled.

Not here: which recursions, and their statements (`sql/emit/recursion_rounds.py`).
"""

import itertools
import shutil
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from compute.scan import column_names
from compute.spark.functions import SparkFunctions
from compute.spark.gateway import JavaObject
from compute.spark.relations import Relations
from compute.spark.results import (
    COLLECT_ROWS_MAX,
    SPOOL_OPTIONS,
    Spool,
    decode_batches,
    engine_schema,
)
from compute.spark.session import SparkSession
from sql.emit.emitted_query import DerivedRelation, EmittedQuery, Iterations
from sql.plan.nodes import PlanColumn

MEMORY_BYTES_MAX: Final = 32 << 20
"""Rows of all iterations of a recursion in memory, in Arrow. More: memory that nothing else can use
while the statement runs. Less: a file for every iteration beyond the limit, of some 100 ms each."""


@dataclass(frozen=True, slots=True)
class _Round:
    """The rows of one query: in memory, or in files."""

    count: int
    frame: JavaObject
    table: pa.Table | None
    files: tuple[Path, ...] = ()


@dataclass(slots=True)
class _Piece:
    """Rows in memory; the JVM has them as soon as a statement reads them."""

    table: pa.Table
    frame: JavaObject = None


@dataclass(slots=True)
class _Rows:
    """The rows of all iterations."""

    relations: Relations
    schema: pa.Schema
    count: int = 0
    bytes: int = 0
    pieces: list[_Piece] = field(default_factory=list[_Piece])
    files: list[Path] = field(default_factory=list[Path])

    def add(self, one: _Round) -> None:
        """Add an iteration. Pieces double in size from the last to the first."""
        self.count += one.count
        self.files += one.files
        if one.table is None or (not one.count and self.pieces):
            return
        self.bytes += one.table.nbytes
        self.pieces.append(_Piece(one.table, one.frame))
        while len(self.pieces) > 1 and self._last_are_alike():
            tables = [piece.table for piece in self.pieces[-2:]]
            self.pieces[-2:] = [_Piece(pa.concat_tables(tables))]

    def _last_are_alike(self) -> bool:
        before, last = (piece.table.num_rows for piece in self.pieces[-2:])
        return before < 2 * last

    def frame(self) -> JavaObject:
        """All rows as Spark reads them, in the order of iterations as far as they are in memory."""
        for piece in self.pieces:
            if piece.frame is None:
                piece.frame = self.relations.local(piece.table)
        frames = [piece.frame for piece in self.pieces]
        if self.files:
            frames.append(self.relations.of_files(self.schema, [str(path) for path in self.files]))
        return self.relations.united(frames)


class ComputedRelations:
    """The computed relations of one run. Used by one thread at a time."""

    def __init__(
        self,
        session: SparkSession,
        relations: Relations,
        functions: SparkFunctions,
        directory: Path,
        *,
        files_bytes_max: int,
        check: Callable[[], None],
    ) -> None:
        """`directory`: for files, of this run alone; `check` raises if the run is cancelled."""
        self._session = session
        self._relations = relations
        self._functions = functions
        self._directory = directory
        self._files_bytes_max = files_bytes_max
        self._check = check
        self._made: dict[str, JavaObject] = {}
        self._known: set[str] = set()
        self._numbers = itertools.count(1)

    @contextmanager
    def known_for(self, query: EmittedQuery) -> Generator[None, None, None]:
        """Compute the relations that the statement reads; Spark can analyse it until the context
        ends.
        """
        try:
            self._make_for(query)
            yield
        finally:
            for name in self._known:
                self._session.java.catalog().dropTempView(name)
            self._known.clear()

    def close(self) -> None:
        """Drop all rows; no job reads them any more (W2)."""
        self._made.clear()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _make_for(self, query: EmittedQuery) -> None:
        for one in query.made:
            if one.name not in self._made:
                self._made[one.name] = self._rows_of(one).frame()
            self._name(one.name, self._made[one.name])

    def _rows_of(self, made: DerivedRelation) -> _Rows:
        """The rows of a relation, iteration by iteration."""
        base = self._round(made.base, in_files=False)
        rows = _Rows(self._relations, engine_schema(made.base.columns))
        rows.add(base)
        if made.rounds is not None:
            self._add_rounds(made.name, made.rounds, rows, base)
        return rows

    def _add_rounds(self, name: str, rounds: Iterations, rows: _Rows, base: _Round) -> None:
        last = base
        while last.count and (rounds.rows_max is None or rows.count < rounds.rows_max):
            self._name(rounds.last, last.frame)
            if rounds.distinct:
                self._name(name, rows.frame())
            self._forget(rounds.step, rounds.last)
            in_files = last.count >= COLLECT_ROWS_MAX or rows.bytes > MEMORY_BYTES_MAX
            last = self._round(rounds.step, in_files=in_files)
            rows.add(last)

    def _forget(self, query: EmittedQuery, last: str) -> None:
        """Drop relations that were computed from the last iteration: the next one needs them
        anew.
        """
        for one in query.made:
            if last in one.within:
                self._made.pop(one.name, None)
                self._forget(one.base, last)
                if one.rounds is not None:
                    self._forget(one.rounds.step, last)

    def _name(self, name: str, frame: JavaObject) -> None:
        self._known.add(name)
        frame.createOrReplaceTempView(name)

    def _round(self, query: EmittedQuery, *, in_files: bool) -> _Round:
        """The rows of a query (W1)."""
        self._make_for(query)
        self._check()
        with self._functions.registered(query.functions):
            frame = self._session.statement(query.text, query.arguments)
        table = None if in_files else self._collected(frame, query.columns)
        if table is None:
            return self._in_files(frame, query.columns)
        return _Round(table.num_rows, self._relations.local(table), table)

    def _collected(self, frame: JavaObject, columns: Sequence[PlanColumn]) -> pa.Table | None:
        """The rows; None if they are too many."""
        limited = self._session.limited(frame, COLLECT_ROWS_MAX)
        messages = self._session.collected(frame, limited)
        if messages is None:
            return None
        schema = engine_schema(columns)
        table = pa.Table.from_batches(decode_batches(messages, schema), schema)
        if table.num_rows >= COLLECT_ROWS_MAX:
            return None
        return table.rename_columns(column_names(schema, identity=False))

    def _in_files(self, frame: JavaObject, columns: Sequence[PlanColumn]) -> _Round:
        schema, limit = engine_schema(columns), self._files_bytes_max
        directory = self._directory / f"{next(self._numbers)}"
        self._session.write(frame, schema.names, SPOOL_OPTIONS, directory)
        Spool(self._directory, schema, bytes_max=limit).check_size()
        parts = Spool(directory, schema, bytes_max=limit).parts()
        files = tuple(parts[number] for number in sorted(parts))
        count = sum(pq.read_metadata(path).num_rows for path in files)
        written = self._relations.of_files(schema, [str(path) for path in files])
        return _Round(count, written, None, files)
