"""Format messages as lines a person can read, for transcripts and DEBUG logs.

    F Query "SELECT 1"
    B RowDescription ?column?:23
    B DataRow "1"
    B CommandComplete "SELECT 1"
    B ReadyForQuery I

`F` is the frontend, `B` the backend, as in PostgreSQL's own traces. Secrets and passwords are not
shown, only their lengths; parameters and rows are, so a log above DEBUG must not use this.
"""

import json
from dataclasses import fields
from enum import Enum

from coordinator.pgwire.client_codec import row_values, split_frames
from coordinator.pgwire.messages import (
    BackendKeyData,
    BackendMessage,
    CancelRequest,
    CopyFrames,
    DataRows,
    ErrorResponse,
    Field,
    FrontendMessage,
    Malformed,
    NoticeResponse,
    PasswordMessage,
    RowDescription,
)

_COPY_HEADER_BYTES = 5
_SHORT_FIELDS = frozenset({"S", "C", "M", "V"})


def trace_frontend(message: FrontendMessage) -> str:
    """One line."""
    match message:
        case PasswordMessage(data=data):
            return f"F PasswordMessage ({len(data)} bytes)"
        case CancelRequest(pid=pid, secret=secret):
            return f"F CancelRequest {pid} ({len(secret)} bytes)"
        case Malformed(error=error, is_simple=is_simple):
            kind = "simple" if is_simple else "extended"
            return f"F Malformed {kind} {error.sqlstate} {_shown(error.message)}"
        case _:
            return f"F {_plain(message)}"


def trace_backend(message: BackendMessage) -> list[str]:
    """One line, or one for each row."""
    match message:
        case DataRows(data=data):
            return [f"B DataRow{_row(one)}" for one in split_frames(bytes(data))]
        case CopyFrames(data=data):
            return [
                f"B CopyData {_shown(one[_COPY_HEADER_BYTES:])}"
                for one in split_frames(bytes(data))
            ]
        case BackendKeyData(pid=pid, secret=secret):
            return [f"B BackendKeyData {pid} ({len(secret)} bytes)"]
        case ErrorResponse(fields=report) | NoticeResponse(fields=report):
            return [f"B {type(message).__name__} {_report(report)}"]
        case RowDescription(fields=columns):
            return [" ".join(["B RowDescription", *map(_field, columns)])]
        case _:
            return [f"B {_plain(message)}"]


def _plain(message: FrontendMessage | BackendMessage) -> str:
    values = [_shown(getattr(message, one.name)) for one in fields(message)]
    return " ".join([type(message).__name__, *values])


def _row(data: bytes) -> str:
    return "".join(f" {_shown(value)}" for value in row_values(data))


def _field(column: Field) -> str:
    """`name:type`, with what is out of the ordinary behind it."""
    text = f"{column.name}:{column.type_oid}"
    if column.typmod != -1:
        text += f"({column.typmod})"
    if column.table_oid:
        text += f"@{column.table_oid}.{column.attribute}"
    return f"{text}:binary" if column.format else text


def _report(report: tuple[tuple[str, str], ...]) -> str:
    known = dict(report)
    words = [known.get("V", ""), known.get("C", ""), _shown(known.get("M", ""))]
    words += [f"{letter}={_shown(text)}" for letter, text in report if letter not in _SHORT_FIELDS]
    return " ".join(words)


def _shown(value: object) -> str:
    """Texts quoted, bytes as text if they are ASCII, tuples in brackets."""
    if value is None:
        return "NULL"
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bytes | memoryview):
        return _shown_bytes(bytes(value))
    if isinstance(value, tuple):
        return f"[{' '.join(map(_shown, value))}]"
    if isinstance(value, dict):
        return "{" + " ".join(f"{name}={_shown(text)}" for name, text in value.items()) + "}"
    return str(value)


def _shown_bytes(data: bytes) -> str:
    if data.isascii() and b"\0" not in data:
        return json.dumps(data.decode())
    return f"x'{data.hex()}'"
