"""Frames of RANGE with an offset: PostgreSQL's in_range functions.

INVARIANTS
  R1  an offset added to a number or a time of day does not overflow; a timestamp outside of its
      range is 22008.
  R2  months and days are those of UTC; for another zone the binder counts in seconds
      (`sql/binder/expressions/range_frames.py`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from compute.reference.decimals import EXACT
from compute.reference.functions.datetime import (
    date_to_timestamp,
    interval_add,
    interval_length,
    interval_negate,
    interval_subtract,
    plus_interval,
)
from sql.types.datetime.timetz import add_to_timetz
from sql.types.sql_type import Interval, SqlType, Value


@dataclass(frozen=True, slots=True)
class KeyDistance:
    """How keys of one type compare with a key at a distance.

    `place`: the comparable form of a value. `moved`: the comparable form an offset later, or with
    `subtract` earlier. `is_negative`: whether an offset is below zero, or NaN (22013).
    """

    place: Callable[[Any], Any]
    moved: Callable[[Any, Any, bool], Any]
    is_negative: Callable[[Any], bool]

    def within(
        self, value: Value, base: Value, offset: Value, *, subtract: bool, less: bool
    ) -> bool:
        """Whether value <= (or >=) base - (or +) offset."""
        if isinstance(value, float):
            assert isinstance(base, float), "keys have one type"
            assert isinstance(offset, float), "an offset over floats is a float"
            return _float_within(value, base, offset, subtract=subtract, less=less)
        place, bound = self.place(value), self.moved(base, offset, subtract)
        reached: bool = place <= bound if less else place >= bound
        return reached


def key_distance_of(type_: SqlType) -> KeyDistance:
    """The distances of a type of keys that RANGE supports."""
    return _OF_TIMES.get(type_.name, _OF_NUMBERS)


def _float_within(value: float, base: float, offset: float, *, subtract: bool, less: bool) -> bool:
    if math.isnan(value):
        return math.isnan(base) or not less
    if math.isnan(base):
        return less
    if math.isinf(offset) and math.isinf(base) and (base > 0) is subtract:
        return True
    bound = base - offset if subtract else base + offset
    return value <= bound if less else value >= bound


def _number_moved(base: int | Decimal, offset: int | Decimal, subtract: bool) -> Decimal:
    a, b = Decimal(base), Decimal(offset)
    return EXACT.subtract(a, b) if subtract else EXACT.add(a, b)


def _is_no_distance(offset: float | Decimal) -> bool:
    return not offset >= 0


def _same(value: Any) -> Any:
    return value


def _timestamp_moved(base: int, span: Interval, subtract: bool) -> int:
    return plus_interval(base, interval_negate(span) if subtract else span)


def _date_moved(base: int, span: Interval, subtract: bool) -> int:
    return _timestamp_moved(date_to_timestamp(base), span, subtract)


def _time_moved(base: int, span: Interval, subtract: bool) -> int:
    return base - span.micros if subtract else base + span.micros


def _timetz_moved(base: int, span: Interval, subtract: bool) -> int:
    return add_to_timetz(base, -span.micros if subtract else span.micros)


def _interval_moved(base: Interval, span: Interval, subtract: bool) -> int:
    return interval_length(interval_subtract(base, span) if subtract else interval_add(base, span))


def _is_back(span: Interval) -> bool:
    return interval_length(span) < 0


def _is_back_in_time(span: Interval) -> bool:
    """Days and months are not added to a time of day."""
    return span.micros < 0


_OF_NUMBERS: Final = KeyDistance(Decimal, _number_moved, _is_no_distance)
_OF_TIMESTAMPS: Final = KeyDistance(_same, _timestamp_moved, _is_back)
_OF_TIMES: Final = {
    "date": KeyDistance(date_to_timestamp, _date_moved, _is_back),
    "timestamp": _OF_TIMESTAMPS,
    "timestamptz": _OF_TIMESTAMPS,
    "time": KeyDistance(_same, _time_moved, _is_back_in_time),
    "timetz": KeyDistance(_same, _timetz_moved, _is_back_in_time),
    "interval": KeyDistance(interval_length, _interval_moved, _is_back),
}
