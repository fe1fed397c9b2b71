"""The asyncio shell round the sans-io protocol of one client: reads, feeds, writes, drains.

    socket ─▶ data_received ─▶ pgwire.feed ~~ take ─▶ Session ─▶ send ─▶ transport ─▶ socket
                 │  └── paused while much is not taken             └── waits for a slow client
                 └─ TLS, if the client asks for it ─┘ (`tls.py`), and so on the way back

INVARIANTS
  N1  memory is bounded: read-ahead by `receive_bytes_max` and one message, the send queue by
      `send_bytes_max` and one batch. Both are accounted for, large messages before they come.
  N2  when a client disconnects its statement is interrupted; a commit in flight is finished first.
      One that has only shut its side is answered: a status that it knows tells the two apart.
  N3  every failure ends here: this connection is closed, the others do not notice.
"""

import asyncio
import logging
import secrets
import socket
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, cast

from coordinator import session_errors as wrong
from coordinator.core.messages.identities import ConnectionId
from coordinator.failures import admin_shutdown, query_canceled
from coordinator.pgcatalog.activity import ObservedEncryption, ObservedSession
from coordinator.pgwire.flights import BindFlight, Flight
from coordinator.pgwire.messages import (
    AuthenticationOk,
    BackendKeyData,
    BackendMessage,
    CancelRequest,
    ErrorResponse,
    FrontendMessage,
    NoticeResponse,
    ParameterStatus,
    PasswordMessage,
    Severity,
    SslRequest,
    StartupMessage,
    error_response,
    notice_response,
)
from coordinator.pgwire.protocol import Limits, Protocol
from coordinator.server.access import Peer
from coordinator.server.certificates import observed_encryption
from coordinator.server.connection_log import ConnectionLog
from coordinator.server.connection_memory import ConnectionMemory
from coordinator.server.half_closed import probe_later
from coordinator.server.listeners import peer_of, ports_of
from coordinator.server.login import Login
from coordinator.server.login_attempt import audit_login, log_in_audited, refuse_login
from coordinator.server.server import Server
from coordinator.server.session_start import open_session, starting_variables
from coordinator.server.strangers import Stranger
from coordinator.server.tls import TlsFailed, TlsLayer
from coordinator.server.turn_writes import FLUSH_THRESHOLD_BYTES
from coordinator.session.session import SHORT_STATEMENTS_MAX, Session
from coordinator.session_records import RecordOrigin
from sql.errors import SqlError

log = logging.getLogger("meridian.connection")

_TLS_HANDSHAKE: Final = 0x16
"""The first byte of a client that begins with TLS at once; no start-up message begins so."""


