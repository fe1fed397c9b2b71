"""Decode and encode frames and messages: the server's half of the codec.

    start-up   [length 4][payload]             length includes itself
    else       [type 1][length 4][payload]

INVARIANTS
  K1  a length is checked before its bytes are waited for, so nobody makes us allocate.
  K2  a payload is a message only if every byte of it was used: less is 08P01, more too.
  K3  every text is valid UTF-8 without NUL (`encoding.py`).
  K4  encoding is total: a `BackendMessage` always has bytes.

Not here: which message may come when (`protocol.py`), the client's half (`client_codec.py`).
"""

import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, NoReturn

from coordinator.pgwire.messages import (
    AuthenticationCleartextPassword,
    AuthenticationOk,
    AuthenticationSasl,
    AuthenticationSaslContinue,
    AuthenticationSaslFinal,
    BackendKeyData,
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
    CopyFrames,
    CopyInResponse,
    CopyOutResponse,
    DataRows,
    Describe,
    EmptyQueryResponse,
    EncryptionAccepted,
    EncryptionRefused,
    ErrorResponse,
    Execute,
    Flush,
    FrontendMessage,
    FunctionCall,
    GssEncRequest,
    NegotiateProtocolVersion,
    NoData,
    NoticeResponse,
    NotificationResponse,
    ParameterDescription,
    ParameterStatus,
    Parse,
    ParseComplete,
    PasswordMessage,
    PortalSuspended,
    Query,
    ReadyForQuery,
    RowDescription,
    SslRequest,
    StartupMessage,
    Sync,
    Target,
    Terminate,
    TransactionStatus,
)
from coordinator.pgwire.startup import split_options
from ingest.copy_text.encoding import decode_text
from sql.errors import SqlError

NEWEST_MINOR: Final = 2
"""We speak 3.0 to 3.2."""

_SPECIAL_MAJOR: Final = 1234
_CANCEL, _SSL, _GSS = 5678, 5679, 5680
_CANCEL_SECRET_BYTES_MAX: Final = 256
_SASL, _SASL_CONTINUE, _SASL_FINAL = 10, 11, 12
_INT16: Final = struct.Struct("!h")
_UINT16: Final = struct.Struct("!H")
_INT32: Final = struct.Struct("!i")
_FORMATS: Final = frozenset({0, 1})
_UINT32: Final = struct.Struct("!I")


def _insufficient() -> NoReturn:
    raise SqlError("08P01", "insufficient data left in message")


class Reader:
    """Reads a payload from front to back; never beyond its end."""

    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def take(self, count: int) -> bytes:
        """The next bytes."""
        end = self._position + count
        if count < 0 or end > len(self._data):
            _insufficient()
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def _number(self, layout: struct.Struct) -> int:
        try:
            value: int = layout.unpack_from(self._data, self._position)[0]
        except struct.error:
            _insufficient()
        self._position += layout.size
        return value

    def rest(self) -> bytes:
        """All that is left."""
        return self.take(len(self._data) - self._position)

    def int16(self) -> int:
        """Signed, 2 bytes."""
        return self._number(_INT16)

    def count16(self) -> int:
        """A count, 2 bytes, unsigned."""
        return self._number(_UINT16)

    def int32(self) -> int:
        """Signed, 4 bytes."""
        return self._number(_INT32)

    def uint32(self) -> int:
        """An OID or a process id, 4 bytes, unsigned."""
        return self._number(_UINT32)

    def int16s(self, count: int) -> tuple[int, ...]:
        """So many of 2 bytes, signed."""
        return struct.unpack(f"!{count}h", self.take(2 * count)) if count else ()

    def values(self, count: int) -> tuple[bytes | None, ...]:
        """So many values behind their lengths; length -1 is NULL."""
        data, position, length_at = self._data, self._position, _INT32.unpack_from
        found: list[bytes | None] = []
        for _ in range(count):
            try:
                length: int = length_at(data, position)[0]
            except struct.error:
                _insufficient()
            position += 4
            if length == -1:
                found.append(None)
                continue
            end = position + length
            if length < 0 or end > len(data):
                _insufficient()
            found.append(data[position:end])
            position = end
        self._position = position
        return tuple(found)

    def text(self) -> str:
        """Text up to a NUL (K3)."""
        end = self._data.find(b"\0", self._position)
        if end < 0:
            raise SqlError("08P01", "invalid string in message")
        taken = self._data[self._position : end]
        self._position = end + 1
        return decode_text(taken) if taken else ""

    def finish(self) -> None:
        """Nothing may be left (K2)."""
        if self._position != len(self._data):
            raise SqlError("08P01", "invalid message format")


