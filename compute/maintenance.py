"""Run a maintenance program: which rows of a view go and come when its inputs change.

    inputs: before, after, came, went ─▶ step ─▶ relation ─▶ step ─▶ .. ─▶ rows that go, that come
    stored rows of the view ────────────────────────────────────────────────▲

The program is derived by `sql/incremental/`. Its plans run on whatever engine the caller has.

INVARIANTS
  N1  what a step makes is in memory, and bounded: a caller says how many rows it may have at most.
  N2  rows cancel out only if they are the same to the bit.
  N3  rows that go are found among the stored ones, as often as they go; if one is not there, the
      stored rows are not those of the query before, and StoredRowsDiffer says so.

Nothing is written here.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import pyarrow as pa
from pyroaring import BitMap64

from compute.arrow import batch_schema
from compute.row_images import ImageColumn, row_images
from sql.incremental.program import (
    LEAVING_ROWS,
    STORED_ROWS,
    ChangesByKey,
    ChangesByValue,
    ChangesStep,
    InputSide,
    KeysStep,
    MaintenanceProgram,
    ProgramPlan,
    StepTerm,
    side_of_input,
)
from sql.plan.nodes import Plan, PlanColumn, RelationId
from storage.batch import InlineSlice, ShardView
from storage.types import OWN, ShardId, Source

RunProgramPlan: TypeAlias = Callable[
    [Plan, Mapping[RelationId, ShardView]], AsyncIterator[pa.RecordBatch]
]
"""The rows of a plan over these inputs, on some engine."""

NO_LIMIT: Final = 1 << 62


class StoredRowsDiffer(Exception):
    """N3: the view has to be computed anew."""


class TooManyChanges(Exception):
    """N1: a step has more rows than the caller allows."""


@dataclass(frozen=True, slots=True)
class InputChange:
    """An input of a view: all of its rows before and after, and those that came and went."""

    before: ShardView
    after: ShardView
    came: ShardView
    went: ShardView


@dataclass(frozen=True, slots=True)
class ViewChange:
    """The rows of a view that go, by identity, and those that come, in the view's columns."""

    gone: Mapping[Source, BitMap64] = field(default_factory=dict[Source, BitMap64])
    came: Sequence[pa.RecordBatch] = ()

    @property
    def rows(self) -> int:
        """How many go and come."""
        gone = sum([len(rows) for rows in self.gone.values()])
        return gone + sum([batch.num_rows for batch in self.came])


def rows_in_memory(relation: RelationId, rows: pa.Table) -> ShardView:
    """Rows as an input of plans."""
    piece = (InlineSlice(OWN, rows, BitMap64()),) if rows.num_rows else ()
    return ShardView(ShardId(relation), rows.schema, str(relation), (), piece)


async def maintain_view(
    program: MaintenanceProgram,
    inputs: Mapping[RelationId, InputChange],
    stored: ShardView,
    run: RunProgramPlan,
    *,
    rows_max: int = NO_LIMIT,
) -> ViewChange:
    """What becomes of the stored rows of a view. Raises SqlError for what the query does,
    StoredRowsDiffer, TooManyChanges.
    """
    views: dict[RelationId, ShardView] = {STORED_ROWS: stored}
    for relation in program.inputs:
        change = inputs[relation]
        views[side_of_input(relation, InputSide.BEFORE)] = change.before
        views[side_of_input(relation, InputSide.AFTER)] = change.after
        views[side_of_input(relation, InputSide.CAME)] = change.came
        views[side_of_input(relation, InputSide.WENT)] = change.went
    running = _Running(views, run, rows_max)
    for step in program.steps:
        await running.step(step)
    match program.result:
        case ChangesByValue() as by_value:
            return await running.by_value(by_value, program.columns)
        case ChangesByKey() as by_key:
            return await running.by_key(by_key)


def _has_rows(view: ShardView) -> bool:
    """Whether there may be rows: slices without a live one are left out of views."""
    return bool(view.files or view.inline)


