"""Protocol, schema and properties of a table, as its first version and ALTER write them."""

import hashlib
import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa

from storage.delta.actions import Action, Metadata, Protocol
from storage.delta.schema import (
    definition_text,
    encode_schema,
    has_feed,
    has_invariant,
    has_timestamp_ntz,
    is_mapped,
    largest_number,
)
from storage.errors import Corrupt
from storage.types import ShardId, Timestamp

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

VECTORS_FEATURE: Final = "deletionVectors"
VECTORS_PROPERTY: Final = "delta.enableDeletionVectors"

FEED_FEATURE: Final = "changeDataFeed"
FEED_PROPERTY: Final = "delta.enableChangeDataFeed"

BEHIND_PROPERTY: Final = "meridian.behindSince"
"""Of a materialized view that follows its inputs: the timestamp from which on it does not."""

PROPERTIES: Final = {
    "delta.enableInCommitTimestamps": "true",
    "delta.checkpointInterval": str(CHECKPOINT_VERSIONS),
}


def table_actions(
    shard: ShardId,
    schema: pa.Schema,
    created_ms: int,
    retention_us: int,
    *,
    vectors: bool,
    behind: Timestamp | None = None,
) -> tuple[Protocol, Metadata]:
    """Protocol and metaData; the same for the same shard and schema, so that a retry agrees.

    `vectors`: whether a file has had deleted rows. Some readers refuse the feature by its name, so
    a table that only grows does not have it.
    `behind`: since when a view is behind.
    `retention_us`: how far foreign readers may travel back. It is written for files and log alike,
    because Delta wants the log to live as long as the files; vacuum keeps to what is written.
    """
    # Rounded up: what is promised is kept.
    retention = f"interval {-(-retention_us // 1_000)} milliseconds"
    if retention_us % 1_000_000 == 0:
        retention = f"interval {retention_us // 1_000_000} seconds"
    readers = [VECTORS_FEATURE] if vectors else []
    if has_timestamp_ntz(schema):
        readers.append("timestampNtz")
    mapping: dict[str, str] = {}
    if is_mapped(schema):
        readers.append("columnMapping")
        mapping = {
            "delta.columnMapping.mode": "name",
            "delta.columnMapping.maxColumnId": str(largest_number(schema)),
        }
    # delta-spark refuses a table with NOT NULL columns that does not list `invariants`.
    invariants = ("invariants",) if any(map(has_invariant, schema)) else ()
    feed = (FEED_FEATURE,) if has_feed(schema) else ()
    protocol = Protocol(tuple(readers), (*readers, "inCommitTimestamp", *invariants, *feed))
    digest = hashlib.blake2b(shard.encode(), digest_size=16).digest()
    metadata = Metadata(
        id=str(uuid.UUID(bytes=digest, version=4)),
        schema_string=encode_schema(schema),
        configuration={
            **({VECTORS_PROPERTY: "true"} if vectors else {}),
            **({FEED_PROPERTY: "true"} if feed else {}),
            **PROPERTIES,
            **({} if behind is None else {BEHIND_PROPERTY: str(behind)}),
            **mapping,
            FILE_RETENTION: retention,
            LOG_RETENTION: retention,
        },
        created_ms=created_ms,
    )
    return protocol, metadata


def promised_ms(configuration: Mapping[str, str], retention: str) -> int:
    """How long the table promises to keep what was removed; a month if it does not say so."""
    match = _INTERVAL.fullmatch(configuration.get(retention, ""))
    return _DEFAULT_MS if match is None else int(match[1]) * _UNITS_MS[match[2]]


def has_vectors(metadata: Metadata | None) -> bool:
    """Whether a table may have deletion vectors."""
    return metadata is not None and metadata.configuration.get(VECTORS_PROPERTY) == "true"


def reported_behind(metadata: Metadata | None) -> Timestamp | None:
    """Since when a view is behind. Raises Corrupt."""
    told = None if metadata is None else metadata.configuration.get(BEHIND_PROPERTY)
    if told is None:
        return None
    if not told.isdigit():
        raise Corrupt(f"the property {BEHIND_PROPERTY} is {told!r}")
    return Timestamp(int(told))


def declared_metadata(actions: Sequence[Action]) -> Metadata | None:
    """What a version tells of the table; None if it leaves what was told before."""
    for action in actions:
        if isinstance(action, Metadata):
            return action
    return None


def metadata_definition(metadata: Metadata) -> str:
    """What `reported_definition` is of the schema that these were made of."""
    feed = metadata.configuration.get(FEED_PROPERTY) == "true"
    return definition_text(metadata.schema_string, feed=feed)
