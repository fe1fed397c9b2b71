"""Checkpoints: the state of a log at one version as a Parquet file, which saves a replay.

    log entries (and the checkpoint before) ─▶ LogState ─▶ <version>.checkpoint.parquet

Classic single-file checkpoints, made from the log alone, off the commit path. They keep the tags
with the runs (H1), and removed files for as long as foreign readers may travel back to them.

INVARIANTS
  K1  a checkpoint has every live file with all its tags, and the transaction marker of its version.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import Final, cast

import pyarrow as pa
import pyarrow.parquet as pq

from storage.delta.actions import (
    Action,
    AddFile,
    ChangeDataFile,
    CommitInfo,
    Metadata,
    Protocol,
    RemoveFile,
    Txn,
)
from storage.delta.history import RUNS_TAG
from storage.delta.log import Fields, decode_action, encode_action
from storage.delta.table import FILE_RETENTION, promised_ms
from storage.errors import Corrupt
from storage.row_versions import is_row_count

_STRINGS: Final = pa.map_(pa.string(), pa.string())
_VECTOR: Final = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
_SCHEMA: Final = pa.schema(
    {
        "txn": pa.struct(
            [("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]
        ),
        "add": pa.struct(
            [
                ("path", pa.string()),
                ("partitionValues", _STRINGS),
                ("size", pa.int64()),
                ("modificationTime", pa.int64()),
                ("dataChange", pa.bool_()),
                ("stats", pa.string()),
                ("tags", _STRINGS),
                ("deletionVector", _VECTOR),
            ]
        ),
        "remove": pa.struct(
            [
                ("path", pa.string()),
                ("deletionTimestamp", pa.int64()),
                ("dataChange", pa.bool_()),
                ("extendedFileMetadata", pa.bool_()),
                ("partitionValues", _STRINGS),
                ("size", pa.int64()),
                ("deletionVector", _VECTOR),
            ]
        ),
        "metaData": pa.struct(
            [
                ("id", pa.string()),
                ("format", pa.struct([("provider", pa.string()), ("options", _STRINGS)])),
                ("schemaString", pa.string()),
                ("partitionColumns", pa.list_(pa.string())),
                ("configuration", _STRINGS),
                ("createdTime", pa.int64()),
            ]
        ),
        "protocol": pa.struct(
            [
                ("minReaderVersion", pa.int32()),
                ("minWriterVersion", pa.int32()),
                ("readerFeatures", pa.list_(pa.string())),
                ("writerFeatures", pa.list_(pa.string())),
            ]
        ),
    }
)


@dataclass(frozen=True, slots=True)
class LogState:
    """What a log says at one version. `removes` are the tombstones."""

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    txn: Txn | None = None
    adds: dict[str, AddFile] = field(default_factory=dict[str, AddFile])
    removes: dict[tuple[str, str], RemoveFile] = field(
        default_factory=dict[tuple[str, str], RemoveFile]
    )
    row_count: Txn | None = None
    """W1 of `row_versions.py`; None in a log of before there was any (W5)."""

    def after(self, commits: Iterable[Sequence[Action]]) -> "LogState":
        """The state after more versions."""
        protocol, metadata, txn = self.protocol, self.metadata, self.txn
        row_count = self.row_count
        adds, removes = dict(self.adds), dict(self.removes)
        for actions in commits:
            before = {a.path: adds.get(a.path) for a in actions if isinstance(a, RemoveFile)}
            for action in actions:
                match action:
                    case Protocol():
                        protocol = action
                    case Metadata():
                        metadata = action
                    case Txn() if is_row_count(action.app_id):
                        row_count = action
                    case Txn():
                        txn = action
                    case AddFile():
                        adds[action.path] = _with_tags(action, before.get(action.path))
                        removes.pop(_identity(action), None)
                    case RemoveFile():
                        removes[_identity(action)] = action
                        add = adds.get(action.path)
                        if add is not None and _identity(add) == _identity(action):
                            del adds[action.path]
                    case CommitInfo() | ChangeDataFile():
                        pass
        return LogState(protocol, metadata, txn, adds, removes, row_count)

    def actions(self) -> Sequence[Action]:
        """What a checkpoint holds, without the tombstones that have expired."""
        assert self.protocol is not None, "K1: version 0 has a protocol"
        assert self.metadata is not None, "K1: version 0 has a metaData"
        assert self.txn is not None, "K1: every version has a marker"
        assert all(RUNS_TAG in add.tags for add in self.adds.values()), "K1: adds have their runs"
        oldest_ms = self.txn.updated_ms - promised_ms(self.metadata.configuration, FILE_RETENTION)
        removes = [replace(r, data_change=False) for r in self.removes.values()]
        return [
            self.protocol,
            self.metadata,
            self.txn,
            *([] if self.row_count is None else [self.row_count]),
            *(replace(add, data_change=False) for add in self.adds.values()),
            *(remove for remove in removes if remove.deletion_ms > oldest_ms),
        ]


def encode_checkpoint(state: LogState) -> tuple[bytes, int]:
    """The content of a checkpoint file, and how many actions it has."""
    rows = [encode_action(action) for action in state.actions()]
    sink = BytesIO()
    pq.write_table(
        pa.Table.from_pylist(rows, schema=_SCHEMA), sink, compression="snappy", store_schema=False
    )
    return sink.getvalue(), len(rows)


def decode_checkpoint(content: bytes) -> LogState:
    """Raises Corrupt, also if the checkpoint is not one of ours (K1)."""
    try:
        table = pq.read_table(pa.BufferReader(content), columns=_SCHEMA.names)
        rows = cast("list[dict[str, Fields | None]]", table.to_pylist())
        actions = [
            decode_action({kind: fields})
            for row in rows
            for kind, fields in row.items()
            if fields is not None
        ]
    except (pa.ArrowException, ValueError, KeyError, TypeError) as error:
        raise Corrupt(f"checkpoint: {error!r}") from None
    state = LogState().after([[action] for action in actions])
    whole = state.protocol is not None and state.metadata is not None and state.txn is not None
    if not whole or any(RUNS_TAG not in add.tags for add in state.adds.values()):
        raise Corrupt("checkpoint that Meridian did not write")
    return state


def _with_tags(add: AddFile, before: AddFile | None) -> AddFile:
    """The add with the tags that the file came with (H1)."""
    return add if before is None or add.tags else replace(add, tags=before.tags)


def _identity(action: AddFile | RemoveFile) -> tuple[str, str]:
    """The same path with another deletion vector is another logical file."""
    vector = action.vector
    if vector is None:
        return action.path, ""
    return action.path, f"{vector.storage_type}{vector.path_or_inline}@{vector.offset}"
