"""Collect the rows that a statement of a block deletes or replaces, with their keys, to lock them.

INVARIANTS
  W5  a block holds every row that its statement changes before it writes anything: if one is not
      free, the statement begins again, and nothing of it has to be undone.
  W6  a row is locked FOR NO KEY UPDATE if it comes again with all its keys, else FOR UPDATE, as in
      PostgreSQL.

Statements that are their whole transaction lock nothing: their commit is compared with the locks
of others.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final, cast

import pyarrow as pa

from coordinator.core.locking.modes import LockMode
from coordinator.core.messages.locks import RowsToLock
from coordinator.execution.context import Execution
from ingest.copy_text.arrow_types import normalize_column, to_values
from ingest.copy_text.kernels import Column
from sql.catalog.catalog import Table
from sql.catalog.temporary import is_temporary_schema
from storage.types import Source

NO_KEY: Final = LockMode.ROW_NO_KEY_UPDATE


class ChangedRows:
    """See the module; the rows of one part of a statement."""

    def __init__(self, execution: Execution, table: Table) -> None:
        self._table = table
        self._locks = not execution.alone and not is_temporary_schema(table.schema)
        self._keyed = sorted({ordinal for key in table.keys for ordinal in key.columns})
        primary = next((key for key in table.keys if key.primary), None)
        self._primary = None if primary is None else primary.columns
        self._found: dict[LockMode, _Rows] = {}
        self.keeps_keys = True
        """Whether every row comes again with its keys (W6)."""

    def keep(
        self,
        sources: Column | Sequence[Source],
        indexes: Column | Sequence[int],
        before: Mapping[int, Column],
        after: Sequence[Column] | None,
    ) -> None:
        """Rows by identity, their columns by ordinal, and as they come again; None: they do not."""
        keeps = after is not None and all(
            before[ordinal].equals(after[ordinal]) for ordinal in self._keyed
        )
        self.keeps_keys = self.keeps_keys and keeps
        if not self._locks or not len(sources):
            return
        mode = NO_KEY if keeps else LockMode.ROW_UPDATE
        found = self._found.setdefault(mode, _Rows())
        found.sources += [Source(str(name)) for name in _listed(sources)]
        found.indexes += [int(at) for at in _listed(indexes)]
        if self._primary is not None:
            columns = [_values(before[ordinal], self._table, ordinal) for ordinal in self._primary]
            found.keys += list(zip(*columns, strict=True))

    def to_lock(self) -> Sequence[tuple[RowsToLock, LockMode]]:
        """All rows, by the mode that they need."""
        return [
            (
                RowsToLock(
                    self._table,
                    rows.sources,
                    rows.indexes,
                    None if self._primary is None else rows.keys,
                ),
                mode,
            )
            for mode, rows in self._found.items()
        ]


class _Rows:
    def __init__(self) -> None:
        self.sources: list[Source] = []
        self.indexes: list[int] = []
        self.keys: list[tuple[Hashable, ...]] = []


def _listed(values: Any) -> Sequence[Any]:
    return values.to_pylist() if isinstance(values, pa.Array | pa.ChunkedArray) else values


def _values(column: Column, table: Table, ordinal: int) -> Sequence[Hashable]:
    type_ = table.columns[ordinal].type
    values = to_values(normalize_column(column, type_), type_)
    return cast("Sequence[Hashable]", values)