# ---------------------------------------------------------------- frontend: start-up


def decode_startup(payload: bytes) -> FrontendMessage:
    """The message of a start-up packet. Every error is fatal: no frames have been agreed on yet."""
    reader = Reader(payload)
    major, minor = reader.count16(), reader.count16()
    if major == _SPECIAL_MAJOR:
        match minor:
            case code if code == _CANCEL:
                return _decode_cancel(reader)
            case code if code == _SSL:
                reader.finish()
                return SslRequest()
            case code if code == _GSS:
                reader.finish()
                return GssEncRequest()
            case _:
                pass
    if major != 3:
        raise SqlError(
            "0A000",
            f"unsupported frontend protocol {major}.{minor}:"
            f" server supports 3.0 to 3.{NEWEST_MINOR}",
        )
    return _decode_parameters(reader, major, minor)


def _decode_cancel(reader: Reader) -> CancelRequest:
    pid, secret = reader.uint32(), reader.rest()
    if not 1 <= len(secret) <= _CANCEL_SECRET_BYTES_MAX:
        raise SqlError("08P01", "invalid length of cancel request packet")
    return CancelRequest(pid, secret)


def _decode_parameters(reader: Reader, major: int, minor: int) -> StartupMessage:
    data = reader.rest()
    if not data.endswith(b"\0"):
        raise SqlError("08P01", "invalid startup packet layout: expected terminator as last byte")
    reader = Reader(data)
    parameters: dict[str, str] = {}
    options = ""
    protocol_options: list[str] = []
    while name := reader.text():
        value = reader.text()
        if name == "options":
            options = value
        elif name.startswith("_pq_."):
            protocol_options.append(name)
        else:
            parameters[name] = value
    reader.finish()
    # A parameter of its own weighs more than one among the options.
    parameters = split_options(options) | parameters
    return StartupMessage(parameters, major, minor, tuple(protocol_options))


# ---------------------------------------------------------------- frontend: the session


def decode_frontend(kind: int, payload: bytes) -> FrontendMessage:
    """The message of a frame whose type is known (`FRONTEND_TYPES`). Raises 08P01 and 22021."""
    if kind in _NAMED_ONLY and len(payload) <= _REMEMBERED_BYTES_MAX:
        return _remembered(kind, payload)
    if kind == _BIND_TYPE and (bind := _bind(payload)) is not None:
        return bind
    return _decoded(kind, payload)


def _decoded(kind: int, payload: bytes) -> FrontendMessage:
    reader = Reader(payload)
    message = _DECODERS[kind](reader)
    reader.finish()
    return message


_BIND_TYPE: Final = ord("B")

_NAMED_ONLY: Final = frozenset(b"DECSH")
"""Messages of a name and a number: clients send the same few over and over."""

_REMEMBERED_BYTES_MAX: Final = 64

_remembered: Final = lru_cache(maxsize=1_024)(_decoded)


def _decode_parse(reader: Reader) -> Parse:
    statement, text = reader.text(), reader.text()
    count = reader.count16()
    return Parse(statement, text, tuple(reader.uint32() for _ in range(count)))


def _bind(payload: bytes) -> Bind | None:
    """What `_decode_bind` reads, at a quarter of the cost; None if it has to say what is wrong."""
    try:
        portal_end = payload.index(0)
        name_end = payload.index(0, portal_end + 1)
        formats, at = _quick_formats(payload, name_end + 1)
        count: int = _UINT16.unpack_from(payload, at)[0]
        at += 2
        values: list[bytes | None] = []
        length_at, add = _INT32.unpack_from, values.append
        for _ in range(count):
            length: int = length_at(payload, at)[0]
            at += 4
            if length < 0:
                if length != -1:
                    return None
                add(None)
                continue
            end = at + length
            add(payload[at:end])
            at = end
        result_formats, at = _quick_formats(payload, at)
    except (struct.error, ValueError):
        return None
    if at != len(payload) or (len(formats) > 1 and len(formats) != count):
        return None
    portal = decode_text(payload[:portal_end]) if portal_end else ""
    name = payload[portal_end + 1 : name_end]
    return Bind(portal, decode_text(name) if name else "", formats, tuple(values), result_formats)


