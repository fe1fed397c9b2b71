"""The messages of the PostgreSQL protocol, one frozen dataclass each; no bytes, no order, no I/O.

    bytes ─▶ codec ─FrontendMessage─▶ protocol ─▶ session ─BackendMessage─▶ bytes

INVARIANTS
  M1  text fields are valid Unicode without NUL: `codec` refuses the rest with 22021 or 08P01.
  M2  a message that both sides send (CopyData, CopyDone) is one class.
  M3  rows travel as bytes that are framed already (`DataRows`, `CopyFrames`): nothing looks inside.

Not here: framing (`pgwire/codec.py`), which message may come when (`protocol.py`), what values mean
(`values.py`).
Names and fields follow "Message Formats" of PostgreSQL's documentation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Final, TypeAlias

from sql.errors import SqlError
from sql.statements.bound import OutputColumn
from storage.fast_dataclass import fast_dataclass

TEXT_FORMAT: Final = 0
BINARY_FORMAT: Final = 1


# ---------------------------------------------------------------- frontend: before the session


@fast_dataclass(frozen=True, slots=True)
class StartupMessage:
    """Opens a session. `options` has been taken apart already; `_pq_.` options stand apart."""

    parameters: Mapping[str, str]
    major: int = 3
    minor: int = 0
    protocol_options: tuple[str, ...] = ()


@fast_dataclass(frozen=True, slots=True)
class SslRequest:
    """Asks for TLS; answered by one byte."""


@fast_dataclass(frozen=True, slots=True)
class GssEncRequest:
    """Asks for GSSAPI encryption; answered by one byte."""


@fast_dataclass(frozen=True, slots=True)
class CancelRequest:
    """Asks on a connection of its own to cancel what process `pid` runs; never answered."""

    pid: int
    secret: bytes


@fast_dataclass(frozen=True, slots=True)
class PasswordMessage:
    """Answer to an authentication request; its content depends on the method."""

    data: bytes = field(repr=False)


# ---------------------------------------------------------------- frontend: the session


@fast_dataclass(frozen=True, slots=True)
class Query:
    """The simple protocol: any number of statements in one text."""

    text: str


@fast_dataclass(frozen=True, slots=True)
class Parse:
    """Prepares one statement. Type OID 0 asks for inference."""

    statement: str
    text: str
    type_oids: tuple[int, ...] = ()


@fast_dataclass(frozen=True, slots=True)
class Bind:
    """Makes a portal of a statement. Formats: none (all text), one for all, or one each."""

    portal: str
    statement: str
    parameter_formats: tuple[int, ...] = ()
    parameters: tuple[bytes | None, ...] = ()
    result_formats: tuple[int, ...] = ()


class Target(StrEnum):
    """What Describe and Close name: the byte of the protocol."""

    STATEMENT = "S"
    PORTAL = "P"


@fast_dataclass(frozen=True, slots=True)
class Describe:
    """Asks for the description of a statement or portal."""

    target: Target
    name: str


@fast_dataclass(frozen=True, slots=True)
class Execute:
    """Runs a portal. `max_rows` 0: to the end."""

    portal: str
    max_rows: int = 0


@fast_dataclass(frozen=True, slots=True)
class Close:
    """Forgets a statement or portal."""

    target: Target
    name: str


@fast_dataclass(frozen=True, slots=True)
class Sync:
    """Ends a batch of extended messages: answered by ReadyForQuery."""


@fast_dataclass(frozen=True, slots=True)
class Flush:
    """Asks for what has been answered so far."""


@fast_dataclass(frozen=True, slots=True)
class CopyData:
    """A piece of a COPY stream, in either direction."""

    data: bytes


@fast_dataclass(frozen=True, slots=True)
class CopyDone:
    """The end of a COPY stream, in either direction."""


@fast_dataclass(frozen=True, slots=True)
class CopyFail:
    """The client gives up a COPY FROM STDIN."""

    message: str


@fast_dataclass(frozen=True, slots=True)
class FunctionCall:
    """The fast-path call. The protocol hands it on as `Malformed` with 0A000."""

    function_oid: int


@fast_dataclass(frozen=True, slots=True)
class Terminate:
    """The client says goodbye."""


@fast_dataclass(frozen=True, slots=True)
class Malformed:
    """A frame whose content is no message: bad UTF-8, missing bytes, a function call.

    The session fails with `error` as if the message's work had: the transaction fails, the error is
    answered once. `is_simple`: ReadyForQuery follows at once, as for Query; else everything up to
    Sync is skipped, as for Parse.
    """

    error: SqlError
    is_simple: bool


FrontendMessage: TypeAlias = (
    StartupMessage | SslRequest | GssEncRequest | CancelRequest | PasswordMessage
    | Query | Parse | Bind | Describe | Execute | Close | Sync | Flush
    | CopyData | CopyDone | CopyFail | FunctionCall | Terminate | Malformed
)  # fmt: skip


# ---------------------------------------------------------------- backend: before the session


@fast_dataclass(frozen=True, slots=True)
class EncryptionRefused:
    """The single byte `N` that answers SslRequest and GssEncRequest."""


@fast_dataclass(frozen=True, slots=True)
class EncryptionAccepted:
    """The single byte `S` that answers SslRequest; what follows is TLS."""


@fast_dataclass(frozen=True, slots=True)
class NegotiateProtocolVersion:
    """The minor version that we go on with, and the `_pq_.` options we do not know."""

    newest_minor: int
    unknown_options: tuple[str, ...] = ()


@fast_dataclass(frozen=True, slots=True)
class AuthenticationOk:
    """Authentication succeeded."""


@fast_dataclass(frozen=True, slots=True)
class AuthenticationCleartextPassword:
    """Asks for the password as it is."""


@fast_dataclass(frozen=True, slots=True)
class AuthenticationSasl:
    """Asks for an exchange by one of these mechanisms, the preferred one first."""

    mechanisms: tuple[str, ...]


@fast_dataclass(frozen=True, slots=True)
class AuthenticationSaslContinue:
    """The server's challenge."""

    data: bytes = field(repr=False)


