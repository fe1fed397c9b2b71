"""Encode and decode Delta log entries: one JSON object a line, one line an action.

INVARIANTS
  L1  commitInfo is the first action of a version (in-commit timestamps).
  L2  what is decoded from what was encoded is equal to it.
  L3  a version with an action that Meridian never writes was written by somebody else.
  L4  an entry of ours has a checksum in its commitInfo, and is what was written or is not read.
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias, cast, get_args
from urllib.parse import quote, unquote

from storage.delta.actions import (
    Action,
    AddFile,
    ChangeDataFile,
    CommitInfo,
    IntervalHistory,
    Metadata,
    Protocol,
    RemoveFile,
    Txn,
)
from storage.delta.deletion_vectors import DeletionVector, StorageType
from storage.errors import Corrupt, ForeignWriter

ENGINE: Final = "Meridian/1"
"""The number is the version of what we note in `meridian`, not of the program."""

_CHECKSUM: Final = b',"checksum":'
_CLOSED: Final = b"}}}"

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
Fields: TypeAlias = dict[str, Json]


def encode_commit(actions: Sequence[Action]) -> bytes:
    """The content of a version's log file."""
    assert isinstance(actions[0], CommitInfo), "L1: commitInfo comes first"
    info, *rest = [encode_action(action) for action in actions]
    text = [_compact(action) for action in rest]
    noted = cast("Fields", info["commitInfo"]).get("meridian")
    if isinstance(noted, dict):
        noted["checksum"] = _checksum(info, text)
    return ("\n".join([_compact(info), *text]) + "\n").encode()


def decode_commit(content: bytes) -> tuple[Action, ...]:
    """The actions of a version's log file. Raises Corrupt, ForeignWriter (L3)."""
    try:
        actions = tuple([decode_action(record) for record in _records(content)])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Corrupt(f"log entry: {error!r}") from None
    if not actions:
        raise Corrupt("log entry without actions")
    return actions


def _records(content: bytes) -> "Sequence[Mapping[str, Fields]]":
    """The lines of an entry. Raises Corrupt (L4)."""
    if _is_as_written(content):
        # Its lines are JSON without line breaks.
        lines_as_list = b"[%b]" % content[:-1].replace(b"\n", b",")
        return cast("list[dict[str, Fields]]", json.loads(lines_as_list))
    lines = content.decode().removesuffix("\n").split("\n")
    _verify(lines)
    return [json.loads(line) for line in lines if line.strip()]


def _is_as_written(content: bytes) -> bool:
    """Whether an entry has the bytes that Meridian wrote (L4); if not, it may still be right."""
    end = content.find(b"\n")
    # `encode_commit` notes it last of all in the first line.
    place = content.rfind(_CHECKSUM, 0, end)
    noted = content[place + len(_CHECKSUM) : end - len(_CLOSED)]
    if place < 0 or not noted.isdigit() or content[end - len(_CLOSED) : end] != _CLOSED:
        return False
    unsigned = content[:place] + content[end - len(_CLOSED) : -1]
    return content[-1:] == b"\n" and int(noted) == zlib.crc32(unsigned)


def _compact(fields: Json) -> str:
    return json.dumps(fields, separators=(",", ":"))


def _checksum(info: Json, rest: Sequence[str]) -> int:
    """Of a log entry without its checksum."""
    return zlib.crc32("\n".join([_compact(info), *rest]).encode())


def _verify(lines: Sequence[str]) -> None:
    """Compare an entry with the checksum that Meridian has noted in it (L4). Raises Corrupt."""
    info = json.loads(lines[0]) if lines else None
    if not isinstance(info, dict) or not isinstance(info.get("commitInfo"), dict):
        return
    noted = info["commitInfo"].get("meridian")
    if not isinstance(noted, dict) or "checksum" not in noted:
        return
    if noted.pop("checksum") != _checksum(info, lines[1:]):
        raise Corrupt("log entry: it does not match its checksum")


