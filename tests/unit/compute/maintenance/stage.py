"""Tables in memory that change, and a view over them that is maintained beside its definition.

commit: rows go, rows come ─▶ before, after, came, went ─▶ maintain_view ─▶ stored rows
                                                           definition ─▶ the same rows, as a bag
"""

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pyarrow as pa
from pyroaring import BitMap64

from compute.arrow import batch_schema, table_schema
from compute.executor import Executor, Run
from compute.maintenance import InputChange, ViewChange, maintain_view
from compute.row_images import row_images
from coordinator.execution.views.maintain import program_tables
from sql.binder.bind import bind
from sql.binder.state import BindContext
from sql.catalog.catalog import Catalog, Column, Table
from sql.errors import SqlError
from sql.incremental.derive import maintenance_program
from sql.incremental.hidden_state import with_state
from sql.incremental.program import MaintenanceProgram
from sql.parser.parse import parse
from sql.plan.nodes import ColumnId, Plan, PlanColumn, RelationId, output_columns
from sql.plan.renumbering import defined_columns
from sql.statements.bound import BoundQuery
from sql.types.sql_type import BOOL, DATE, FLOAT8, INT4, INT8, TEXT, TIMESTAMP, numeric
from storage.batch import DataFile, FileSlice, InlineSlice, ShardView
from storage.types import ShardId, Source, is_file
from tests.unit.compute.maintenance.narrowed import NarrowedEngine

Row = tuple[Any, ...]

_COLUMNS = (
    Column("k", INT4), Column("g", INT4), Column("v", INT4), Column("s", TEXT),
    Column("n", numeric(10, 2)), Column("f", FLOAT8), Column("unused", INT4),
)  # fmt: skip
_FUZZED = (
    Column("i", INT4), Column("l", INT8), Column("n", numeric(10, 2)), Column("f", FLOAT8),
    Column("s", TEXT), Column("b", BOOL), Column("d", DATE), Column("ts", TIMESTAMP),
)  # fmt: skip


def _table(oid: int, name: str, columns: tuple[Column, ...]) -> Table:
    return Table(oid, "public", name, f"t{oid:016d}", columns)


TABLES = {
    name: _table(at, name, columns)
    for at, (name, columns) in enumerate(
        [
            *((name, _COLUMNS) for name in ("a", "b", "c")),
            *((name, _FUZZED) for name in ("t1", "t2", "t3")),
        ],
        start=1,
    )
}
CATALOG = Catalog(tables={("public", name): table for name, table in TABLES.items()})


def plan_of(text: str, *, keeps_state: bool = False) -> Plan:
    """The plan of a view's query; with its hidden columns, if it has some and is to keep them."""
    prepared = bind(parse(text)[0], BindContext(CATALOG, ["public"], 0), [])
    assert isinstance(prepared.bound, BoundQuery)
    plan = prepared.bound.plan
    ids = count(1 + max([column.id for column in defined_columns(plan)], default=0))
    found = with_state(plan, lambda name, type_: PlanColumn(ColumnId(next(ids)), name, type_))
    return found.plan if keeps_state and found is not None else plan


def row_of(k: Any = None, g: Any = None, v: Any = None, **others: Any) -> Row:
    """A row of a, b or c."""
    given = {"k": k, "g": g, "v": v, **others}
    return tuple([given.get(column.name) for column in _COLUMNS])


@dataclass
class Rows:
    """A shard in memory: rows of one commit after the other, some of them deleted."""

    name: ShardId
    schema: pa.Schema
    parts: list[tuple[Source, pa.Table]] = field(default_factory=list)
    deleted: dict[Source, BitMap64] = field(default_factory=dict)
    commits: int = 0
    files: dict[tuple[ShardId, Source], pa.Table] | None = None
    """Every other commit is a file; None: there are none."""

    def view(self) -> ShardView:
        slices: list[InlineSlice] = []
        files: list[FileSlice] = []
        for source, rows in self.parts:
            dead = BitMap64(self.deleted.get(source, BitMap64()))
            if len(dead) == rows.num_rows:
                continue
            if is_file(source):
                file = DataFile(source, rows.num_rows, 1, "{}")
                files.append(FileSlice(file, rows.num_rows, dead))
            else:
                slices.append(InlineSlice(source, rows, dead))
        said = f"{self.name} {self.commits}"
        return ShardView(self.name, self.schema, said, tuple(files), tuple(slices))

    def nothing(self) -> ShardView:
        return ShardView(self.name, self.schema, f"{self.name} nothing", (), ())

    def change(self, came: pa.Table, gone: Mapping[Source, BitMap64]) -> InputChange:
        before = self.view()
        self.commits += 1
        for source, rows in gone.items():
            known = self.deleted.setdefault(source, BitMap64())
            assert not known & rows, "a row goes once"
            self.deleted[source] = known | rows
        source = Source(f"@{self.commits}")
        arrived = [InlineSlice(source, came, BitMap64())] if came.num_rows else []
        if self.files is not None and self.commits % 2:
            source = Source(f"part-{self.commits}")
            self.files[self.name, source] = came
        if came.num_rows:
            self.parts.append((source, came))
        left = [
            InlineSlice(Source(f"@{at}"), rows, BitMap64(range(rows.num_rows)) - gone[one])
            for at, (one, rows) in enumerate(self.parts)
            if one in gone
        ]
        sides = [
            ShardView(self.name, self.schema, f"{self.name} {self.commits} {what}", (), tuple(some))
            for what, some in (("came", arrived), ("went", left))
        ]
        return InputChange(before, self.view(), sides[0], sides[1])

    def live(self) -> list[tuple[Source, int, Row]]:
        found: list[tuple[Source, int, Row]] = []
        for source, rows in self.parts:
            dead = self.deleted.get(source, BitMap64())
            values = zip(*(column.to_pylist() for column in rows.columns), strict=True)
            found += [(source, at, row) for at, row in enumerate(values) if at not in dead]
        return found

    def table(self, rows: Sequence[Row]) -> pa.Table:
        if not rows:
            return self.schema.empty_table()
        columns = [list(column) for column in zip(*rows, strict=True)]
        return pa.table(columns, schema=self.schema)


