"""The client's half of the codec: frontend messages to bytes, backend bytes to messages.

    encode_frontend(Query("SELECT 1")) ─▶ bytes        decode_backend(bytes) ─▶ [RowDescription ..]

The server itself speaks only `pgwire/codec.py`; traces and tests need the other half. Rows come out
as one `DataRows` or `CopyFrames` for each frame, still framed.
"""

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Final, assert_never

from coordinator.pgwire.codec import Reader, frame
from coordinator.pgwire.messages import (
    Authentication,
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
    ErrorResponse,
    Execute,
    Field,
    Flush,
    FrontendMessage,
    FunctionCall,
    GssEncRequest,
    Malformed,
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
    Terminate,
    TransactionStatus,
)

_HEADER_BYTES: Final = 5


# ---------------------------------------------------------------- frontend to bytes


def encode_frontend(message: FrontendMessage) -> bytes:
    """The bytes a client sends."""
    match message:
        case StartupMessage() | SslRequest() | GssEncRequest() | CancelRequest():
            payload = _startup_payload(message)
            return struct.pack("!i", len(payload) + 4) + payload
        case PasswordMessage(data=data):
            return frame(b"p", data)
        case Query(text=text):
            return frame(b"Q", _text(text))
        case Parse(statement=statement, text=text, type_oids=oids):
            packed = struct.pack(f"!H{len(oids)}I", len(oids), *oids)
            return frame(b"P", _text(statement) + _text(text) + packed)
        case Bind():
            return frame(b"B", _bind_payload(message))
        case Describe(target=target, name=name):
            return frame(b"D", target.value.encode() + _text(name))
        case Close(target=target, name=name):
            return frame(b"C", target.value.encode() + _text(name))
        case Execute(portal=portal, max_rows=rows):
            return frame(b"E", _text(portal) + struct.pack("!i", rows))
        case Sync():
            return frame(b"S", b"")
        case Flush():
            return frame(b"H", b"")
        case CopyData(data=data):
            return frame(b"d", data)
        case CopyDone():
            return frame(b"c", b"")
        case CopyFail(message=text):
            return frame(b"f", _text(text))
        case FunctionCall(function_oid=oid):
            return frame(b"F", struct.pack("!IHHh", oid, 0, 0, 0))
        case Terminate():
            return frame(b"X", b"")
        case Malformed():
            raise AssertionError("a client does not know that its message is malformed")
        case _:
            assert_never(message)


def _startup_payload(
    message: StartupMessage | SslRequest | GssEncRequest | CancelRequest,
) -> bytes:
    match message:
        case SslRequest():
            return struct.pack("!HH", 1234, 5679)
        case GssEncRequest():
            return struct.pack("!HH", 1234, 5680)
        case CancelRequest(pid=pid, secret=secret):
            return struct.pack("!HHI", 1234, 5678, pid) + secret
        case StartupMessage():
            pairs = [*message.parameters.items(), *((o, "") for o in message.protocol_options)]
            body = b"".join(_text(name) + _text(value) for name, value in pairs)
            return struct.pack("!HH", message.major, message.minor) + body + b"\0"
        case _:
            assert_never(message)


def _bind_payload(message: Bind) -> bytes:
    parameters = b"".join(
        b"\xff\xff\xff\xff" if value is None else struct.pack("!i", len(value)) + value
        for value in message.parameters
    )
    return b"".join(
        (
            _text(message.portal),
            _text(message.statement),
            _formats(message.parameter_formats),
            struct.pack("!H", len(message.parameters)),
            parameters,
            _formats(message.result_formats),
        )
    )


def _formats(codes: tuple[int, ...]) -> bytes:
    return struct.pack(f"!H{len(codes)}h", len(codes), *codes)


def _text(text: str) -> bytes:
    return text.encode() + b"\0"


# ---------------------------------------------------------------- bytes to backend


def split_frames(data: bytes) -> Iterator[bytes]:
    """The frames of whole messages, headers included."""
    position = 0
    while position < len(data):
        (length,) = struct.unpack_from("!i", data, position + 1)
        end = position + 1 + length
        assert end <= len(data), "the last frame is complete"
        yield data[position:end]
        position = end


