"""Run DECLARE, FETCH and MOVE: statements about portals that have a name.

    DECLARE ─▶ Portal, its cursor ─ FETCH ─▶ rows
                                  └ MOVE ──▶ a count

Not here: the cursor itself (`cursors.py`), CLOSE (`discards.py`).
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from coordinator import session_errors as wrong
from coordinator.execution.context import Done, Outcome, Rows, Services, tag_with_count
from coordinator.session.cursors import Cursor
from coordinator.session.portal import Portal, PortalCursor, PreparedStatement
from coordinator.session.portals import Portals
from coordinator.session.prepared_statements import DeclareCursorCommand, FetchCommand
from coordinator.session.requests import Request
from coordinator.session.statement_counting import CountedRun
from coordinator.session.statement_runner import StatementRunner
from coordinator.transaction.transaction import SessionTransaction
from sql.types.sql_type import SqlType, Value


class CursorCommands:
    """See the module. `start`: runs a portal that was bound, and has no outcome yet."""

    def __init__(
        self,
        services: Services,
        transaction: SessionTransaction,
        runner: StatementRunner,
        portals: Portals,
        start: Callable[[Portal], Awaitable[None]],
    ) -> None:
        self._services = services
        self._transaction = transaction
        self._runner = runner
        self._portals = portals
        self._start = start

    async def declare(
        self,
        declaration: DeclareCursorCommand,
        declared: tuple[SqlType | None, ...],
        parameters: tuple[Value, ...],
        run: CountedRun,
    ) -> None:
        """DECLARE. Raises 25P01, 42P03."""
        if self._transaction.warns_outside and not declaration.hold:
            raise wrong.only_in_block("DECLARE CURSOR")
        self._portals.check_free(declaration.name)
        request = Request(declaration.statement, declared)
        execution = run.execution = self._runner.execution(parameters)
        outcome = await self._runner.run(request, execution, alone=False)
        assert isinstance(outcome, Rows), "the grammar lets only queries be declared"
        described = PreparedStatement(declaration.statement, declared, (), outcome.columns)
        portal = Portal(
            described,
            parameters,
            serial=self._transaction.serial,
            outcome=outcome,
            hold=declaration.hold,
            binary=declaration.binary,
        )
        cursor = self._cursor(portal, scroll=declaration.scroll)
        self._portals.open(declaration.name, portal)
        if declaration.hold and cursor is not None:
            await cursor.keep_all()

    def _cursor(self, portal: Portal, *, scroll: bool) -> PortalCursor | None:
        """A cursor on a portal that has begun; None if it has no rows."""
        limit = self._services.limits.returning_bytes_max
        if isinstance(portal.outcome, Rows):
            portal.cursor = Cursor(portal, scroll=scroll, kept_bytes_max=limit)
        return portal.cursor

    async def fetch(self, fetch: FetchCommand) -> Outcome:
        """FETCH and MOVE. Raises 34000, 55000."""
        portal = self._portals.cursor(fetch.name)
        if portal is None:
            raise wrong.undefined_cursor(fetch.name)
        if portal.outcome is None:
            await self._start(portal)
        cursor = portal.cursor or self._cursor(portal, scroll=False)
        if cursor is None or cursor.failed:
            raise wrong.finished_portal(fetch.name)
        assert isinstance(portal.outcome, Rows), "what has rows has a cursor"
        batches = cursor.fetch(fetch)
        if not fetch.move:
            tag = tag_with_count("FETCH")
            return replace(portal.outcome, batches=batches, tag=tag, is_binary=portal.binary)
        moved = 0
        async for batch in batches:
            moved += batch.num_rows
        return Done(f"MOVE {moved}")
