"""Functions of time and timetz, and casts to a precision or to the fields of an interval.

A time is a number of microseconds since midnight, a timetz is packed
(`sql/types/datetime/timetz.py`). The casts apply the typmods of all types of date and time.
"""

import math
from decimal import Decimal
from typing import Final

from compute.reference.functions.datetime import float_seconds, in_range, to_local
from compute.reference.functions.intervals import overlaps, zone_span
from compute.reference.registry import Function, implements, makes
from sql.errors import SqlError, not_supported
from sql.plan.nodes import Call
from sql.types.datetime.calendar import MICROS_PER_DAY, MICROS_PER_SECOND
from sql.types.datetime.extract_fields import canonical_field
from sql.types.datetime.timetz import encode_timetz, timetz_in_utc, timetz_local_time, timetz_offset
from sql.types.datetime.timezones import find_zone, fixed_offset
from sql.types.datetime.typmods import apply_time_typmod
from sql.types.sql_type import (
    SECONDS_PRECISION_TYPES,
    TIMETZ,
    Interval,
    SqlType,
    Value,
    format_type,
)
from storage.clock import SystemClock

_CLOCK: Final = SystemClock()
_TIME: Final = SqlType("time")
_MINUTE: Final = 60 * MICROS_PER_SECOND
_HOUR: Final = 60 * _MINUTE


@makes(*[f"{name}::{name}" for name in SECONDS_PRECISION_TYPES])
def _fitted(call: Call) -> Function:
    """With the digits and the fields of the call's modifier."""
    return lambda value: apply_time_typmod(value, call.type)


@implements("time + interval")
def _plus(time: int, span: Interval) -> int:
    return _on_clock(time + span.micros)


@implements("time - interval")
def _minus(time: int, span: Interval) -> int:
    return _on_clock(time - span.micros)


def _on_clock(micros: int) -> int:
    """The time of day. A sum beyond 64 bits wraps around before, as in time_pl_interval()."""
    half = 1 << 63
    return ((micros + half) % (2 * half) - half) % MICROS_PER_DAY


@implements("meridian_clock(timestamptz)")
def _called_at(earliest: int) -> int:
    return max(earliest, _CLOCK.now())


@implements("date + time")
def _on_day(days: int, time: int) -> int:
    return in_range(days * MICROS_PER_DAY + time)


@implements("make_time(int4,int4,float8)")
def _make_time(hour: int, minute: int, second: float) -> int:
    if not math.isfinite(second):
        raise _no_time(hour, minute, second)
    exact = Decimal(repr(second))
    value = (hour * 60 + minute) * _MINUTE + int((exact * MICROS_PER_SECOND).to_integral_value())
    if not (0 <= minute <= 59 and 0 <= exact <= 60 and hour >= 0 and value <= MICROS_PER_DAY):
        raise _no_time(hour, minute, second)
    return value


def _no_time(hour: int, minute: int, second: float) -> SqlError:
    message = f"time field value out of range: {hour}:{minute:02d}:{_seconds(second)}"
    return SqlError("22008", message)


def _seconds(second: float) -> str:
    """As C's %02g."""
    return f"{second:g}".rjust(2, "0")


@makes("extract(text,time)", "date_part(text,time)")
def _extract(call: Call) -> Function:
    numeric = call.type.name == "numeric"

    def run(text: str, time: int) -> Value:
        return _field(text, time) if numeric else _float_field(text, time)

    return run


def _field(text: str, time: int) -> Decimal:
    field = canonical_field(text, _TIME)
    found = _clock_field(field, time)
    if found is None:
        raise _not_of(text, _TIME)
    return found


def _float_field(text: str, time: int) -> float:
    found = _float_seconds(canonical_field(text, _TIME), time)
    return float(_field(text, time)) if found is None else found


def _float_seconds(field: str, time: int) -> float | None:
    return float_seconds(field, *divmod(time % _MINUTE, MICROS_PER_SECOND))


def _not_of(text: str, type_: SqlType) -> SqlError:
    return SqlError("0A000", f'unit "{text.lower()}" not supported for type {format_type(type_)}')


