"""Refuse dates and times after the year 9999 in rows that are to be stored.

Spark, Delta and delta-rs end there, so no other reader could open such a table. Queries compute
beyond it, as PostgreSQL does, and rows that were stored before stay readable.
"""

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from sql.catalog.catalog import Table
from sql.types.last_year import LAST_STORED, too_late

_LAST: Final = LAST_STORED


class LastYear:
    """The columns of a table that may hold too late a time."""

    def __init__(self, table: Table) -> None:
        self._last = {
            at: _LAST[name]
            for at, column in enumerate(table.columns)
            if (name := column.type.name.removeprefix("_")) in _LAST
        }
        self._types = [column.type for column in table.columns]

    def check(self, batch: pa.RecordBatch) -> None:
        """Raises 22008 for a value after the last year."""
        for at, last in self._last.items():
            values = batch.column(at)
            if pa.types.is_list(values.type):
                values = pc.list_flatten(values)
            whole = pa.int32() if pa.types.is_date32(values.type) else pa.int64()
            found: Any = pc.max(values.cast(whole))
            greatest: int | None = found.as_py()
            if greatest is not None and greatest > last:
                raise too_late(self._types[at])

    def holds(self, rows: Sequence[Sequence[object]]) -> bool:
        """Whether rows of values are all early enough; elements of arrays are not looked at, so
        those count as too late.
        """
        for at, last in self._last.items():
            for row in rows:
                value = row[at]
                if value is not None and not (isinstance(value, int) and value <= last):
                    return False
        return True
