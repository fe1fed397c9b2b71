"""Open transactions: what each has read, written and been given.

INVARIANTS
  X1  a transaction reads at one timestamp, chosen at its first snapshot, and sees its own writes
      there.
  X2  own rows are named (`@own`, n), n counting from the transaction's first inline row of the
      table; when it commits, own rows deleted by itself are taken out, the rest keep their order.
  X3  a transaction ends exactly once; what it held is released then.
"""

from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyroaring import BitMap64

from coordinator.core.catalog import apply_changes
from coordinator.core.messages import (
    CatalogChange,
    ConnectionId,
    Isolation,
    PutTable,
    Snapshot,
    TransactionId,
)
from sql.catalog import Catalog, Table
from storage.batch import Deletes, WriteBatch
from storage.types import OWN, ShardId, Source, Timestamp


def merge_deletes(first: Deletes, second: Deletes) -> Deletes:
    """The union, by source."""
    if not first or not second:
        return first or second
    merged = dict(first)
    for source, rows in second.items():
        known = merged.get(source)
        merged[source] = rows if known is None else known | rows
    return merged


def merge_batches(first: WriteBatch, second: WriteBatch) -> WriteBatch:
    """Both batches as one: first's rows, then second's."""
    tables = [batch.inserts for batch in (first, second) if batch.inserts is not None]
    return WriteBatch(
        inserts=pa.concat_tables(tables) if tables else None,
        staged=first.staged + second.staged,
        deletes=merge_deletes(first.deletes, second.deletes),
    )


def final_batch(batch: WriteBatch) -> WriteBatch:
    """The batch as it is committed: without own rows that the transaction deleted again (X2)."""
    gone = batch.deletes.get(OWN)
    if gone is None:
        return batch
    deletes: dict[Source, BitMap64] = dict(batch.deletes)
    del deletes[OWN]
    assert batch.inserts is not None, "X2: own rows are deleted only where there are some"
    kept = [row for row in range(batch.inserts.num_rows) if row not in gone]
    return replace(batch, inserts=batch.inserts.take(pa.array(kept, pa.int64())), deletes=deletes)


def is_empty(batch: WriteBatch) -> bool:
    """True if committing the batch changes nothing."""
    rows = 0 if batch.inserts is None else batch.inserts.num_rows
    return rows == 0 and not batch.staged and not any(batch.deletes.values())


@dataclass(slots=True)
class Transaction:
    """One open transaction. `tables`: what it read or wrote, as it was bound, by oid."""

    id: TransactionId
    owner: ConnectionId
    isolation: Isolation
    read_only: bool
    snapshot: Snapshot | None = None
    timestamps: set[Timestamp] = field(default_factory=set[Timestamp])
    reads: set[ShardId] = field(default_factory=set[ShardId])
    tables: dict[int, Table] = field(default_factory=dict[int, Table])
    writes: dict[ShardId, WriteBatch] = field(default_factory=dict[ShardId, WriteBatch])
    changes: list[CatalogChange] = field(default_factory=list[CatalogChange])
    committing: bool = False

    def write(self, table: Table, batch: WriteBatch) -> None:
        """Buffer rows (X2)."""
        shard = ShardId(table.shard)
        known = self.writes.get(shard)
        self.tables[table.oid] = table
        self.writes[shard] = batch if known is None else merge_batches(known, batch)

    def change_catalog(self, changes: tuple[CatalogChange, ...]) -> None:
        """Buffer DDL; the transaction's own snapshot shows it at once. Raises Stale."""
        assert self.snapshot is not None, "X1: DDL is bound against a snapshot"
        catalog = apply_changes(self.snapshot.catalog, changes, version=self._overlay_version())
        self.changes.extend(changes)
        self.snapshot = replace(self.snapshot, catalog=catalog)

    def _overlay_version(self) -> int:
        # Negative and never used twice: an uncommitted catalog must not be taken for a committed
        # one.
        return -((self.id << 20) + len(self.changes) + 1)

    def created(self) -> dict[ShardId, Table]:
        """Tables that only this transaction knows."""
        return {
            ShardId(change.table.shard): change.table
            for change in self.changes
            if isinstance(change, PutTable)
        }

    def final_writes(self) -> dict[ShardId, WriteBatch]:
        """What commits: no empty batches, nothing for tables the transaction dropped itself."""
        catalog = self.snapshot.catalog if self.snapshot is not None else Catalog()
        shards = {ShardId(table.shard) for table in catalog.tables.values()}
        final = {shard: final_batch(batch) for shard, batch in self.writes.items()}
        return {
            shard: batch
            for shard, batch in final.items()
            if not is_empty(batch) and (not self.changes or shard in shards)
        }

    def written_tables(self) -> list[int]:
        """The oids of the tables that the transaction writes rows to."""
        return [oid for oid, table in self.tables.items() if ShardId(table.shard) in self.writes]

    def is_write(self) -> bool:
        """True if committing must go through the txns shard."""
        return bool(self.writes or self.changes)
