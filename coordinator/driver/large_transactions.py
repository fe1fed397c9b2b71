"""Prepare an upstream transaction that is too large for memory, part by part.

    part ─▶ folded over the view and what was written before ─▶ own rows and deletes of each table
                                                                     └─ many: staged files
    end  ─▶ the batches of one commit

Each part is to the next one what a committed batch is to the batch behind it, but nobody sees it.
So updates, deletes and changes of keys of rows that came with the same transaction need nothing of
their own: these rows are deleted like others (B2 of `storage/batch.py`).

INVARIANTS
  P1  the views are those of the first part: the source alone writes to the tables (W1 of
      `fed_rows.py`), and the core holds the timestamp until the commit.
  P2  memory has some own rows of all tables together, whatever the size of the transaction.
  P3  nothing is visible before the commit names it. What is staged for a commit that will never
      come is removed; what a crash leaves is an orphan for vacuum.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa

from coordinator.core.own_writes import OwnWrites, final_batch, is_empty
from coordinator.driver.fed_rows import FED_BYTES_MAX, FedRows, RowSpooler
from ingest.reader import BadRecord, ReaderFailure, SourceBatch, UpstreamChange
from sql.catalog.catalog import Table
from storage.batch import ShardView, WriteBatch
from storage.grown_view import ViewGrower
from storage.types import ShardId, Timestamp
from storage.unencoded_rows import table_of

log = logging.getLogger("meridian.sources")

OWN_BYTES_MAX: Final = 32 << 20
"""Rows of all transactions at hand that are in memory. Larger: fewer, larger files."""


class OwnRowsBudget:
    """Shares memory among the transactions at hand (P2)."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._count = 0

    @property
    def share(self) -> int:
        """Bytes of one of them."""
        return self._limit // max(self._count, 1)

    def enter(self) -> None:
        """One more is at hand."""
        self._count += 1

    def leave(self) -> None:
        """It is over."""
        self._count -= 1


class LargeTransaction:
    """See the module. `tables`: by their names upstream; `errors_to`: the table of errors; `views`:
    of all tables, from when it began.
    """

    def __init__(
        self,
        rows: FedRows,
        tables: Mapping[str, Table],
        errors_to: Table | None,
        views: Mapping[ShardId, ShardView],
        budget: OwnRowsBudget,
    ) -> None:
        self._rows = rows
        self._tables = tables
        self._errors_to = errors_to
        self._views = views
        self._budget = budget
        self._own: dict[ShardId, OwnWrites] = {}
        self._spoolers: list[RowSpooler] = []
        self._is_over = False
        self.errors = 0
        """Bad records so far."""
        budget.enter()

    async def take(self, batch: SourceBatch, began: Timestamp) -> None:
        """One more part. Raises ReaderFailure, StorageError and OSError."""
        errors = list(batch.errors)
        for reference, changes in batch.changes.items():
            errors += await self._take_changes(self._tables[reference], changes, batch)
        if errors and self._errors_to is not None:
            names = {reference: table.name for reference, table in self._tables.items()}
            told = self._rows.errors_of(self._errors_to, errors, names, began)
            self._own_of(self._errors_to).add(told)
        self.errors += len(errors)
        await self._make_room()

    async def finish(self) -> dict[ShardId, WriteBatch]:
        """All of it; the files are durable. Nothing is removed any more."""
        for table in self._written():
            if self._own_of(table).inline_bytes > FED_BYTES_MAX:
                await self._stage(table)
        found = {shard: final_batch(own.merged()) for shard, own in self._own.items()}
        self._end()
        return {shard: batch for shard, batch in found.items() if not is_empty(batch)}

    async def discard(self) -> None:
        """No commit will come (P3)."""
        if self._is_over:
            return
        self._end()
        for spooler in self._spoolers:
            try:
                await spooler.discard()
            except Exception as error:
                # What is left over is an orphan.
                log.warning("files of a large transaction are not removed: %s", error)

    def _end(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._budget.leave()

    async def _take_changes(
        self, table: Table, changes: Sequence[UpstreamChange], batch: SourceBatch
    ) -> Sequence[BadRecord]:
        view = None if all(change.is_insert for change in changes) else self._view(table)
        done, rows = await self._rows.made_of(table, changes, view, {**batch.upto})
        own = self._own_of(table)
        if done.batch.deletes:
            own.add(WriteBatch(deletes=done.batch.deletes))
        if rows.num_rows:
            own.add(WriteBatch(pa.Table.from_batches([rows])))
        return done.errors

    def _view(self, table: Table) -> ShardView:
        """The table as it is behind the parts before (P1)."""
        grower = ViewGrower(self._views[ShardId(table.shard)])
        grower.add_own(self._own_of(table).merged())
        return grower.view()

    def _own_of(self, table: Table) -> OwnWrites:
        return self._own.setdefault(ShardId(table.shard), OwnWrites())

    def _written(self) -> Sequence[Table]:
        every = [*self._tables.values(), *([self._errors_to] if self._errors_to else [])]
        return [table for table in every if ShardId(table.shard) in self._own]

    async def _make_room(self) -> None:
        """P2: the largest ones are staged first, which makes the fewest files."""
        sizes = [(self._own_of(table).inline_bytes, table) for table in self._written()]
        total = sum(size for size, _ in sizes)
        for size, table in sorted(sizes, key=lambda one: -one[0]):
            if total <= self._budget.share:
                break
            await self._stage(table)
            total -= size

    async def _stage(self, table: Table) -> None:
        """The own rows of a table go into files, dead ones too (O1 of `own_writes.py`)."""
        if self._is_over:
            raise ReaderFailure("57014", "another attempt has begun")
        own, spooler = self._own_of(table), self._rows.spooler(table)
        rows = own.rows
        if spooler is None or rows is None:
            return
        self._spoolers.append(spooler)
        for part in table_of(rows).to_batches():
            await spooler.write(part)
        own.spilled(await spooler.finish())
