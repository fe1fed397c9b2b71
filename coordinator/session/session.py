"""A session: takes the client's protocol messages one at a time and answers them in order.

    client ─▶ Query ───────────────▶ statements ─▶ rows, tags ─▶ ReadyForQuery
           ─▶ Parse Bind Execute .. ─▶ answers ─▶ Sync ─▶ commit ─▶ ReadyForQuery

INVARIANTS
  S1  an error is answered once; after it everything up to Sync (or the string's end) is skipped.
  S2  an implicit transaction ends with its string or at Sync: commit, or rollback after an error.
  S3  interrupting a session never interrupts a commit (X4 of `transaction.py`), nor the answer to
      what has committed; a late cancel hits no later statement. Who is ended meanwhile hears first
      that it has committed, within LAST_ANSWER_S.
  S4  an unforeseen failure answers XX000 and ends this session only.
  S6  a commit that was begun as its bytes came is under way: nothing else of the session is done or
      said until its fate is known. Its task takes it over if anything wakes it meanwhile.
  S5  notifications are sent while no transaction is open, between messages: before ReadyForQuery,
      or when the session waits for a message. In a pipeline a transaction is open from its first
      message to Sync, unless COMMIT, ROLLBACK or an error has ended it (ProcessNotifyInterrupt).

Not here: bytes (`connection.py`, `pgwire`), execution of the commands (`commands.py`).
"""

import asyncio
from collections.abc import Awaitable
from functools import partial
from time import perf_counter
from typing import Final, assert_never

from coordinator import session_errors as wrong
from coordinator.core.messages.identities import ConnectionId
from coordinator.execution.context import Execution, Services
from coordinator.failures import statement_failure
from coordinator.memory_account import MemoryOwner
from coordinator.pgwire.flights import Flight
from coordinator.pgwire.messages import (
    Bind,
    CancelRequest,
    Close,
    CopyData,
    CopyDone,
    CopyFail,
    Describe,
    Execute,
    Flush,
    FrontendMessage,
    FunctionCall,
    GssEncRequest,
    Malformed,
    ParameterStatus,
    Parse,
    PasswordMessage,
    Query,
    ReadyForQuery,
    Severity,
    SslRequest,
    StartupMessage,
    Sync,
    Terminate,
    error_response,
    notice_response,
)
from coordinator.session.activity import Activity
from coordinator.session.client import Client
from coordinator.session.commands import Commands
from coordinator.session.notice_ranks import is_severe_enough
from coordinator.session.progress_notices import ProgressNotices
from coordinator.session.requests import Identity
from coordinator.session.sent_notifications import send_notifications
from coordinator.session.session_timers import SessionTimers
from coordinator.session.short_answers import ShortAnswers
from coordinator.session.short_commits import CommitFlight
from coordinator.session.statement_counting import StatementCounting
from coordinator.session.statement_log import StatementLog, Work
from coordinator.session.statement_runner import StatementRunner
from coordinator.session_records import LogSeverity
from coordinator.transaction.transaction import SessionTransaction
from coordinator.variables.variables import Variables
from sql.errors import SqlError

_ENDED: Final = "57P01"
_DEADLOCK: Final = "40P01"

