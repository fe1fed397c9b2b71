"""Tell what there is of a subscription, from its snapshot to its end.

    take a step ─┬─ changes ─▶ rows ─▶ progress ─▶ move ─┐
        ▲        ├─ nothing ─▶ wait ─────────────────────┤
        │        └─ the end ─▶ over, or an error         │
        └────────────────────────────────────────────────┘

It knows no socket and no engine: who calls it reads rows, and waits.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

from coordinator.core.change_streams.steps import ChangeStep, StreamEnd
from coordinator.driver.change_streams import ChangeStream
from coordinator.execution.change_streams.change_rows import ChangeRows
from coordinator.execution.change_streams.compared_rows import ComparedRows, views_at
from coordinator.execution.change_streams.envelopes import EnvelopeRows
from coordinator.execution.change_streams.row_forms import (
    DiffRows,
    OrderedRows,
    RelationViews,
    RowForm,
    RunPlan,
)
from coordinator.execution.context import Batches
from coordinator.streams import closing_batches
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
    stream: ChangeStream, subscribe: Subscribe, run: RunPlan, wait: Callable[[], Awaitable[None]]
) -> Batches:
    """The rows of a subscription; some batches may be empty. `wait`: until the stream is woken."""
    step = stream.take()
    form = _form(subscribe, run)
    rows = _followed(subscribe, step, form, run)
    views, ts = _snapshot(step), step.after
    del step  # F4: the views are all that is kept of the shards
    async with closing_batches(rows.begin(views, ts, snapshot=subscribe.snapshot)) as batches:
        del views
        async for batch in batches:
            yield batch
    step = stream.take()
    if subscribe.progress:
        yield form.progress(Timestamp(step.after + 1))
    while True:
        if not step.is_empty:
            told, reached = rows.changes(step)
            after = step.after
            del step  # F4: what is kept of it are these commits
            async with closing_batches(told) as batches:
                try:
                    async for batch in batches:
                        yield batch
                except SqlError as error:
                    raise _with_resumption(error, after) from error
            if subscribe.progress:
                yield form.progress(Timestamp(reached + 1))
            stream.move(reached)
        elif step.end is None:
            del step
            await wait()
        else:
            failure = subscription_error(step.end, step.after)
            if failure is None:
                return
            raise failure
        step = stream.take()


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
