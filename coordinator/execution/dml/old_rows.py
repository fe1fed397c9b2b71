"""Collect the previous values of rows that a statement deletes or replaces.

INVARIANTS
  W4  the values go with the write, so that other transactions can be validated row by row. They are
      bounded, and never made durable.
"""

from collections.abc import Mapping

import pyarrow as pa

from coordinator.execution.context import ExecutionLimits
from ingest.copy_text.kernels import Column
from storage.batch import Deletes
from storage.known_rows import KnownRows, OldRows


class OldRowsCollector:
    """Collects the old values of the first rows that a statement deletes (W4)."""

    def __init__(self, limits: ExecutionLimits) -> None:
        self._limits = limits
        self._columns: dict[int, list[Column]] = {}
        self._rows = 0
        self._bytes = 0
        self._full = False

    def keep(self, columns: Mapping[int, Column], rows: int) -> None:
        """Record rows that are about to be deleted: the known columns, by ordinal; always the same
        ones.
        """
        if self._full or not rows:
            return
        self._rows += rows
        self._bytes += sum(column.nbytes for column in columns.values())
        if self._rows > self._limits.old_rows_max or self._bytes > self._limits.old_bytes_max:
            # Half of the rows would not spare anybody a conflict.
            self._full = True
            self._columns.clear()
            return
        for ordinal, column in columns.items():
            self._columns.setdefault(ordinal, []).append(column)

    def rows(self, identities: Deletes) -> OldRows | None:
        """The recorded values and the rows' identities; None if there are none, or too many."""
        if self._full or not self._rows:
            return None
        columns = {at: pa.chunked_array(parts) for at, parts in self._columns.items()}
        known = {source: rows.copy() for source, rows in identities.items()}
        return OldRows(known, KnownRows(self._rows, columns))
