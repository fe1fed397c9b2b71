"""How the rows of one timestamp look to a client: a diff before each, or as ENVELOPE has it.

    rows that went, rows that came ─▶ RowForm ─▶ meridian_ts, [progressed], diff or state, columns

INVARIANTS
  D1  of one timestamp, rows that went come first: a client that adds up diffs never has less than
      none of a row.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Final, Protocol, TypeAlias

import pyarrow as pa

from compute.arrow import batch_schema
from coordinator.execution.change_streams.netting import take_whole
from coordinator.execution.context import Batches
from coordinator.execution.dml.transient_relations import transient_view
from coordinator.streams import closing_batches
from ingest.copy_text.kernels import Column
from sql.plan.nodes import Const, Plan, RelationId, Scan, Sort, SortKey, output_columns
from sql.plan.traverse import substitute_columns
from sql.statements.bound import Subscribe
from sql.statements.change_streams import ChangeOrder
from sql.types.sql_type import INT8
from storage.batch import ShardView
from storage.types import Timestamp

RelationViews: TypeAlias = Mapping[RelationId, ShardView]

RunPlan: TypeAlias = Callable[[Plan, RelationViews], AsyncIterator[pa.RecordBatch]]
"""The rows of a plan over these inputs."""

CHANGED_ROWS: Final = RelationId("changed")
"""An input: the changes of one timestamp, with their diffs."""


class RowForm(Protocol):
    """See the module."""

    @property
    def is_whole(self) -> bool:
        """Whether all rows of a timestamp are looked at before the first is told."""
        ...

    def progress(self, ts: Timestamp) -> pa.RecordBatch:
        """Nothing before `ts` will come any more."""
        ...

    def none(self) -> pa.RecordBatch:
        """A batch without rows."""
        ...

    def snapshot(self, plan: Plan, views: RelationViews, ts: Timestamp) -> Batches:
        """All rows of a plan, as rows that came at a timestamp."""
        ...

    def sides(self, went: Batches, came: Batches, ts: Timestamp) -> Batches:
        """The changes of one timestamp (D1)."""
        ...


class ChangeColumns:
    """Puts what is said about rows before their columns."""

    def __init__(self, subscribe: Subscribe, said: pa.DataType, told: Sequence[pa.DataType]):
        """`said`: the type of diff or state. `told`: of the columns behind it."""
        self._progress = subscribe.progress
        about: list[pa.Field[pa.DataType]] = [pa.field("ts", pa.int64())]
        if self._progress:
            about.append(pa.field("progressed", pa.bool_()))
        about.append(pa.field("said", said))
        self._told = list(told)
        # Names may be there twice; nobody looks at them.
        named = [pa.field(f"r{at}", type_) for at, type_ in enumerate(told)]
        self.schema = pa.schema([*about, *named])

    def batch(self, said: Column, columns: Sequence[Column], ts: Timestamp) -> pa.RecordBatch:
        """Rows of a timestamp."""
        about: list[Column] = [pa.repeat(pa.scalar(ts, pa.int64()), len(said))]
        if self._progress:
            about.append(pa.repeat(pa.scalar(False), len(said)))
        return pa.RecordBatch.from_arrays([*about, said, *columns], schema=self.schema)

    def progress(self, ts: Timestamp) -> pa.RecordBatch:
        """See RowForm."""
        told: list[Column] = [pa.array([ts], pa.int64()), pa.array([True])]
        told += [pa.nulls(1, field.type) for field in list(self.schema)[2:]]
        return pa.RecordBatch.from_arrays(told, schema=self.schema)

    def none(self) -> pa.RecordBatch:
        """See RowForm."""
        return pa.RecordBatch.from_pylist([], schema=self.schema)


def followed_types(subscribe: Subscribe) -> list[pa.DataType]:
    """The types of the columns of a followed query."""
    return [field.type for field in batch_schema(output_columns(subscribe.query.plan))]


class DiffRows:
    """The rows as they come, each behind its diff."""

    is_whole = False

    def __init__(self, subscribe: Subscribe, run: RunPlan) -> None:
        self._columns = ChangeColumns(subscribe, pa.int64(), followed_types(subscribe))
        self._run = run

    def progress(self, ts: Timestamp) -> pa.RecordBatch:
        """See RowForm."""
        return self._columns.progress(ts)

    def none(self) -> pa.RecordBatch:
        """See RowForm."""
        return self._columns.none()

    def snapshot(self, plan: Plan, views: RelationViews, ts: Timestamp) -> Batches:
        """See RowForm."""
        return self._told(((self._run(plan, views), 1),), ts)

    def sides(self, went: Batches, came: Batches, ts: Timestamp) -> Batches:
        """See RowForm."""
        return self._told(((went, -1), (came, 1)), ts)

    async def _told(
        self, sides: Sequence[tuple[AsyncIterator[pa.RecordBatch], int]], ts: Timestamp
    ) -> Batches:
        for rows, diff in sides:
            async with closing_batches(rows) as batches:
                async for batch in batches:
                    said = pa.repeat(pa.scalar(diff, pa.int64()), batch.num_rows)
                    yield self._columns.batch(said, batch.columns, ts)


class OrderedRows:
    """WITHIN TIMESTAMP ORDER BY: an engine orders the rows of a timestamp."""

    is_whole = True

    def __init__(self, subscribe: Subscribe, order: ChangeOrder, run: RunPlan) -> None:
        self._columns = ChangeColumns(subscribe, pa.int64(), followed_types(subscribe))
        self._order = order
        self._run = run
        columns = (*output_columns(subscribe.query.plan), order.diff)
        self._schema = pa.schema(
            [pa.field(f"f{at}", field.type) for at, field in enumerate(batch_schema(columns))]
        )
        scan = Scan(CHANGED_ROWS, CHANGED_ROWS, columns, tuple(range(len(columns))))
        self._sorted = Sort(scan, order.keys)

    def progress(self, ts: Timestamp) -> pa.RecordBatch:
        """See RowForm."""
        return self._columns.progress(ts)

    def none(self) -> pa.RecordBatch:
        """See RowForm."""
        return self._columns.none()

    async def snapshot(self, plan: Plan, views: RelationViews, ts: Timestamp) -> Batches:
        """See RowForm; however many there are, since an engine spills."""
        every = {self._order.diff.id: Const(1, INT8)}
        keys = tuple(
            [
                SortKey(substitute_columns(key.expr, every), key.descending, key.nulls_first)
                for key in self._order.keys
            ]
        )
        async with closing_batches(self._run(Sort(plan, keys), views)) as batches:
            async for batch in batches:
                said = pa.repeat(pa.scalar(1, pa.int64()), batch.num_rows)
                yield self._columns.batch(said, batch.columns, ts)

    async def sides(self, went: Batches, came: Batches, ts: Timestamp) -> Batches:
        """See RowForm."""
        parts = [
            *self._with_diff(await take_whole(went, "ordered changes"), -1),
            *self._with_diff(await take_whole(came, "ordered changes"), 1),
        ]
        if not parts:
            return
        rows = pa.Table.from_batches(parts, schema=self._schema)
        views = {CHANGED_ROWS: transient_view(CHANGED_ROWS, rows)}
        async with closing_batches(self._run(self._sorted, views)) as batches:
            async for batch in batches:
                *columns, said = batch.columns
                yield self._columns.batch(said, columns, ts)

    def _with_diff(self, rows: Sequence[pa.RecordBatch], diff: int) -> list[pa.RecordBatch]:
        return [
            pa.RecordBatch.from_arrays(
                [*batch.columns, pa.repeat(pa.scalar(diff, pa.int64()), batch.num_rows)],
                schema=self._schema,
            )
            for batch in rows
        ]
