"""Completions of the effects of sources. Each names the attempt that has asked for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ingest.reader import Position, SourceBatch
from storage.batch import WriteBatch
from storage.types import ShardId


@dataclass(frozen=True, slots=True)
class SourceStarted:
    """Ends StartSource: the reader stands at `position`."""

    source: int
    attempt: int
    position: Position
    identity: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class SourcePulled:
    """Ends PullSource."""

    source: int
    attempt: int
    batch: SourceBatch


@dataclass(frozen=True, slots=True)
class BatchPrepared:
    """Ends PrepareBatch: what a commit up to `upto` writes. `errors`: how many of the rows are of
    bad records.
    """

    source: int
    attempt: int
    upto: Position
    writes: Mapping[ShardId, WriteBatch]
    errors: int = 0


@dataclass(frozen=True, slots=True)
class SourceFailed:
    """Ends what an attempt was asked for: it cannot go on. `broken`: not before a person has mended
    something; otherwise it is tried again.
    """

    source: int
    attempt: int
    code: str
    reason: str
    hint: str = ""
    broken: bool = False


@dataclass(frozen=True, slots=True)
class SourceAcknowledged:
    """Ends AcknowledgeSource. `done`: upstream has heard it."""

    source: int
    attempt: int
    upto: Position
    done: bool


SourceMessage: TypeAlias = (
    SourceStarted | SourcePulled | BatchPrepared | SourceFailed | SourceAcknowledged
)