def _quick_formats(payload: bytes, at: int) -> tuple[tuple[int, ...], int]:
    """Formats of values, and where they end. Raises ValueError and struct.error."""
    count: int = _UINT16.unpack_from(payload, at)[0]
    at += 2
    if not count:
        return (), at
    formats = struct.unpack_from(f"!{count}h", payload, at)
    if not _FORMATS.issuperset(formats):
        raise ValueError(formats)
    return formats, at + 2 * count


def _decode_bind(reader: Reader) -> Bind:
    portal, statement = reader.text(), reader.text()
    formats = _decode_formats(reader)
    count = reader.count16()
    if len(formats) > 1 and len(formats) != count:
        raise SqlError(
            "08P01", f"bind message has {len(formats)} parameter formats but {count} parameters"
        )
    parameters = reader.values(count)
    return Bind(portal, statement, formats, parameters, _decode_formats(reader))


def _decode_formats(reader: Reader) -> tuple[int, ...]:
    count = reader.count16()
    if not count:
        return ()
    formats = reader.int16s(count)
    for code in formats:
        if code not in (0, 1):
            raise SqlError("22023", f"unsupported format code: {code}")
    return formats


def _decode_target(reader: Reader, message: str) -> tuple[Target, str]:
    kind = reader.take(1)
    if kind not in (b"S", b"P"):
        raise SqlError("08P01", f"invalid {message} message subtype {kind[0]}")
    return Target(kind.decode()), reader.text()


def _decode_function_call(reader: Reader) -> FunctionCall:
    message = FunctionCall(reader.uint32())
    reader.rest()
    return message


def _decode_copy_fail(reader: Reader) -> CopyFail:
    # Whatever the client says about its failure, the COPY has failed.
    return CopyFail(reader.rest().rstrip(b"\0").decode("utf-8", "replace").replace("\0", ""))


def _ignoring_content(reader: Reader, message: FrontendMessage) -> FrontendMessage:
    """For messages whose type says it all: they end something, well-formed or not."""
    reader.rest()
    return message


_DECODERS: Final[Mapping[int, Callable[[Reader], FrontendMessage]]] = {
    ord("Q"): lambda reader: Query(reader.text()),
    ord("P"): _decode_parse,
    ord("B"): _decode_bind,
    ord("D"): lambda reader: Describe(*_decode_target(reader, "DESCRIBE")),
    ord("E"): lambda reader: Execute(reader.text(), max(reader.int32(), 0)),
    ord("C"): lambda reader: Close(*_decode_target(reader, "CLOSE")),
    ord("S"): lambda _: Sync(),
    ord("H"): lambda _: Flush(),
    ord("d"): lambda reader: CopyData(reader.rest()),
    ord("c"): lambda reader: _ignoring_content(reader, CopyDone()),
    ord("f"): _decode_copy_fail,
    ord("F"): _decode_function_call,
    ord("X"): lambda reader: _ignoring_content(reader, Terminate()),
    ord("p"): lambda reader: PasswordMessage(reader.rest()),
}
FRONTEND_TYPES: Final = frozenset(_DECODERS)


# ---------------------------------------------------------------- backend


def frame(kind: bytes, payload: bytes) -> bytes:
    """A message's bytes."""
    return kind + _INT32.pack(len(payload) + 4) + payload


def encode_backend(message: BackendMessage, codec: str = "utf-8") -> bytes | memoryview:
    """The bytes of a message (K4), its texts but for those of rows by this codec."""
    simple = _EMPTY_FRAMES.get(type(message))
    if simple is not None:
        return simple
    return _encode_with_content(message, codec)


