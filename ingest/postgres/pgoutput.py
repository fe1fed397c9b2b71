"""Decode messages of logical replication, plugin pgoutput, protocol version 1; pure.

    b"I" + relation + b"N" + fields ─▶ Insert(relation, fields)

A field is the text of a value, None for NULL, or UNCHANGED for a large value that the change
leaves as it was (unchanged TOAST).

INVARIANTS
  G1  a message is decoded whole, or it is a `MalformedMessage`; nothing behind its end is left.

After "Logical Replication Message Formats" of PostgreSQL's manual.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from ingest.reader import UNCHANGED, Unchanged

UpstreamField: TypeAlias = str | Unchanged | None
UpstreamFields: TypeAlias = Sequence[UpstreamField]


class MalformedMessage(Exception):
    """Bytes that the protocol does not have: another version, or damage."""


@dataclass(frozen=True, slots=True)
class BeginMessage:
    """A transaction begins; all up to its commit is of it."""

    final_lsn: int


@dataclass(frozen=True, slots=True)
class CommitMessage:
    """The transaction ends; the next one begins at or behind `end_lsn`."""

    commit_lsn: int
    end_lsn: int


@dataclass(frozen=True, slots=True)
class RelationColumn:
    """A column as upstream sends it; `in_key`: it is in the replica identity."""

    name: str
    type_oid: int
    typmod: int
    in_key: bool


@dataclass(frozen=True, slots=True)
class RelationMessage:
    """The shape of the rows of a relation, from here on."""

    oid: int
    schema: str
    name: str
    replica_identity: str
    columns: tuple[RelationColumn, ...]


@dataclass(frozen=True, slots=True)
class TypeMessage:
    """The name of a type that is not built in."""

    oid: int
    schema: str
    name: str


@dataclass(frozen=True, slots=True)
class InsertMessage:
    """A row came."""

    relation: int
    new: UpstreamFields


@dataclass(frozen=True, slots=True)
class UpdateMessage:
    """A row changed. `old` if the key did, or with a full replica identity (`full`)."""

    relation: int
    old: UpstreamFields | None
    full: bool
    new: UpstreamFields


@dataclass(frozen=True, slots=True)
class DeleteMessage:
    """A row went; without `full`, `old` has values for the key only."""

    relation: int
    old: UpstreamFields
    full: bool


@dataclass(frozen=True, slots=True)
class TruncateMessage:
    """All rows of these relations went."""

    relations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OriginMessage:
    """The transaction came from elsewhere."""

    name: str


@dataclass(frozen=True, slots=True)
class LogicalMessage:
    """A message that somebody wrote into upstream's log."""

    transactional: bool
    lsn: int
    prefix: str
    content: bytes


PgoutputMessage: TypeAlias = (
    BeginMessage
    | CommitMessage
    | RelationMessage
    | TypeMessage
    | InsertMessage
    | UpdateMessage
    | DeleteMessage
    | TruncateMessage
    | OriginMessage
    | LogicalMessage
)

_BEGIN: Final = struct.Struct("!qqI")
_COMMIT: Final = struct.Struct("!bqqq")
_COLUMN: Final = struct.Struct("!Ii")
_UINT: Final = struct.Struct("!I")
_SHORT: Final = struct.Struct("!H")
_LSN: Final = struct.Struct("!q")
_LOGICAL: Final = struct.Struct("!bq")


def decode_message(body: bytes) -> PgoutputMessage:
    """One message (G1)."""
    try:
        message, end = _decode(body)
    except (struct.error, IndexError, UnicodeDecodeError, ValueError) as error:
        raise MalformedMessage(f"message of kind {body[:1]!r}: {error}") from None
    if end != len(body):
        raise MalformedMessage(f"message of kind {body[:1]!r} has {len(body) - end} bytes too many")
    return message


