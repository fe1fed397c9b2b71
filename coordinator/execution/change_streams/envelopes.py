"""ENVELOPE UPSERT and DEBEZIUM: one row for each key that changed with a timestamp.

    rows that went, rows that came ─ by key ─┬─ one came            ─▶ upsert, insert
                                             ├─ one went, one came  ─▶ upsert, update
                                             ├─ one went            ─▶ delete
                                             └─ more of either      ─▶ key_violation, without others

INVARIANTS
  V1  of one timestamp a key has one row. A row whose key changes goes under the old one and comes
      under the new one. Deletes come first.
  V2  keys are equal as in SQL: 0 is -0, NULL is NULL.

Nothing is remembered of a key: two rows of one key that come with different timestamps are two
upserts, and no violation.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from math import isnan
from typing import Final

import pyarrow as pa

from coordinator.execution.change_streams.netting import ON_LOOP_ROWS_MAX, take_whole
from coordinator.execution.change_streams.row_forms import (
    ChangeColumns,
    RelationViews,
    RunPlan,
    followed_types,
)
from coordinator.execution.context import Batches
from coordinator.large_work import aside_if
from coordinator.streams import closing_batches
from ingest.copy_text.kernels import Column
from sql.plan.nodes import Plan, Sort, SortKey, output_columns
from sql.plan.projections import column_reference
from sql.statements.bound import Subscribe
from sql.statements.change_streams import ChangeEnvelope
from storage.types import Timestamp

Key = tuple[object, ...]

_DELETE: Final = "delete"
_VIOLATION: Final = "key_violation"


@dataclass(slots=True)
class _Group:
    """The rows of a key, as places: those that went and those that came."""

    went: list[int] = field(default_factory=list[int])
    came: list[int] = field(default_factory=list[int])


@dataclass(frozen=True, slots=True)
class _Told:
    """One row of the envelope: its state, and the places of a row of its key, of the row before and
    of the row after.
    """

    state: str
    key: int
    before: int | None
    after: int | None


class EnvelopeRows:
    """See the module."""

    is_whole = True

    def __init__(self, subscribe: Subscribe, envelope: ChangeEnvelope, run: RunPlan) -> None:
        self._envelope = envelope
        self._run = run
        types = followed_types(subscribe)
        self._others = [at for at in range(len(types)) if at not in envelope.key]
        self._schema = pa.schema([pa.field(f"f{at}", type_) for at, type_ in enumerate(types)])
        shown = [*envelope.key, *self._others]
        if not envelope.is_upsert:
            shown += self._others
        self._columns = ChangeColumns(subscribe, pa.string(), [types[at] for at in shown])

    def progress(self, ts: Timestamp) -> pa.RecordBatch:
        """See RowForm."""
        return self._columns.progress(ts)

    def none(self) -> pa.RecordBatch:
        """See RowForm."""
        return self._columns.none()

    async def snapshot(self, plan: Plan, views: RelationViews, ts: Timestamp) -> Batches:
        """See RowForm. An engine sorts, so that rows of one key come one after the other."""
        columns = output_columns(plan)
        keys = [SortKey(column_reference(columns[at]), False, False) for at in self._envelope.key]
        kept: _Kept | None = None
        async with closing_batches(self._run(Sort(plan, tuple(keys)), views)) as batches:
            async for batch in batches:
                if not batch.num_rows:
                    continue
                rows = pa.Table.from_arrays(batch.columns, schema=self._schema)
                large = rows.num_rows > ON_LOOP_ROWS_MAX
                told, kept = await aside_if(large, partial(self._runs, kept, rows, ts))
                yield told
        if kept is not None:
            yield self._kept(kept, ts)

    async def sides(self, went: Batches, came: Batches, ts: Timestamp) -> Batches:
        """See RowForm."""
        gone = await take_whole(went, "changes in an envelope")
        arrived = await take_whole(came, "changes in an envelope")
        if not gone and not arrived:
            return
        rows = self._joined([*gone, *arrived])
        first_came = sum(batch.num_rows for batch in gone)
        large = rows.num_rows > ON_LOOP_ROWS_MAX
        yield await aside_if(large, partial(self._grouped, rows, first_came, ts))

    def _joined(self, batches: Sequence[pa.RecordBatch]) -> pa.Table:
        parts = [pa.RecordBatch.from_arrays(one.columns, schema=self._schema) for one in batches]
        return pa.Table.from_batches(parts, schema=self._schema).combine_chunks()

    def _grouped(self, rows: pa.Table, first_came: int, ts: Timestamp) -> pa.RecordBatch:
        """The rows from `first_came` on came, those before went."""
        groups: dict[Key, _Group] = {}
        for at, key in enumerate(self._keys(rows)):
            group = groups.setdefault(key, _Group())
            (group.came if at >= first_came else group.went).append(at)
        told = [self._told(group) for group in groups.values()]
        told.sort(key=lambda row: row.state != _DELETE)  # V1
        return self._batch(rows, told, ts)

    def _told(self, group: _Group) -> _Told:
        key = (group.went or group.came)[0]
        if len(group.went) > 1 or len(group.came) > 1:
            return _Told(_VIOLATION, key, None, None)
        before = group.went[0] if group.went else None
        after = group.came[0] if group.came else None
        if after is None:
            # The row before is told by DEBEZIUM only.
            return _Told(_DELETE, key, before, None)
        if self._envelope.is_upsert:
            return _Told("upsert", after, None, after)
        return _Told("insert" if before is None else "update", after, before, after)

    def _batch(self, rows: pa.Table, told: Sequence[_Told], ts: Timestamp) -> pa.RecordBatch:
        keys = pa.array([row.key for row in told], pa.int64())
        after = pa.array([row.after for row in told], pa.int64())
        columns = [_taken(rows, at, keys) for at in self._envelope.key]
        if not self._envelope.is_upsert:
            before = pa.array([row.before for row in told], pa.int64())
            columns += [_taken(rows, at, before) for at in self._others]
        columns += [_taken(rows, at, after) for at in self._others]
        said = pa.array([row.state for row in told], pa.string())
        return self._columns.batch(said, columns, ts)

    def _runs(
        self, kept: "_Kept | None", rows: pa.Table, ts: Timestamp
    ) -> "tuple[pa.RecordBatch, _Kept]":
        """What can be told of sorted rows, and the last key, of which more may come."""
        if kept is not None:
            rows = pa.concat_tables([kept.row, rows]).combine_chunks()
        keys = self._keys(rows)
        starts = [at for at in range(len(keys)) if at == 0 or keys[at] != keys[at - 1]]
        told = [
            self._came(first, is_single=end - first == 1)
            for first, end in zip(starts, [*starts[1:], len(keys)], strict=True)
        ]
        if kept is not None and not kept.is_single:
            told[0] = self._came(0, is_single=False)
        last = told.pop()
        row = rows.slice(last.key, 1)
        return self._batch(rows, told, ts), _Kept(row, is_single=last.after is not None)

    def _came(self, at: int, *, is_single: bool) -> _Told:
        """A key of the snapshot."""
        if not is_single:
            return _Told(_VIOLATION, at, None, None)
        return _Told("upsert" if self._envelope.is_upsert else "insert", at, None, at)

    def _kept(self, kept: "_Kept", ts: Timestamp) -> pa.RecordBatch:
        return self._batch(kept.row, [self._came(0, is_single=kept.is_single)], ts)

    def _keys(self, rows: pa.Table) -> Sequence[Key]:
        """The key of each row, as something that is equal for equal keys (V2)."""
        images = [_key_images(rows.column(at)) for at in self._envelope.key]
        return list(zip(*images, strict=True))


@dataclass(frozen=True, slots=True)
class _Kept:
    """A row of the last key of sorted rows, and whether that is all there is of it."""

    row: pa.Table
    is_single: bool


def _taken(rows: pa.Table, at: int, places: "pa.Array[pa.Int64Scalar]") -> Column:
    """A column at these places; NULL where there is none."""
    return rows.column(at).combine_chunks().take(places)


def _key_images(column: "pa.ChunkedArray[pa.Scalar[pa.DataType]]") -> Sequence[object]:
    values = [value.as_py() for value in column]
    if pa.types.is_floating(column.type):
        return ["NaN" if isinstance(value, float) and isnan(value) else value for value in values]
    return values
