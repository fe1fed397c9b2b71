"""Sessions of the page: somebody who logs in over HTTP has one like a client of the wire.

    /page/login ─▶ rules, verifier, limits ─▶ Session ◀─ Query ── ask
                                                 └─▶ RowDescription, DataRows .. ─▶ PageResult

INVARIANTS
  G1  who comes in is decided where clients of the wire are (`login.py`): by the same rules, counted
      among the same strangers, audited, and slowed after a wrong password.
  G2  the password is checked as the method `password` checks it, in a thread of few.
  G3  the session is its role's, and reads only: `default_transaction_read_only`.
  G4  an answer is held up to RESULT_BYTES_MAX; the rest of it is dropped.
"""

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from coordinator import session_errors as wrong
from coordinator.core.messages.identities import ConnectionId
from coordinator.failures import admin_shutdown, query_canceled
from coordinator.monitoring.page_sessions import HttpPeer, PageResult
from coordinator.pgcatalog.activity import ObservedSession
from coordinator.pgwire.flights import BindFlight, Flight
from coordinator.pgwire.messages import (
    BackendMessage,
    DataRows,
    ErrorResponse,
    FrontendMessage,
    Query,
    ReadyForQuery,
    RowDescription,
    Terminate,
)
from coordinator.server.access import Peer
from coordinator.server.certificates import observed_encryption
from coordinator.server.connection_log import ConnectionLog
from coordinator.server.login import Login
from coordinator.server.login_attempt import audit_login, log_in_audited, refuse_login
from coordinator.server.server import Server
from coordinator.server.session_start import open_session, starting_variables
from coordinator.server.tls import TlsFacts
from coordinator.session_records import RecordOrigin
from coordinator.variables.variables import Variables
from sql.catalog.oids import DATABASE_OIDS
from sql.errors import SqlError

log = logging.getLogger("meridian.http")

RESULT_BYTES_MAX: Final = 1 << 20
"""Larger: more memory for each browser."""

_DATABASE: Final = "meridian"
APPLICATION: Final = "meridian page"
_PARAMETERS: Final = {
    "application_name": APPLICATION,
    "client_encoding": "UTF8",
    "datestyle": "ISO, MDY",
    "timezone": "UTC",
    "statement_timeout": "5000",
    "default_transaction_read_only": "on",
    "client_min_messages": "error",
    # A page must not start a JVM.
    "engine": "local",
}
assert _DATABASE in DATABASE_OIDS, "the page connects to a database that is there"


class ServedPages:
    """See PageSessions."""

    def __init__(self, server: Server) -> None:
        self._server = server

    @property
    def is_open(self) -> bool:
        """See PageSessions."""
        return self._server.access.is_open

    async def log_in(self, user: str, password: str, peer: HttpPeer) -> "InnerSession":
        """See PageSessions (G1)."""
        tls = peer.tls if isinstance(peer.tls, TlsFacts) else None
        known, startup = Peer(peer.address, None, tls), {"user": user, "database": _DATABASE}
        login = await self._admitted(startup | _PARAMETERS, known, password.encode())
        try:
            self._server.check_limits(login)
            variables = starting_variables(self._server, login, peer.ports[1])
        except SqlError as error:
            refuse_login(self._server, known, login.user, login.database, error)
            raise
        session = InnerSession(self._server, login, known, peer.ports)
        session.begin(variables)
        await session.is_ready()
        return session

    async def _admitted(self, startup: dict[str, str], peer: Peer, password: bytes) -> Login:
        server = self._server
        stranger = None if server.stopping else server.strangers.admit(peer.address)
        if stranger is None:
            raise wrong.too_many_connections()
        channel = _NoChannel()
        try:
            async with asyncio.timeout(server.settings.startup_timeout_s):
                return await log_in_audited(server, startup, peer, channel, stranger, password)
        except TimeoutError:
            raise SqlError("57014", "the time to log in was over") from None
        except asyncio.CancelledError:
            if not stranger.caught():
                raise
            raise wrong.too_many_connections() from None
        finally:
            server.strangers.forget(stranger)


class _NoChannel:
    """There is no conversation: the password has come with the request (G2)."""

    def send(self, message: BackendMessage) -> None:
        """See Channel."""
        raise AssertionError(f"nobody hears {type(message).__name__}")

    async def password(self) -> bytes:
        """See Channel."""
        raise AssertionError("the password was given")