def _decode(body: bytes) -> tuple[PgoutputMessage, int]:
    match body[:1]:
        case b"I" | b"U" | b"D" | b"T":
            return _row_change(body)
        case b"B":
            final_lsn, _, _ = _BEGIN.unpack_from(body, 1)
            return BeginMessage(final_lsn), 1 + _BEGIN.size
        case b"C":
            _, commit_lsn, end_lsn, _ = _COMMIT.unpack_from(body, 1)
            return CommitMessage(commit_lsn, end_lsn), 1 + _COMMIT.size
        case b"R":
            return _relation(body)
        case b"Y":
            (oid,) = _UINT.unpack_from(body, 1)
            schema, at = _text(body, 5)
            name, at = _text(body, at)
            return TypeMessage(oid, schema, name), at
        case b"O":
            name, at = _text(body, 9)
            return OriginMessage(name), at
        case b"M":
            flags, lsn = _LOGICAL.unpack_from(body, 1)
            prefix, at = _text(body, 10)
            (length,) = _UINT.unpack_from(body, at)
            content = body[at + 4 : at + 4 + length]
            return LogicalMessage(bool(flags & 1), lsn, prefix, content), at + 4 + length
        case kind:
            raise ValueError(f"unknown kind {kind!r}")


def _row_change(body: bytes) -> tuple[PgoutputMessage, int]:
    kind = body[:1]
    (relation,) = _UINT.unpack_from(body, 1)
    if kind == b"I":
        new, at = _tuple(body, 5, b"N")
        return InsertMessage(relation, new), at
    if kind == b"T":
        # The number of relations comes first, then options, then their oids.
        relations = struct.unpack_from(f"!{relation}I", body, 6)
        return TruncateMessage(relations), 6 + 4 * relation
    full = body[5:6] == b"O"
    if kind == b"D":
        old, at = _tuple(body, 5, b"KO")
        return DeleteMessage(relation, old, full), at
    if body[5:6] == b"N":
        new, at = _tuple(body, 5, b"N")
        return UpdateMessage(relation, None, full=False, new=new), at
    old, at = _tuple(body, 5, b"KO")
    new, at = _tuple(body, at, b"N")
    return UpdateMessage(relation, old, full, new), at


def _relation(body: bytes) -> tuple[RelationMessage, int]:
    (oid,) = _UINT.unpack_from(body, 1)
    schema, at = _text(body, 5)
    name, at = _text(body, at)
    identity = chr(body[at])
    (count,) = _SHORT.unpack_from(body, at + 1)
    at += 3
    columns: list[RelationColumn] = []
    for _ in range(count):
        flags = body[at]
        column, at = _text(body, at + 1)
        type_oid, typmod = _COLUMN.unpack_from(body, at)
        at += _COLUMN.size
        columns.append(RelationColumn(column, type_oid, typmod, bool(flags & 1)))
    # A relation of pg_catalog has no schema in the protocol.
    return RelationMessage(oid, schema or "pg_catalog", name, identity, tuple(columns)), at


def _text(body: bytes, at: int) -> tuple[str, int]:
    end = body.index(0, at)
    return body[at:end].decode(), end + 1


_NULL: Final = ord("n")
_TEXT: Final = ord("t")
_SAME: Final = ord("u")


def _tuple(body: bytes, at: int, kinds: bytes) -> tuple[list[UpstreamField], int]:
    if body[at] not in kinds:
        raise ValueError(f"unknown kind of row {body[at : at + 1]!r}")
    (count,) = _SHORT.unpack_from(body, at + 1)
    at += 3
    fields: list[UpstreamField] = []
    for _ in range(count):
        kind = body[at]
        at += 1
        if kind == _TEXT:
            (length,) = _UINT.unpack_from(body, at)
            at += 4
            if at + length > len(body):
                raise ValueError("a value that is cut off")
            fields.append(body[at : at + length].decode())
            at += length
        elif kind == _NULL:
            fields.append(None)
        elif kind == _SAME:
            fields.append(UNCHANGED)
        else:
            raise ValueError(f"unknown kind of value {kind}")
    return fields, at


def format_lsn(lsn: int) -> str:
    """As PostgreSQL writes it, such as `0/16B3748`."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def parse_lsn(text: str) -> int:
    """The number of `0/16B3748`."""
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) | int(low, 16)
