"""Effects of sources: the driver runs them with the readers of package `ingest`."""

from dataclasses import dataclass
from typing import TypeAlias

from coordinator.core.sources.records import SourceRecord
from ingest.reader import Position, SourceBatch
from sql.catalog.catalog import Table
from sql.catalog.objects import SourceDefinition


@dataclass(frozen=True, slots=True)
class StartSource:
    """Open a reader behind the record's position, in place of an earlier one. Without a record,
    first make what reading needs upstream. Ends in SourceStarted or SourceFailed.
    """

    source: SourceDefinition
    attempt: int
    record: SourceRecord | None
    tables: tuple[Table, ...]


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
    """Make rows of shards of the changes. Ends in BatchPrepared or SourceFailed."""

    source: SourceDefinition
    attempt: int
    batch: SourceBatch
    tables: tuple[Table, ...]


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
    """Close the reader. `released`: remove what stands upstream, too: the source was dropped. Ends
    here.
    """

    source: int
    released: bool = False


SourceEffect: TypeAlias = StartSource | PullSource | PrepareBatch | AcknowledgeSource | StopSource
