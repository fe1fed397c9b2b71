"""The commands of a session: strings of statements, prepared statements, portals.

    Query ─▶ statements, one after the other ─▶ commit of what is implicit
    Parse ─▶ PreparedStatement ─ Bind ─▶ Portal ─ Execute ─▶ rows, tag          Sync ─▶ commit

INVARIANTS
  C1  an implicit transaction ends with its string or at Sync; portals end with their transaction.
  C2  a statement that fails answers nothing but its error: the session says it, once.

Not here: the loop, errors and interrupts (`session.py`), running statements
(`statement_runner.py`).
"""

from collections.abc import Callable
from typing import Protocol

from coordinator import session_errors as wrong
from coordinator.execution import Done, Rows, Services
from coordinator.pgwire.messages import (
    BackendMessage,
    Bind,
    BindComplete,
    Close,
    CloseComplete,
    CommandComplete,
    Describe,
    EmptyQueryResponse,
    Execute,
    FrontendMessage,
    NoData,
    ParameterDescription,
    Parse,
    ParseComplete,
    PortalSuspended,
    Sync,
    Target,
    expand_formats,
    row_description,
)
from coordinator.portal import Portal, PreparedStatement, tag_of
from coordinator.result_encoder import ResultEncoder
from coordinator.session_parameters import declared_types, decode_parameters
from coordinator.statement_runner import Request, StatementRunner
from coordinator.transaction import SessionTransaction
from coordinator.variables import Variables
from sql.parse import Statement


class Client(Protocol):
    """The other end, as messages."""

    def send(self, message: BackendMessage) -> None:
        """Queue a message."""
        ...

    async def flush(self) -> None:
        """Write what is queued; waits while the client does not read."""
        ...

    async def relieve(self) -> None:
        """Like flush, if much is queued; otherwise nothing."""
        ...

    async def receive(self) -> FrontendMessage:
        """The next message. Raises EOFError when there will be none."""
        ...

    async def peek(self) -> FrontendMessage:
        """The message that `receive` will return."""
        ...


