"""Effects of sources: the driver runs them with the readers of package `ingest`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from coordinator.core.messages.identities import RequestId
from coordinator.core.sources.records import Leftover, SourceRecord
from ingest.reader import Position, SourceBatch
from sql.catalog.catalog import Table
from sql.catalog.objects import ConnectionDefinition, SourceDefinition
from storage.batch import ShardView
from storage.types import ShardId, Timestamp


@dataclass(frozen=True, slots=True)
class StartSource:
    """Open a reader behind the record's position, in place of an earlier one. Without a record,
    make what reading needs upstream, and nothing else: CopyTables follows. Ends in SourceStarted or
    SourceFailed.
    """

    source: SourceDefinition
    connection: ConnectionDefinition | None
    attempt: int
    record: SourceRecord | None
    tables: tuple[Table, ...]


@dataclass(frozen=True, slots=True)
class CopyTables:
    """Take in all rows at the position that StartSource has told, and open the reader behind it.
    `began`: for the time of errors. Ends in TablesCopied or SourceFailed.
    """

    source: SourceDefinition
    attempt: int
    tables: tuple[Table, ...]
    began: Timestamp


@dataclass(frozen=True, slots=True)
class CopyAside:
    """Take in all rows of these tables, beside the reader that is open. `errors`: the table of
    errors. `joins`: what it makes upstream is removed at its end; otherwise it stays, for the
    source of this generation. Ends in AsideCopied or AsideFailed.
    """

    source: SourceDefinition
    connection: ConnectionDefinition | None
    attempt: int
    tables: tuple[Table, ...]
    errors: tuple[Table, ...]
    began: Timestamp
    joins: bool


@dataclass(frozen=True, slots=True)
class PullSource:
    """Take what comes next, at least one upstream transaction or nothing. Ends in SourcePulled or
    SourceFailed.
    """

    source: int
    attempt: int
    size_max: int


@dataclass(frozen=True, slots=True)
class PrepareBatch:
    """Make rows of shards of the changes. `views`: of the tables whose rows change, with all that
    is committed (F5); they are held until the commit. Of a batch that does not end (`SourceBatch`),
    with views of all tables; the batches behind it go on there (`goes_on`), up to one that ends.
    Ends in BatchPrepared, PartPrepared or SourceFailed.
    """

    source: SourceDefinition
    attempt: int
    batch: SourceBatch
    tables: tuple[Table, ...]
    views: Mapping[ShardId, ShardView]
    began: Timestamp
    goes_on: bool = False


@dataclass(frozen=True, slots=True)
class AcknowledgeSource:
    """Tell upstream that it may forget everything up to there (F3). Ends in SourceAcknowledged,
    done or not: the next one tells more.
    """

    source: int
    attempt: int
    upto: Position


@dataclass(frozen=True, slots=True)
class StopSource:
    """Close the reader; what stands upstream stays. Ends here."""

    source: int


@dataclass(frozen=True, slots=True)
class ReleaseUpstream:
    """Remove what stands upstream, after all earlier starts of the source have ended, and then its
    record in the stash (F8). Ends in UpstreamReleased, done or not.
    """

    leftover: Leftover


@dataclass(frozen=True, slots=True)
class AskUpstream:
    """Ask upstream for a position that covers all that it has committed, for this request. Ends in
    UpstreamReported.
    """

    source: int
    attempt: int
    request: RequestId


SourceEffect: TypeAlias = (
    StartSource | CopyTables | CopyAside | PullSource | PrepareBatch | AcknowledgeSource
    | StopSource | ReleaseUpstream | AskUpstream
)  # fmt: skip
