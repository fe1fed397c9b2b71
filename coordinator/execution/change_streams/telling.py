"""Tell what there is of a subscription, from its snapshot to its end.

    take a step ─┬─ changes ─▶ rows ─▶ progress ─▶ move ─┐
        ▲        ├─ nothing ─▶ wait, or a pause ─────────┤
        │        └─ the end ─▶ over, or an error         │
        └────────────────────────────────────────────────┘

A pause is a batch without rows: who reads by FETCH has got what it asked for.

It knows no socket and no engine: who calls it reads rows, and waits.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

import pyarrow as pa

from coordinator.core.change_streams.steps import ChangeStep, StreamEnd
from coordinator.driver.change_streams import ChangeStream
from coordinator.execution.change_streams.change_rows import ChangeRows
from coordinator.execution.change_streams.compared_rows import ComparedRows, views_at
from coordinator.execution.change_streams.envelopes import EnvelopeRows
from coordinator.execution.change_streams.netting import listed
from coordinator.execution.change_streams.row_forms import (
    DiffRows,
    OrderedRows,
    RelationViews,
    RowForm,
    RunPlan,
)
from coordinator.execution.change_streams.shared_steps import SharedStep, StepSharing
from coordinator.execution.context import Batches
from coordinator.streams import closing_batches
from coordinator.transaction.following import ChangeReader
from sql.errors import SqlError
from sql.statements.bound import Subscribe
from storage.types import Timestamp


class FollowedRows(Protocol):
    """The rows of a query, and how they change."""

    def begin(self, views: RelationViews, ts: Timestamp, *, snapshot: bool) -> Batches:
        """Called first, with all tables at the timestamp behind which changes begin; with
        `snapshot`: the rows of then.
        """
        ...

    def changes(self, step: ChangeStep) -> tuple[Batches, Timestamp]:
        """The rows of the next changes, and up to where they are all there is."""
        ...


async def tell_changes(
    stream: ChangeStream,
    subscribe: Subscribe,
    run: RunPlan,
    wait: Callable[[], Awaitable[bool]],
    reader: ChangeReader,
    sharing: StepSharing,
) -> Batches:
    """The rows of a subscription, and pauses. `wait`: until the stream is woken, or the reader has
    no patience left (false).
    """
    step = stream.take()
    form = _form(subscribe, run)
    rows = _followed(subscribe, step, form, run)
    views, ts = _snapshot(step), step.after
    del step  # F4: the views are all that is kept of the shards
    async with closing_batches(rows.begin(views, ts, snapshot=subscribe.snapshot)) as batches:
        del views
        async for batch in batches:
            if batch.num_rows:
                yield batch
    step = stream.take()
    if subscribe.progress:
        yield form.progress(Timestamp(step.after + 1))
    while True:
        reader.took(step.upto)
        if not step.is_empty:
            # An answer that is compared is that of this subscription alone (Q2).
            told = None if subscribe.is_compared else await sharing.find(step)
            if told is None:
                changed, reached = (listed([]), step.upto) if step.is_quiet else rows.changes(step)
                progress = form.progress(Timestamp(reached + 1)) if subscribe.progress else None
                read = _rows_of_step(changed, progress, step.after)
                if subscribe.is_compared:
                    told = SharedStep(subscribe, reached, (), read)
                else:
                    told = await sharing.read(step, reached, read)
                del changed, read
            del step  # F4: what is kept of it are these commits
            for batch in told.batches:
                reader.shared = told.shared(batch)
                yield batch
                reader.shared = None
            if told.rest is not None:
                async with closing_batches(told.rest) as batches:
                    async for batch in batches:
                        if batch.num_rows:
                            yield batch
            reached = told.reached
            del told
            stream.move(reached)
            if reader.is_content(reached):
                yield form.none()
        elif step.end is None:
            del step
            if not await wait():
                yield form.none()
        else:
            failure = subscription_error(step.end, step.after)
            if failure is None:
                return
            if not reader.owes_nothing:
                yield form.none()
            raise failure
        step = stream.take()


async def _rows_of_step(
    changed: Batches, progress: pa.RecordBatch | None, after: Timestamp
) -> Batches:
    """The changes of a step, and that they are all."""
    async with closing_batches(changed) as batches:
        try:
            async for batch in batches:
                yield batch
        except SqlError as error:
            raise _with_resumption(error, after) from error
    if progress is not None:
        yield progress


def _form(subscribe: Subscribe, run: RunPlan) -> RowForm:
    if subscribe.envelope is not None:
        return EnvelopeRows(subscribe, subscribe.envelope, run)
    if subscribe.order is not None:
        return OrderedRows(subscribe, subscribe.order, run)
    return DiffRows(subscribe, run)


def _followed(subscribe: Subscribe, step: ChangeStep, form: RowForm, run: RunPlan) -> FollowedRows:
    plan = subscribe.query.plan
    if subscribe.is_compared:
        return ComparedRows(plan, form, run)
    return ChangeRows(plan, step.shards, form, run)


def _with_resumption(error: SqlError, told: Timestamp) -> SqlError:
    """An error of the query itself, or of its limits: where to go on, if it is mended."""
    if error.detail is None:
        error.detail = _told_until(told)
    return error


def subscription_error(end: StreamEnd, told: Timestamp) -> SqlError | None:
    """The error that ends a subscription; None: it ends as it was asked to."""
    if end.sqlstate is None:
        return None
    return SqlError(end.sqlstate, end.message, detail=_told_until(told), hint=end.hint)


def _told_until(ts: Timestamp) -> str:
    return f"All changes up to {ts} were told."


def _snapshot(step: ChangeStep) -> RelationViews:
    """The tables at the timestamp behind which the changes begin."""
    return views_at(step, step.after)
