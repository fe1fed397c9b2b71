"""Calendar arithmetic on day numbers: the proleptic Gregorian calendar without Python's limits.

INVARIANTS
  D1  day 0 is 1970-01-01; year 0 is 1 BC, year -1 is 2 BC, as astronomers count.
  D2  `days_from_civil` and `civil_from_days` are inverse on every valid date.
"""

from datetime import date
from typing import Final

MICROS_PER_SECOND: Final = 1_000_000
MICROS_PER_DAY: Final = 86_400 * MICROS_PER_SECOND
DAYS_PER_CYCLE: Final = 146_097
"""Days in 400 years, after which the calendar repeats."""

_EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
_MONTH_DAYS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def is_leap(year: int) -> bool:
    """Whether February has 29 days."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def days_in_month(year: int, month: int) -> int:
    """28 to 31; `month` is 1 to 12."""
    return 29 if month == 2 and is_leap(year) else _MONTH_DAYS[month - 1]


def days_from_civil(year: int, month: int, day: int) -> int:
    """The day number of a valid date (D1)."""
    cycles, within = divmod(year - 1, 400)
    return date(within + 1, month, day).toordinal() - _EPOCH_ORDINAL + cycles * DAYS_PER_CYCLE


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Year, month and day of a day number (D2)."""
    cycles, within = divmod(days + _EPOCH_ORDINAL - 1, DAYS_PER_CYCLE)
    civil = date.fromordinal(within + 1)
    return civil.year + 400 * cycles, civil.month, civil.day