@fast_dataclass(frozen=True, slots=True)
class AuthenticationSaslFinal:
    """The end of the exchange: what proves the server to the client."""

    data: bytes = field(repr=False)


Authentication: TypeAlias = (
    AuthenticationOk | AuthenticationCleartextPassword | AuthenticationSasl
    | AuthenticationSaslContinue | AuthenticationSaslFinal
)  # fmt: skip


@fast_dataclass(frozen=True, slots=True)
class ParameterStatus:
    """Tells the client the value of a setting."""

    name: str
    value: str


@fast_dataclass(frozen=True, slots=True)
class BackendKeyData:
    """What a CancelRequest must show. `secret`: 4 bytes on protocol 3.0, 32 on 3.2."""

    pid: int
    secret: bytes = field(repr=False)


# ---------------------------------------------------------------- backend: the session


class TransactionStatus(StrEnum):
    """The byte of ReadyForQuery."""

    IDLE = "I"
    IN_TRANSACTION = "T"
    FAILED = "E"


@fast_dataclass(frozen=True, slots=True)
class ReadyForQuery:
    """The backend waits for the next command."""

    status: TransactionStatus


@fast_dataclass(frozen=True, slots=True)
class Field:
    """A column of a result."""

    name: str
    table_oid: int
    attribute: int
    type_oid: int
    size: int
    typmod: int
    format: int = TEXT_FORMAT


@fast_dataclass(frozen=True, slots=True)
class RowDescription:
    """The columns of the rows to come."""

    fields: tuple[Field, ...]


@fast_dataclass(frozen=True, slots=True)
class DataRows:
    """Many rows, each a framed DataRow already (M3)."""

    data: bytes | memoryview
    rows: int


@fast_dataclass(frozen=True, slots=True)
class CommandComplete:
    """A statement is done. `tag` is the whole tag, e.g. `SELECT 3`."""

    tag: str


@fast_dataclass(frozen=True, slots=True)
class EmptyQueryResponse:
    """Stands for CommandComplete where the text held no statement."""


@fast_dataclass(frozen=True, slots=True)
class ErrorResponse:
    """A failure. `fields` by PostgreSQL's field letters (S, V, C, M ..), in order."""

    fields: tuple[tuple[str, str], ...]

    @property
    def sqlstate(self) -> str:
        """Field C."""
        return dict(self.fields)["C"]

    @property
    def is_fatal(self) -> bool:
        """Whether the connection ends behind this message."""
        return dict(self.fields)["V"] in ("FATAL", "PANIC")


@fast_dataclass(frozen=True, slots=True)
class NoticeResponse:
    """A message that is no failure; the fields of ErrorResponse."""

    fields: tuple[tuple[str, str], ...]


@fast_dataclass(frozen=True, slots=True)
class NotificationResponse:
    """What somebody has sent by NOTIFY; `pid`: of the sender."""

    pid: int
    channel: str
    payload: str


