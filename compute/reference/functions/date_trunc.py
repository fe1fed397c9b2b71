"""date_trunc(): the start of the period that holds a time; intervals without small fields."""

from datetime import tzinfo
from typing import Final

from compute.reference.functions.datetime import (
    day_counting_zone,
    in_range,
    instant_in,
    iso_day,
    local_time_in,
    session_zone,
    unsupported_unit,
)
from compute.reference.registry import implements
from sql.types.datetime.calendar import MICROS_PER_DAY, civil_from_days, days_from_civil
from sql.types.datetime.extract_fields import canonical_field
from sql.types.sql_type import TIMESTAMP, Interval, SqlType

_SECOND: Final = 1_000_000
_TIME_UNITS: Final = {
    "microseconds": 1,
    "milliseconds": 1_000,
    "second": _SECOND,
    "minute": 60 * _SECOND,
    "hour": 3600 * _SECOND,
    "day": MICROS_PER_DAY,
}


@implements("date_trunc(text,timestamp)")
def date_trunc(text: str, local: int, type_: SqlType = TIMESTAMP) -> int:
    """The beginning of the period that holds the timestamp."""
    field = canonical_field(text, type_)
    unit = _TIME_UNITS.get(field)
    if unit is not None:
        return local // unit * unit
    days = local // MICROS_PER_DAY
    year, month, _ = civil_from_days(days)
    match field:
        case "week":
            first = days - iso_day(days) + 1
        case "month":
            first = days_from_civil(year, month, 1)
        case "quarter":
            first = days_from_civil(year, (month - 1) // 3 * 3 + 1, 1)
        case "year":
            first = days_from_civil(year, 1, 1)
        case "decade":
            first = days_from_civil(year // 10 * 10, 1, 1)
        case "century":
            first = days_from_civil((year - 1) // 100 * 100 + 1, 1, 1)
        case "millennium":
            first = days_from_civil((year - 1) // 1000 * 1000 + 1, 1, 1)
        case _:
            raise unsupported_unit(text.lower(), type_)
    return in_range(first * MICROS_PER_DAY)


def date_trunc_zoned(text: str, micros: int, zone: tzinfo) -> int:
    """The same in a time zone; units of a time of day need no detour over the zone's local time."""
    type_ = SqlType("timestamptz")
    field = canonical_field(text, type_)
    local = local_time_in(micros, zone)
    cut = date_trunc(text, local, type_)
    if field in _TIME_UNITS and field != "day":
        return micros - (local - cut)
    return instant_in(cut, zone)


@implements("date_trunc(text,interval)")
def date_trunc_interval(text: str, span: Interval) -> Interval:
    """An interval without its smaller fields."""
    type_ = SqlType("interval")
    field = canonical_field(text, type_)
    unit = _TIME_UNITS.get(field)
    if unit is not None:
        micros = abs(span.micros) // unit * unit if field != "day" else 0
        return Interval(span.months, span.days, -micros if span.micros < 0 else micros)
    months = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200}
    size = 12_000 if field == "millennium" else months.get(field)
    if size is None:
        raise unsupported_unit(text.lower(), type_)
    whole = abs(span.months) // size * size
    return Interval(-whole if span.months < 0 else whole, 0, 0)


implements("date_trunc(text,timestamptz)")(
    lambda field, x, session: date_trunc_zoned(field, x, session_zone(session))
)
implements("date_trunc(text,timestamptz,text)")(
    lambda field, x, *zone: date_trunc_zoned(field, x, day_counting_zone(*zone))
)
