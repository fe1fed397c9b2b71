"""The rows of a snapshot and of changes, of a query that is made of rows one by one.

    Change ─┬─ rows that went ─▶ plan ─┐
            └─ rows that came ─▶ plan ─┴─ small: equal rows cancel out ─▶ RowForm ─▶ batches

INVARIANTS
  D3  a commit with more than NETTED_ROWS_MAX rows, or of which the rows that came or those that
      went take more than NETTED_BYTES_MAX, is not netted: its rows are streamed as they are read.
      A form that looks at all rows of a timestamp has limits of its own (`netting.py`).
  D4  a commit that wrote to several tables is one step: its timestamp is the same in all of them.
      Rows of each are given to the plan alone, and no rows of the others: it adds up (`linear`).
      So are the commits of a gap in which a view was behind (S10 of `subscriptions.py`).
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from operator import itemgetter
from typing import Final

import pyarrow as pa

from coordinator.core.change_streams.steps import ChangeStep, FollowedShard
from coordinator.execution.change_streams.netting import (
    chained,
    listed,
    net,
    take_some,
    take_whole,
)
from coordinator.execution.change_streams.row_forms import RelationViews, RowForm, RunPlan
from coordinator.execution.context import Batches
from coordinator.streams import closing_batches
from sql.plan.nodes import Plan, RelationId
from storage.batch import ShardView
from storage.changes import Change, RowPlaces, changes, split_places, view_of_places
from storage.types import ShardId, Timestamp

NETTED_ROWS_MAX: Final = 20_000
"""Larger: more memory for each subscriber, and longer work in a thread."""

PLACES_ROWS_MAX: Final = 1_000_000
"""Rows of a commit that one run of the plan reads. Larger: larger bitmaps. Smaller: more runs."""

COMMITS_MAX: Final = 64
"""Commits that are told between two looks at the core. Larger: more is kept for who does not read.
Smaller: who is behind catches up more slowly."""

COMMIT_ROWS_MAX: Final = 10_000
"""Rows of these after which no further commit is taken."""


@dataclass(frozen=True, slots=True)
class TableChanges:
    """The changes of one commit, by table (D4)."""

    ts: Timestamp
    tables: Mapping[RelationId, Change]

    @property
    def rows(self) -> int:
        """How many rows came and went."""
        return sum(_rows(part) for part in self.tables.values())


class ChangeRows:
    """Makes the rows of one subscription; `run` reads."""

    def __init__(
        self, plan: Plan, shards: Sequence[FollowedShard], form: RowForm, run: RunPlan
    ) -> None:
        """`shards`: the tables of the plan."""
        self._plan = plan
        self._form = form
        self._run = run
        self._stored = {RelationId(one.state.shard): one.schema for one in shards}

    def begin(self, views: RelationViews, ts: Timestamp, *, snapshot: bool) -> Batches:
        """All rows at a timestamp, if they are wanted."""
        return self._form.snapshot(self._plan, views, ts) if snapshot else listed([])

    def changes(self, step: ChangeStep) -> tuple[Batches, Timestamp]:
        """The rows of some of the next commits, and up to where they are all there is."""
        few, reached = _next_commits(step)
        return self._told(few), reached

    async def _told(self, few: Sequence[TableChanges]) -> Batches:
        for change in few:
            async with closing_batches(self._change(change)) as batches:
                async for batch in batches:
                    yield batch

    async def _change(self, change: TableChanges) -> Batches:
        """What came and went with one commit (D1)."""
        went = self._read({name: part.went for name, part in change.tables.items()})
        came = self._read({name: part.came for name, part in change.tables.items()})
        async with closing_batches(went), closing_batches(came):
            sides = await self._net(change, went, came)
            async with closing_batches(self._form.sides(*sides, change.ts)) as batches:
                async for batch in batches:
                    yield batch

    async def _net(
        self, change: TableChanges, went: Batches, came: Batches
    ) -> tuple[Batches, Batches]:
        """Both sides without the rows that came as they went (D2), as far as D3 lets it look."""
        if self._form.is_whole:
            gone, arrived = await net(
                await take_whole(went, "changes"), await take_whole(came, "changes")
            )
            return listed(gone), listed(arrived)
        parts = change.tables.values()
        is_one_sided = not any(part.went for part in parts) or not any(part.came for part in parts)
        if is_one_sided or change.rows > NETTED_ROWS_MAX:
            return went, came
        some_gone: list[pa.RecordBatch] = []
        some_arrived: list[pa.RecordBatch] = []
        if await take_some(went, some_gone) and await take_some(came, some_arrived):
            gone, arrived = await net(some_gone, some_arrived)
            return listed(gone), listed(arrived)
        return chained(some_gone, went), chained(some_arrived, came)

    async def _read(self, places: Mapping[RelationId, Sequence[RowPlaces]]) -> Batches:
        """The query over rows at these places (D4)."""
        for name, parts in places.items():
            for few in _runs(parts):
                views = {other: self._view(other, ()) for other in self._stored}
                views[name] = self._view(name, few)
                async with closing_batches(self._run(self._plan, views)) as batches:
                    async for batch in batches:
                        yield batch

    def _view(self, name: RelationId, parts: Sequence[RowPlaces]) -> ShardView:
        return view_of_places(ShardId(name), self._stored[name], parts)


def _next_commits(step: ChangeStep) -> tuple[list[TableChanges], Timestamp]:
    """Some of the next commits, and up to where they are all there is."""
    few: list[TableChanges] = []
    rows = 0
    for change in islice(_commits(step), COMMITS_MAX):
        few.append(change)
        rows += change.rows
        if rows >= COMMIT_ROWS_MAX:
            break
    else:
        if len(few) < COMMITS_MAX:
            return few, step.upto
    return few, few[-1].ts


def _commits(step: ChangeStep) -> Iterator[TableChanges]:
    """All commits of a step, in order (D4)."""
    found = [_commits_of(one, step) for one in step.shards]
    for ts, parts in groupby(heapq.merge(*found, key=itemgetter(0)), key=itemgetter(0)):
        tables: dict[RelationId, Change] = {}
        for _, name, change in parts:
            known = tables.get(name)
            tables[name] = change if known is None else _together(known, change)
        yield TableChanges(ts, tables)


def _commits_of(
    followed: FollowedShard, step: ChangeStep
) -> Iterator[tuple[Timestamp, RelationId, Change]]:
    name = RelationId(followed.state.shard)
    for change in changes(followed.state, step.after, step.upto, followed.schema):
        yield step.told_at(change.ts), name, change


def _together(first: Change, other: Change) -> Change:
    """Two commits of a gap as one (S10 of `subscriptions.py`): rows that came and went again cancel
    out as equal ones do.
    """
    return replace(other, came=(*first.came, *other.came), went=(*first.went, *other.went))


def _rows(change: Change) -> int:
    return sum(len(part.rows) for part in (*change.went, *change.came))


def _runs(parts: Sequence[RowPlaces]) -> Iterator[list[RowPlaces]]:
    """The places in pieces that one run of a plan reads."""
    few: list[RowPlaces] = []
    rows = 0
    for part in split_places(parts, PLACES_ROWS_MAX):
        if few and rows + len(part.rows) > PLACES_ROWS_MAX:
            yield few
            few, rows = [], 0
        few.append(part)
        rows += len(part.rows)
    if few:
        yield few
