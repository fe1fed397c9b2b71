"""Write statements, their durations, errors and waits of a session into the server's log.

    message ─▶ log_statement? ─▶ run ─▶ log_duration, log_min_duration_statement?
                                  └ fails ─▶ ERROR, with STATEMENT (log_min_error_statement)

The texts are PostgreSQL's (check_log_statement, check_log_duration of postgres.c).

INVARIANTS
  L1  a session whose settings ask for nothing comes here for errors only.
  L2  what logs each statement has none answered by the short ways (`short_answers.py`): they are
      off then, so that records are the general way's. With log_min_duration_statement above 0 the
      short ways stay, and the slow among their answers have a record.
  L3  nothing here fails a statement.

Runs of a batch that are done at once (`repeated_runs.py`) have one duration, that of the first.
Secrets: hidden by whoever writes the records (R2 of `session_records.py`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from time import perf_counter
from typing import Final, TypeAlias

from pglast import ast

from coordinator.core.messages.identities import ConnectionId
from coordinator.core.observation import ObservedLock
from coordinator.execution.context import Services
from coordinator.pgwire.flights import Flight, QueryFlight
from coordinator.pgwire.messages import TEXT_FORMAT, Bind, Execute, FrontendMessage, Parse, Query
from coordinator.pgwire.values import encode_value
from coordinator.session.log_kinds import is_of_kind
from coordinator.session.named_objects import PreparedStatements
from coordinator.session.portal import Portal, PreparedStatement
from coordinator.session.portals import Portals
from coordinator.session.prepared_statements import ExecuteCommand, parse_named_command
from coordinator.session.requests import Identity
from coordinator.session_records import LogSeverity, RecordOrigin, SessionRecord, log_record
from coordinator.variables.session_logging import SessionLogging, is_severe, parameter_bytes
from coordinator.variables.session_roles import SESSION_AUTHORIZATION
from coordinator.variables.variables import Variables
from sql.errors import SqlError
from sql.parser.parse import Statement
from sql.types.sql_type import SqlType, Value

_UNNAMED: Final = "<unnamed>"

Work: TypeAlias = Callable[[], Awaitable[None]]


class StatementLog:
    """See the module. `message`: the last one that the session has begun with."""

    def __init__(
        self,
        services: Services,
        identity: Identity,
        variables: Variables,
        statements: PreparedStatements,
        portals: Portals,
    ) -> None:
        self._services = services
        self._identity = identity
        self._variables = variables
        self._statements = statements
        self._portals = portals
        self.message: FrontendMessage | None = None

    # --- statements -----------------------------------------------------------------------------

    async def run(self, message: FrontendMessage, work: Work) -> None:
        """Do the work of a message, with the records that the settings ask for."""
        began = perf_counter()
        logged = await self._begin(message)
        # What runs a portal may be its end, and Bind opens another one under its name.
        before = self._subject(message) if isinstance(message, Execute) else None
        await work()
        found = before or self._subject(message)
        if found is not None:
            self._end(*found, seconds=perf_counter() - began, logged=logged)

    def answered(self, flight: Flight, seconds: float) -> None:
        """A short way has answered it, and was slow (L2). Its portal may be gone, and the values
        with it.
        """
        if isinstance(flight, QueryFlight):
            subject = f"statement: {flight.text}"
        else:
            prepared = self._statements.get(flight.statement)
            text = "" if prepared is None else prepared.statement.text
            subject = f"execute {_portal_shown(flight.statement, '')}: {text}"
        self._end(subject, None, seconds=seconds, logged=False)

    async def _begin(self, message: FrontendMessage) -> bool:
        """log_statement; whether there was a record."""
        logging = self._variables.logging
        if logging is None or logging.kinds == "none" or not isinstance(message, Query | Execute):
            return False
        if isinstance(message, Query):
            try:
                statements = await self._services.plans.parsed(message.text)
            except SqlError:
                return False  # it runs, and says so
        else:
            portal = self._portals.cursor(message.portal)
            statements = () if portal is None else (portal.prepared.statement,)
        if not self._is_logged(statements, logging.kinds):
            return False
        found = self._subject(message)
        if found is None:
            return False
        subject, portal = found
        self._write(subject, self._details(portal, statements, logging))
        return True

    def _is_logged(self, statements: Sequence[Statement], kinds: str) -> bool:
        """GetCommandLogLevel; what EXECUTE runs is what was prepared."""
        if kinds == "all":
            return True
        for statement in statements:
            prepared = self._executed(statement)
            node = statement.node if prepared is None else prepared.statement.node
            if is_of_kind(node, kinds):
                return True
        return False

    def _executed(self, statement: Statement) -> PreparedStatement | None:
        """What an EXECUTE names."""
        if not isinstance(statement.node, ast.ExecuteStmt):
            return None
        command = parse_named_command(statement)
        if not isinstance(command, ExecuteCommand) or command.name not in self._statements:
            return None
        return self._statements[command.name]

    def _end(self, subject: str, portal: Portal | None, *, seconds: float, logged: bool) -> None:
        """log_duration and log_min_duration_statement, as they are by now."""
        logging = self._variables.logging
        if logging is None:
            return
        milliseconds = 1000 * seconds
        is_slow = 0 <= logging.least_ms <= milliseconds
        if not is_slow and not logging.durations:
            return
        told = f"duration: {milliseconds:.3f} ms"
        if logged or not is_slow:
            self._write(told)
        else:
            self._write(f"{told}  {subject}", self._details(portal, (), logging))

    def _subject(self, message: FrontendMessage) -> tuple[str, Portal | None] | None:
        """What a record says was done, and the portal whose values it has."""
        match message:
            case Query(text=text):
                return f"statement: {text}", None
            case Parse(statement=name, text=text):
                return f"parse {name or _UNNAMED}: {text}", None
            case Bind(portal=portal_name, statement=name):
                prepared = self._statements.get(name)
                if prepared is None:
                    return None
                shown = _portal_shown(name, portal_name)
                found = self._portals.cursor(portal_name)
                return f"bind {shown}: {prepared.statement.text}", found
            case Execute(portal=portal_name):
                found = self._portals.cursor(portal_name)
                if found is None or found.prepared.statement.node is None:
                    return None
                fetches = "" if found.outcome is None or found.finished else " fetch from"
                shown = _portal_shown(self._name_of(found), portal_name)
                return f"execute{fetches} {shown}: {found.prepared.statement.text}", found
            case _:
                return None

    def _name_of(self, portal: Portal) -> str:
        statement = portal.prepared.statement
        named = self._statements.items()
        return next((name for name, known in named if known.statement is statement), "")

    def _details(
        self, portal: Portal | None, statements: Sequence[Statement], logging: SessionLogging
    ) -> str:
        """The values of parameters, or what an EXECUTE runs."""
        for statement in statements:
            prepared = self._executed(statement)
            if prepared is not None:
                return f"prepare: {prepared.statement.text}"
        values = "" if portal is None else _parameters(portal, logging.parameter_bytes)
        return f"Parameters: {values}" if values else ""

    def _write(self, message: str, detail: str = "") -> None:
        log_record(message, SessionRecord(LogSeverity.LOG, self._origin(), detail=detail))

    def _origin(self) -> RecordOrigin:
        identity, variables = self._identity, self._variables
        return RecordOrigin(
            identity.pid,
            str(variables.get(SESSION_AUTHORIZATION)),
            identity.database,
            variables.get("application_name"),
            identity.address,
            identity.ports[0],
        )

    # --- errors ---------------------------------------------------------------------------------

    def failed(self, error: SqlError, severity: LogSeverity = LogSeverity.ERROR) -> None:
        """An error, or a warning, goes to the client."""
        word = severity.name.lower()
        if not is_severe(word, self._variables.get("log_min_messages")):
            return
        statement = ""
        if is_severe(word, self._variables.get("log_min_error_statement")):
            statement = self._text()
        place = "" if error.position is None else f" at character {error.position}"
        record = SessionRecord(
            severity,
            self._origin(),
            sqlstate=error.sqlstate,
            detail=error.detail or "",
            hint=error.hint or "",
            context="\n".join(filter(None, (error.context, self._values_on_error()))),
            statement=statement,
        )
        log_record(error.message + place, record)

    def _text(self) -> str:
        """The text of the statement that was at work."""
        match self.message:
            case Query(text=text) | Parse(text=text):
                return text
            case Bind(statement=name):
                prepared = self._statements.get(name)
                return "" if prepared is None else prepared.statement.text
            case Execute(portal=name):
                portal = self._portals.cursor(name)
                return "" if portal is None else portal.prepared.statement.text
            case _:
                return ""

    def _values_on_error(self) -> str:
        most = parameter_bytes(self._variables.get("log_parameter_max_length_on_error"))
        if most == 0 or not isinstance(self.message, Execute):
            return ""
        name = self.message.portal
        portal = self._portals.cursor(name)
        values = "" if portal is None else _parameters(portal, most)
        shown = f'portal "{name}"' if name else "unnamed portal"
        return f"{shown} with parameters: {values}" if values else ""

    # --- locks ----------------------------------------------------------------------------------

    def lock_wait(self) -> AbstractContextManager[None]:
        """Until it ends, a lock is waited for (log_lock_waits)."""
        logging = self._variables.logging
        if logging is None or logging.lock_waits_ms is None:
            return nullcontext()
        return self._waiting(logging.lock_waits_ms / 1000)

    @contextmanager
    def _waiting(self, patience_s: float) -> Generator[None]:
        began, told = perf_counter(), list[str]()

        def tell() -> None:
            lock = self._waited_for()
            if lock is not None:
                told.append(f"{lock.mode.shown} on {lock.tag.describe()}")
                self._tell_wait("still waiting for", told[0], began, self._holders(lock))

        timer = asyncio.get_running_loop().call_later(patience_s, tell)
        try:
            yield
        finally:
            timer.cancel()
        if told:
            self._tell_wait("acquired", told[0], began)

    def _tell_wait(self, what: str, lock: str, began: float, detail: str = "") -> None:
        waited = f"{1000 * (perf_counter() - began):.3f} ms"
        record = SessionRecord(
            LogSeverity.LOG, self._origin(), detail=detail, statement=self._text()
        )
        log_record(f"process {self._identity.pid} {what} {lock} after {waited}", record)

    def _locks(self) -> list[ObservedLock]:
        return [lock for line in self._services.coordination.observe() for lock in line.locks]

    def _waited_for(self) -> ObservedLock | None:
        own = ConnectionId(self._identity.pid)
        waits = (lock for lock in self._locks() if lock.session == own and not lock.granted)
        return next(waits, None)

    def _holders(self, waited: ObservedLock) -> str:
        same = [lock for lock in self._locks() if lock.tag == waited.tag]
        holders = sorted({lock.session for lock in same if lock.granted} - {waited.session})
        word = "Process" if len(holders) == 1 else "Processes"
        waiters = sorted({lock.session for lock in same if not lock.granted})
        return f"{word} holding the lock: {_listed(holders)}. Wait queue: {_listed(waiters)}."


def _listed(pids: Sequence[int]) -> str:
    return ", ".join(map(str, pids))


def _portal_shown(statement: str, portal: str) -> str:
    return f"{statement or _UNNAMED}/{portal}" if portal else statement or _UNNAMED


def _parameters(portal: Portal, most: int) -> str:
    """`$1 = '..', $2 = NULL`, each of at most so many bytes (BuildParamLogString); -1: whole."""
    if most == 0:
        return ""
    types = portal.prepared.parameters
    pairs = zip(portal.parameters, types, strict=False)
    shown = [_quoted(value, type_, most) for value, type_ in pairs]
    return ", ".join(f"${place} = {text}" for place, text in enumerate(shown, 1))


def _quoted(value: Value, type_: SqlType, most: int) -> str:
    if value is None:
        return "NULL"
    data = encode_value(value, type_, TEXT_FORMAT)
    is_cut = 0 <= most < len(data)
    text = (data[:most] if is_cut else data).decode(errors="ignore").replace("'", "''")
    return f"'{text}...'" if is_cut else f"'{text}'"