def _encode_with_content(message: BackendMessage, codec: str) -> bytes | memoryview:
    match message:
        case CommandComplete(tag=tag):
            return _encode_complete(tag)
        case ReadyForQuery(status=status):
            return _READY_FRAMES[status]
        case DataRows() | CopyFrames():
            return message.data
        case RowDescription():
            return _encode_row_description(message, codec)
        case ParameterDescription(type_oids=oids):
            return frame(b"t", struct.pack(f"!H{len(oids)}I", len(oids), *oids))
        case ErrorResponse(fields=fields):
            return frame(b"E", _encode_report(fields, codec))
        case NoticeResponse(fields=fields):
            return frame(b"N", _encode_report(fields, codec))
        case NotificationResponse(pid=pid, channel=channel, payload=payload):
            return frame(b"A", _UINT32.pack(pid) + _text(channel, codec) + _text(payload, codec))
        case ParameterStatus(name=name, value=value):
            return frame(b"S", _text(name, codec) + _text(value, codec))
        case BackendKeyData(pid=pid, secret=secret):
            return frame(b"K", _UINT32.pack(pid) + secret)
        case AuthenticationSasl(mechanisms=mechanisms):
            names = b"".join(_text(name) for name in mechanisms)
            return frame(b"R", _INT32.pack(_SASL) + names + b"\0")
        case AuthenticationSaslContinue(data=data):
            return frame(b"R", _INT32.pack(_SASL_CONTINUE) + data)
        case AuthenticationSaslFinal(data=data):
            return frame(b"R", _INT32.pack(_SASL_FINAL) + data)
        case NegotiateProtocolVersion(newest_minor=minor, unknown_options=options):
            return frame(b"v", _encode_negotiation(minor, options))
        case CopyInResponse(column_formats=formats, format=code):
            return frame(b"G", _encode_copy_formats(code, formats))
        case CopyOutResponse(column_formats=formats, format=code):
            return frame(b"H", _encode_copy_formats(code, formats))
        case CopyData(data=data):
            return frame(b"d", data)
        case _:
            raise AssertionError(f"K4: {type(message).__name__} has no content")


@lru_cache(maxsize=256)
def _encode_complete(tag: str) -> bytes:
    return frame(b"C", _text(tag))


def _text(text: str, codec: str = "utf-8") -> bytes:
    """NUL-terminated; a NUL inside would end it early, so it is shown as a space."""
    return text.replace("\0", " ").encode(codec, "replace") + b"\0"


def _encode_report(fields: tuple[tuple[str, str], ...], codec: str) -> bytes:
    return b"".join(letter.encode() + _text(value, codec) for letter, value in fields) + b"\0"


def _encode_row_description(message: RowDescription, codec: str) -> bytes:
    parts = [_UINT16.pack(len(message.fields))]
    for column in message.fields:
        parts.append(_text(column.name, codec))
        parts.append(
            struct.pack(
                "!IhIhih",
                column.table_oid,
                column.attribute,
                column.type_oid,
                column.size,
                column.typmod,
                column.format,
            )
        )
    return frame(b"T", b"".join(parts))


def _encode_negotiation(minor: int, options: tuple[str, ...]) -> bytes:
    # The documentation says minor version; servers and libpq mean the whole one.
    version = struct.pack("!HH", 3, minor)
    return version + _INT32.pack(len(options)) + b"".join(_text(option) for option in options)


def _encode_copy_formats(code: int, formats: tuple[int, ...]) -> bytes:
    return struct.pack(f"!bH{len(formats)}h", code, len(formats), *formats)


_READY_FRAMES: Final = {status: frame(b"Z", status.value.encode()) for status in TransactionStatus}

_EMPTY_FRAMES: Final[Mapping[type[BackendMessage], bytes]] = {
    EncryptionRefused: b"N",
    EncryptionAccepted: b"S",
    AuthenticationOk: frame(b"R", b"\0\0\0\0"),
    AuthenticationCleartextPassword: frame(b"R", b"\0\0\0\3"),
    EmptyQueryResponse: frame(b"I", b""),
    ParseComplete: frame(b"1", b""),
    BindComplete: frame(b"2", b""),
    CloseComplete: frame(b"3", b""),
    NoData: frame(b"n", b""),
    PortalSuspended: frame(b"s", b""),
    CopyDone: frame(b"c", b""),
}
