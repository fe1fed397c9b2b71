"""The server's side of a connection as a state machine without I/O: bytes and messages, both ways.

    bytes ─▶ feed ─▶ take, or drop of a flight ─▶ session ─▶ send ─▶ data_to_send ─▶ bytes

The states are in `message_order.py`.

INVARIANTS
  P1  what a message does to the order is decided when it is *taken*, not when its bytes arrive: a
      client may have sent far ahead of the answer that changes the state.
  P2  after an ErrorResponse in the extended protocol nothing is handed out up to a Sync.
  P3  in COPY_IN Flush and Sync are handed out, but change nothing: the COPY reads past them. What
      does not belong to a COPY, and the end of the stream, is `Malformed`: it fails the COPY, if
      that has not failed before it, and with it the connection.
  P4  nothing a client sends raises: it is a message, or `Malformed`, or we say why and close.
  P5  memory is one frame and what `feed` was given; a frame is bounded before it is awaited (K1).
      A large one that there is no room for goes by (`large_messages.py`).

The protocol answers GSSENCRequest, unsupported versions, version negotiation and violations by
itself; an SSLRequest is answered and, if it was by `S`, handed out, too. A shell uses it like this:

    wire = Protocol(Limits(message_bytes_max=256 << 20))

    async def receive() -> FrontendMessage:             # what the session awaits
        while (message := wire.take()) is None:
            if wire.is_closed:
                raise EOFError
            data = await read_from_socket()
            if not data:
                raise EOFError
            wire.feed(data)
        return message

    wire.send(AuthenticationOk()); wire.send(ReadyForQuery(..))     # what the session answers
    if wire.pending_bytes > 64 << 10: transport.writelines(wire.data_to_send()); await drain()

and writes `data_to_send()` too at Flush, Sync, errors and notices, as PostgreSQL does; in the end
only if it `has_refused`. Reading from the socket only when `take` gives None bounds what is read
ahead.
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from coordinator.pgwire.client_encodings import message_from_client, text_to_client
from coordinator.pgwire.codec import (
    FRONTEND_TYPES,
    NEWEST_MINOR,
    decode_frontend,
    decode_startup,
    encode_backend,
)
from coordinator.pgwire.flights import BindFlight, Flight, next_flight, next_run
from coordinator.pgwire.large_messages import LARGE_BYTES, LargeMessages
from coordinator.pgwire.message_order import MESSAGE_FATES, MessageFate, State
from coordinator.pgwire.messages import (
    AuthenticationOk,
    BackendKeyData,
    BackendMessage,
    Bind,
    CancelRequest,
    Close,
    CopyDone,
    CopyFail,
    CopyInResponse,
    Describe,
    EncryptionAccepted,
    EncryptionRefused,
    ErrorResponse,
    Execute,
    Flush,
    FrontendMessage,
    FunctionCall,
    GssEncRequest,
    Malformed,
    NegotiateProtocolVersion,
    Parse,
    Query,
    ReadyForQuery,
    RowDescription,
    Severity,
    SslRequest,
    StartupMessage,
    Sync,
    Terminate,
    error_response,
)
from sql.errors import SqlError, not_supported
from sql.types.encodings import Encoding

_HEADER_BYTES: Final = 5
_END_OF_STREAM: Final = 0
"""In place of a message's type."""
_LENGTH: Final = struct.Struct("!i")
_JOIN_BYTES_MAX: Final = 16 << 10
"""Answers shorter than this are joined to one piece; longer ones are sent without a copy."""
_COMPACT_BYTES: Final = 64 << 10
"""So much of the input may be used up before it is moved away."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a client may make us hold."""

    message_bytes_max: int = 256 << 20
    startup_bytes_max: int = 10_000
    password_bytes_max: int = 65_535
    control_bytes_max: int = 10_000
    """Messages that carry at most a name: Describe, Execute, Close, Sync, Flush .."""


_CONTROL_TYPES: Final = frozenset(b"DECSHcX")


