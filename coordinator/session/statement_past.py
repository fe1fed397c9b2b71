"""Where a statement with AS OF, or in a block with one, reads: the timestamp and the catalog.

Not here: the expression of AS OF (`as_of.py`), the transaction's own choice (`transaction.py`).
"""

from collections.abc import Sequence

from coordinator.core.messages.replies import Snapshot
from coordinator.execution.context import Execution, Outcome
from coordinator.session.as_of import as_of_has_parameters, as_of_timestamp
from coordinator.session.requests import Request
from coordinator.session.statement_binder import StatementBinder
from sql.catalog.catalog import SYSTEM_TIMELINE, Table
from sql.catalog.meridian_schema import is_server_state
from sql.errors import SqlError
from sql.parser.parse import Statement
from sql.statements.bound import (
    BoundQuery,
    BoundStatement,
    CopyOut,
    CopySubscription,
    ExplainTimestamp,
    Subscribe,
)
from sql.types.sql_type import SqlType
from storage.types import Timestamp


class StatementPast:
    """See the module."""

    def __init__(self, execution: Execution, binder: StatementBinder) -> None:
        self._services = execution.services
        self._transaction = execution.transaction
        self._binder = binder

    async def snapshot_if_known(
        self,
        statement: Statement,
        declared: tuple[SqlType | None, ...],
        execution: Execution,
        present: Snapshot,
    ) -> Snapshot:
        """The catalog of the statement's AS OF; the present one if only parameters will tell."""
        timeline = self._timeline_of(statement, declared, present)
        if as_of_has_parameters(statement) or timeline not in (None, SYSTEM_TIMELINE.name):
            return present
        ts = await self.timestamp(Request(statement, declared), execution, present)
        return await self._transaction.glance(ts, at_least=statement.as_of_at_least)

    async def explain(
        self, request: Request, execution: Execution
    ) -> tuple[Outcome, BoundStatement]:
        """EXPLAIN TIMESTAMP takes no snapshot: it would be what it explains."""
        # A server starts without it.
        from coordinator.execution.explain_timestamp import execute_explain_timestamp

        present = await self._transaction.present()
        as_of: Timestamp | None = None
        if request.statement.as_of is not None:
            as_of = await self.timestamp(request, execution, present)
        prepared = await self._binder.bound(request.statement, present.catalog, request.declared)
        assert isinstance(prepared.bound, ExplainTimestamp), "the grammar tells it apart"
        rows = execute_explain_timestamp(execution, prepared.bound, as_of=as_of)
        self._transaction.pin_snapshot()
        return rows, prepared.bound

    async def snapshot(self, request: Request, execution: Execution, present: Snapshot) -> Snapshot:
        """The snapshot that the statement's AS OF asks for (A3)."""
        ts = await self.timestamp(request, execution, present)
        timeline = self._timeline_of(request.statement, request.declared, present)
        timeline = timeline or SYSTEM_TIMELINE.name
        snapshot = await self._services.coordination.snapshot(
            self._transaction.id,
            as_of=ts,
            at_least=request.statement.as_of_at_least,
            timeline=timeline,
        )
        # Other timelines than `system` have no catalogs of the past.
        is_system = timeline == SYSTEM_TIMELINE.name
        return snapshot if is_system else Snapshot(snapshot.ts, present.catalog)

    async def settle(self, statement: Statement, declared: tuple[SqlType | None, ...]) -> None:
        """The first statement with tables tells where BEGIN .. AS OF counts."""
        if self._transaction.past_is_open:
            timeline = self._timeline_of(statement, declared, await self._transaction.glance())
            if timeline is not None:
                await self._transaction.settle_past(timeline)

    def _timeline_of(
        self, statement: Statement, declared: tuple[SqlType | None, ...], present: Snapshot
    ) -> str | None:
        """The timeline that an AS OF counts in: that of the tables, as they are named now."""
        if len(present.catalog.timelines) == 1:
            return SYSTEM_TIMELINE.name
        try:
            bound = self._binder.bind(statement, present.catalog, declared, fixed=False).bound
        except SqlError:
            return None  # perhaps the past has what it names
        tables = _tables_read(bound)
        return next((table.timeline for table in tables if not is_server_state(table)), None)

    async def timestamp(
        self, request: Request, execution: Execution, present: Snapshot
    ) -> Timestamp:
        """The timestamp that the statement's AS OF names. Raises SqlError."""
        return await as_of_timestamp(
            request.statement,
            execution,
            lambda statement: self._binder.bind(
                statement, present.catalog, request.declared, ts=present.ts
            ),
        )


def _tables_read(bound: BoundStatement) -> Sequence[Table]:
    if isinstance(bound, CopySubscription):
        bound = bound.subscribe
    query = bound.query if isinstance(bound, CopyOut | Subscribe) else bound
    return query.tables if isinstance(query, BoundQuery) else ()
