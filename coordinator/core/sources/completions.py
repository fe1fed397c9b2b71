"""Completions of the effects of sources. Each names the attempt that has asked for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from coordinator.core.messages.identities import RequestId
from ingest.reader import Position, SourceBatch
from storage.batch import WriteBatch
from storage.known_rows import OldRows
from storage.types import ShardId


@dataclass(frozen=True, slots=True)
class SourceCompletion:
    """The oid of the source, and its attempt."""

    source: int
    attempt: int


@dataclass(frozen=True, slots=True)
class SourceStarted(SourceCompletion):
    """Ends StartSource: the reader stands at `position`."""

    position: Position
    identity: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class TablesCopied(SourceCompletion):
    """Ends CopyTables: `writes` have all rows at `position`, behind which the reader stands."""

    position: Position
    identity: Mapping[str, str]
    writes: Mapping[ShardId, WriteBatch]
    errors: int = 0


@dataclass(frozen=True, slots=True)
class AsideCopied(SourceCompletion):
    """Ends CopyAside, whose attempt it names: `writes` have all rows at `position`."""

    position: Position
    identity: Mapping[str, str]
    writes: Mapping[ShardId, WriteBatch]
    errors: int = 0


@dataclass(frozen=True, slots=True)
class AsideFailed(SourceCompletion):
    """Ends CopyAside: it is tried again, or the source is broken, if only a person can mend it."""

    code: str
    reason: str
    hint: str = ""
    broken: bool = False


@dataclass(frozen=True, slots=True)
class SourcePulled(SourceCompletion):
    """Ends PullSource."""

    batch: SourceBatch


@dataclass(frozen=True, slots=True)
class BatchPrepared(SourceCompletion):
    """Ends PrepareBatch: what a commit up to `upto` writes. `errors`: how many of the rows are of
    bad records. `replaced`: what is known of the rows that go.
    """

    upto: Position
    writes: Mapping[ShardId, WriteBatch]
    errors: int = 0
    replaced: Mapping[ShardId, Sequence[OldRows]] = field(
        default_factory=dict[ShardId, Sequence[OldRows]]
    )


@dataclass(frozen=True, slots=True)
class PartPrepared(SourceCompletion):
    """Ends PrepareBatch of a batch that does not end. `errors`: the bad records so far, of this
    batch and of those that it goes on behind.
    """

    errors: int = 0


@dataclass(frozen=True, slots=True)
class SourceFailed(SourceCompletion):
    """Ends what an attempt was asked for: it cannot go on. `broken`: not before a person has mended
    something; otherwise it is tried again.
    """

    code: str
    reason: str
    hint: str = ""
    broken: bool = False
    place: str = ""
    """Of the record that it stands at, as JSON, if a person may skip that."""


@dataclass(frozen=True, slots=True)
class SourceAcknowledged(SourceCompletion):
    """Ends AcknowledgeSource. `done`: upstream has heard it."""

    upto: Position
    done: bool


@dataclass(frozen=True, slots=True)
class UpstreamReported(SourceCompletion):
    """Ends AskUpstream: all that upstream had committed is up to there. None: it did not say."""

    request: RequestId
    position: Position | None
    failure: str = ""


@dataclass(frozen=True, slots=True)
class UpstreamReleased:
    """Ends ReleaseUpstream: nothing stands there any more, if it is `done`."""

    name: str
    done: bool


SourceMessage: TypeAlias = (
    SourceStarted
    | TablesCopied
    | SourcePulled
    | BatchPrepared
    | PartPrepared
    | SourceFailed
    | SourceAcknowledged
    | UpstreamReported
)

AsideMessage: TypeAlias = AsideCopied | AsideFailed