def decode_backend(data: bytes) -> list[BackendMessage]:
    """The messages of whole frames."""
    return [_decode_frame(one) for one in split_frames(data)]


def _decode_frame(data: bytes) -> BackendMessage:
    kind = data[:1]
    if kind == b"D":
        return DataRows(data, 1)
    if kind == b"d":
        return CopyFrames(data, 1)
    simple = _EMPTY.get(kind)
    if simple is not None:
        assert len(data) == _HEADER_BYTES, "a message without content has none"
        return simple
    reader = Reader(data[_HEADER_BYTES:])
    message = _DECODERS[kind](reader)
    reader.finish()
    return message


def row_values(data: bytes | memoryview) -> tuple[bytes | None, ...]:
    """The values of one framed DataRow."""
    reader = Reader(bytes(data)[_HEADER_BYTES:])
    values: list[bytes | None] = []
    for _ in range(reader.count16()):
        length = reader.int32()
        values.append(None if length == -1 else reader.take(length))
    reader.finish()
    return tuple(values)


def _decode_authentication(reader: Reader) -> Authentication:
    match reader.int32():
        case 0:
            return AuthenticationOk()
        case 3:
            return AuthenticationCleartextPassword()
        case 10:
            names = iter(reader.text, "")
            return AuthenticationSasl(tuple(names))
        case 11:
            return AuthenticationSaslContinue(reader.rest())
        case 12:
            return AuthenticationSaslFinal(reader.rest())
        case code:
            raise AssertionError(f"authentication {code} is not spoken")


def _decode_negotiation(reader: Reader) -> NegotiateProtocolVersion:
    assert reader.count16() == 3, "the major version is ours"
    minor = reader.count16()
    options = tuple(reader.text() for _ in range(reader.int32()))
    return NegotiateProtocolVersion(minor, options)


def _decode_report(reader: Reader) -> tuple[tuple[str, str], ...]:
    fields: list[tuple[str, str]] = []
    while (letter := reader.take(1)) != b"\0":
        fields.append((letter.decode(), reader.text()))
    return tuple(fields)


def _decode_field(reader: Reader) -> Field:
    return Field(
        name=reader.text(),
        table_oid=reader.uint32(),
        attribute=reader.int16(),
        type_oid=reader.uint32(),
        size=reader.int16(),
        typmod=reader.int32(),
        format=reader.int16(),
    )


def _decode_copy_formats(reader: Reader) -> tuple[tuple[int, ...], int]:
    code = reader.take(1)[0]
    return tuple(reader.int16() for _ in range(reader.count16())), code


_EMPTY: Final[Mapping[bytes, BackendMessage]] = {
    b"I": EmptyQueryResponse(),
    b"1": ParseComplete(),
    b"2": BindComplete(),
    b"3": CloseComplete(),
    b"n": NoData(),
    b"s": PortalSuspended(),
    b"c": CopyDone(),
}
_DECODERS: Final[Mapping[bytes, Callable[[Reader], BackendMessage]]] = {
    b"R": _decode_authentication,
    b"v": _decode_negotiation,
    b"S": lambda reader: ParameterStatus(reader.text(), reader.text()),
    b"K": lambda reader: BackendKeyData(reader.uint32(), reader.rest()),
    b"Z": lambda reader: ReadyForQuery(TransactionStatus(reader.take(1).decode())),
    b"T": lambda reader: RowDescription(
        tuple(_decode_field(reader) for _ in range(reader.count16()))
    ),
    b"t": lambda reader: ParameterDescription(
        tuple(reader.uint32() for _ in range(reader.count16()))
    ),
    b"C": lambda reader: CommandComplete(reader.text()),
    b"E": lambda reader: ErrorResponse(_decode_report(reader)),
    b"N": lambda reader: NoticeResponse(_decode_report(reader)),
    b"A": lambda reader: NotificationResponse(reader.uint32(), reader.text(), reader.text()),
    b"G": lambda reader: CopyInResponse(*_decode_copy_formats(reader)),
    b"H": lambda reader: CopyOutResponse(*_decode_copy_formats(reader)),
}