@fast_dataclass(frozen=True, slots=True)
class ParseComplete:
    """Answers Parse."""


@fast_dataclass(frozen=True, slots=True)
class BindComplete:
    """Answers Bind."""


@fast_dataclass(frozen=True, slots=True)
class CloseComplete:
    """Answers Close."""


@fast_dataclass(frozen=True, slots=True)
class NoData:
    """Answers Describe where no rows will come."""


@fast_dataclass(frozen=True, slots=True)
class ParameterDescription:
    """The types of a statement's parameters, $1 first."""

    type_oids: tuple[int, ...]


@fast_dataclass(frozen=True, slots=True)
class PortalSuspended:
    """Execute stopped at `max_rows`; there may be more."""


@fast_dataclass(frozen=True, slots=True)
class CopyInResponse:
    """The client shall send CopyData. One format code a column; text and csv are text."""

    column_formats: tuple[int, ...]
    format: int = TEXT_FORMAT


@fast_dataclass(frozen=True, slots=True)
class CopyOutResponse:
    """CopyData follows. One format code a column; text and csv are text."""

    column_formats: tuple[int, ...]
    format: int = TEXT_FORMAT


@fast_dataclass(frozen=True, slots=True)
class CopyFrames:
    """Many rows of a COPY TO STDOUT, each a framed CopyData already (M3)."""

    data: bytes | memoryview
    rows: int


BackendMessage: TypeAlias = (
    EncryptionRefused | EncryptionAccepted | NegotiateProtocolVersion | Authentication
    | ParameterStatus | BackendKeyData | ReadyForQuery | RowDescription | DataRows | CommandComplete
    | EmptyQueryResponse | NotificationResponse
    | ErrorResponse | NoticeResponse | ParseComplete | BindComplete | CloseComplete | NoData
    | ParameterDescription | PortalSuspended | CopyInResponse | CopyOutResponse
    | CopyData | CopyFrames | CopyDone
)  # fmt: skip


# ---------------------------------------------------------------- making messages from contracts


class Severity(StrEnum):
    """Severities of ErrorResponse (the first three) and NoticeResponse."""

    ERROR = "ERROR"
    FATAL = "FATAL"
    PANIC = "PANIC"
    WARNING = "WARNING"
    NOTICE = "NOTICE"
    INFO = "INFO"
    DEBUG = "DEBUG"
    LOG = "LOG"


def error_response(error: SqlError, severity: Severity = Severity.ERROR) -> ErrorResponse:
    """The failure as the client sees it; FATAL ends the connection."""
    return ErrorResponse(_report_fields(error, severity))


def notice_response(error: SqlError, severity: Severity = Severity.NOTICE) -> NoticeResponse:
    """The same fields as a message that is no failure (00000, 01000, 25001 ..)."""
    return NoticeResponse(_report_fields(error, severity))


def row_description(columns: Sequence[OutputColumn], formats: Sequence[int] = ()) -> RowDescription:
    """The description of a result; `formats` as in Bind: none, one for all, or one each."""
    codes = expand_formats(formats, len(columns))
    return RowDescription(
        tuple(
            Field(
                name=column.name,
                table_oid=column.table_oid,
                attribute=column.attribute,
                type_oid=column.type.oid,
                size=column.type.size,
                typmod=column.type.typmod,
                format=code,
            )
            for column, code in zip(columns, codes, strict=True)
        )
    )


def expand_formats(formats: Sequence[int], count: int) -> tuple[int, ...]:
    """One format code for each of `count` values; a count that fits nothing is 08P01."""
    if not formats:
        return (TEXT_FORMAT,) * count
    if len(formats) == 1:
        return (formats[0],) * count
    if len(formats) != count:
        raise SqlError(
            "08P01", f"bind message has {len(formats)} result formats but query has {count} columns"
        )
    return tuple(formats)


def _report_fields(error: SqlError, severity: Severity) -> tuple[tuple[str, str], ...]:
    optional = (
        ("D", error.detail),
        ("H", error.hint),
        ("P", None if error.position is None else str(error.position)),
        ("W", error.context),
        ("s", error.schema),
        ("t", error.table),
        ("c", error.column),
        ("d", error.datatype),
        ("n", error.constraint),
        ("R", error.routine),
    )
    return (
        ("S", severity.value),
        ("V", severity.value),
        ("C", error.sqlstate),
        ("M", error.message),
        *((letter, text) for letter, text in optional if text is not None),
    )
