"""The changes of a query whose answers are compared: joins, aggregates, whatever is not linear.

    a step with changes ─▶ the plan at its end ─┐
    the answer that was told before ────────────┴─ equal rows cancel out ─▶ RowForm ─▶ batches

INVARIANTS
  Q1  an answer is told of one timestamp of all its tables: that of the last commit which wrote to
      one of them. Commits before it that were not looked at are skipped; no state is told that was
      not the answer at its timestamp.
  Q2  the sum of what was told is an answer that an engine gave: the last one is kept, and not
      computed anew, where several are right.
  Q3  it keeps WHOLE_ROWS_MAX rows at most; a query with more is refused.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Final

import pyarrow as pa

from coordinator.core.change_streams.steps import ChangeStep
from coordinator.execution.change_streams.netting import listed, net, take_whole
from coordinator.execution.change_streams.row_forms import RelationViews, RowForm, RunPlan
from coordinator.execution.context import Batches
from coordinator.streams import closing_batches
from sql.plan.nodes import Plan, RelationId
from storage.changes import last_commit
from storage.types import Timestamp

_WHAT: Final = "a query with joins, aggregates or the like, and an answer"


class ComparedRows:
    """See the module."""

    def __init__(self, plan: Plan, form: RowForm, run: RunPlan) -> None:
        self._plan = plan
        self._form = form
        self._run = run
        self._answer: Sequence[pa.RecordBatch] = ()

    async def begin(self, views: RelationViews, ts: Timestamp, *, snapshot: bool) -> Batches:
        """The answer at a timestamp; with `snapshot` it is told."""
        self._answer = await self._computed(views)
        if snapshot:
            async with closing_batches(self._told((), self._answer, ts)) as batches:
                async for batch in batches:
                    yield batch

    def changes(self, step: ChangeStep) -> tuple[Batches, Timestamp]:
        """What is different at the end of a step (Q1), and that end."""
        found = [last_commit(one.state, step.after, step.upto) for one in step.shards]
        written = [ts for ts in found if ts is not None]
        if not written:
            return listed([]), step.upto
        ts = step.told_at(max(written))
        return self._compared(views_at(step, step.upto), ts), step.upto

    async def _compared(self, views: RelationViews, ts: Timestamp) -> Batches:
        before, after = self._answer, await self._computed(views)
        self._answer = after
        gone, arrived = await net(before, after)
        async with closing_batches(self._told(gone, arrived, ts)) as batches:
            async for batch in batches:
                yield batch

    async def _computed(self, views: RelationViews) -> Sequence[pa.RecordBatch]:
        """Q3."""
        return await take_whole(self._run(self._plan, views), _WHAT)

    def _told(
        self, gone: Sequence[pa.RecordBatch], arrived: Sequence[pa.RecordBatch], ts: Timestamp
    ) -> AsyncIterator[pa.RecordBatch]:
        return self._form.sides(listed(gone), listed(arrived), ts)


def views_at(step: ChangeStep, ts: Timestamp) -> RelationViews:
    """All tables of a step at one timestamp (Q1)."""
    return {
        RelationId(one.state.shard): one.state.view(ts, schema=one.schema) for one in step.shards
    }
