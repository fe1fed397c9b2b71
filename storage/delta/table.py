"""What a table says of itself in its first version: protocol, schema, properties."""

import hashlib
import re
import uuid
from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from storage.delta.actions import Action, Metadata, Protocol
from storage.delta.schema import encode_schema, has_timestamp_ntz
from storage.types import ShardId

CHECKPOINT_VERSIONS: Final = 100
"""Versions between checkpoints. More: readers replay more. Fewer: more work for each file."""

FILE_RETENTION: Final = "delta.deletedFileRetentionDuration"
LOG_RETENTION: Final = "delta.logRetentionDuration"

_UNITS_MS: Final = {
    "millisecond": 1,
    "second": 1_000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 604_800_000,
}
_INTERVAL: Final = re.compile(r"interval (\d+) (millisecond|second|minute|hour|day|week)s?")
_DEFAULT_MS: Final = 30 * 86_400_000

PROPERTIES: Final = {
    "delta.enableDeletionVectors": "true",
    "delta.enableInCommitTimestamps": "true",
    "delta.checkpointInterval": str(CHECKPOINT_VERSIONS),
}


def table_actions(
    shard: ShardId, schema: pa.Schema, created_ms: int, retention_us: int
) -> tuple[Protocol, Metadata]:
    """Protocol and metaData of version 0; the same for the same shard, so that a retry agrees.

    `retention_us`: how far foreign readers may travel back. It is written for files and log alike,
    because Delta wants the log to live as long as the files; vacuum keeps to what is written.
    """
    # Rounded up: what is promised is kept.
    retention = f"interval {-(-retention_us // 1_000)} milliseconds"
    if retention_us % 1_000_000 == 0:
        retention = f"interval {retention_us // 1_000_000} seconds"
    readers = ["deletionVectors"] + (["timestampNtz"] if has_timestamp_ntz(schema) else [])
    # delta-spark refuses a table with NOT NULL columns that does not list `invariants`.
    invariants = () if all(field.nullable for field in schema) else ("invariants",)
    protocol = Protocol(tuple(readers), (*readers, "inCommitTimestamp", *invariants))
    digest = hashlib.blake2b(shard.encode(), digest_size=16).digest()
    metadata = Metadata(
        id=str(uuid.UUID(bytes=digest, version=4)),
        schema_string=encode_schema(schema),
        configuration={**PROPERTIES, FILE_RETENTION: retention, LOG_RETENTION: retention},
        created_ms=created_ms,
    )
    return protocol, metadata


def promised_ms(configuration: Mapping[str, str], retention: str) -> int:
    """How long the table promises to keep what was removed; a month if it does not say so."""
    match = _INTERVAL.fullmatch(configuration.get(retention, ""))
    return _DEFAULT_MS if match is None else int(match[1]) * _UNITS_MS[match[2]]


def describes(actions: tuple[Action, ...], schema: pa.Schema) -> bool:
    """True if a metaData among the actions has this schema."""
    wanted = encode_schema(schema)
    return any(isinstance(a, Metadata) and a.schema_string == wanted for a in actions)