def encode_action(action: Action) -> Fields:
    """One action as the protocol spells it."""
    match action:
        case CommitInfo():
            return {"commitInfo": _encode_commit_info(action)}
        case Protocol():
            return {"protocol": encode_protocol(action)}
        case Metadata():
            return {"metaData": encode_metadata(action)}
        case AddFile():
            return {"add": encode_add(action)}
        case RemoveFile():
            return {"remove": encode_remove(action)}
        case Txn():
            return {"txn": encode_txn(action)}
        case ChangeDataFile():
            return {"cdc": _encode_change_file(action)}


def decode_action(line: Mapping[str, Fields]) -> Action:
    """One action of a log file."""
    ((kind, fields),) = line.items()
    match kind:
        case "commitInfo":
            return _decode_commit_info(fields)
        case "protocol":
            return decode_protocol(fields)
        case "metaData":
            return decode_metadata(fields)
        case "add":
            return decode_add(fields)
        case "remove":
            return decode_remove(fields)
        case "txn":
            return decode_txn(fields)
        case "cdc":
            return ChangeDataFile(unquote(_text(fields, "path")), _int(fields, "size"))
        case _:
            raise ForeignWriter(f"an action {kind} in the log")


def _encode_commit_info(info: CommitInfo) -> Fields:
    fields: Fields = {
        "timestamp": info.in_commit_timestamp,
        "inCommitTimestamp": info.in_commit_timestamp,
        "operation": info.operation,
        "operationParameters": {},
        "engineInfo": info.engine,
    }
    if info.meridian is not None:
        fields["meridian"] = {"cut": info.meridian.cut, "deletes": {**info.meridian.deletes}}
    return fields


def _decode_commit_info(fields: Fields) -> CommitInfo:
    history: IntervalHistory | None = None
    noted = fields.get("meridian")
    if fields.get("engineInfo") == ENGINE and isinstance(noted, dict):
        deletes = cast("dict[str, str]", noted["deletes"])
        history = IntervalHistory(_int(noted, "cut"), deletes)
    elif str(fields.get("engineInfo")).startswith("Meridian/"):
        raise Corrupt(f"a version written by {fields.get('engineInfo')}")
    return CommitInfo(
        in_commit_timestamp=_int(fields, "inCommitTimestamp", default=0),
        operation=_text(fields, "operation", default=""),
        engine=_text(fields, "engineInfo", default=""),
        meridian=history,
    )


def encode_protocol(protocol: Protocol) -> Fields:
    """The fields of a `protocol`: always table features."""
    return {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": list(protocol.reader_features),
        "writerFeatures": list(protocol.writer_features),
    }


def decode_protocol(fields: Fields) -> Protocol:
    """The fields of a `protocol`."""
    if (fields["minReaderVersion"], fields["minWriterVersion"]) != (3, 7):
        raise ForeignWriter("another protocol version in the log")
    return Protocol(
        tuple(cast("list[str]", fields["readerFeatures"])),
        tuple(cast("list[str]", fields["writerFeatures"])),
    )


def encode_metadata(metadata: Metadata) -> Fields:
    """The fields of a `metaData`."""
    return {
        "id": metadata.id,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": metadata.schema_string,
        "partitionColumns": [],
        "configuration": {**metadata.configuration},
        "createdTime": metadata.created_ms,
    }


def decode_metadata(fields: Fields) -> Metadata:
    """The fields of a `metaData`."""
    return Metadata(
        id=_text(fields, "id"),
        schema_string=_text(fields, "schemaString"),
        configuration=_texts(fields, "configuration"),
        created_ms=_int(fields, "createdTime"),
    )


def encode_add(add: AddFile) -> Fields:
    """The fields of an `add`."""
    fields: Fields = {
        "path": quote(add.path),
        "partitionValues": {},
        "size": add.size,
        "modificationTime": add.modification_ms,
        "dataChange": add.data_change,
        "stats": add.stats,
    }
    if add.tags:
        fields["tags"] = {**add.tags}
    if add.vector is not None:
        fields["deletionVector"] = _encode_vector(add.vector)
    return fields