class _Running:
    """One run of a program."""

    def __init__(
        self, views: dict[RelationId, ShardView], run: RunProgramPlan, rows_max: int
    ) -> None:
        self._views = views
        self._run = run
        self._rows_max = rows_max

    async def step(self, step: ChangesStep | KeysStep) -> None:
        """Make the relation of a step."""
        batches = await self._rows_of_terms(step.terms)
        columns = step.columns
        if isinstance(step, ChangesStep):
            rows = _netted(batches, columns, units=step.units)
        elif step.distinct is None:
            rows = _each_once(batches, columns)
        else:
            self._views[step.relation] = rows_in_memory(step.relation, _table(batches, columns))
            found = await self._rows(step.distinct) if batches else []
            rows = _table(found, columns)
        if rows.num_rows > self._rows_max:
            raise TooManyChanges
        self._views[step.relation] = rows_in_memory(step.relation, rows)

    async def by_value(self, result: ChangesByValue, columns: Sequence[PlanColumn]) -> ViewChange:
        """The changes of the last step, and where the rows that go are stored."""
        went: list[pa.RecordBatch] = []
        came: list[pa.RecordBatch] = []
        missing = Counter[object]()
        for batch in self._made(result.changes):
            *values, weights = batch.columns
            for at, (image, weight) in enumerate(
                zip(row_images(values, batch.num_rows), _integers(weights), strict=True)
            ):
                row = batch.slice(at, 1).select(list(range(len(values))))
                if weight < 0:
                    missing[image] -= weight
                    went.append(row)
                else:
                    came += [row] * weight
        gone = _Identities()
        if went:
            self._views[LEAVING_ROWS] = rows_in_memory(LEAVING_ROWS, _table(went, columns))
            for batch in await self._rows(result.found):
                gone.take(batch, missing)
        if +missing:
            raise StoredRowsDiffer
        return ViewChange(gone.found, came)

    async def by_key(self, result: ChangesByKey) -> ViewChange:
        """The rows with affected keys, without those that stay as they are."""
        if not self._any(result.sources):
            return ViewChange()
        came = await self._rows_of_terms(result.terms)
        stored = await self._rows(result.found)
        left = Counter[object]()
        for batch in came:
            left.update(row_images(batch.columns, batch.num_rows))
        gone = _Identities()
        for batch in stored:
            gone.take_others(batch, left)
        kept: list[pa.RecordBatch] = []
        for batch in came:
            places: list[int] = []
            for at, image in enumerate(row_images(batch.columns, batch.num_rows)):
                if left[image] > 0:
                    left[image] -= 1
                    places.append(at)
            if places:
                kept.append(batch.take(pa.array(places, pa.int64())))
        return ViewChange(gone.found, kept)

    # --- running -------------------------------------------------------------------------------

    def _any(self, relations: frozenset[RelationId]) -> bool:
        return any(_has_rows(self._views[relation]) for relation in relations)

    async def _rows_of_terms(self, terms: Sequence[StepTerm]) -> list[pa.RecordBatch]:
        """D3 of `sql/incremental`."""
        found: list[pa.RecordBatch] = []
        for term in terms:
            if self._any(term.sources):
                found += await self._rows(term.plan)
        return found

    async def _rows(self, plan: ProgramPlan) -> list[pa.RecordBatch]:
        views = {relation: self._views[relation] for relation in plan.reads}
        found: list[pa.RecordBatch] = []
        count = 0
        async for batch in self._run(plan.plan, views):
            count += batch.num_rows
            if count > self._rows_max:
                raise TooManyChanges
            if batch.num_rows:
                found.append(batch)
        return found

    def _made(self, relation: RelationId) -> Iterator[pa.RecordBatch]:
        for part in self._views[relation].inline:
            yield from part.rows.to_batches()


class _Identities:
    """Rows of the view that go. A row that was found twice goes once."""

    def __init__(self) -> None:
        self.found: dict[Source, BitMap64] = {}

    def take(self, batch: pa.RecordBatch, missing: "Counter[object]") -> None:
        """Those of the rows, whose identities stand last, that are missing yet."""
        for image, source, index in _identified(batch):
            known = self.found.setdefault(source, BitMap64())
            if missing[image] > 0 and index not in known:
                missing[image] -= 1
                known.add(index)
        self.found = {source: rows for source, rows in self.found.items() if rows}

    def take_others(self, batch: pa.RecordBatch, left: "Counter[object]") -> None:
        """Those of the rows that are not among these; one is, as often as it is counted."""
        for image, source, index in _identified(batch):
            if left[image] > 0:
                left[image] -= 1
            else:
                self.found.setdefault(source, BitMap64()).add(index)


def _identified(batch: pa.RecordBatch) -> Iterator[tuple[object, Source, int]]:
    *values, sources, indexes = batch.columns
    images = row_images(values, batch.num_rows)
    for image, source, index in zip(images, sources, _integers(indexes), strict=True):
        yield image, Source(str(source)), index


def _integers(column: ImageColumn) -> list[int]:
    return [int(value.as_py()) for value in column]


def _schema(columns: Sequence[PlanColumn]) -> pa.Schema:
    """Of a relation in memory; names say nothing, and may not be there twice."""
    fields = list(batch_schema(columns))
    return pa.schema([field.with_name(f"f{at}") for at, field in enumerate(fields)])


def _table(batches: Sequence[pa.RecordBatch], columns: Sequence[PlanColumn]) -> pa.Table:
    schema = _schema(columns)
    parts = [pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in batches]
    return pa.Table.from_batches(parts, schema=schema)


def _each_once(batches: Sequence[pa.RecordBatch], columns: Sequence[PlanColumn]) -> pa.Table:
    """Rows that are the same to the bit once."""
    rows = _table(batches, columns)
    first: dict[object, int] = {}
    for at, image in enumerate(row_images(rows.columns, rows.num_rows)):
        first.setdefault(image, at)
    return rows if len(first) == rows.num_rows else rows.take(pa.array(first.values(), pa.int64()))


def _netted(
    batches: Sequence[pa.RecordBatch], columns: Sequence[PlanColumn], *, units: bool
) -> pa.Table:
    """Each row once, with the sum of its weights, if that is not 0 (N2)."""
    rows = _table(batches, columns)
    *values, weights = rows.columns
    first: dict[object, int] = {}
    total = Counter[object]()
    images = row_images(values, rows.num_rows)
    for at, (image, weight) in enumerate(zip(images, _integers(weights), strict=True)):
        first.setdefault(image, at)
        total[image] += weight
    kept = [(at, total[image]) for image, at in first.items() if total[image]]
    if units:
        kept = [(at, 1 if weight > 0 else -1) for at, weight in kept for _ in range(abs(weight))]
    taken = rows.take(pa.array([at for at, _ in kept], pa.int64()))
    summed = pa.chunked_array([pa.array([weight for _, weight in kept], pa.int64())])
    return taken.set_column(len(values), rows.schema.field(len(values)), summed)
