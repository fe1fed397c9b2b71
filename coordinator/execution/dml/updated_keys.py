"""Record the old and new keys of replaced rows, for the ON UPDATE actions of foreign keys.

INVARIANTS
  M1  only columns that a foreign key with an action refers to are recorded, and only if a statement
      assigns one of them; up to a limit.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from coordinator.execution.context import Execution
from ingest.copy_text.kernels import Column
from sql.catalog.catalog import Table
from sql.catalog.foreign_keys import referencing_keys
from sql.errors import SqlError
from storage.batch import bytes_of

UPDATED_KEYS_BYTES_MAX: Final = 128 << 20


@dataclass(frozen=True, slots=True)
class UpdatedKeys:
    """Columns of replaced rows, row by row, as they were and as they are."""

    before: pa.Table
    after: pa.Table


class UpdatedKeysCollector:
    """Collects the old and new keys of the rows that a part of a statement replaces."""

    def __init__(self, execution: Execution, table: Table, assigned: Collection[int]) -> None:
        self._table = table
        self._ordinals: Sequence[int] = ()
        if not assigned:
            return
        keyed = {ordinal for key in table.keys for ordinal in key.columns}
        if not keyed & {*assigned}:
            return
        found = {
            table.ordinal_of(number)
            for _, foreign in referencing_keys(execution.catalog(), table.oid)
            if foreign.on_update != "no action"
            for number in foreign.references
        }
        self._ordinals = sorted(found)
        self._before: list[pa.RecordBatch] = []
        self._after: list[pa.RecordBatch] = []
        self._bytes = 0

    def keep(self, before: Mapping[int, Column], after: Sequence[Column]) -> None:
        """Record replaced rows; `before`: their columns by ordinal."""
        if not self._ordinals:
            return
        names = [self._table.columns[ordinal].field for ordinal in self._ordinals]
        arrays = [before[ordinal] for ordinal in self._ordinals]
        self._before.append(pa.RecordBatch.from_arrays(arrays, names=names))
        now = [after[ordinal] for ordinal in self._ordinals]
        self._after.append(pa.RecordBatch.from_arrays(now, names=names))
        self._bytes += bytes_of(self._before[-1]) + bytes_of(self._after[-1])
        if self._bytes > UPDATED_KEYS_BYTES_MAX:
            raise SqlError(
                "54000",
                "the keys that one statement changes are too large",
                hint="Change the rows in several statements.",
            )

    @property
    def moved(self) -> UpdatedKeys | None:
        """All recorded rows; None if no foreign key needs them."""
        if not self._ordinals or not self._before:
            return None
        return UpdatedKeys(pa.Table.from_batches(self._before), pa.Table.from_batches(self._after))
