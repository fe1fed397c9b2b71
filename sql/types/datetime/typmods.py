"""Type modifiers of times and intervals, such as `timestamp(3)` and `interval day to minute`.

    typmod of time, timetz, timestamp, timestamptz    the digits of a second, 0 to 6
    typmod of interval                                 fields << 16 | digits, 0xFFFF for all of them

INVARIANTS
  D1  the fields give the unit of a bare number (interval_in, DecodeInterval). Units smaller than
      the last field are cut off (AdjustIntervalForTypmod); larger ones stay.
  D2  digits are rounded half away from zero; the zero of timestamps is the year 2000
      (AdjustTimestampForTypmod).
"""

from collections.abc import Sequence
from typing import Final

from sql.errors import SqlError
from sql.types.datetime.calendar import MICROS_PER_SECOND, days_from_civil
from sql.types.datetime.timetz import encode_timetz, timetz_local_time, timetz_offset
from sql.types.sql_type import (
    INTERVAL_FIELDS,
    NO_PRECISION,
    SECONDS_DIGITS_MAX,
    Interval,
    SqlType,
    Value,
)

POSTGRESQL_EPOCH_MICROS: Final = days_from_civil(2000, 1, 1) * 86_400 * MICROS_PER_SECOND
"""From where timestamps are rounded (D2)."""

_ALL: Final = 0x7FFF
_FIELDS_MAX: Final = 2
_SMALLEST: Final = {
    fields: (words.rpartition(" ")[2] if words else "second")
    for fields, words in INTERVAL_FIELDS.items()
}
UNIT_MICROS: Final = {"hour": 3_600 * MICROS_PER_SECOND, "minute": 60 * MICROS_PER_SECOND}
_MONTHS_OF: Final = {"year": 12, "month": 1}
_NAMES: Final = {"time": "TIME", "timestamp": "TIMESTAMP"}


def time_typmod(name: str, given: Sequence[int], place: int | None) -> int:
    """The modifier of `timestamp(3)` and the like; a precision above 6 means 6."""
    if len(given) != 1:
        raise SqlError("22023", "invalid type modifier", place)
    if given[0] < 0:
        zone = " WITH TIME ZONE" if name.endswith("tz") else ""
        shown = f"{_NAMES[name.removesuffix('tz')]}({given[0]}){zone}"
        raise SqlError("22023", f"{shown} precision must not be negative", place)
    return min(given[0], SECONDS_DIGITS_MAX)


def interval_typmod(given: Sequence[int], place: int | None) -> int:
    """The modifier of an interval: its fields, and the digits of its seconds."""
    fields = given[0] if given else 0
    if not 1 <= len(given) <= _FIELDS_MAX or fields not in INTERVAL_FIELDS:
        raise SqlError("22023", "invalid INTERVAL type modifier", place)
    if len(given) == 1:
        return -1 if fields == _ALL else fields << 16 | NO_PRECISION
    if given[1] < 0:
        message = f"INTERVAL({given[1]}) precision must not be negative"
        raise SqlError("22023", message, place)
    return fields << 16 | min(given[1], SECONDS_DIGITS_MAX)


def default_interval_unit(typmod: int) -> str:
    """The unit of a number without one (D1); empty if the modifier gives none."""
    fields = typmod >> 16 if typmod >= 0 else _ALL
    return "" if fields == _ALL else _SMALLEST[fields]


def smallest_field(typmod: int) -> str:
    """The last of the fields that an interval keeps; seconds where all are."""
    return _SMALLEST[typmod >> 16]


def is_minute_to_second(typmod: int) -> bool:
    """Whether `10:20` is minutes and seconds: in an interval of just these."""
    return typmod >= 0 and INTERVAL_FIELDS[typmod >> 16] == "minute to second"


def seconds_precision(type_: SqlType) -> int:
    """How many digits of a second values of this type have."""
    if type_.typmod < 0:
        return SECONDS_DIGITS_MAX
    return min(type_.typmod & 0xFFFF, SECONDS_DIGITS_MAX)


def apply_time_typmod(value: Value, type_: SqlType) -> Value:
    """A time, timestamp or interval rounded and cut to its modifier (D1, D2)."""
    if type_.typmod < 0:
        return value
    if isinstance(value, Interval):
        return _fitted_interval(value, type_.typmod)
    if not isinstance(value, int) or type_.typmod >= SECONDS_DIGITS_MAX:
        return value
    if type_.name == "timetz":
        return encode_timetz(_rounded(timetz_local_time(value), type_.typmod), timetz_offset(value))
    zero = POSTGRESQL_EPOCH_MICROS if type_.name.startswith("timestamp") else 0
    return zero + _rounded(value - zero, type_.typmod)


def _fitted_interval(value: Interval, typmod: int) -> Interval:
    months, days, micros = value.months, value.days, value.micros
    unit = smallest_field(typmod)
    if unit in _MONTHS_OF:
        return Interval(_towards_zero(months, _MONTHS_OF[unit]), 0, 0)
    if unit == "day":
        return Interval(months, days, 0)
    if unit in UNIT_MICROS:
        return Interval(months, days, _towards_zero(micros, UNIT_MICROS[unit]))
    digits = typmod & 0xFFFF
    if digits >= SECONDS_DIGITS_MAX:
        return value
    rounded = _rounded(micros, digits)
    if not -(1 << 63) <= rounded < 1 << 63:
        raise SqlError("22008", "interval out of range")
    return Interval(months, days, rounded)


def _rounded(micros: int, digits: int) -> int:
    scale = int(10 ** (SECONDS_DIGITS_MAX - digits))
    half = scale // 2 if micros >= 0 else -(scale // 2)
    return _towards_zero(micros + half, scale)


def _towards_zero(value: int, scale: int) -> int:
    whole = abs(value) // scale * scale
    return whole if value >= 0 else -whole
