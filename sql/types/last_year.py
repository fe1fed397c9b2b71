"""The last moments that a table may store: Spark, Delta and delta-rs end with the year 9999."""

from collections.abc import Mapping
from typing import Final

from sql.errors import SqlError
from sql.types.sql_type import SqlType, Value, format_type

_LAST_DAY: Final = 2_932_896
"""9999-12-31, in days since 1970."""

_LAST_MICROSECOND: Final = 253_402_300_799_999_999

LAST_STORED: Final[Mapping[str, int]] = {
    "date": _LAST_DAY,
    "timestamp": _LAST_MICROSECOND,
    "timestamptz": _LAST_MICROSECOND,
}
"""By the name of the type, or of an array's elements."""


def last_stored(type_: SqlType) -> int | None:
    """The greatest value that a column of the type may store; None: there is none."""
    return LAST_STORED.get(type_.name.removeprefix("_"))


def is_stored(value: Value, last: int) -> bool:
    """Whether the value, or every element of it, may be stored."""
    if isinstance(value, tuple):
        return all(is_stored(element, last) for element in value)
    return not isinstance(value, int) or value <= last


def too_late(type_: SqlType) -> SqlError:
    """A value that may not be stored."""
    name = format_type(SqlType(type_.name.removeprefix("_")))
    detail = "Tables store dates and times up to the year 9999."
    return SqlError("22008", f"{name} out of range", detail=detail)