def _clock_field(field: str, time: int) -> Decimal | None:
    match field:
        case "hour":
            return Decimal(time // _HOUR)
        case "minute":
            return Decimal(time // _MINUTE % 60)
        case "second":
            return Decimal(time % _MINUTE).scaleb(-6)
        case "milliseconds":
            return Decimal(time % _MINUTE).scaleb(-3)
        case "microseconds":
            return Decimal(time % _MINUTE)
        case "epoch":
            return Decimal(time).scaleb(-6)
        case _:
            return None


@makes("extract(text,timetz)", "date_part(text,timetz)")
def _extract_zoned(call: Call) -> Function:
    return _zoned_field if call.type.name == "numeric" else _float_zoned_field


def _float_zoned_field(text: str, value: int) -> float:
    field = canonical_field(text, TIMETZ)
    if field == "epoch":
        return timetz_local_time(value) / 1_000_000.0 - timetz_offset(value)
    found = _float_seconds(field, timetz_local_time(value))
    return float(_zoned_field(text, value)) if found is None else found


def _zoned_field(text: str, value: int) -> Decimal:
    field, offset = canonical_field(text, TIMETZ), timetz_offset(value)
    sign = -1 if offset < 0 else 1
    match field:
        case "epoch":
            return Decimal(timetz_in_utc(value)).scaleb(-6)
        case "timezone":
            return Decimal(offset)
        case "timezone_hour":
            return Decimal(sign * (abs(offset) // 3600))
        case "timezone_minute":
            return Decimal(sign * (abs(offset) // 60 % 60))
        case _:
            found = _clock_field(field, timetz_local_time(value))
    if found is None:
        raise _not_of(text, TIMETZ)
    return found


# --- with a time zone ----------------------------------------------------------------------------


@implements("timetz + interval")
def _moved(value: int, span: Interval, sign: int = 1) -> int:
    """Later by the interval's time, on the same clock."""
    clock = _on_clock(timetz_local_time(value) + sign * span.micros)
    return encode_timetz(clock, timetz_offset(value))


@implements("timezone(interval,timetz)")
def _shown_at(span: Interval, value: int) -> int:
    """The same time of day on a clock that is so far east."""
    offset = zone_span(span)
    return encode_timetz(
        (timetz_in_utc(value) + offset) % MICROS_PER_DAY, offset // MICROS_PER_SECOND
    )


@implements("date + timetz")
def _zoned_instant(days: int, value: int) -> int:
    return in_range(days * MICROS_PER_DAY + timetz_in_utc(value))


@implements("time::timetz")
def _of_clock(time: int, zone: str) -> int:
    """In a zone with daylight saving it would be today's offset."""
    found = find_zone(zone)
    offset = None if found is None else fixed_offset(found)
    if offset is None:
        raise not_supported(f'a time as a time with time zone in "{zone}"')
    return encode_timetz(time, offset)


@implements("timestamptz::timetz")
def _of_instant(micros: int, zone: str) -> int:
    local = to_local(micros, zone)
    return encode_timetz(local % MICROS_PER_DAY, (local - micros) // MICROS_PER_SECOND)


def _end(start: int | None, end: int | Interval | None) -> int | None:
    if not isinstance(end, Interval):
        return end
    return None if start is None else _plus(start, end)


@implements(
    "overlaps(time,time,time,time)",
    "overlaps(timetz,timetz,timetz,timetz)",
    "overlaps(time,interval,time,interval)",
    "overlaps(time,time,time,interval)",
    "overlaps(time,interval,time,time)",
)
def _overlapping(
    start: int | None, end: int | Interval | None, other: int | None, last: int | Interval | None
) -> bool | None:
    return overlaps(start, _end(start, end), other, _end(other, last))


implements("interval + time")(lambda span, time: _plus(time, span))
implements("time - time")(lambda a, b: Interval(micros=a - b))
implements("time + date")(lambda time, days: _on_day(days, time))
implements("timetz - interval")(lambda value, span: _moved(value, span, -1))
implements("interval + timetz")(lambda span, value: _moved(value, span))
implements("timetz + date")(lambda value, days: _zoned_instant(days, value))
implements("timetz::time")(timetz_local_time)
implements("time::interval")(lambda time: Interval(micros=time))
implements("interval::time")(lambda span: span.micros % MICROS_PER_DAY)
implements("timestamp::time")(lambda micros: micros % MICROS_PER_DAY)
implements("timestamptz::time")(lambda micros, zone: to_local(micros, zone) % MICROS_PER_DAY)