class Commands:
    """See the module. Nothing here handles an error: what is raised ends the command."""

    def __init__(
        self,
        services: Services,
        client: Client,
        transaction: SessionTransaction,
        variables: Variables,
        runner: StatementRunner,
        restart_clock: Callable[[], None],
    ) -> None:
        self._services = services
        self._client = client
        self._transaction = transaction
        self._variables = variables
        self._runner = runner
        self._restart_clock = restart_clock
        self._statements: dict[str, PreparedStatement] = {}
        self._portals: dict[str, Portal] = {}

    # --- simple protocol ------------------------------------------------------------------------

    async def query(self, text: str) -> None:
        """The simple protocol: all statements of a string. Several are one transaction (C1)."""
        unnamed = self._portals.pop("", None)
        if unnamed is not None:
            await unnamed.close()
        statements = self._services.plans.parse(text)
        real = [statement for statement in statements if statement.node is not None]
        if not real:
            self._client.send(EmptyQueryResponse())
        self._transaction.grouped = len(real) > 1
        for statement in real:
            await self._simple(statement, alone=len(real) == 1)
            self._restart_clock()
        await self.end_implicit()

    async def _simple(self, statement: Statement, *, alone: bool) -> None:
        alone = alone and not self._transaction.in_block and self._transaction.statements == 0
        execution = self._runner.execution(())
        outcome = await self._runner.run(Request(statement), execution, alone=alone)
        await self._after(statement)
        if isinstance(outcome, Done):
            self._client.send(CommandComplete(outcome.tag))
            return
        prepared = PreparedStatement(statement, (), (), outcome.columns)
        portal = Portal(prepared, (), outcome=outcome)
        self._client.send(row_description(outcome.columns))
        try:
            count = await self._send_rows(portal, outcome, (), limit=0)
        finally:
            await portal.close()
        self._client.send(CommandComplete(tag_of(outcome, count)))

    async def _send_rows(
        self, portal: Portal, outcome: Rows, formats: tuple[int, ...], *, limit: int
    ) -> int:
        encoder = ResultEncoder(outcome.columns, formats, timezone=self._variables.timezone)
        count = 0
        async for batch in portal.rows(limit):
            async for message in encoder.encode(batch):
                self._client.send(message)
                await self._client.relieve()
            count += batch.num_rows
        return count

    async def _after(self, statement: Statement) -> None:
        """What else ends when a statement has run: portals with their transaction, DISCARD."""
        kind = type(statement.node).__name__
        if kind == "TransactionStmt":
            if not self._transaction.in_block:
                await self.close_portals()
            elif self._transaction.rolled_back_to:
                await self.close_portals(self._transaction.rolled_back_to)
                self._transaction.rolled_back_to = 0
        elif kind in ("DiscardStmt", "DeallocateStmt", "ClosePortalStmt"):
            await self._discard(statement)

    async def _discard(self, statement: Statement) -> None:
        discard = self._runner.discarded(statement)
        match discard.what:
            case "all":
                if not self._transaction.warns_outside:
                    raise wrong.in_block("DISCARD ALL")
                self._statements.clear()
                await self.close_portals()
                self._variables.reset("all")
            case "deallocate all":
                self._statements.clear()
            case "deallocate":
                if self._statements.pop(discard.name or "", None) is None:
                    raise wrong.undefined_statement(discard.name or "")
            case "close all":
                await self.close_portals()
            case "close":
                raise wrong.undefined_cursor(discard.name or "")
            case _:
                pass  # plans, sequences, temp, unlisten: nothing is kept of them

    async def end_implicit(self) -> None:
        """Sync, the end of a string: commit what no block holds (C1)."""
        self._transaction.grouped = False
        if not self._transaction.in_block:
            await self.close_portals()
            await self._transaction.commit()

    async def fail_portals(self, since: int) -> None:
        """End the work behind portals of this serial or later; their names go with the block."""
        for portal in list(self._portals.values()):
            if portal.serial >= since:
                await portal.close()

    async def close_portals(self, since: int = 0) -> None:
        """Let go of the portals opened at this serial or later, and of the engines behind them."""
        if self._portals:
            portals = [known for known in self._portals.values() if known.serial >= since]
            self._portals = {
                name: portal for name, portal in self._portals.items() if portal.serial < since
            }
            for portal in portals:
                await portal.close()

    # --- extended protocol ----------------------------------------------------------------------

    async def extended(self, message: Parse | Bind | Describe | Execute | Close) -> None:
        """One message of the extended protocol, up to Sync."""
        match message:
            case Parse():
                await self._parse(message)
            case Bind():
                await self._bind(message)
            case Describe():
                self._describe(message)
            case Execute():
                await self._execute(message)
            case Close():
                await self._close(message)

    async def _parse(self, message: Parse) -> None:
        if message.statement and message.statement in self._statements:
            raise wrong.duplicate_statement(message.statement)
        statements = self._services.plans.parse(message.text)
        if len(statements) > 1:
            raise wrong.several_statements()
        statement = statements[0] if statements else Statement(message.text, None, 0)
        declared = declared_types(message.type_oids)
        prepared = await self._runner.describe(statement, declared)
        self._statements[message.statement] = PreparedStatement(
            statement,
            prepared.parameters,
            prepared.parameters,
            self._runner.columns(prepared.bound),
        )
        self._client.send(ParseComplete())

    def _statement(self, name: str) -> PreparedStatement:
        prepared = self._statements.get(name)
        if prepared is None:
            raise wrong.undefined_statement(name)
        return prepared

    def _portal(self, name: str) -> Portal:
        portal = self._portals.get(name)
        if portal is None:
            raise wrong.undefined_portal(name)
        return portal

    async def _bind(self, message: Bind) -> None:
        prepared = self._statement(message.statement)
        self._runner.check_allowed(prepared.statement, parameters=len(message.parameters))
        values = decode_parameters(message, prepared.parameters, self._variables.timezone)
        formats = expand_formats(message.result_formats, len(prepared.columns or ()))
        known = self._portals.get(message.portal)
        if known is not None:
            if message.portal:
                raise wrong.duplicate_portal(message.portal)
            await known.close()
        serial = self._transaction.serial
        self._portals[message.portal] = Portal(prepared, values, formats, serial)
        self._client.send(BindComplete())

    def _describe(self, message: Describe) -> None:
        formats: tuple[int, ...] = ()
        if message.target is Target.STATEMENT:
            prepared = self._statement(message.name)
            self._check_described(prepared)
            oids = tuple(type_.oid for type_ in prepared.parameters)
            self._client.send(ParameterDescription(oids))
        else:
            portal = self._portal(message.name)
            prepared, formats = portal.prepared, portal.formats
            self._check_described(prepared)
        if prepared.columns is None:
            self._client.send(NoData())
        else:
            self._client.send(row_description(prepared.columns, formats))

    def _check_described(self, prepared: PreparedStatement) -> None:
        if prepared.columns is not None and self._transaction.failed:
            raise wrong.failed_transaction()

    async def _execute(self, message: Execute) -> None:
        portal = self._portal(message.portal)
        if portal.prepared.statement.node is None:
            self._client.send(EmptyQueryResponse())
            return
        self._runner.check_allowed(portal.prepared.statement)
        if portal.outcome is None:
            alone = await self._is_alone()
            await self._start(portal, alone=alone)
        elif portal.finished and isinstance(portal.outcome, Done):
            raise wrong.finished_portal(message.portal)
        await self._continue(portal, message.max_rows)

    async def _is_alone(self) -> bool:
        """Whether the statement is its whole transaction: nothing before it, Sync behind it (A1).

        A client that waits for an answer has sent Sync or Flush: looking ahead waits for nobody.
        """
        if self._transaction.in_block or self._transaction.statements:
            return False
        return isinstance(await self._client.peek(), Sync)

    async def _start(self, portal: Portal, *, alone: bool) -> None:
        prepared = portal.prepared
        request = Request(prepared.statement, prepared.declared, prepared.columns)
        execution = self._runner.execution(portal.parameters)
        portal.outcome = await self._runner.run(request, execution, alone=alone)
        if type(prepared.statement.node).__name__ != "TransactionStmt":
            self._transaction.grouped = True
        await self._after(prepared.statement)

    async def _continue(self, portal: Portal, limit: int) -> None:
        outcome = portal.outcome
        assert outcome is not None, "a portal runs after it was started"
        if isinstance(outcome, Done):
            portal.finished = True
            self._client.send(CommandComplete(outcome.tag))
            return
        count = await self._send_rows(portal, outcome, portal.formats, limit=limit)
        if portal.finished:
            self._client.send(CommandComplete(tag_of(outcome, count)))
        else:
            self._client.send(PortalSuspended())

    async def _close(self, message: Close) -> None:
        if message.target is Target.STATEMENT:
            self._statements.pop(message.name, None)
        else:
            portal = self._portals.pop(message.name, None)
            if portal is not None:
                await portal.close()
        self._client.send(CloseComplete())
