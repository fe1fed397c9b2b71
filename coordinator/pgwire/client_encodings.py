"""Texts from and to a client in another encoding than UTF-8, and the streams of COPY likewise.

    frontend payload ─▶ names and statements ─┐
    values of Bind, CopyData ─────────────────┼▶ UTF-8 inside ─▶ DataRows, CopyData, names, errors
                                              └ `client_encoding`, or ENCODING of COPY

INVARIANTS
  E1  an encoding has one byte a character, so that a piece of a stream is a text of its own.
  E2  a character that one side does not have is 22P05, with PostgreSQL's text. Errors and notices,
      which must not fail, have a question mark in its place.
  E3  bytes of a binary format are converted only where they are a text, whole; what has texts
      inside of other bytes is 0A000, if it may have such a character.

Not here: which encodings there are (`sql/types/encodings.py`).
"""

from collections.abc import Sequence
from typing import Final

from coordinator.pgwire.messages import CopyFrames, DataRows
from sql.errors import SqlError, not_supported
from sql.types.encodings import Encoding
from sql.types.enums import is_enum
from sql.types.sql_type import SqlType

_HEADER_BYTES: Final = 5
_ROW_HEADER_BYTES: Final = 7
_STRINGS: Final = {
    ord("Q"): (0, 1),
    ord("P"): (0, 2),
    ord("B"): (0, 2),
    ord("D"): (1, 1),
    ord("C"): (1, 1),
    ord("E"): (0, 1),
}
"""Where texts stand in messages of the client: behind so many bytes, and so many of them."""
_TEXTS: Final = frozenset(
    {"text", "varchar", "bpchar", "name", "char", "json", "jsonb", "jsonpath", "unknown"}
)


def from_client(data: bytes, encoding: Encoding) -> bytes:
    """A text, or a piece of the client's stream, in UTF-8 (E1, E2)."""
    if data.isascii():
        return data
    try:
        return data.decode(encoding.codec).encode()
    except UnicodeDecodeError as error:
        raise _no_equivalent(data[error.start : error.end], encoding.name, "UTF8") from None


def message_from_client(kind: int, payload: bytes, encoding: Encoding) -> bytes:
    """The payload of a message, its names and its statement in UTF-8."""
    skipped, count = _STRINGS.get(kind, (0, 0))
    if not count or payload.isascii():
        return payload
    parts = payload[skipped:].split(b"\0", count)
    texts = [from_client(part, encoding) for part in parts[:count]]
    return payload[:skipped] + b"\0".join([*texts, *parts[count:]])


def value_from_client(data: bytes, type_: SqlType, code: int, encoding: Encoding) -> bytes:
    """A value of Bind (E3)."""
    if data.isascii() or (code and not _has_texts(type_)):
        return data
    if code and not _is_text(type_):
        raise _inside(type_, encoding)
    return from_client(data, encoding)


def frames_to_client(frames: CopyFrames, encoding: Encoding) -> CopyFrames:
    """CopyData messages of UTF-8 in the client's encoding."""
    data = bytes(frames.data)
    if data.isascii():
        return frames
    made, start = bytearray(), 0
    while start < len(data):
        end = start + 1 + int.from_bytes(data[start + 1 : start + _HEADER_BYTES], "big")
        row = text_to_client(data[start + _HEADER_BYTES : end], encoding)
        made += data[start : start + 1] + (len(row) + 4).to_bytes(4, "big") + row
        start = end
    return CopyFrames(bytes(made), frames.rows)


def rows_to_client(
    rows: DataRows, types: Sequence[SqlType], codes: Sequence[int], encoding: Encoding
) -> DataRows:
    """DataRow messages in the client's encoding; `codes`: the format of each column (E3)."""
    data = bytes(rows.data)
    if data.isascii():
        return rows
    made, start = bytearray(), 0
    while start < len(data):
        end = start + 1 + int.from_bytes(data[start + 1 : start + _HEADER_BYTES], "big")
        row, place = bytearray(), start + _ROW_HEADER_BYTES
        for type_, code in zip(types, codes, strict=True):
            length = int.from_bytes(data[place : place + 4], "big", signed=True)
            value = data[place + 4 : place + 4 + max(length, 0)]
            place += 4 + max(length, 0)
            if not value.isascii():
                value = _value_to_client(value, type_, code, encoding)
            row += (len(value) if length >= 0 else -1).to_bytes(4, "big", signed=True) + value
        size = (len(row) + 6).to_bytes(4, "big")
        made += data[start : start + 1] + size
        made += data[start + _HEADER_BYTES : start + _ROW_HEADER_BYTES] + row
        start = end
    return DataRows(bytes(made), rows.rows)


def _value_to_client(data: bytes, type_: SqlType, code: int, encoding: Encoding) -> bytes:
    if code and not _has_texts(type_):
        return data
    if code and not _is_text(type_):
        raise _inside(type_, encoding)
    return text_to_client(data, encoding)


def text_to_client(row: bytes, encoding: Encoding) -> bytes:
    """A text of UTF-8 in the client's encoding (E2)."""
    text = row.decode()
    try:
        return text.encode(encoding.codec)
    except UnicodeEncodeError as error:
        character = text[error.start].encode()
        raise _no_equivalent(character, "UTF8", encoding.name) from None


def _is_text(type_: SqlType) -> bool:
    return type_.name in _TEXTS or is_enum(type_.name)


def _has_texts(type_: SqlType) -> bool:
    part = type_.element or type_
    return _is_text(part) or part.category == "P"


def _inside(type_: SqlType, encoding: Encoding) -> SqlError:
    return not_supported(f"{type_.name} in binary for a client whose encoding is {encoding.name}")


def _no_equivalent(character: bytes, source: str, target: str) -> SqlError:
    shown = " ".join(f"0x{byte:02x}" for byte in character)
    message = (
        f'character with byte sequence {shown} in encoding "{source}" '
        f'has no equivalent in encoding "{target}"'
    )
    return SqlError("22P05", message)
