"""A batch of a source in the queue of commits: a member of a group like any other (F1, F5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from coordinator.core.locking.lock_table import LockTable
from coordinator.core.messages.identities import ConnectionId, RequestId, TransactionId
from coordinator.core.messages.replies import Blocked
from coordinator.core.sources.records import Leftover, SourceRecord
from coordinator.core.transactions import StagedFiles
from sql.catalog.catalog import Catalog, Table
from sql.catalog.objects import SourceDefinition
from sql.catalog.sources import source_by_oid, tables_of_source
from storage.batch import WriteBatch
from storage.known_rows import OldRows
from storage.shard import ShardState
from storage.types import ShardId

_NOBODY: Final = TransactionId(0)


@dataclass(frozen=True, slots=True)
class PendingBatch:
    """What a source brings, the position that it reaches, and the definitions that it is for.

    `definition` and `fed` must be the catalog's when it is gathered: who joins, leaves or is
    altered meanwhile makes it stale.
    """

    definition: SourceDefinition
    fed: tuple[Table, ...]
    attempt: int
    writes: Mapping[ShardId, WriteBatch]
    record: SourceRecord
    ticket: int
    replaced: Mapping[ShardId, Sequence[OldRows]] = field(
        default_factory=dict[ShardId, Sequence[OldRows]]
    )
    leaves: tuple[Leftover, ...] = ()
    """What the commit leaves behind upstream."""
    restarts: bool = False
    """The source starts again behind it: it is read for more tables, or from elsewhere."""

    @property
    def request(self) -> RequestId:
        """Unlike those of sessions; a source has one batch in the queue at most."""
        return RequestId(-self.definition.oid)

    @property
    def owner(self) -> ConnectionId:
        """No session's."""
        return ConnectionId(-self.definition.oid)

    @property
    def holder(self) -> TransactionId:
        """It never holds a lease."""
        return _NOBODY

    def tables(self) -> Sequence[int]:
        """The oids of the tables that it writes rows to."""
        return [table.oid for table in self.fed if table.shard in self.writes]

    def staged_files(self) -> StagedFiles:
        """The files that it has staged."""
        return tuple(
            [(shard, file.name) for shard, batch in self.writes.items() for file in batch.staged]
        )

    def truncated(self) -> frozenset[int]:
        """It relies on no row."""
        return frozenset()

    def lock_in_the_way(
        self, _locks: LockTable, _shards: Mapping[ShardId, ShardState]
    ) -> Blocked | None:
        """A source waits for nobody (F5, F10)."""
        return None

    def is_current(self, catalog: Catalog) -> bool:
        """Whether the catalog has the source and its tables as the batch knows them."""
        oid = self.definition.oid
        return (
            source_by_oid(catalog, oid) == self.definition
            and tables_of_source(catalog, oid) == self.fed
        )

    @property
    def nbytes(self) -> int:
        """About what it takes."""
        return sum(batch.nbytes for batch in self.writes.values())


def counted_rows(
    fed: Sequence[Table], before: Mapping[int, int], writes: Mapping[ShardId, WriteBatch]
) -> Mapping[int, int]:
    """How many rows a source has brought with these, by the table's oid."""
    counts = dict(before)
    for table in fed:
        batch = writes.get(ShardId(table.shard))
        if batch is not None:
            counts[table.oid] = counts.get(table.oid, 0) + _brought(batch)
    return counts


def _brought(batch: WriteBatch) -> int:
    """Without rows of files that the batch itself has deleted again."""
    gone = (batch.deletes.get(file.name) for file in batch.staged)
    return batch.new_rows - sum(len(rows) for rows in gone if rows is not None)
