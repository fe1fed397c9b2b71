"""Refuse dates and times after the year 9999 in rows that are to be stored.

Spark, Delta and delta-rs end there, so no other reader could open such a table. Queries compute
beyond it, as PostgreSQL does, and rows that were stored before stay readable.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from sql.catalog.catalog import Table
from sql.errors import SqlError
from sql.types.sql_type import SqlType, format_type

_LAST_DAY: Final = 2_932_896
"""9999-12-31, in days since 1970."""

_LAST_MICROSECOND: Final = 253_402_300_799_999_999

_LAST: Final[Mapping[str, int]] = {
    "date": _LAST_DAY,
    "timestamp": _LAST_MICROSECOND,
    "timestamptz": _LAST_MICROSECOND,
}


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
                raise _too_late(self._types[at])

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


def _too_late(type_: SqlType) -> SqlError:
    name = format_type(SqlType(type_.name.removeprefix("_")))
    detail = "Tables store dates and times up to the year 9999."
    return SqlError("22008", f"{name} out of range", detail=detail)