class Protocol:
    """See the module."""

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        offers_tls: bool = False,
        has_room: Callable[[int], bool] = lambda _nbytes: True,
    ) -> None:
        """`has_room`: asked for each large message, when its header has come."""
        self._limits = limits or Limits()
        self._large = LargeMessages(has_room)
        self._offers_tls = offers_tls
        self._state = State.STARTUP
        self._minor = 0
        self._input = bytearray()
        self._used = 0
        self._head: tuple[int, FrontendMessage] | None = None
        self._output: list[bytes | memoryview] = []
        self._joined = bytearray()
        self._pending_bytes = 0
        self._is_extended = False
        self._answered: set[type[FrontendMessage]] = set()
        self._is_at_end = False
        self._is_lost = False
        self._has_refused = False
        self._encoding: Callable[[], Encoding | None] = lambda: None

    def use_encoding(self, encoding: Callable[[], Encoding | None]) -> None:
        """Ask this for the client's encoding whenever a text comes or goes; None is UTF-8."""
        self._encoding = encoding

    def __repr__(self) -> str:
        waiting = len(self._input) - self._used
        return f"<Protocol {self._state.name} in={waiting} out={self._pending_bytes}>"

    @property
    def state(self) -> State:
        """For logs and tests; the session has no need of it."""
        return self._state

    @property
    def is_closed(self) -> bool:
        """The conversation is over: write what is pending, then close the socket."""
        return self._state is State.CLOSED

    @property
    def has_refused(self) -> bool:
        """It is over because of an error, which the client should hear; it has not just left."""
        return self._has_refused

    @property
    def pending_bytes(self) -> int:
        """How much `data_to_send` would give."""
        return self._pending_bytes

    # ------------------------------------------------------------ in

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Add what the socket has read."""
        if self.is_closed:
            return
        data = self._large.rest(data)
        if self._used > _COMPACT_BYTES or self._used == len(self._input):
            del self._input[: self._used]
            self._used = 0
        self._input += data

    def encryption_began(self) -> None:
        """The client has begun with TLS: it is not to ask for it any more."""
        self._answered.add(SslRequest)

    def end(self) -> None:
        """The client has shut its side: nothing more is fed."""
        self._is_at_end = True

    def take(self) -> FrontendMessage | None:
        """The next message for the session, or None until more is fed (P1)."""
        message = self.peek()
        if message is None:
            return None
        assert self._head is not None, "what is peeked at is the head"
        kind, self._head = self._head[0], None
        if MESSAGE_FATES[self._state][type(message)] is MessageFate.REFUSE:
            if self._state is State.COPY_IN:
                self._is_lost = True
                return Malformed(self._out_of_order(kind), is_simple=False)
            self._violated(self._out_of_order(kind))
            return None
        self._taken(message)
        return message

    def peek(self) -> FrontendMessage | None:
        """The message that `take` would give or refuse as things stand (P1)."""
        while self._state is not State.CLOSED:
            if self._head is None:
                self._head = self._next_message()
            if self._head is None and self._is_at_end and self._state is State.COPY_IN:
                self._head = _END_OF_STREAM, Terminate()
            if self._head is None:
                return None
            message = self._head[1]
            if MESSAGE_FATES[self._state][type(message)] is not MessageFate.DROP:
                return message
            self._head = None
        return None

    @property
    def is_drained(self) -> bool:
        """Whether nothing is left of what was fed."""
        is_empty = self._head is None and self._used == len(self._input)
        return is_empty and self._large.passing is None

    def flight(self) -> Flight | None:
        """The flight that comes next, if `take` would hand out its messages as they are (P1)."""
        if self._state is not State.READY or self._is_extended or self._head is not None:
            return None
        return None if self._encoding() is not None else next_flight(self._input, self._used)

    def drop(self, flight: Flight) -> None:
        """It was answered, up to ReadyForQuery, by `send_encoded`."""
        self._used += flight.size

    def runs(self, most: int) -> Sequence[BindFlight]:
        """The runs of prepared statements that come next in a pipeline, if `take` would hand out
        their messages as they are (P1).
        """
        found: list[BindFlight] = []
        if self._state is not State.READY or self._head is not None or self._large.passing:
            return found
        if self._encoding() is not None:
            return found
        start = self._used
        while len(found) < most and (run := next_run(self._input, start)) is not None:
            found.append(run)
            start += run.size
        return found

    def _out_of_order(self, kind: int) -> SqlError:
        match self._state:
            case State.AUTHENTICATING:
                return SqlError("08P01", f"expected password response, got message type {kind}")
            case State.COPY_IN if kind == _END_OF_STREAM:
                words = "unexpected EOF on client connection with an open transaction"
                return SqlError("08006", words)
            case State.COPY_IN:
                words = f"unexpected message type 0x{kind:02X} during COPY from stdin"
                return SqlError("08P01", words)
            case _:
                return SqlError("08P01", f"invalid frontend message type {kind}")

    def _taken(self, message: FrontendMessage) -> None:
        match message:
            case Bind() | Execute() | Describe() | Parse() | Close():
                self._is_extended = True
            case StartupMessage():
                self._state = State.AUTHENTICATING
            case CancelRequest() | Terminate():
                self._close()
            case Sync() if self._state is State.COPY_IN:
                pass  # P3
            case Query() | Sync() | Malformed(is_simple=True):
                self._state = State.READY
                self._is_extended = False
            case Malformed():
                self._is_extended = True
            case CopyDone() | CopyFail():
                self._state = State.READY
            case _:
                pass

    # ------------------------------------------------------------ frames

    def _next_message(self) -> tuple[int, FrontendMessage] | None:
        """The next message whatever the state, with its type byte; None if it is not complete."""
        if self._state is State.STARTUP:
            return self._next_startup()
        if (passing := self._large.passing) is not None:
            gone = self._large.gone()
            return None if gone is None else (passing, gone)
        read_ahead = len(self._input) - self._used
        if not read_ahead:
            return None
        kind = self._input[self._used]
        if kind not in FRONTEND_TYPES:
            self._violated(SqlError("08P01", f"invalid frontend message type {kind}"))
            return None
        if read_ahead < _HEADER_BYTES:
            return None
        length: int = _LENGTH.unpack_from(self._input, self._used + 1)[0]
        if not self._accepts_length(kind, length):
            return None
        payload = self._payload(1, length)
        if payload is None:
            if not self._large.keeps(kind, length, read_ahead):
                self._input.clear()
                self._used = 0
            return None
        self._large.arrived()
        if self._state is State.SKIPPING and kind not in b"SX":
            # P2: it is dropped in any case, and need not be well-formed.
            return kind, Flush()
        return kind, self._decoded(kind, payload)

    def _accepts_length(self, kind: int, length: int) -> bool:
        if length < 4:
            self._violated(SqlError("08P01", "invalid message length"))
            return False
        maximum = self._limits.message_bytes_max
        if self._state is State.AUTHENTICATING:
            maximum = self._limits.password_bytes_max
        elif kind in _CONTROL_TYPES:
            maximum = self._limits.control_bytes_max
        if length > maximum:
            words = f"message of {length} bytes exceeds the limit of {maximum} bytes"
            self._violated(SqlError("54000", words))
            return False
        return True

    def _payload(self, skip: int, length: int) -> bytes | None:
        """What stands behind the length field, `skip` bytes in; None while it is not all there."""
        end = self._used + skip + length
        if len(self._input) < end:
            return None
        with memoryview(self._input) as view:
            payload = bytes(view[self._used + skip + 4 : end])
        self._used = end
        if length > LARGE_BYTES:
            del self._input[:end]
            self._used = 0
        return payload

    def _decoded(self, kind: int, payload: bytes) -> FrontendMessage:
        is_simple = kind in b"QFS"
        try:
            encoding = self._encoding()
            if encoding is not None:
                payload = message_from_client(kind, payload, encoding)
            message = decode_frontend(kind, payload)
        except SqlError as error:
            return Malformed(error, is_simple)
        if isinstance(message, FunctionCall):
            return Malformed(not_supported("the fast-path function call"), is_simple)
        return message

    # ------------------------------------------------------------ start-up

    def _next_startup(self) -> tuple[int, FrontendMessage] | None:
        while self._state is State.STARTUP:
            header = self._input[self._used : self._used + 4]
            if len(header) < 4:
                return None
            length = int.from_bytes(header, "big", signed=True)
            if not 8 <= length <= self._limits.startup_bytes_max:
                # No PostgreSQL client, so no answer that it could read: as PostgreSQL does.
                self._close()
                return None
            payload = self._payload(0, length)
            if payload is None:
                return None
            try:
                message = self._greet(decode_startup(payload))
            except SqlError as error:
                self._violated(error)
                return None
            if message is not None:
                return 0, message
        return None

    def _greet(self, message: FrontendMessage) -> FrontendMessage | None:
        """Answer what is ours to answer; the rest goes on."""
        if isinstance(message, SslRequest) and self._offers_tls:
            self._answer_encryption(message, EncryptionAccepted())
            return message
        if isinstance(message, SslRequest | GssEncRequest):
            self._answer_encryption(message, EncryptionRefused())
            return None
        if isinstance(message, StartupMessage):
            self._minor = min(message.minor, NEWEST_MINOR)
            if message.minor > NEWEST_MINOR or message.protocol_options:
                self.send(NegotiateProtocolVersion(self._minor, message.protocol_options))
            return StartupMessage(
                message.parameters, message.major, self._minor, message.protocol_options
            )
        return message

    def _answer_encryption(
        self, message: SslRequest | GssEncRequest, answer: EncryptionAccepted | EncryptionRefused
    ) -> None:
        name = "SSL" if isinstance(message, SslRequest) else "GSSAPI encryption"
        if type(message) in self._answered:
            raise SqlError("08P01", f"{name} was answered already")
        self._answered.add(type(message))
        self.send(answer)
        # Whoever sends plaintext before it has our answer takes us for encrypted, or is no friend.
        if len(self._input) > self._used:
            raise SqlError(
                "08P01",
                f"received unencrypted data after {name} request",
                detail="This could be either a client-software bug or evidence of an attempted "
                "man-in-the-middle attack.",
            )

    # ------------------------------------------------------------ out

    def send(self, message: BackendMessage) -> None:
        """Queue an answer; behind the end of the conversation it is let go."""
        if self.is_closed:
            return
        encoding = self._encoding()
        if encoding is None:
            data = encode_backend(message)
        else:
            if isinstance(message, RowDescription):
                for column in message.fields:
                    text_to_client(column.name.encode(), encoding)  # E2: it raises
            data = encode_backend(message, encoding.codec)
        self._queue(data)
        self._sent(message)
        if isinstance(message, ErrorResponse) and message.is_fatal:
            self._has_refused = True
            self._close()

    def send_encoded(self, data: bytes) -> None:
        """Queue answers to a flight that change nothing about the order."""
        self._queue(data)

    def _queue(self, data: bytes | memoryview) -> None:
        self._pending_bytes += len(data)
        if len(data) < _JOIN_BYTES_MAX:
            self._joined += data
        else:
            self._flush_joined()
            self._output.append(data)

    def data_to_send(self) -> list[bytes | memoryview]:
        """What is queued, in order, for `writelines`; it is no longer queued then."""
        self._flush_joined()
        output, self._output = self._output, []
        self._pending_bytes = 0
        return output

    def _flush_joined(self) -> None:
        if self._joined:
            self._output.append(bytes(self._joined))
            self._joined.clear()

    def _sent(self, message: BackendMessage) -> None:
        """What an answer does to the order."""
        match message:
            case AuthenticationOk():
                assert self._state is State.AUTHENTICATING, "authentication ends once"
                self._state = State.READY
            case BackendKeyData(secret=secret):
                is_long = self._minor >= NEWEST_MINOR
                assert 4 <= len(secret) <= (256 if is_long else 4), "3.0 has keys of four bytes"
            case CopyInResponse():
                assert self._state is State.READY, "a COPY begins within a command"
                self._state = State.COPY_IN
            case ErrorResponse():
                self._failed()
            case ReadyForQuery():
                assert self._state is State.READY, "P2: ready only behind Query or Sync"
            case _:
                pass

    def _failed(self) -> None:
        if self._is_lost:
            self._is_lost = False
            words = "terminating connection because protocol synchronization was lost"
            self._violated(SqlError("08P01", words))
        elif self._is_extended:
            self._state = State.SKIPPING
        elif self._state is State.COPY_IN:
            self._state = State.READY

    def _close(self) -> None:
        """Forget what the client has said; what is queued for it stays."""
        self._state = State.CLOSED
        self._input.clear()
        self._used = 0
        self._head = None

    def _violated(self, error: SqlError) -> None:
        """The client broke the protocol: say why and end it (P4)."""
        self.send(error_response(error, Severity.FATAL))
