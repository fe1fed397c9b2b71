"""A client of single messages, for transcripts: lines in, lines out, over a real socket.

    query TEXT          parse NAME [oid,..] TEXT     bind PORTAL STATEMENT [value ..]
    describe S|P NAME   execute PORTAL [max]         close S|P NAME
    copydata TEXT       copybytes HEX  copyfail TEXT                copydone  sync  flush  terminate

The empty name is written `-`, NULL as `NULL`. In front of its values a bind may name the formats of
the results: `formats=0,1`. Answers are read up to one ReadyForQuery for each query and sync, to
`answers=n` messages, or until the server closes.
"""

import re
import select
import shlex
import socket
import struct
from urllib.parse import urlsplit

from coordinator.pgwire.client_codec import decode_backend, encode_frontend, row_values
from coordinator.pgwire.messages import (
    BackendKeyData,
    BackendMessage,
    Bind,
    Close,
    CommandComplete,
    CopyData,
    CopyDone,
    CopyFail,
    CopyFrames,
    DataRows,
    Describe,
    ErrorResponse,
    Execute,
    Flush,
    FrontendMessage,
    NoticeResponse,
    NotificationResponse,
    ParameterDescription,
    ParameterStatus,
    Parse,
    Query,
    ReadyForQuery,
    RowDescription,
    StartupMessage,
    Sync,
    Target,
    Terminate,
)
from sql.types.sql_type import TYPE_NAMES_BY_OID

TIMESTAMP = re.compile(r"\b1[78]\d{14}\b")
TIMEOUT_S = 20
"""A server that says nothing for so long fails the test."""


def parse_line(line: str) -> FrontendMessage:
    """One line as a message."""
    word, _, rest = line.partition(" ")
    match word:
        case "query":
            return Query(rest)
        case "parse":
            name, _, text = rest.partition(" ")
            oids: tuple[int, ...] = ()
            if text.startswith("["):
                listed, text = text[1:].split("] ", 1)
                oids = tuple(int(oid) for oid in listed.split(","))
            return Parse(_name(name), text, oids)
        case "bind":
            portal, statement, *values = shlex.split(rest)
            formats: tuple[int, ...] = ()
            if values and values[0].startswith("formats="):
                formats = tuple(map(int, values.pop(0).removeprefix("formats=").split(",")))
            given = tuple(None if value == "NULL" else value.encode() for value in values)
            return Bind(_name(portal), _name(statement), (), given, formats)
        case "describe":
            target, name = rest.split()
            return Describe(Target(target), _name(name))
        case "close":
            target, name = rest.split()
            return Close(Target(target), _name(name))
        case "execute":
            portal, *limit = rest.split()
            return Execute(_name(portal), int(limit[0]) if limit else 0)
        case "copydata":
            return CopyData((rest + "\n").encode())
        case "copybytes":
            return CopyData(bytes.fromhex(rest))
        case "copyfail":
            return CopyFail(rest)
        case _:
            return {"sync": Sync, "flush": Flush, "copydone": CopyDone, "terminate": Terminate}[
                word
            ]()


def _name(word: str) -> str:
    return "" if word == "-" else word


def show(message: BackendMessage) -> str:
    """One answer as a line."""
    match message:
        case RowDescription(fields=fields):
            shown = (f"{field.name}:{TYPE_NAMES_BY_OID[field.type_oid]}" for field in fields)
            return "RowDescription " + " ".join(shown)
        case DataRows(data=data):
            values = row_values(data)
            return "DataRow " + "|".join("NULL" if v is None else v.decode() for v in values)
        case CopyFrames(data=data):
            return f"CopyData {bytes(data)[5:]!r}"
        case CopyData(data=data):
            return f"CopyData {data!r}"
        case CommandComplete(tag=tag):
            return f"CommandComplete {tag}"
        case ReadyForQuery(status=status):
            return f"ReadyForQuery {status.value}"
        case ParameterDescription(type_oids=oids):
            return "ParameterDescription " + " ".join(TYPE_NAMES_BY_OID[oid] for oid in oids)
        case ParameterStatus(name=name, value=value):
            return f"ParameterStatus {name}={value}"
        case NotificationResponse(pid=pid, channel=channel, payload=payload):
            return f"NotificationResponse {pid} {channel} {payload}".rstrip()
        case ErrorResponse(fields=fields) | NoticeResponse(fields=fields):
            said = dict(fields)
            # Timestamps of the wall clock: another story every time.
            extra = "".join(
                f" {key}={TIMESTAMP.sub('(ts)', said[key])}" for key in "PDHWstcn" if key in said
            )
            return f"{said['S']} {said['C']} {said['M']}{extra}"
        case _:
            return type(message).__name__


class WireClient:
    """One connection."""

    def __init__(self, dsn: str, **parameters: str) -> None:
        address = urlsplit(dsn)
        assert address.hostname is not None
        assert address.port is not None
        self._socket = socket.create_connection((address.hostname, address.port), TIMEOUT_S)
        # Sent at once, also while an answer is awaited.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = b""
        startup = {"user": "meridian", "database": "meridian"} | parameters
        self._socket.sendall(encode_frontend(StartupMessage(startup)))
        self.greeting = self.answers(1)
        keys = [item for item in self.greeting if isinstance(item, BackendKeyData)]
        self.key = keys[0] if keys else None

    def send(self, *messages: FrontendMessage) -> None:
        """Send all in one piece."""
        self._socket.sendall(b"".join(map(encode_frontend, messages)))

    def send_bytes(self, data: bytes) -> None:
        """Send what need not be a message."""
        self._socket.sendall(data)

    def answers(self, ready: int, *, count: int | None = None) -> list[BackendMessage]:
        """Messages up to `ready` ReadyForQuery, or `count` messages, or the end of the stream."""
        found: list[BackendMessage] = []
        while (ready > 0) if count is None else (len(found) < count):
            message = self._next()
            if message is None:
                break
            found.append(message)
            if isinstance(message, ReadyForQuery) and count is None:
                ready -= 1
        return found

    def _next(self) -> BackendMessage | None:
        while True:
            if len(self._received) >= 5:
                length = 1 + int.from_bytes(self._received[1:5], "big")
                if len(self._received) >= length:
                    frame, self._received = self._received[:length], self._received[length:]
                    (message,) = decode_backend(frame)
                    return message
            data = self._socket.recv(65536)
            if not data:
                return None
            self._received += data

    def has_heard(self) -> bool:
        """Whether something has come that is not read, as things stand."""
        return bool(self._received or select.select([self._socket], [], [], 0)[0])

    def shut(self) -> None:
        """Say that nothing more will be sent; answers can still be read."""
        self._socket.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """Be gone at once: what was sent may not arrive, and nothing is read any more."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def __enter__(self) -> "WireClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