def decode_add(fields: Fields) -> AddFile:
    """The fields of an `add`."""
    return AddFile(
        path=unquote(_text(fields, "path")),
        size=_int(fields, "size"),
        modification_ms=_int(fields, "modificationTime"),
        stats=_text(fields, "stats", default=""),
        tags=_texts(fields, "tags"),
        vector=_decode_vector(fields),
        data_change=bool(fields["dataChange"]),
    )


def encode_remove(remove: RemoveFile) -> Fields:
    """The fields of a `remove`."""
    fields: Fields = {
        "path": quote(remove.path),
        "deletionTimestamp": remove.deletion_ms,
        "dataChange": remove.data_change,
        "extendedFileMetadata": True,
        "partitionValues": {},
        "size": remove.size,
    }
    if remove.vector is not None:
        fields["deletionVector"] = _encode_vector(remove.vector)
    return fields


def decode_remove(fields: Fields) -> RemoveFile:
    """The fields of a `remove`."""
    return RemoveFile(
        path=unquote(_text(fields, "path")),
        size=_int(fields, "size", default=0),
        deletion_ms=_int(fields, "deletionTimestamp", default=0),
        vector=_decode_vector(fields),
        data_change=bool(fields["dataChange"]),
    )


def encode_txn(txn: Txn) -> Fields:
    """The fields of a `txn`."""
    return {"appId": txn.app_id, "version": txn.version, "lastUpdated": txn.updated_ms}


def decode_txn(fields: Fields) -> Txn:
    """The fields of a `txn`."""
    return Txn(
        _text(fields, "appId"), _int(fields, "version"), _int(fields, "lastUpdated", default=0)
    )


def _encode_change_file(file: ChangeDataFile) -> Fields:
    return {
        "path": quote(file.path),
        "partitionValues": {},
        "size": file.size,
        "dataChange": False,
    }


def _encode_vector(vector: DeletionVector) -> Fields:
    fields: Fields = {
        "storageType": vector.storage_type,
        "pathOrInlineDv": vector.path_or_inline,
        "sizeInBytes": vector.size_bytes,
        "cardinality": vector.cardinality,
    }
    if vector.offset is not None:
        fields["offset"] = vector.offset
    return fields


def _decode_vector(fields: Fields) -> DeletionVector | None:
    vector = fields.get("deletionVector")
    if not isinstance(vector, dict):
        return None
    storage_type = vector["storageType"]
    if storage_type not in get_args(StorageType):
        raise ForeignWriter(f"a deletion vector of storage type {storage_type}")
    offset = vector.get("offset")
    return DeletionVector(
        storage_type=cast("StorageType", storage_type),
        path_or_inline=_text(vector, "pathOrInlineDv"),
        offset=offset if isinstance(offset, int) else None,
        size_bytes=_int(vector, "sizeInBytes"),
        cardinality=_int(vector, "cardinality"),
    )


def _int(fields: Fields, key: str, *, default: int | None = None) -> int:
    value = fields.get(key)
    value = default if value is None else value
    if not isinstance(value, int):
        raise TypeError(f"{key} is not an integer")
    return value


def _text(fields: Fields, key: str, *, default: str | None = None) -> str:
    value = fields.get(key)
    value = default if value is None else value
    if not isinstance(value, str):
        raise TypeError(f"{key} is not a string")
    return value


def _texts(fields: Fields, key: str) -> dict[str, str]:
    value = fields.get(key)
    if value is None:
        return {}
    if isinstance(value, list):  # a map, as Parquet gives it
        value = dict(cast("list[tuple[str, Json]]", value))
    if not isinstance(value, dict):
        raise TypeError(f"{key} is not an object")
    return cast("dict[str, str]", value)
