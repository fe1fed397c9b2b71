"""Collect the rows that a statement writes: inline as long as they are few, then in staged Parquet.

    batches ─▶ checked (RowConstraints) ─▶ pending ──(> inline_bytes_max)──▶ spooler ─▶ staged files
                                        └─────────(finish)───────────▶ inserts

INVARIANTS
  R1  memory holds at most `inline_bytes_max` and a batch, however many rows there are; of a table
      with keys also the key columns, up to KEYED_BYTES_MAX.
  R2  rows keep their order, inline or staged.
  R3  a sink that is not finished is discarded; nothing that it staged counts without a commit.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from compute.arrow import table_schema
from coordinator.execution.context import Execution, Spooler
from coordinator.execution.dml.last_year import LastYear
from coordinator.execution.dml.row_constraints import RowConstraints
from ingest.copy_text.kernels import Column
from sql.binder.stored.unique_indexes import unique_index_columns
from sql.catalog.catalog import Table
from sql.errors import SqlError
from storage.batch import DataFile, WriteBatch, bytes_of
from storage.types import ShardId, Source

_schemas: dict[tuple[str, int], tuple[Table, pa.Schema]] = {}
_SCHEMAS_MAX: Final = 10_000


def stored_schema(table: Table) -> pa.Schema:
    """The schema of a table's shard, cached: every statement that writes needs it."""
    key = (table.shard, table.version)
    known = _schemas.get(key)
    if known is not None and known[0] is table:
        return known[1]
    schema = table_schema(table.stored_columns, table.numbers)
    if len(_schemas) >= _SCHEMAS_MAX:
        _schemas.clear()
    _schemas[key] = (table, schema)
    return schema


KEYED_BYTES_MAX: Final = 256 << 20
"""Key columns of the rows of one statement: they are compared with each other in memory."""


Mask: TypeAlias = "npt.NDArray[np.bool_]"


def _is_same(old: Column, new: Column) -> Mask:
    """Row by row, NULL like NULL."""
    absent = pc.and_(old.is_null(), new.is_null()).to_numpy(zero_copy_only=False)
    equal = pc.equal(old, new.cast(old.type)).fill_null(False).to_numpy(zero_copy_only=False)
    return np.asarray(np.logical_or(absent, equal))


class RowSink:
    """See the module."""

    def __init__(
        self,
        table: Table,
        spool: Callable[[ShardId, pa.Schema], Spooler],
        *,
        inline_bytes_max: int,
        rules: RowConstraints,
        indexed: Collection[int] = (),
    ) -> None:
        self._table = table
        self._rules = rules
        self._schema = stored_schema(table)
        self._last_year = LastYear(table)
        self._spool = spool
        self._inline_bytes_max = inline_bytes_max
        self._pending: list[pa.RecordBatch] = []
        self._bytes = 0
        self._spooler: Spooler | None = None
        self.rows = 0
        keyed = [key.columns for key in table.keys] + [key.columns for key in table.foreign_keys]
        self._key_ordinals = sorted({at for columns in (*keyed, indexed) for at in columns})
        self._keyed: list[pa.RecordBatch] = []
        self._unproven = [key for key in table.foreign_keys if not key.validated]
        self._same: dict[str, list[Mask]] = {key.name: [] for key in self._unproven}
        self._keyed_bytes = 0

    @classmethod
    def of(cls, execution: Execution, table: Table, *, checked: bool = True) -> "RowSink":
        """The sink of a statement that writes to this table. `checked` False: the statement
        validates the rows after they are written (ALTER TABLE).
        """
        services = execution.services
        return cls(
            table,
            services.spool,
            inline_bytes_max=services.limits.inline_bytes_max,
            rules=RowConstraints(execution, table, checked=checked),
            indexed=unique_index_columns(execution.catalog(), table),
        )

    @property
    def schema(self) -> pa.Schema:
        """What the table stores."""
        return self._schema

    async def fill(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Fill new rows with values of sequences, before anything else is done with them."""
        return await self._rules.fill(batch)

    async def add(self, arrays: Sequence[Column]) -> pa.RecordBatch:
        """Take rows, one array per column of the table. Returns them as the table's batch."""
        return await self.take(pa.RecordBatch.from_arrays(list(arrays), schema=self._schema))

    async def take(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Take rows that have the table's schema already. Returns them."""
        batch = await self._rules.complete(batch)
        await self._rules.check(batch)
        self._last_year.check(batch)
        self.rows += batch.num_rows
        if self._key_ordinals:
            self._keep_keys(batch)
        if self._spooler is not None:
            await self._spooler.write(batch)
            return batch
        self._pending.append(batch)
        self._bytes += bytes_of(batch)
        if self._bytes > self._inline_bytes_max:
            await self._overflow()
        return batch

    def _keep_keys(self, batch: pa.RecordBatch) -> None:
        for same in self._same.values():
            same.append(np.zeros(batch.num_rows, np.bool_))
        keyed = batch.select(self._key_ordinals)
        self._keyed.append(keyed)
        self._keyed_bytes += bytes_of(keyed)
        if self._keyed_bytes > KEYED_BYTES_MAX:
            raise SqlError(
                "54000",
                "the keys of one statement are too large",
                hint="Write the rows in several statements.",
            )

    @property
    def keyed(self) -> pa.Table | None:
        """The columns that are part of a key, of all rows; None if there are none."""
        return pa.Table.from_batches(self._keyed) if self._keyed else None

    def replaces(self, before: Mapping[int, Column], after: Sequence[Column]) -> None:
        """The rows taken last replace these. A NOT VALID foreign key is not checked for rows that
        leave its columns unchanged.
        """
        for key in self._unproven if after and len(after[0]) else ():
            pairs = [(before[at], after[at]) for at in key.columns]
            same = [_is_same(old, new) for old, new in pairs]
            self._same[key.name][-1] = np.logical_and.reduce(same)

    @property
    def same(self) -> Mapping[str, Mask]:
        """By name of NOT VALID foreign keys: which rows of `keyed` have the key that they had."""
        return {name: np.concatenate(masks) for name, masks in self._same.items() if masks}

    async def _overflow(self) -> None:
        self._spooler = self._spool(ShardId(self._table.shard), self._schema)
        pending, self._pending = self._pending, []
        for batch in pending:
            await self._spooler.write(batch)

    async def finish(self, deletes: dict[Source, BitMap64] | None = None) -> WriteBatch:
        """Everything that was added, with these deletes, ready to be written."""
        staged: tuple[DataFile, ...] = ()
        if self._spooler is not None:
            staged = tuple(await self._spooler.finish())
        inserts = None
        if self._pending:
            inserts = pa.Table.from_batches(self._pending, schema=self._schema)
        return WriteBatch(inserts, staged, deletes or {})

    async def discard(self) -> None:
        """Forget everything (R3)."""
        self._pending.clear()
        if self._spooler is not None:
            await self._spooler.discard()
