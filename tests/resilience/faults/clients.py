"""Clients over the wire that keep one account of what they asked and what they were told.

    workload ── transact(asked, body) ──▶ Client ── asyncpg ──▶ server
                                            └ invoke, ok | fail | info ──▶ Account ──▶ judges

INVARIANTS
  C1  an outcome is unknown if a COMMIT, or a statement that is its whole transaction, was sent and
      its answer is not known: the connection broke, or an SQLSTATE says so.
  C2  whatever went wrong before COMMIT was sent certainly did not happen.
  C3  a client whose connection is gone says `Lost`; a new one goes on under new process numbers.
"""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import asyncpg

from tests.resilience.history.events import WRITES, Finding, History, Operation, Recorder

# Only against hanging for ever: a busy machine takes a minute to start a JVM.
CONNECT_SECONDS_MAX = 60
ANSWER_SECONDS_MAX = 300

# The server does not know (40003, 08007), or ends without telling what became of the statement.
UNKNOWN_STATES = frozenset({"40003", "08007", "57P01", "57P02", "XX000"})

# What asyncpg raises; the last one if an answer came that nobody had asked for: that of a server
# that ends.
FAILURES = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)

Told: TypeAlias = Sequence[Operation]
Body: TypeAlias = Callable[[asyncpg.Connection], Awaitable[Told]]


class Lost(Exception):
    """The connection is gone."""


class Account:
    """What all clients of a run were told, and how far they are. It may continue a history."""

    def __init__(self, before: History | None = None) -> None:
        self._before = before or History(())
        self.recorder = Recorder(time.monotonic_ns)
        self.states: Counter[str] = Counter()
        self.findings: list[Finding] = []
        self.acknowledged = 0
        # Answers about the past that were compared with an earlier one.
        self.compared = 0
        written = (
            operation.value
            for event in self._before.events
            for operation in event.operations
            if isinstance(operation, WRITES)
        )
        self._values = itertools.count(max(written, default=0) + 1)
        used = max((event.process for event in self._before.events), default=-1)
        self._processes = itertools.count(used + 1)
        self._changed = asyncio.Condition()

    def value(self) -> int:
        """A value that nobody has written."""
        return next(self._values)

    def process(self) -> int:
        """A process number that nobody has used."""
        return next(self._processes)

    def history(self) -> History:
        """The account so far."""
        return History(self._before.events + self.recorder.history().events)

    async def acknowledge(self) -> None:
        """One more transaction has happened."""
        self.acknowledged += 1
        async with self._changed:
            self._changed.notify_all()

    async def reach(self, acknowledged: int) -> None:
        """Wait until so many have happened in all; a run that stands still is an error."""
        while self.acknowledged < acknowledged:
            async with self._changed:
                try:
                    await asyncio.wait_for(self._changed.wait(), ANSWER_SECONDS_MAX)
                except TimeoutError as error:
                    why = f"no progress after {self.acknowledged} acknowledgements: {self.states}"
                    raise RuntimeError(why) from error


class Client:
    """One connection."""

    def __init__(self, account: Account, connection: asyncpg.Connection) -> None:
        self.account = account
        self._connection = connection

    @classmethod
    async def connect(cls, account: Account, dsn: str) -> "Client":
        """A client of the server at `dsn`. Raises Lost."""
        try:
            connection = await asyncpg.connect(
                dsn, timeout=CONNECT_SECONDS_MAX, command_timeout=ANSWER_SECONDS_MAX
            )
        except FAILURES as error:
            raise Lost(str(error)) from error
        return cls(account, connection)

    def close(self) -> None:
        """Let go of the socket."""
        self._connection.terminate()

    async def transact(self, asked: Told, body: Body, *, begin: str = "BEGIN") -> bool:
        """Run `body` between BEGIN and COMMIT; whether it was acknowledged. Raises Lost."""
        process = self._invoke(asked)
        committing = False
        try:
            await self._connection.execute(begin)
            told = await body(self._connection)
            committing = True
            tag = await self._connection.execute("COMMIT")
        except FAILURES as error:
            await self._failed(process, error, sent=committing)
            return False
        assert tag == "COMMIT", f"COMMIT was answered with {tag}"
        await self._succeeded(process, told)
        return True

    async def single(self, asked: Told, body: Body) -> bool:
        """Run a statement that is its own transaction; whether it was acknowledged."""
        process = self._invoke(asked)
        try:
            told = await body(self._connection)
        except FAILURES as error:
            await self._failed(process, error, sent=True)
            return False
        await self._succeeded(process, told)
        return True

    async def fetch(self, sql: str, *arguments: object) -> list[asyncpg.Record]:
        """Ask something that no judge looks at. Raises Lost, PostgresError."""
        try:
            return await self._connection.fetch(sql, *arguments)
        except FAILURES as error:
            if is_gone(error) or self._connection.is_closed():
                raise Lost(str(error)) from error
            raise

    def _invoke(self, asked: Told) -> int:
        process = self.account.process()
        self.account.recorder.invoke(process, *asked)
        return process

    async def _succeeded(self, process: int, told: Told) -> None:
        self.account.recorder.ok(process, *told)
        await self.account.acknowledge()

    async def _failed(self, process: int, error: Exception, *, sent: bool) -> None:
        state = state_of(error)
        gone = is_gone(error)
        unknown = sent and (gone or state in UNKNOWN_STATES)
        self.account.states["lost" if gone else state] += 1
        recorder = self.account.recorder
        recorder.info(process) if unknown else recorder.fail(process)
        if gone or self._connection.is_closed():
            raise Lost(str(error)) from error
        try:
            if self._connection.is_in_transaction():
                await self._connection.execute("ROLLBACK")
        except FAILURES as again:
            raise Lost(str(again)) from again


def state_of(error: Exception) -> str:
    """The SQLSTATE, or `lost`: the connection broke without one."""
    return getattr(error, "sqlstate", None) or "lost"


def is_gone(error: Exception) -> bool:
    """The connection has ended or is about to, whoever says so."""
    state = state_of(error)
    return state in {"lost", "57P01", "57P02"} or state.startswith("08")
