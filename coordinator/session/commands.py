"""Run the commands of a session: simple queries, prepared statements, portals.

    Query ─▶ statements, one after the other ─▶ commit of what is implicit
    Parse ─▶ PreparedStatement ─ Bind ─▶ Portal ─ Execute ─▶ rows, tag          Sync ─▶ commit

INVARIANTS
  C1  an implicit transaction ends with its string or at Sync; portals end with their transaction.
  C2  a failing statement sends nothing but its error: the session reports it, once.

Not here: the loop, errors and interrupts (`session/session.py`), running statements
(`statement_runner.py`).
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Final

from pglast import ast

from coordinator import session_errors as wrong
from coordinator.execution.context import Done, Outcome, Services
from coordinator.large_work import Turns, are_large_values, aside_if, free_values, is_large_text
from coordinator.pgwire.messages import (
    BINARY_FORMAT,
    TEXT_FORMAT,
    Bind,
    BindComplete,
    Close,
    CloseComplete,
    CommandComplete,
    Describe,
    EmptyQueryResponse,
    Execute,
    NoData,
    ParameterDescription,
    Parse,
    ParseComplete,
    PortalSuspended,
    Severity,
    Target,
    expand_formats,
    row_description,
)
from coordinator.session.bind_parameters import (
    check_counts,
    check_determined,
    declared_types,
    decode_parameters,
)
from coordinator.session.client import Client
from coordinator.session.cursor_commands import CursorCommands
from coordinator.session.discards import discard
from coordinator.session.named_objects import PreparedStatements, named_columns, named_rows
from coordinator.session.own_statements import own_template, places_in_string
from coordinator.session.portal import Portal, PreparedStatement, command_tag
from coordinator.session.portals import Portals
from coordinator.session.prepared_statements import (
    CreateTableAsExecute,
    DeclareCursorCommand,
    ExecuteCommand,
    ExplainExecute,
    FetchCommand,
    PrepareCommand,
    parse_named_command,
)
from coordinator.session.repeated_runs import RepeatedRuns
from coordinator.session.requests import Request, analysis_needs_snapshot, is_alone
from coordinator.session.result_columns import result_columns
from coordinator.session.send_rows import send_rows
from coordinator.session.statement_counting import CountedRun, StatementCounting
from coordinator.session.statement_runner import StatementRunner
from coordinator.session.statement_templates import FilledRows, StatementTemplates
from coordinator.transaction.transaction import SessionTransaction
from coordinator.variables.variables import Variables
from sql.binder.resolve.type_names import latest_types
from sql.errors import SqlError
from sql.parser.parse import Statement
from sql.parser.truncated_names import truncated_name_notices
from sql.types.sql_type import SqlType, Value

_NOTHING: Final = Statement("", None, 0)
_UNDEFINED: Final = PreparedStatement(_NOTHING, (), (), None)
"""Of a portal whose values are wrong: it describes and executes as nothing."""


class Commands:
    """See the module. Nothing here handles an error: an exception ends the command."""

    def __init__(
        self,
        services: Services,
        client: Client,
        transaction: SessionTransaction,
        variables: Variables,
        runner: StatementRunner,
        restart_clock: Callable[[], None],
        notice: Callable[[SqlError, Severity], None],
        counting: StatementCounting,
    ) -> None:
        self._services = services
        self._client = client
        self._transaction = transaction
        self._variables = variables
        self._runner = runner
        self._restart_clock = restart_clock
        self._notice = notice
        self._counting = counting
        limits, memory = services.limits, services.memory
        self.statements = PreparedStatements(services.clock, memory, limits.statements_max)
        self.portals = Portals(services.clock, memory, limits.portals_max)
        self.turns = Turns()
        self._send = partial(send_rows, client, variables, memory)
        self.templates = StatementTemplates(services, transaction, variables, runner.binder)
        self._repeated = RepeatedRuns(
            services, client, transaction, variables, runner, self.statements, counting
        )
        self._cursors = CursorCommands(services, transaction, runner, self.portals, self._start)
        self._discard = partial(
            discard, services, transaction, variables, runner, self.statements, self.portals
        )
        transaction.named_rows = lambda: named_rows(self.statements, self.portals)

    # --- simple protocol ------------------------------------------------------------------------

    async def query(self, text: str) -> None:
        """The simple protocol: all statements of a string. Several are one transaction (C1)."""
        self.statements.drop("")
        rows = await self.templates.rows(text)
        if rows is not None and await self._insert_rows(rows):
            self._restart_clock()
            await self.end_implicit()
            return
        filled = await self.templates.find(text)
        if filled is not None:
            self._transaction.grouped = False
            await self._simple(filled.prepared(text), filled.values, alone=True, last=True)
            self._restart_clock()
            await self.end_implicit()
            return
        statements = await self._parsed(text)
        real = [statement for statement in statements if statement.node is not None]
        if not real:
            self._client.send(EmptyQueryResponse())
        self._transaction.grouped = len(real) > 1
        await self._in_order(real)
        if is_large_text(text):
            left: list[object] = [statements, self._runner.take_large()]
            real, statements = [], ()
            free_values(left)
        await self.end_implicit()

    async def _insert_rows(self, rows: FilledRows) -> bool:
        """Run an INSERT of many rows; False: nothing has happened but for a portal that closed."""
        self._transaction.grouped = False
        await self.portals.close("")
        began, run = perf_counter(), await self._counting.begin(rows.templates[0].statement)
        execution = run.execution = self._runner.execution(())
        execution.runs = rows.runs()
        tag = await self._runner.insert_rows(
            rows.request(), execution, alone=not self._transaction.has_begun
        )
        if tag is not None:
            run.ended(began, tag)
            self._complete(tag)
        return tag is not None

    async def _in_order(self, statements: Sequence[Statement]) -> None:
        for number, statement in enumerate(statements):
            if number:
                await self.turns.give_way()
            count = len(statements)
            filled = await own_template(self.templates, statement) if count > 1 else None
            if filled is None:
                prepared = PreparedStatement(statement, (), (), None)
                await self._simple(prepared, (), alone=count == 1, last=number + 1 == count)
            else:
                prepared = filled.prepared(statement.own_text)
                with places_in_string(statement):
                    last = number + 1 == count
                    await self._simple(prepared, filled.values, alone=False, last=last)
            self._restart_clock()

    async def _parsed(self, text: str) -> Sequence[Statement]:
        statements = await self._services.plans.parsed(text)
        notices = await aside_if(is_large_text(text), lambda: [*truncated_name_notices(text)])
        for notice in notices:
            self._notice(notice, Severity.NOTICE)
        return statements

    async def _simple(
        self,
        prepared: PreparedStatement,
        values: tuple[Value, ...],
        *,
        alone: bool,
        last: bool,
    ) -> None:
        """Run a statement; what the `last` of a string has done is committed before it is said to
        be complete.
        """
        self._runner.check_allowed(prepared.statement)
        # Only what may run takes the place of the unnamed portal.
        await self.portals.close("")
        alone = alone and not self._transaction.has_begun
        began, run = perf_counter(), await self._counting.begin(prepared.statement)
        outcome = await self._outcome(prepared, values, run, alone=alone)
        if isinstance(outcome, Done):
            if last:
                await self.end_implicit()
            run.ended(began, outcome.tag)
            self._complete(outcome.tag)
            return
        portal = Portal(prepared, (), outcome=outcome)
        formats = (BINARY_FORMAT if outcome.is_binary else TEXT_FORMAT,) * len(outcome.columns)
        self._client.send(row_description(outcome.columns, formats))
        try:
            count = await self._send(portal, outcome, formats, limit=0)
        finally:
            await portal.close()
        if last:
            await self.end_implicit()
        tag = command_tag(outcome, count)
        run.ended(began, tag)
        self._complete(tag)

    def _complete(self, tag: str) -> None:
        """A statement has ended."""
        self._services.counters.completed(tag)
        self._client.send(CommandComplete(tag))

    async def _after(self, statement: Statement) -> None:
        """What else ends when a statement has run: portals with their transaction, DISCARD."""
        node = statement.node
        if isinstance(node, ast.TransactionStmt) and self._transaction.rolled_back_to:
            await self.portals.close_since(self._transaction.rolled_back_to)
            self._transaction.rolled_back_to = 0
        elif isinstance(node, ast.DiscardStmt | ast.DeallocateStmt | ast.ClosePortalStmt):
            what = self._runner.discarded(statement)
            await self._discard(what)
            if what.what == "all":
                await self.end_implicit()  # nothing behind it in a pipeline undoes it

    async def end_implicit(self) -> None:
        """Sync, the end of a string: commit what no block holds (C1)."""
        self._transaction.grouped = False
        self._repeated.singly = 0
        if not self._transaction.in_block:
            await self.portals.end()
            await self._transaction.commit()
            self.portals.keep()

    # --- statements about statements and portals ------------------------------------------------

    async def _outcome(
        self,
        prepared: PreparedStatement,
        parameters: tuple[Value, ...],
        run: CountedRun,
        *,
        alone: bool,
    ) -> Outcome:
        """Run a statement, whatever it is about, and end what ends with it."""
        statement = prepared.statement
        ends = self._transaction.ends
        match parse_named_command(statement):
            case None:
                read = prepared.under(self._variables.binding_key)
                request = Request(read, prepared.declared, prepared.columns, prepared.template)
                execution = run.execution = self._runner.execution(parameters)
                outcome = await self._runner.run(request, execution, alone=alone)
            case ExecuteCommand() as invocation:
                self._runner.check_allowed(statement)
                outcome = await self._invoke(statement, invocation, run, alone=alone)
            case CreateTableAsExecute() | ExplainExecute() as filling:
                self._runner.check_allowed(statement)
                outcome = await self._invoke(
                    statement, filling.invocation, run, filling, alone=alone
                )
            case PrepareCommand() as preparation:
                self._runner.check_allowed(statement)
                await self._prepare(preparation)
                run.counted = None
                outcome = Done("PREPARE")
            case DeclareCursorCommand() as declaration:
                self._runner.check_allowed(statement)
                await self._cursors.declare(declaration, prepared.declared, parameters, run)
                outcome = Done("DECLARE CURSOR")
            case FetchCommand() as fetch:
                self._runner.check_allowed(statement)
                outcome = await self._cursors.fetch(fetch)
        is_control = isinstance(statement.node, ast.TransactionStmt)
        if is_control and ends != self._transaction.ends:
            await self._transaction_ended()
        await self._after(statement)
        return outcome

    async def _transaction_ended(self) -> None:
        if self._transaction.committed:
            await self.portals.end()
            self.portals.keep()
        else:
            await self.portals.rolled_back()

    async def _prepare(self, preparation: PrepareCommand) -> None:
        described = await self._described(preparation.statement, preparation.declared)
        if preparation.name in self.statements:
            raise wrong.duplicate_statement(preparation.name)
        self.statements[preparation.name] = described

    async def _invoke(
        self,
        statement: Statement,
        invocation: ExecuteCommand,
        run: CountedRun,
        filling: CreateTableAsExecute | ExplainExecute | None = None,
        *,
        alone: bool,
    ) -> Outcome:
        target = self._statement(invocation.name)
        values = await self._runner.arguments(statement, invocation, target.parameters)
        read = target.under(self._variables.binding_key)
        request = Request(read, target.declared, target.columns)
        if filling is not None:
            request = Request(filling.statement(statement, read), target.declared)
        else:
            await self._counting.replaced(run, target.statement)
        run.execution = self._runner.execution(values)
        return await self._runner.run(request, run.execution, alone=alone)

    # --- extended protocol ----------------------------------------------------------------------

    def extended(self, message: Parse | Bind | Describe | Execute | Close) -> Awaitable[None]:
        """One message of the extended protocol, up to Sync."""
        match message:
            case Bind():
                return self._bind(message)
            case Execute():
                return self._execute(message)
            case Describe():
                return self._describe(message)
            case Parse():
                return self._parse(message)
            case Close():
                return self._close(message)

    async def _parse(self, message: Parse) -> None:
        if not message.statement:
            # Also if what comes instead is wrong.
            self.statements.drop("")
        statements = await self._parsed(message.text)
        if len(statements) > 1:
            raise wrong.multiple_statements_in_parse()
        statement = statements[0] if statements else Statement(message.text, None, 0)
        declared = declared_types(message.type_oids)
        described = await self._described(statement, declared)
        if message.statement in self.statements:
            raise wrong.duplicate_statement(message.statement)
        self.statements[message.statement] = described
        self._client.send(ParseComplete())

    async def _described(
        self, statement: Statement, declared: tuple[SqlType | None, ...]
    ) -> PreparedStatement:
        """The statement with its parameters and columns."""
        self._transaction.analyzed |= analysis_needs_snapshot(statement)
        named = parse_named_command(statement)
        if named is None or isinstance(named, DeclareCursorCommand):
            inner = statement if named is None else named.statement
            try:
                prepared = await self._runner.describe(inner, declared)
            except SqlError as error:
                # PostgreSQL looks at a COPY when it runs, and at the transaction at once.
                if error.sqlstate == "25P02" or not isinstance(statement.node, ast.CopyStmt):
                    raise
                prepared = await self._runner.describe(_NOTHING, declared)
            types = prepared.parameters
            if named is not None:
                return PreparedStatement(statement, types, types, None)
            columns = result_columns(prepared.bound, self._variables)
            setting = self._variables.binding_key
            return PreparedStatement(statement, types, types, columns, prepared.read, setting)
        self._runner.check_allowed(statement)
        columns = named_columns(named, self.statements, self.portals)
        if isinstance(named, ExplainExecute) and named.invocation.name in self.statements:
            target = self.statements[named.invocation.name]
            filled = named.statement(statement, target.statement)
            explained = await self._runner.describe(filled, target.declared)
            columns = result_columns(explained.bound, self._variables)
        # They use no values; what types came with them are kept all the same.
        check_determined(declared)
        types = (await self._runner.describe(_NOTHING, declared)).parameters
        return PreparedStatement(statement, types, types, columns)

    def _statement(self, name: str) -> PreparedStatement:
        prepared = self.statements.get(name)
        if prepared is None:
            raise wrong.undefined_statement(name)
        return prepared

    async def _bind(self, message: Bind) -> None:
        prepared = self._statement(message.statement)
        check_counts(message, len(prepared.parameters))
        self._runner.check_allowed(prepared.statement, parameters=len(message.parameters))
        self._transaction.analyzed |= bool(message.parameters) or analysis_needs_snapshot(
            prepared.statement
        )
        if not message.portal:
            await self.portals.close("")
        self.portals.check_free(message.portal)
        # What fails now leaves the portal behind, as far as it has come.
        portal = Portal(_UNDEFINED, (), serial=self._transaction.serial)
        self.portals.open(message.portal, portal, sum(map(len, filter(None, message.parameters))))
        # A label may have come since the statement was prepared.
        types = latest_types(self._services.coordination.newest_catalog, prepared.parameters)
        variables = self._variables
        values = [value for value in message.parameters if value is not None]
        portal.parameters = await aside_if(
            are_large_values(values), lambda: decode_parameters(message, types, variables)
        )
        named = parse_named_command(prepared.statement)
        if isinstance(named, ExecuteCommand | FetchCommand):
            # What it names may have come, or have changed, since it was prepared.
            found = named_columns(named, self.statements, self.portals)
            prepared = replace(prepared, columns=found)
        portal.prepared = prepared
        # Formats for a statement that has no result at all are ignored, as PostgreSQL does.
        if prepared.columns is not None:
            portal.formats = expand_formats(message.result_formats, len(prepared.columns))
        self._client.send(BindComplete())

    async def _describe(self, message: Describe) -> None:
        formats: tuple[int, ...] = ()
        if message.target is Target.STATEMENT:
            prepared = self._statement(message.name)
            self._check_described(prepared)
            oids = tuple(type_.oid for type_ in prepared.parameters)
            self._client.send(ParameterDescription(oids))
        else:
            portal = self.portals.find(message.name)
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
        portal = self.portals.find(message.portal)
        if portal.prepared.statement.node is None:
            self._client.send(EmptyQueryResponse())
            return
        self._runner.check_allowed(portal.prepared.statement)
        if portal.outcome is None and not message.portal and await self._repeated.run(portal):
            return
        began = perf_counter()
        if portal.outcome is None:
            alone = await is_alone(self._client, self._transaction, portal.prepared.statement)
            await self._start(portal, alone=alone)
        elif portal.finished and isinstance(portal.outcome, Done):
            raise wrong.finished_portal(message.portal)
        await self._continue(portal, message.max_rows, began)

    async def _start(self, portal: Portal, *, alone: bool = False) -> None:
        run = portal.run = await self._counting.begin(portal.prepared.statement)
        portal.outcome = await self._outcome(portal.prepared, portal.parameters, run, alone=alone)
        if not isinstance(portal.prepared.statement.node, ast.TransactionStmt):
            self._transaction.grouped = True

    async def _continue(self, portal: Portal, limit: int, began: float) -> None:
        outcome, run = portal.outcome, portal.run
        assert outcome is not None, "a portal runs after it was started"
        if isinstance(outcome, Done):
            portal.finished = True
            if run is not None:
                run.ended(began, outcome.tag)
            self._complete(outcome.tag)
            return
        count = await self._send(portal, outcome, portal.formats, limit=limit)
        tag = command_tag(outcome, count)
        if run is not None:
            run.ended(began, tag)
        if portal.finished:
            self._complete(tag)
        else:
            self._services.counters.suspended(count)
            self._client.send(PortalSuspended())

    async def _close(self, message: Close) -> None:
        if message.target is Target.STATEMENT:
            self.statements.drop(message.name)
        else:
            await self.portals.close(message.name)
        self._client.send(CloseComplete())
