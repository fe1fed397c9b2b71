"""Begin the subscription of a statement, and end it with the statement.

    SUBSCRIBE ─▶ timestamp, UP TO ─▶ core: BeginSubscription ─▶ Rows, or COPY ─▶ until the end

INVARIANTS
  F6  a subscription is closed with the portal or the COPY that it is for, also if nobody has ever
      asked for a row.
  F7  one that is ended while no statement reads it lets go of its hold at once. The next statement
      that reads it hears why.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import pyarrow as pa

from coordinator.core.change_streams.steps import SubscriptionRequest
from coordinator.driver.change_streams import ChangeStream
from coordinator.execution.change_streams.row_forms import CHANGED_ROWS, RelationViews
from coordinator.execution.change_streams.shared_steps import StepSharing
from coordinator.execution.change_streams.telling import subscription_error, tell_changes
from coordinator.execution.context import Batches, Done, Execution, Rows, tag_with_count
from coordinator.execution.copy import CopyStream, send_copied
from coordinator.execution.dml.transient_relations import run_over_transient
from coordinator.execution.read_predicates import read_predicates
from coordinator.execution.reg_names import oid_naming
from coordinator.execution.run_plan import run_plan
from coordinator.execution.time_value import time_value
from coordinator.streams import close_batches, closing_batches
from coordinator.transaction.following import ChangeReader
from sql.errors import SqlError
from sql.plan.nodes import Plan
from sql.statements.bound import CopySubscription, Subscribe
from storage.known_rows import Points
from storage.types import Timestamp

_WAITS: Final = ("Extension", "SubscribedChanges")


async def execute_subscribe(
    execution: Execution, subscribe: Subscribe, client: CopyStream, *, as_of: Timestamp | None
) -> Rows:
    """SUBSCRIBE as a statement, whose rows end when the subscription does."""
    batches = await _begin(execution, subscribe, client, as_of=as_of)
    naming = oid_naming(subscribe.columns, execution.context)
    tag = tag_with_count("SUBSCRIBE")
    return Rows(subscribe.columns, batches, tag, naming, reader=batches.reader)


async def execute_copy_subscription(
    execution: Execution, copy: CopySubscription, client: CopyStream, *, as_of: Timestamp | None
) -> Done:
    """COPY (SUBSCRIBE ..) TO STDOUT."""
    columns = copy.subscribe.columns
    batches = await _begin(execution, copy.subscribe, client, as_of=as_of)
    with batches.reader.reading():
        return await send_copied(execution, columns, copy.options, batches, client)


async def _begin(
    execution: Execution, subscribe: Subscribe, client: CopyStream, *, as_of: Timestamp | None
) -> "SubscribedRows":
    transaction, coordination = execution.transaction, execution.services.coordination
    tables = subscribe.query.tables
    ts = await transaction.timestamp(tables) if as_of is None else as_of
    up_to: Timestamp | None = None
    if subscribe.up_to is not None:
        try:
            up_to = await time_value(execution, subscribe.up_to, "UP TO")
        except SqlError as error:
            error.position = error.position or subscribe.up_to_place
            raise
        if up_to <= ts:
            detail = f"AS OF is {ts}, and UP TO is {up_to}."
            message = "UP TO must be after AS OF"
            raise SqlError("22023", message, subscribe.up_to_place, detail=detail)
    wanted = SubscriptionRequest(
        tables,
        ts,
        up_to,
        closes=subscribe.progress,
        views=subscribe.views,
        paced=subscribe.is_compared,
        asked=_asked(execution, subscribe),
    )
    stream = await coordination.subscribe(transaction.id, wanted)
    # F5: from here on it is the subscription that holds the timestamp.
    transaction.let_go()
    transaction.following.statements += not execution.alone
    return SubscribedRows(execution, subscribe, stream, client)


def _asked(execution: Execution, subscribe: Subscribe) -> tuple[Points, ...]:
    """The values of each table without which a row does not matter; of all tables, or of none."""
    query = subscribe.query
    predicates = read_predicates(query.plan, query.tables, execution.parameters)
    found = [one.points for one in predicates if one is not None]
    points = [one for one in found if one is not None]
    return tuple(points) if len(points) == len(query.tables) else ()


class SubscribedRows:
    """The rows of a subscription, as a stream of batches (F6)."""

    def __init__(
        self,
        execution: Execution,
        subscribe: Subscribe,
        stream: ChangeStream,
        client: CopyStream,
    ) -> None:
        self._execution = execution
        self._subscribe = subscribe
        self._stream = stream
        self._client = client
        self.reader = ChangeReader()
        told, values = execution.services.told, tuple(execution.parameters)
        self._sharing = StepSharing(told, subscribe, values)
        self._error: SqlError | None = None
        self._batches = self._tell()
        self._following = execution.transaction.following
        self._following.open += 1
        self._is_open = True
        stream.on_stop = self._stop

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        if self._error is not None:
            raise self._error
        batch = await anext(self._batches)
        self._execution.services.counters.followed_rows += batch.num_rows
        return batch

    async def aclose(self) -> None:
        """Nobody wants more."""
        await close_batches(self._batches)
        self._close()

    def _close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._following.open -= 1
            self._stream.close()

    def _stop(self) -> None:
        """The core has ended it, perhaps while a client reads slowly what was told before, or while
        it does not read at all (F7).
        """
        if self._is_open:
            step = self._stream.take()
            error = None if step.end is None else subscription_error(step.end, step.after)
            if error is not None and self.reader.reads:
                self._following.interrupt(error)
            elif error is not None:
                self._error = error
                self._close()

    def _run(self, plan: Plan, views: RelationViews) -> AsyncIterator[pa.RecordBatch]:
        run = run_over_transient if CHANGED_ROWS in views else run_plan
        return run(self._execution, plan, views)

    async def _tell(self) -> Batches:
        try:
            told = tell_changes(
                self._stream,
                self._subscribe,
                self._run,
                self._wait,
                self.reader,
                self._sharing,
            )
            async with closing_batches(told) as batches:
                async for batch in batches:
                    yield batch
        finally:
            self._close()

    async def _wait(self) -> bool:
        """Until there is more; what was told is on its way before. False: a FETCH waits no longer
        (V2 of `following.py`).
        """
        patience = self.reader.patience()
        if patience == 0:
            return False
        await self._client.flush()
        with self._execution.transaction.waiting(*_WAITS):
            try:
                async with asyncio.timeout(patience):
                    await self._stream.wait()
            except TimeoutError:
                return False
        return True