class Connection(asyncio.Protocol):
    """See the module: an asyncio protocol, the `Client` of its session, and its task."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._limits = Limits(message_bytes_max=server.settings.message_bytes_max)
        self._tls_offer = server.access.tls
        self._memory = ConnectionMemory(server.memory)
        self._wire = self._protocol(offers_tls=self._tls_offer is not None)
        self._tls: TlsLayer | None = None
        self._encryption: ObservedEncryption | None = None
        self._peer = Peer(None, None, None)
        self._log = ConnectionLog(server.settings)
        self._is_new = True
        self._waiter: asyncio.Future[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._writable: asyncio.Future[None] | None = None
        self._stranger: Stranger | None = None
        self._session: Session | None = None
        self._read_ahead = 0
        self._paused = False
        self._gone = False
        self._at_end = False

    def _protocol(self, *, offers_tls: bool) -> Protocol:
        return Protocol(self._limits, offers_tls=offers_tls, has_room=self._memory.has_room)

    # --- called by the loop ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        # uvloop's transports are no subclass of asyncio's, only their equals.
        self._transport = transport = cast(asyncio.Transport, transport)
        transport.set_write_buffer_limits(high=self._server.settings.send_bytes_max)
        peer: socket.socket | None = transport.get_extra_info("socket")
        if peer is not None and peer.family == socket.AF_UNIX:
            # Nobody listens in between, so that PostgreSQL refuses TLS here, too.
            self._tls_offer = None
            self._wire = self._protocol(offers_tls=False)
        elif peer is not None:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        found = peer_of(transport, peer)
        self._peer = found or self._peer
        self._log.received(self._peer, ports_of(transport)[0])
        if found is None or not self._server.spawn(self._serve()):
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Bytes have come; the task takes them when it gets there."""
        if self._is_new:
            self._is_new = False
            if data[0] == _TLS_HANDSHAKE and self._tls_offer is not None:
                self._tls = TlsLayer(self._tls_offer, direct=True)
                self._wire.encryption_began()
        plain = data if self._tls is None else self._decrypted(self._tls, data)
        self._wire.feed(plain)
        self._read_ahead += len(plain)
        self._server.counters.bytes_received += len(plain)
        if self._read_ahead > self._server.settings.receive_bytes_max and not self._paused:
            self._pause(paused=True)
        self._answer_or_wake()

    def _answer_or_wake(self) -> None:
        """The task does what is not answered here. It waits for a client that is far ahead (N1)."""
        session = self._session
        if session is None or self._waiter is None or self._writable is not None or self._paused:
            self.wake()
            return
        answered = session.answer_at_once()
        if answered:
            self._server.turn_writes.answered(self, self._wire.pending_bytes)
        if session.is_writing:
            return  # it says when it goes on
        if self._wire.is_drained:
            self._read_ahead = 0
        elif answered < SHORT_STATEMENTS_MAX:
            self.wake()
        else:
            asyncio.get_running_loop().call_soon(self._answer_or_wake)

    def _decrypted(self, tls: TlsLayer, data: bytes) -> bytes:
        """What the client has said under TLS; a failure of TLS ends the connection (T3)."""
        try:
            plain = tls.receive(data)
        except TlsFailed as failure:
            log.info("TLS failed: %s", failure)
            self._write_raw(tls.outgoing())
            assert self._transport is not None, "bytes come from a connection"
            self._transport.close()
            return b""
        self._write_raw(tls.outgoing())
        if tls.is_ended and not self._at_end:
            self.eof_received()
        return plain

    def eof_received(self) -> bool:
        """The client will send nothing more; it may still read (N2)."""
        if self._at_end:
            return True  # TLS has said so already
        self._at_end = True
        self._wire.end()
        self.wake()
        probe_later(self._probe)
        return True

    def _probe(self, status: bytes | memoryview) -> bool:
        transport = self._transport
        if self._gone or transport is None or transport.is_closing():
            return False
        if self._session is not None and not transport.get_write_buffer_size():
            self._write_all([status])
        return True

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's name
        """The socket is closed."""
        if not self._gone:
            self._gone = True
            self.wake()
            if self._session is not None:
                self._session.interrupt(SqlError("08006", "connection to client lost"))
        self.resume_writing()

    def pause_writing(self) -> None:
        """The client does not read."""
        self._writable = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        """It does again."""
        writable, self._writable = self._writable, None
        if writable is not None and not writable.done():
            writable.set_result(None)

    def _pause(self, *, paused: bool) -> None:
        self._paused = paused
        if self._at_end:
            return  # there is nothing to read
        if self._transport is not None and not self._transport.is_closing():
            if paused:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    # --- the session's client -------------------------------------------------------------------

    def send(self, message: BackendMessage) -> None:
        """See Client."""
        self._wire.send(message)
        if isinstance(message, ErrorResponse | NoticeResponse):
            self.write()

    async def flush(self) -> None:
        """See Client. Raises ConnectionError when nobody reads any more."""
        if self._transport is None or self._transport.is_closing():
            raise ConnectionResetError("the client is gone")
        self.write()
        if self._writable is not None:
            await self._until_writable(self._writable)

    async def relieve(self) -> None:
        """See Client. Raises 53200 if too much waits for all clients that read slowly."""
        if self._wire.pending_bytes > FLUSH_THRESHOLD_BYTES:
            self._memory.waits(self._transport)
            await self.flush()

    def write(self) -> None:
        """See Writer."""
        transport = self._transport
        if self._wire.pending_bytes and transport is not None and not transport.is_closing():
            self._server.counters.bytes_sent += self._wire.pending_bytes
            self._write_all(self._wire.data_to_send())

    def _write_all(self, data: list[bytes | memoryview]) -> None:
        assert self._transport is not None, "somebody reads"
        if self._tls is None:
            self._transport.writelines(data)
            return
        if not self._tls.is_open:
            return  # T3: nobody who waits for TLS takes plaintext
        try:
            for piece in data:
                self._transport.writelines(self._tls.send(piece))
        except TlsFailed as failure:
            log.info("TLS failed: %s", failure)
            self._transport.close()

    def give_up(self) -> None:
        """See Writer."""
        if self._transport is not None:
            self._transport.abort()

    def _write_raw(self, data: bytes) -> None:
        if data and self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    async def _until_writable(self, writable: asyncio.Future[None]) -> None:
        try:
            async with asyncio.timeout(self._server.settings.slow_reader_timeout_s):
                await asyncio.shield(writable)
        except TimeoutError:
            assert self._transport is not None, "somebody was written to"
            self._transport.abort()  # its end would wait for the client, too
            raise ConnectionResetError("the client does not read") from None
        self._memory.sent()
        if self._gone:
            raise ConnectionResetError("the client is gone")

    def take(self) -> FrontendMessage | None:
        """See Client."""
        return self._memory.taken(self._wire)

    def flight(self) -> Flight | None:
        """See Client."""
        return self._wire.flight()

    def runs(self, most: int) -> Sequence[BindFlight]:
        """See Client."""
        return self._wire.runs(most)

    def drop(self, flight: Flight) -> None:
        """See Client."""
        self._wire.drop(flight)

    def send_encoded(self, data: bytes) -> None:
        """See Client."""
        self._wire.send_encoded(data)

    def answered(self) -> None:
        """See Client."""
        self._server.turn_writes.answered(self, self._wire.pending_bytes)
        if self._wire.is_drained and not self._paused:
            self._read_ahead = 0
        else:
            asyncio.get_running_loop().call_soon(self._answer_or_wake)

    def peek(self) -> FrontendMessage | None:
        """See Client."""
        return self._wire.peek()

    async def more(self) -> None:
        """See Client. Everything that has come was taken, except for a part of a message."""
        if self._wire.is_closed:
            raise EOFError("the protocol has ended the connection")
        if self._gone or self._at_end:
            raise EOFError("the client is gone")
        self._read_ahead = 0
        if self._paused:
            self._pause(paused=False)
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter

    def wake(self) -> None:
        """See Client. Whoever waits looks again, whatever has woken it."""
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    # --- the server's handle --------------------------------------------------------------------

    def cancel(self) -> None:
        """See Interruptible."""
        if self._session is not None:
            self._session.interrupt(query_canceled())

    def drain(self) -> None:
        """See Interruptible."""
        if self._session is not None:
            self._session.drain(admin_shutdown())

    def end(self) -> None:
        """See Interruptible."""
        if self._session is not None:
            self._session.end(admin_shutdown())

    def observed(self, role: int) -> ObservedSession:
        """See Interruptible."""
        assert self._session is not None, "a session has begun when the server knows it"
        assert self._transport is not None, "a session has a connection"
        end = self._transport.get_extra_info("peername")
        address, reads = end[0] if isinstance(end, tuple) else None, self._writable is None
        seen = self._session.activity.observed(address, role, reads=reads)
        return replace(seen, encryption=self._encryption)

    # --- the task -------------------------------------------------------------------------------

    async def _serve(self) -> None:
        """The connection's life; nothing escapes but its own cancellation (N3)."""
        try:
            admitted = await self._admitted()
            if admitted is not None:
                await self._converse(*admitted)
        except (EOFError, ConnectionError, TimeoutError):
            pass  # the client went away, or never said who it is
        except asyncio.CancelledError:
            self._refuse(admin_shutdown())
            raise
        except Exception:
            # Not foreseen, and nobody else's business (N3).
            log.exception("connection failed")
            self._refuse(wrong.session_internal_error())
        finally:
            self._close()

    def _close(self) -> None:
        if (transport := self._transport) is None:
            return
        self._memory.close()
        self._server.turn_writes.write_before_close(self)
        if self._wire.has_refused:
            self.write()  # of a pipeline without Sync, nothing
        if self._tls is not None:
            self._write_raw(self._tls.end())
        transport.close()
        if transport.get_write_buffer_size():
            # Who does not read would keep the socket, and what it was not sent.
            patience_s = self._server.settings.slow_reader_timeout_s
            asyncio.get_running_loop().call_later(patience_s, transport.abort)

    async def _admitted(self) -> tuple[Login, int] | None:
        """Who the client has proved to be, and its minor protocol version; None if it came for
        something else, or is not let in.
        """
        server = self._server
        stranger = None if server.stopping else server.strangers.admit(self._peer.address)
        if stranger is None:
            self._refuse(wrong.too_many_connections())
            return None
        self._stranger = stranger
        try:
            async with asyncio.timeout(server.settings.startup_timeout_s):
                startup = await self._greeted()
                return None if startup is None else (await self._logged_in(startup), startup.minor)
        except SqlError as error:
            self._refuse(error)
            return None
        except asyncio.CancelledError:
            if not stranger.caught():
                raise
            self._refuse(wrong.too_many_connections())
            return None
        finally:
            self._stranger = None
            server.strangers.forget(stranger)

    async def _greeted(self) -> StartupMessage | None:
        """Who the client says it is; None if it came for something else."""
        while True:
            match await self._received():
                case StartupMessage() as startup:
                    return startup
                case CancelRequest(pid=pid, secret=secret):
                    self._server.cancel(pid, secret)
                    return None
                case SslRequest():
                    self._begin_tls()
                case _:
                    pass

    async def _received(self) -> FrontendMessage:
        """The next message before the session, once what is queued has been sent."""
        assert self._stranger is not None, "sessions have a loop of their own"
        while (message := self._wire.take()) is None:
            self.write()
            with self._stranger.silence():
                await self.more()
        return message

    async def password(self) -> bytes:
        """See Channel."""
        match await self._received():
            case PasswordMessage(data=data):
                return data
            case _:
                raise EOFError("the client has left")

    async def _logged_in(self, startup: StartupMessage) -> Login:
        """Let the client prove who it is. Raises SqlError, after a while if it could not."""
        assert self._stranger is not None, "who logs in has no session yet"
        peer, parameters = self._how_connected(), startup.parameters
        return await log_in_audited(self._server, parameters, peer, self, self._stranger)

    def _how_connected(self) -> Peer:
        """How the client is connected, as it was at the beginning."""
        return replace(self._peer, tls=None if self._tls is None else self._tls.facts())

    def _begin_tls(self) -> None:
        """The client waits for our answer; what it sends from now on is encrypted (T2)."""
        self.write()
        assert self._tls_offer is not None, "an SSLRequest is handed out if TLS is offered"
        self._tls = TlsLayer(self._tls_offer, direct=False)

    def _refuse(self, error: SqlError) -> None:
        self.send(error_response(error, Severity.FATAL))

    async def _converse(self, login: Login, minor: int) -> None:
        """Open the session, run it, clean up."""
        assert self._transport is not None, "a session has a connection"
        ports = ports_of(self._transport)
        try:
            self._server.check_limits(login)
            variables = starting_variables(self._server, login, ports[1])
        except SqlError as error:
            refuse_login(self._server, self._how_connected(), login.user, login.database, error)
            self._refuse(error)
            return
        self._encryption = observed_encryption(None if self._tls is None else self._tls.facts())
        self._wire.use_encoding(lambda: variables.encoding)
        pid = self._server.new_pid()
        audit_login(self._server, self._how_connected(), login.user, login.database, pid)
        application, address = variables.get("application_name"), self._peer.address
        origin = RecordOrigin(pid, login.user, login.database, application, address, ports[0])
        self._log.authorized(self._how_connected(), login.proof, origin)
        # Protocol 3.0 knows only keys of four bytes; 3.2 has room for one that cannot be guessed.
        secret = secrets.token_bytes(32 if minor >= 2 else 4)
        self.send(AuthenticationOk())
        for problem in variables.problems:
            self.send(notice_response(problem, Severity.WARNING))
        for name, value in variables.unreported():
            self.send(ParameterStatus(name, value))
        self.send(BackendKeyData(pid, secret))
        self._session = open_session(
            self._server, self, variables, login, pid=pid, address=address, ports=ports
        )
        self._server.enter(pid, secret, self, login.oid)
        try:
            await self._session.run()
        finally:
            self._log.ended(variables, origin)
            self._server.leave(pid)
            self._server.services.coordination.disconnected(ConnectionId(pid))