SHORT_STATEMENTS_MAX: Final = 50
"""Statements that are answered in one turn of the loop. Larger: others wait longer. Smaller: a
pipeline of short statements takes more turns."""


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
        self._coordination = services.coordination
        self._counters = services.counters
        self._owner = ConnectionId(identity.pid)
        self._transaction = transaction
        transaction.following.interrupt = self.interrupt
        transaction.inline.memory = services.memory.holding(MemoryOwner.ROWS)
        self._variables = variables
        execution = Execution(services, transaction, variables, self._notice)
        runner = StatementRunner(execution, identity, client)
        statistics = services.statistics
        self._counts = transaction.counts = statistics.database(identity.database)
        counting = StatementCounting(statistics, variables, identity.database)
        self._commands = Commands(
            services,
            client,
            transaction,
            variables,
            runner,
            self._restart_clock,
            self._notice,
            counting,
        )
        self._runner = runner
        self.activity = Activity(services.clock, identity, transaction, variables)
        statements, portals = self._commands.statements, self._commands.portals
        self._log = StatementLog(services, identity, variables, statements, portals)
        transaction.watch_lock_wait = self._log.lock_wait
        self._short = ShortAnswers(
            services,
            client,
            transaction,
            variables,
            statements,
            portals,
            self._commands.templates,
            runner.binder,
            self.activity,
            counting,
            self._log,
        )
        progress = ProgressNotices(variables, transaction, self._notice)
        ways_out = (self.interrupt, self.end, self._stop)
        self._timers = SessionTimers(variables, transaction, progress, *ways_out)
        self._skipping = False
        self._task: asyncio.Task[None] | None = None
        self._interruptible = self._is_answering = False
        self._ends = 0
        """How many transactions had ended when the statement that runs began."""
        self._interrupt: SqlError | None = None
        self._farewell: SqlError | None = None
        self._is_cut_off = self._waiting = self._notified = self._in_pipeline = False
        self._under_way: CommitFlight | None = None
        self._last_call: SqlError | None = None

    # --- from outside ---------------------------------------------------------------------------

    def interrupt(self, error: SqlError) -> None:
        """End the statement that runs, if any, with this error (S3)."""
        if not self._interruptible or self._interrupt is not None:
            return
        if self._transaction.committing:
            self._transaction.interrupted = self._transaction.interrupted or error
            return
        if not self._has_committed:
            self._interrupt = error
            self._stop()
        elif error is self._farewell:
            self._timers.limit_last_answer()

    def _stop(self) -> None:
        assert self._task is not None, "who is ended runs"
        self._task.cancel()

    @property
    def _has_committed(self) -> bool:
        """Whether only the answer of what runs is left: to tell an error would be a lie (S3)."""
        return self._transaction.committed and self._transaction.ends != self._ends

    def drain(self, error: SqlError) -> None:
        """End the session with this error as soon as it is neither in a statement nor a block.
        SUBSCRIBE would never end by itself.
        """
        self._last_call = error
        transaction = self._transaction
        follows = transaction.following.open and not transaction.in_block
        follows = follows or transaction.only_follows
        if follows or (self._waiting and not self._transaction.is_open):
            self.end(error)

    def end(self, error: SqlError) -> None:
        """End the session with this error: at once if it waits for the client, or what it runs."""
        if self._farewell is not None:
            return
        self._farewell = error
        if self._interruptible:
            self.interrupt(error)
        elif self._is_answering:
            self._timers.limit_last_answer()
        elif self._task is not None and not self._transaction.committing:
            self._task.cancel()

    def notified(self) -> None:
        """There is something for the session to hear (B3 of `core/notifications/queue.py`)."""
        self._notified = True
        self._client.wake()

    def answer_at_once(self) -> int:
        """Answer what has come, as far as that can be done without waiting, but no more than
        SHORT_STATEMENTS_MAX statements; how many it were.
        """
        if not self._waiting or self._notified or self._skipping or self._in_pipeline:
            return 0
        if self._farewell or self._last_call or self.is_writing:
            return 0
        answered = 0
        while answered < SHORT_STATEMENTS_MAX and (flight := self._client.flight()) is not None:
            if not self._short.answer(flight):
                self._begin_commit(flight)
                break
            answered += 1
        return answered

    @property
    def is_writing(self) -> bool:
        """Whether a commit is under way that was begun as its bytes came (S6)."""
        return self._under_way is not None

    def _begin_commit(self, flight: Flight) -> None:
        """Begin a write that is its whole transaction, or a COMMIT, if it is one (S6)."""
        found = self._short.commits.startable(flight)
        if found is None:
            return
        self._ends = self._transaction.ends
        self._under_way, self._interruptible = found, True
        if not self._short.commits.begin(found, self._settled):
            self._under_way, self._interruptible = None, False

    def _settled(self) -> None:
        """The fate of the write under way is known: answer, unless there is more to say (S6)."""
        found = self._under_way
        is_all = not (self._notified or self._farewell or self._last_call)
        if found is not None and is_all and self._short.commits.finish(found):
            self._under_way, self._interruptible = None, False
            self.activity.idle()
            self._client.answered()
        else:
            self._client.wake()

    # --- the loop -------------------------------------------------------------------------------

    async def run(self) -> None:
        """Serve until the client leaves or the session is ended."""
        self._task = asyncio.current_task()
        self._counts.sessions += 1
        began = perf_counter()
        try:
            await self._ready()
            await self._client.flush()
            while (message := await self._coming()) is not None:
                if isinstance(message, Terminate):
                    return
                await self._handle(message)
                await self._commands.turns.give_way()
        except asyncio.CancelledError:
            if self._farewell is None or self._task is None:
                raise
            self._task.uncancel()
        except (EOFError, ConnectionError):
            self._counts.abandoned += 1
            raise
        finally:
            self._counts.session_s += perf_counter() - began
            await self._leave()
        self._say_farewell()

    def _say_farewell(self) -> None:
        if self._farewell is not None:
            is_killed = self._farewell.sqlstate == _ENDED
            self._counts.killed += is_killed
            self._counts.fatal += not is_killed
            self._log.failed(self._farewell, LogSeverity.FATAL)
            self._client.send(error_response(self._farewell, Severity.FATAL))

    async def _leave(self) -> None:
        if self._under_way is not None:
            self._short.commits.give_up(self._under_way)
        self._timers.close()
        await self._commands.portals.close_all()
        self._commands.statements.forget_all()
        self._transaction.rollback()
        await self._runner.drop_temporary()

    def _take(self) -> FrontendMessage | CommitFlight | None:
        """What comes next: a message, or a flight that is answered whole."""
        if self._skipping or self._in_pipeline:
            return self._client.take()
        return self._short.commits.next() or self._client.take()

    async def _coming(self) -> FrontendMessage | CommitFlight | None:
        """What comes next; None: the session was ended. Who has committed by an Execute is told so
        by the answer to the Sync that has come with it (S3).
        """
        if self._farewell is None:
            return self._take() or await self._next()
        if self._is_cut_off or not self._has_committed:
            return None
        message = self._client.take() if isinstance(self._log.message, Execute) else None
        return message if isinstance(message, Sync) else None

    async def _next(self) -> FrontendMessage | CommitFlight:
        self._waiting = True
        try:
            transaction = self._transaction
            in_block = transaction.in_block and not transaction.only_follows
            return await self._received(in_block=in_block)
        finally:
            self._waiting = False
            self._commands.turns.begin()

    async def _received(self, *, in_block: bool) -> FrontendMessage | CommitFlight:
        name = "idle_in_transaction_session_timeout" if in_block else "idle_session_timeout"
        limit = self._variables.milliseconds(name)
        if limit == 0:
            return await self._received_or_notified()
        timer = asyncio.get_running_loop().call_later(
            limit / 1000, self.end, wrong.idle_too_long(in_transaction=in_block)
        )
        try:
            return await self._received_or_notified()
        finally:
            timer.cancel()

    async def _received_or_notified(self) -> FrontendMessage | CommitFlight:
        """The next message; while there is none, notifications are sent as they come (S5)."""
        while True:
            if self._under_way is not None:
                found, self._under_way = self._under_way, None
                return found
            if self._notified:
                await self._send_notifications()
                if not self._in_pipeline:
                    await self._client.flush()
            message = self._take()
            if message is not None:
                return message
            await self._client.more()

    async def _send_notifications(self) -> None:
        """Send what the session has not heard, if no transaction is open (S5)."""
        while self._notified and not self._in_pipeline and not self._transaction.in_block:
            # Cleared before it asks: what comes meanwhile is not missed.
            self._notified = False
            self._notified |= await send_notifications(
                self._client, self._coordination, self._owner
            )

    async def _handle(self, message: FrontendMessage | CommitFlight) -> None:
        if isinstance(message, Query | Parse | Execute) and not self._skipping:
            self.activity.begins(message, self._commands.portals)
        if isinstance(message, CommitFlight):
            await self._commit(message)
            return
        self._log.message = message
        match message:
            case Bind() | Execute() | Describe() | Parse() | Close():
                if not self._skipping:
                    ends = self._transaction.ends
                    run: Work = partial(self._commands.extended, message)
                    await self._guarded(self._logged(message, run))
                    begins = self._in_pipeline or not isinstance(message, Close)
                    self._in_pipeline = begins and ends == self._transaction.ends
            case Query(text=text):
                run = partial(self._commands.query, text)
                await self._guarded(self._logged(message, run))
                await self._end_of_batch()
            case Sync():
                await self._guarded(self._commands.end_implicit())
                await self._end_of_batch()
            case Flush():
                await self._client.flush()
            case CopyData() | CopyDone() | CopyFail():
                pass  # what a client still sends of a COPY that failed
            case Malformed(error=error, is_simple=is_simple):
                if is_simple or not self._skipping:
                    await self._guarded(_raise(error))
                if is_simple:
                    await self._end_of_batch()
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

    async def _commit(self, flight: CommitFlight) -> None:
        """Answer a flight that ends in a commit, or else its first message."""
        await self._commands.turns.wait_for(self._guarded(self._short.commits.answer(flight)))
        if flight.is_left:
            if message := self._client.take():
                await self._handle(message)
            return
        if self._skipping and flight.portal is not None:
            await self._guarded(self._commands.end_implicit())
        await self._end_of_batch()

    def _logged(self, message: FrontendMessage, work: Work) -> Awaitable[None]:
        """The work, with records of it in the log if the settings ask for some."""
        return work() if self._variables.logging is None else self._log.run(message, work)

    async def _end_of_batch(self) -> None:
        """A simple query or a pipeline is over: say so."""
        self._skipping = self._in_pipeline = False
        self._is_answering = True
        await self._ready()
        self._is_answering = False
        if not self._is_cut_off:  # whoever was ended may read nothing any more
            await self._client.flush()

    async def _guarded(self, work: Awaitable[None]) -> None:
        """Run a command; answer whatever it raises (S1); stop when interrupted (S3)."""
        self._ends = self._transaction.ends
        if self._timers.is_needed:
            self._restart_clock()
            self._timers.watch_transaction(running=True)
        self._interruptible = True
        try:
            await work
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
            if self._timers.is_needed:
                self._timers.stop()
                self._timers.watch_transaction(running=False)

    def _restart_clock(self) -> None:
        """A statement begins, perhaps one of a string."""
        self._ends = self._transaction.ends
        self._timers.restart()

    async def _failed(self, error: Exception) -> None:
        self._interruptible = False
        failure = statement_failure(error)
        self._counters.failed(failure.sqlstate)
        self._counts.deadlocks += failure.sqlstate == _DEADLOCK
        self._skipping, self._in_pipeline = True, False
        self._transaction.fail(has_ended=self._transaction.ends != self._ends)
        ended = self._transaction.portals_since
        # Closing a portal ends work of an engine, which may fail too: the client hears first what
        # went wrong first.
        if self._farewell is not failure:
            self._log.failed(failure)
            self._client.send(error_response(failure))
        if self._transaction.in_block:
            await self._commands.portals.fail(ended)
        else:
            await self._commands.portals.rolled_back()
        if self._farewell is failure:
            # Said once, as the last word: it ends the statement, which nothing else answers.
            self._is_cut_off = True
            return
        if failure.sqlstate == "XX000" and error is not failure:
            # Nobody raised this on purpose, so the session's own state may be wrong too (N2 of
            # `failures.py`).
            self._farewell = wrong.session_internal_error()

    async def _ready(self) -> None:
        if self._is_cut_off:
            return
        if self._notified:
            await self._send_notifications()
        for name, value in self._variables.unreported():
            self._client.send(ParameterStatus(name, value))
        self.activity.idle()
        self._client.send(ReadyForQuery(self._transaction.status))
        if self._last_call is not None and not self._transaction.is_open:
            self._farewell = self._last_call

    def _notice(self, notice: SqlError, severity: Severity) -> None:
        if severity is Severity.WARNING:
            self._log.failed(notice, LogSeverity.WARNING)
        if is_severe_enough(severity, self._variables.get("client_min_messages")):
            self._client.send(notice_response(notice, severity))


async def _raise(error: SqlError) -> None:
    raise error