def bag(batches: Sequence[pa.RecordBatch]) -> Counter[object]:
    found = Counter[object]()
    for batch in batches:
        found.update(row_images(batch.columns, batch.num_rows))
    return found


def _stored_schema(columns: Sequence[PlanColumn]) -> pa.Schema:
    return pa.schema([f.with_name(f"f{at}") for at, f in enumerate(batch_schema(columns))])


class Stage:
    """The tables, and a view whose stored rows are exact unless `behind` says why not."""

    def __init__(
        self,
        engine: Executor,
        text: str,
        tables: Sequence[str] = ("a", "b", "c"),
        *,
        keeps_state: bool = False,
    ) -> None:
        self.engine = engine
        self.plan = plan_of(text, keeps_state=keeps_state)
        found = maintenance_program(self.plan)
        assert isinstance(found, MaintenanceProgram), found
        self.program = found
        self.tables = {
            name: Rows(ShardId(TABLES[name].shard), table_schema(TABLES[name].columns))
            for name in tables
        }
        schema = _stored_schema(output_columns(self.plan))
        self.stored = Rows(ShardId("view"), schema)
        if isinstance(engine, NarrowedEngine):
            columns = zip(schema.names, output_columns(self.plan), strict=True)
            made = tuple([Column(name, column.type) for name, column in columns])
            view = _table(99, "view", made)
            engine.use(program_tables(found, view, [TABLES[name] for name in tables]))
            for rows in (*self.tables.values(), self.stored):
                rows.files = engine.files
        self.behind: str | None = "it was never computed"
        self.runs = 0
        self.read: set[RelationId] = set()

    async def run(
        self, plan: Plan, views: Mapping[RelationId, ShardView]
    ) -> AsyncIterator[pa.RecordBatch]:
        self.runs += 1
        self.read.update(views)
        async for batch in self.engine.run(Run(plan, views)):
            yield batch

    async def definition(self) -> list[pa.RecordBatch]:
        views = {RelationId(rows.name): rows.view() for rows in self.tables.values()}
        return [b async for b in self.engine.run(Run(self.plan, views)) if b.num_rows]

    async def rows(self) -> list[pa.RecordBatch]:
        parts = self.stored.parts
        return [batch for source, rows in parts for batch in self._live(rows, source)]

    def _live(self, rows: pa.Table, source: Source) -> list[pa.RecordBatch]:
        dead = self.stored.deleted.get(source, BitMap64())
        kept = [at for at in range(rows.num_rows) if at not in dead]
        return rows.take(pa.array(kept, pa.int64())).to_batches()

    async def commit(
        self,
        come: Mapping[str, Sequence[Row]],
        go: Mapping[str, Sequence[tuple[Source, int]]] | None = None,
    ) -> ViewChange | None:
        """Change tables; the view is maintained if it is exact. None: it is behind."""
        changes: dict[RelationId, InputChange] = {}
        for name, rows in self.tables.items():
            gone: dict[Source, BitMap64] = {}
            for source, at in (go or {}).get(name, ()):
                gone.setdefault(source, BitMap64()).add(at)
            changes[RelationId(rows.name)] = rows.change(rows.table(come.get(name, ())), gone)
        if self.behind is not None:
            return None
        if isinstance(self.engine, NarrowedEngine):
            self.engine.begin()
        try:
            found = await maintain_view(self.program, changes, self.stored.view(), self.run)
        except SqlError as error:
            self.behind = str(error)
            return None
        self.store(found.came, found.gone)
        return found

    def store(self, came: Sequence[pa.RecordBatch], gone: Mapping[Source, BitMap64]) -> None:
        parts = [pa.RecordBatch.from_arrays(b.columns, schema=self.stored.schema) for b in came]
        self.stored.change(pa.Table.from_batches(parts, schema=self.stored.schema), gone)

    async def sides_read(self, come: Sequence[Row], k: int | None = None) -> set[str]:
        """Commit rows of `a`, and take those with this key; the sides of inputs that it read."""
        self.read.clear()
        go = [one[:2] for one in self.tables["a"].live() if k and one[2][0] == k]
        assert await self.commit({"a": come}, {"a": go}) is not None
        await self.check()
        return {one.rpartition("@")[2] for one in self.read if "@" in one}

    async def rebuild(self) -> bool:
        """Compute the view anew; False: its query fails."""
        try:
            rows = await self.definition()
        except SqlError as error:
            self.behind = str(error)
            return False
        gone: dict[Source, BitMap64] = {}
        for source, at, _ in self.stored.live():
            gone.setdefault(source, BitMap64()).add(at)
        self.store(rows, gone)
        self.behind = None
        return True

    async def check(self) -> None:
        """The stored rows are those of the definition, or it fails, and the view is behind."""
        if self.behind is not None:
            return
        defined = await self.definition()
        assert bag(await self.rows()) == bag(defined)
