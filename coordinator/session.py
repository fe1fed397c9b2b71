"""A session: the protocol's commands in, answers out, one at a time, in order.

    client ─▶ Query ───────────────▶ statements ─▶ rows, tags ─▶ ReadyForQuery
           ─▶ Parse Bind Execute .. ─▶ answers ─▶ Sync ─▶ commit ─▶ ReadyForQuery

INVARIANTS
  S1  an error is answered once; after it everything up to Sync (or the string's end) is skipped.
  S2  an implicit transaction ends with its string or at Sync: commit, or rollback after an error.
  S3  interrupting a session never interrupts a commit (X4); a late cancel hits no later statement.
  S4  what is not foreseen answers XX000 and ends this session only.

Not here: bytes (`connection.py`, `pgwire`), running statements (`statement_runner.py`).
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, assert_never

from coordinator import session_errors as wrong
from coordinator.errors import statement_failure
from coordinator.execution import Done, Execution, Rows, Services
from coordinator.pgwire.messages import (
    BackendMessage,
    Bind,
    BindComplete,
    CancelRequest,
    Close,
    CloseComplete,
    CommandComplete,
    CopyData,
    CopyDone,
    CopyFail,
    Describe,
    EmptyQueryResponse,
    Execute,
    Flush,
    FrontendMessage,
    FunctionCall,
    GssEncRequest,
    Malformed,
    NoData,
    ParameterDescription,
    ParameterStatus,
    Parse,
    ParseComplete,
    PasswordMessage,
    PortalSuspended,
    Query,
    ReadyForQuery,
    Severity,
    SslRequest,
    StartupMessage,
    Sync,
    Target,
    Terminate,
    error_response,
    expand_formats,
    notice_response,
    row_description,
)
from coordinator.portal import Portal, PreparedStatement, tag_of
from coordinator.result_encoder import ResultEncoder
from coordinator.session_parameters import declared_types, decode_parameters
from coordinator.statement_runner import Identity, Request, StatementRunner
from coordinator.transaction import SessionTransaction
from coordinator.variables import Variables
from sql.errors import SqlError
from sql.parse import Statement

_MESSAGE_RANK: Final = {
    name: rank
    for rank, name in enumerate(
        (
            "debug5",
            "debug4",
            "debug3",
            "debug2",
            "debug1",
            "log",
            "info",
            "notice",
            "warning",
            "error",
        )
    )
}


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


class Session:
    """See the module. One task runs `run`; everybody else may only `interrupt` or `end`."""

    def __init__(
        self,
        services: Services,
        client: Client,
        transaction: SessionTransaction,
        variables: Variables,
        identity: Identity,
    ) -> None:
        self._client = client
        self._services = services
        self._transaction = transaction
        self._variables = variables
        self._execution = Execution(services, transaction, variables, self._notice)
        self._runner = StatementRunner(self._execution, identity, client)
        self._statements: dict[str, PreparedStatement] = {}
        self._portals: dict[str, Portal] = {}
        self._skipping = False
        self._task: asyncio.Task[None] | None = None
        self._interruptible = False
        self._interrupt: SqlError | None = None
        self._farewell: SqlError | None = None
        self._last_call: SqlError | None = None
        self._waiting = False

    # --- from outside ---------------------------------------------------------------------------

    def interrupt(self, error: SqlError) -> None:
        """End the statement that runs, if any, with this error (S3)."""
        if not self._interruptible or self._transaction.committing or self._interrupt is not None:
            return
        assert self._task is not None, "S3: what is interruptible runs"
        self._interrupt = error
        self._task.cancel()

    def drain(self, error: SqlError) -> None:
        """End the session with this error as soon as it is neither in a statement nor a block."""
        self._last_call = error
        if self._waiting and not self._transaction.is_open:
            self.end(error)

    def end(self, error: SqlError) -> None:
        """End the session with this error: at once if it waits for the client, or what it runs."""
        if self._farewell is not None:
            return
        self._farewell = error
        if self._interruptible:
            self.interrupt(error)
        elif self._task is not None and not self._transaction.committing:
            self._task.cancel()

    # --- the loop -------------------------------------------------------------------------------

    async def run(self) -> None:
        """Serve until the client leaves or the session is ended."""
        self._task = asyncio.current_task()
        try:
            self._ready()
            await self._client.flush()
            while self._farewell is None:
                message = await self._next()
                if isinstance(message, Terminate):
                    return
                await self._handle(message)
        except asyncio.CancelledError:
            if self._farewell is None or self._task is None:
                raise
            self._task.uncancel()
        finally:
            await self._leave()
        self._say_farewell()

    def _say_farewell(self) -> None:
        if self._farewell is not None:
            self._client.send(error_response(self._farewell, Severity.FATAL))

    async def _leave(self) -> None:
        await self._close_portals()
        self._transaction.rollback()

    async def _next(self) -> FrontendMessage:
        in_block = self._transaction.in_block
        self._waiting = True
        try:
            return await self._received(in_block=in_block)
        finally:
            self._waiting = False

    async def _received(self, *, in_block: bool) -> FrontendMessage:
        name = "idle_in_transaction_session_timeout" if in_block else "idle_session_timeout"
        limit = self._variables.milliseconds(name)
        if limit == 0:
            return await self._client.receive()
        timer = asyncio.get_running_loop().call_later(
            limit / 1000, self.end, wrong.idle_too_long(in_transaction=in_block)
        )
        try:
            return await self._client.receive()
        finally:
            timer.cancel()

    async def _handle(self, message: FrontendMessage) -> None:
        match message:
            case Query(text=text):
                await self._guarded(lambda: self._query(text))
                self._ready()
                await self._client.flush()
            case Sync():
                self._skipping = False
                await self._guarded(self._sync)
                self._skipping = False
                self._ready()
                await self._client.flush()
            case Flush():
                await self._client.flush()
            case Parse() | Bind() | Describe() | Execute() | Close():
                if not self._skipping:
                    await self._guarded(lambda: self._extended(message))
            case CopyData() | CopyDone() | CopyFail():
                pass  # what a client still sends of a COPY that failed
            case Malformed(error=error, is_simple=is_simple):
                await self._guarded(lambda: _raise(error))
                if is_simple:
                    self._skipping = False
                    self._ready()
                    await self._client.flush()
            case FunctionCall():
                raise AssertionError("the protocol answers function calls by itself")
            case (
                StartupMessage()
                | SslRequest()
                | GssEncRequest()
                | CancelRequest()
                | PasswordMessage()
                | Terminate()
            ):
                raise AssertionError("not a message of a running session")
            case _:
                assert_never(message)

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run a command; answer whatever it raises (S1); stop when interrupted (S3)."""
        limit = self._variables.milliseconds("statement_timeout")
        timer = None
        if limit:
            timer = asyncio.get_running_loop().call_later(
                limit / 1000, self.interrupt, wrong.statement_too_long()
            )
        self._interruptible = True
        try:
            await work()
        except asyncio.CancelledError:
            if self._interrupt is None or self._task is None:
                raise
            self._task.uncancel()
            await self._failed(self._interrupt)
        except (EOFError, ConnectionError):
            raise
        except Exception as error:
            await self._failed(error)
        finally:
            self._interruptible = False
            self._interrupt = None
            if timer is not None:
                timer.cancel()

    async def _failed(self, error: Exception) -> None:
        self._interruptible = False
        failure = statement_failure(error)
        self._skipping = True
        self._transaction.fail()
        await self._close_portals()
        if self._farewell is failure:
            return  # said once, as the last word
        self._client.send(error_response(failure))
        if failure.sqlstate == "XX000":
            self._farewell = wrong.internal_end()

    def _ready(self) -> None:
        if self._last_call is not None and not self._transaction.is_open:
            self._farewell = self._last_call
            return
        for name, value in self._variables.unreported():
            self._client.send(ParameterStatus(name, value))
        self._client.send(ReadyForQuery(self._transaction.status))

    def _notice(self, notice: SqlError, severity: Severity) -> None:
        rank = _MESSAGE_RANK[severity.value.lower()]
        if rank >= _MESSAGE_RANK[self._variables.get("client_min_messages")]:
            self._client.send(notice_response(notice, severity))

    # --- simple protocol ------------------------------------------------------------------------

    async def _query(self, text: str) -> None:
        self._skipping = False
        unnamed = self._portals.pop("", None)
        if unnamed is not None:
            await unnamed.close()
        statements = self._services.plans.parse(text)
        real = [statement for statement in statements if statement.node is not None]
        if not real:
            self._client.send(EmptyQueryResponse())
        for statement in real:
            await self._simple(statement, alone=len(real) == 1)
        self._skipping = False
        await self._end_implicit()

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
        if kind == "TransactionStmt" and not self._transaction.in_block:
            await self._close_portals()
        elif kind in ("DiscardStmt", "DeallocateStmt", "ClosePortalStmt"):
            await self._discard(statement)

    async def _discard(self, statement: Statement) -> None:
        discard = self._runner.discarded(statement)
        match discard.what:
            case "all":
                if self._transaction.in_block:
                    raise wrong.in_block("DISCARD ALL")
                self._statements.clear()
                await self._close_portals()
                self._variables.reset("all")
            case "deallocate all":
                self._statements.clear()
            case "deallocate":
                if self._statements.pop(discard.name or "", None) is None:
                    raise wrong.undefined_statement(discard.name or "")
            case "close all":
                await self._close_portals()
            case "close":
                raise wrong.undefined_cursor(discard.name or "")
            case _:
                pass  # plans, sequences, temp, unlisten: nothing is kept of them

    async def _end_implicit(self) -> None:
        """S2."""
        if not self._transaction.in_block:
            await self._close_portals()
            await self._transaction.commit()

    async def _close_portals(self) -> None:
        if self._portals:
            portals, self._portals = list(self._portals.values()), {}
            for portal in portals:
                await portal.close()

    # --- extended protocol ----------------------------------------------------------------------

    async def _sync(self) -> None:
        await self._end_implicit()

    async def _extended(self, message: Parse | Bind | Describe | Execute | Close) -> None:
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
        values = decode_parameters(message, prepared.parameters, self._variables.timezone)
        formats = expand_formats(message.result_formats, len(prepared.columns or ()))
        known = self._portals.get(message.portal)
        if known is not None:
            if message.portal:
                raise wrong.duplicate_portal(message.portal)
            await known.close()
        self._portals[message.portal] = Portal(prepared, values, formats)
        self._client.send(BindComplete())

    def _describe(self, message: Describe) -> None:
        formats: tuple[int, ...] = ()
        if message.target is Target.STATEMENT:
            prepared = self._statement(message.name)
            oids = tuple(type_.oid for type_ in prepared.parameters)
            self._client.send(ParameterDescription(oids))
        else:
            portal = self._portal(message.name)
            prepared, formats = portal.prepared, portal.formats
        if prepared.columns is None:
            self._client.send(NoData())
        else:
            self._client.send(row_description(prepared.columns, formats))

    async def _execute(self, message: Execute) -> None:
        portal = self._portal(message.portal)
        if portal.prepared.statement.node is None:
            self._client.send(EmptyQueryResponse())
            return
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


async def _raise(error: SqlError) -> None:
    raise error