class InnerSession:
    """See the module: the `Client` of a session, its handle for the server, and its task."""

    def __init__(
        self, server: Server, login: Login, peer: Peer, ports: tuple[int | None, int | None]
    ) -> None:
        self._server = server
        self._login = login
        self._peer = peer
        self._ports = ports
        self._encryption = observed_encryption(peer.tls)
        self._log = ConnectionLog(server.settings)
        self._queue = deque[FrontendMessage]()
        self._waiter: asyncio.Future[None] | None = None
        self._turn = asyncio.Lock()
        # The first answer is the one to the log-in.
        self._answer: asyncio.Future[PageResult] | None
        self._answer = asyncio.get_running_loop().create_future()
        self._ready = self._answer
        self._result = PageResult()
        self._rows: list[list[str | None]] = []
        self._held_bytes = 0
        self._is_over = False
        self.pid = server.new_pid()

    # --- the page's side ------------------------------------------------------------------------

    @property
    def user(self) -> str:
        """See PageSession."""
        return self._login.user

    @property
    def is_proved(self) -> bool:
        """See PageSession."""
        return self._login.is_proved

    @property
    def is_over(self) -> bool:
        """See PageSession."""
        return self._is_over

    async def is_ready(self) -> None:
        """Wait until it takes queries. Raises SqlError if it ends before."""
        result = await self._ready
        if result.error is not None:
            raise SqlError(result.sqlstate or "57P01", result.error)

    async def ask(self, query: str) -> PageResult:
        """See PageSession."""
        async with self._turn:
            if self._is_over:
                return PageResult(error="the session was ended", sqlstate="57P01")
            self._answer = asyncio.get_running_loop().create_future()
            self._queue.append(Query(query))
            self.wake()
            try:
                return await self._answer
            except asyncio.CancelledError:
                self.leave()  # the next one would get this answer
                raise

    def leave(self) -> None:
        """See PageSession."""
        self._queue.append(Terminate())
        self.wake()

    def _answered(self) -> None:
        answer, self._answer = self._answer, None
        result = replace(self._result, rows=self._rows)
        self._result, self._rows, self._held_bytes = PageResult(), [], 0
        if answer is not None and not answer.done():
            answer.set_result(result)

    # --- the session's client -------------------------------------------------------------------

    def send(self, message: BackendMessage) -> None:
        """See Client."""
        match message:
            case RowDescription(fields=fields):
                self._result = PageResult(tuple(field.name for field in fields))
            case DataRows(data=data):
                self._held_bytes += len(data)
                if self._held_bytes <= RESULT_BYTES_MAX:  # G4
                    self._rows += framed_rows(bytes(data))
            case ErrorResponse(fields=fields):
                told = dict(fields)
                self._result = PageResult(error=told["M"], sqlstate=told["C"])
            case ReadyForQuery():
                self._answered()
            case _:
                pass

    async def flush(self) -> None:
        """See Client."""

    async def relieve(self) -> None:
        """See Client."""

    def take(self) -> FrontendMessage | None:
        """See Client."""
        return self._queue.popleft() if self._queue else None

    def peek(self) -> FrontendMessage | None:
        """See Client."""
        return self._queue[0] if self._queue else None

    def flight(self) -> Flight | None:
        """See Client."""
        return None

    def runs(self, most: int) -> Sequence[BindFlight]:  # noqa: ARG002 - the protocol's name
        """See Client."""
        return ()

    def drop(self, flight: Flight) -> None:
        """See Client."""
        raise AssertionError(f"there is no flight {flight}")

    def send_encoded(self, data: bytes) -> None:
        """See Client."""
        raise AssertionError(f"there are no flights to answer with {len(data)} bytes")

    def answered(self) -> None:
        """See Client."""
        raise AssertionError("there are no flights to answer")

    async def more(self) -> None:
        """See Client."""
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter

    def wake(self) -> None:
        """See Client."""
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    # --- the server's handle --------------------------------------------------------------------

    def cancel(self) -> None:
        """See Interruptible."""
        self._session.interrupt(query_canceled())

    def drain(self) -> None:
        """See Interruptible."""
        self._session.drain(admin_shutdown())

    def end(self) -> None:
        """See Interruptible."""
        self._session.end(admin_shutdown())

    def observed(self, role: int) -> ObservedSession:
        """See Interruptible."""
        seen = self._session.activity.observed(self._peer.address, role, reads=True)
        return replace(seen, encryption=self._encryption)

    # --- the task -------------------------------------------------------------------------------

    def begin(self, variables: Variables) -> None:
        """Open the session; its task is the server's."""
        server, login, pid = self._server, self._login, self.pid
        audit_login(server, self._peer, login.user, login.database, pid)
        origin = RecordOrigin(
            pid, login.user, login.database, APPLICATION, self._peer.address, self._ports[0]
        )
        self._log.authorized(self._peer, login.proof, origin)
        self._session = open_session(
            server, self, variables, login,
            pid=pid, address=self._peer.address, ports=self._ports,
        )  # fmt: skip
        server.enter(pid, secrets.token_bytes(32), self, login.oid)
        if not server.spawn(self._serve(variables, origin)):
            self._end(variables, origin)

    async def _serve(self, variables: Variables, origin: RecordOrigin) -> None:
        """The session's life; nothing escapes but its own cancellation (N3 of `connection.py`)."""
        try:
            await self._session.run()
        except asyncio.CancelledError:
            raise
        except Exception:
            # Not foreseen, and nobody else's business.
            log.exception("a session of the page failed")
        finally:
            self._end(variables, origin)

    def _end(self, variables: Variables, origin: RecordOrigin) -> None:
        self._is_over = True
        self._log.ended(variables, origin)
        self._server.leave(self.pid)
        self._server.services.coordination.disconnected(ConnectionId(self.pid))
        if self._result.error is None:
            self._result = PageResult(error="the session was ended", sqlstate="57P01")
        self._answered()


def framed_rows(data: bytes) -> Iterator[list[str | None]]:
    """The values of framed DataRow messages, in their text form."""
    at = 0
    while at < len(data):
        count, place = int.from_bytes(data[at + 5 : at + 7], "big"), at + 7
        row: list[str | None] = []
        for _ in range(count):
            length = int.from_bytes(data[place : place + 4], "big", signed=True)
            place += 4
            if length < 0:
                row.append(None)
                continue
            row.append(data[place : place + length].decode(errors="replace"))
            place += length
        yield row
        at += 1 + int.from_bytes(data[at + 1 : at + 5], "big")
