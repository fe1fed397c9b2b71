"""Encode time with time zone as one integer that sorts as PostgreSQL's values do.

    (microseconds since midnight in UTC) * 1,000,000 + 57,600 + (seconds west of UTC)

INVARIANTS
  P1  integers compare as timetz_cmp compares their values: by the time of day in UTC, then by the
      zone, the more western the greater. So engines, keys, statistics and predicates need to know
      nothing of zones.
  P2  a zone is less than 16 hours away from UTC.
"""

from typing import Final

from sql.errors import not_supported
from sql.types.datetime.calendar import MICROS_PER_SECOND

ZONE_SECONDS_END: Final = 16 * 3_600
_ZONES: Final = 1_000_000


def encode_timetz(clock: int, offset: int) -> int:
    """The value of a local time, microseconds since midnight, `offset` seconds east (P1)."""
    if abs(offset) >= ZONE_SECONDS_END:
        raise not_supported("a time in a zone that is 16 hours or more away from UTC")
    return (clock - offset * MICROS_PER_SECOND) * _ZONES + ZONE_SECONDS_END - offset


def timetz_offset(value: int) -> int:
    """The offset of a value, seconds east."""
    return ZONE_SECONDS_END - value % _ZONES


def timetz_in_utc(value: int) -> int:
    """Microseconds since midnight in UTC; may lie below 0 or beyond a day."""
    return value // _ZONES


def timetz_local_time(value: int) -> int:
    """Microseconds since midnight in the value's own zone."""
    return timetz_in_utc(value) + timetz_offset(value) * MICROS_PER_SECOND


def add_to_timetz(value: int, micros: int) -> int:
    """The value moved by `micros` in the same zone; it may lie beyond its day."""
    return value + micros * _ZONES
