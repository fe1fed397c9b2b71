"""Tell what there is of a subscription, from its snapshot to its end.

    take a step ─┬─ changes ─▶ rows ─▶ progress ─▶ move ─┐
        ▲        ├─ nothing ─▶ wait, or a pause ─────────┤
        │        └─ the end ─▶ over, or an error         │
        └────────────────────────────────────────────────┘

A pause is a batch without rows: who reads by FETCH has got what it asked for.

It knows no socket and no engine: who calls it reads rows, and waits.
"""

from collections.abc import Awaitable, Callable, Iterable
from itertools import islice
from typing import Final

from coordinator.core.change_streams.steps import ChangeStep, StreamEnd
from coordinator.driver.change_streams import ChangeStream
from coordinator.execution.change_streams.change_rows import ChangeRows, RunOverView
from coordinator.execution.change_streams.shared_steps import StepSharing
from coordinator.execution.context import Batches
from coordinator.streams import closing_batches
from coordinator.transaction.following import ChangeReader
from sql.errors import SqlError
from sql.statements.bound import Subscribe
from storage.batch import ShardView
from storage.changes import Change, changes
from storage.types import Timestamp

COMMITS_MAX: Final = 64
"""Commits that are told between two looks at the core. Larger: more is kept for who does not read.
Smaller: who is behind catches up more slowly."""

COMMIT_ROWS_MAX: Final = 10_000
"""Rows of these after which no further commit is taken."""


async def tell_changes(
    stream: ChangeStream,
    subscribe: Subscribe,
    run: RunOverView,
    wait: Callable[[], Awaitable[bool]],
    reader: ChangeReader,
    sharing: StepSharing,
) -> Batches:
    """The rows of a subscription, and pauses. `wait`: until the stream is woken, or the reader has
    no patience left (false).
    """
    step = stream.take()
    rows = ChangeRows(subscribe, step.schema, run)
    if subscribe.snapshot:
        view, ts = _snapshot(step), step.after
        del step  # F4: the view is all that is kept of the shard
        async with closing_batches(rows.snapshot(view, ts)) as batches:
            del view
            async for batch in batches:
                if batch.num_rows:
                    yield batch
        step = stream.take()
    if subscribe.progress:
        yield rows.progress(Timestamp(step.after + 1))
    while True:
        reader.took(step.upto)
        if not step.is_empty:
            told = await sharing.find(step)
            if told is None:
                few, reached = _next_commits(step)
                read = _rows_of_commits(rows, few, reached, progress=subscribe.progress)
                told = await sharing.read(step, reached, read)
                del few, read
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
                yield rows.none()
        elif step.end is None:
            del step
            if not await wait():
                yield rows.none()
        else:
            error = subscription_error(step.end, step.after)
            if error is None:
                return
            if not reader.owes_nothing:
                yield rows.none()
            raise error
        step = stream.take()


async def _rows_of_commits(
    rows: ChangeRows, few: Iterable[Change], reached: Timestamp, *, progress: bool
) -> Batches:
    for change in few:
        async with closing_batches(rows.change(change)) as batches:
            async for batch in batches:
                yield batch
    if progress:
        yield rows.progress(Timestamp(reached + 1))


def subscription_error(end: StreamEnd, told: Timestamp) -> SqlError | None:
    """The error that ends a subscription; None: it ends as it was asked to."""
    if end.sqlstate is None:
        return None
    detail = f"All changes up to {told} were told."
    return SqlError(end.sqlstate, end.message, detail=detail, hint=end.hint)


def _snapshot(step: ChangeStep) -> ShardView:
    """The table at the timestamp behind which the changes begin."""
    return step.state.view(step.after, schema=step.schema)


def _next_commits(step: ChangeStep) -> tuple[list[Change], Timestamp]:
    """Some of the next commits, and up to where they are all there is."""
    found = changes(step.state, step.after, step.upto, step.schema)
    few: list[Change] = []
    rows = 0
    for change in islice(found, COMMITS_MAX):
        few.append(change)
        rows += sum(len(part.rows) for part in (*change.came, *change.went))
        if rows >= COMMIT_ROWS_MAX:
            break
    else:
        if len(few) < COMMITS_MAX:
            return few, step.upto
    return few, few[-1].ts
