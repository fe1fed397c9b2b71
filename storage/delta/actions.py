"""The actions of a Delta log entry, as values.

What only Meridian knows rides along where foreign readers ignore it: `meridian.runs` and
`meridian.staged` in the tags of an `add`, and `meridian` in the commitInfo (see `history.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from storage.delta.deletion_vectors import DeletionVector


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """Provenance. `meridian` is None if somebody else wrote the version."""

    in_commit_timestamp: int
    operation: str
    engine: str
    meridian: "IntervalHistory | None" = None


@dataclass(frozen=True, slots=True)
class IntervalHistory:
    """What Meridian notes about a version: its cut, and the deletes since the one before."""

    cut: int
    deletes: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Protocol:
    """What a reader and a writer must understand."""

    reader_features: tuple[str, ...]
    writer_features: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Metadata:
    """The table: schema and properties. Meridian's tables have no partitions."""

    id: str
    schema_string: str
    configuration: Mapping[str, str]
    created_ms: int


@dataclass(frozen=True, slots=True)
class AddFile:
    """A file is in the table, with this deletion vector."""

    path: str
    size: int
    modification_ms: int
    stats: str
    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    vector: DeletionVector | None = None
    data_change: bool = True


@dataclass(frozen=True, slots=True)
class RemoveFile:
    """A file, as it was with this deletion vector, is no longer in the table."""

    path: str
    size: int
    deletion_ms: int
    vector: DeletionVector | None = None
    data_change: bool = True


@dataclass(frozen=True, slots=True)
class Txn:
    """The idempotence marker (C2)."""

    app_id: str
    version: int
    updated_ms: int


@dataclass(frozen=True, slots=True)
class ChangeDataFile:
    """Rows that a version brought and took away, for readers of the change data feed."""

    path: str
    size: int


Action: TypeAlias = CommitInfo | Protocol | Metadata | AddFile | RemoveFile | Txn | ChangeDataFile
