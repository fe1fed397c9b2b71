"""Dates, timestamps and intervals: arithmetic, time zones, extract(), make_date() and others.

INVARIANTS
  G1  dates are days and timestamps microseconds since 1970 (sql/types/sql_type.py); a result
      outside of PostgreSQL's range, or beyond what is stored, is 22008.
  G2  months are added first, then days, then time; with a time zone, the first two in local time.
"""

import math
import operator
from datetime import tzinfo
from decimal import Decimal
from typing import Final

from compute.reference.decimals import EXACT
from compute.reference.registry import Function, implements, makes
from sql.errors import SqlError, not_supported
from sql.plan.nodes import Call
from sql.types.datetime.calendar import (
    MICROS_PER_DAY,
    civil_from_days,
    days_from_civil,
    days_in_month,
)
from sql.types.datetime.date_input import TIMESTAMP_MICROS_END
from sql.types.datetime.extract_fields import canonical_field
from sql.types.datetime.timezones import (
    abbreviation_at_utc,
    find_calendar_zone,
    find_named_zone,
    find_zone,
    offset_at_local,
    offset_at_utc,
)
from sql.types.sql_type import TIMESTAMP, Interval, SqlType, Value

_SECOND: Final = 1_000_000
_DATE_MIN: Final = -2_440_588
_DATE_END: Final = 2_145_042_541
_TIME_MIN: Final = -210_866_803_200 * _SECOND
_INT4_MAX: Final = 2**31 - 1


def in_range(micros: int) -> int:
    """The timestamp; 22008 if it is out of range (G1)."""
    if not _TIME_MIN <= micros < TIMESTAMP_MICROS_END:
        raise SqlError("22008", "timestamp out of range")
    return micros


# --- zones -------------------------------------------------------------------------------------


def session_zone(name: str) -> tzinfo:
    """The session's time zone, never an abbreviation (Z4 of `datetime/timezones.py`)."""
    return _known(find_zone(name), name)


def named_zone(name: str, session: str) -> tzinfo:
    """The time zone that a statement names, in a session with the given zone."""
    return _known(find_named_zone(name, session), name)


def day_counting_zone(name: str, session: str) -> tzinfo:
    """The same for functions that count days."""
    return _known(find_calendar_zone(name, session), name)


def _known(zone: tzinfo | None, name: str) -> tzinfo:
    if zone is None:
        raise SqlError("22023", f'time zone "{name}" not recognized')
    return zone


def zone_name(micros: int, name: str) -> str:
    """The abbreviation in force in the session's zone at an instant."""
    return abbreviation_at_utc(session_zone(name), micros // _SECOND)


def local_time_in(micros: int, zone: tzinfo) -> int:
    """The local time in the zone at an instant."""
    return in_range(micros + offset_at_utc(zone, micros // _SECOND) * _SECOND)


def instant_in(local: int, zone: tzinfo) -> int:
    """The instant of a local time in the zone."""
    return in_range(local - offset_at_local(zone, local // _SECOND) * _SECOND)


@implements("timezone(timestamptz)", "timestamptz::timestamp")
def to_local(micros: int, session: str) -> int:
    """The local time in the session's zone at an instant."""
    return local_time_in(micros, session_zone(session))


@implements("timezone(timestamp)", "timestamp::timestamptz")
def to_instant(local: int, session: str) -> int:
    """The instant of a local time in the session's zone."""
    return instant_in(local, session_zone(session))


@implements("date::timestamp")
def date_to_timestamp(days: int) -> int:
    """Midnight of the day."""
    return in_range(days * MICROS_PER_DAY)


@implements("timestamp::date")
def timestamp_to_date(micros: int) -> int:
    """The day of the timestamp."""
    return micros // MICROS_PER_DAY


def as_instant(value: int, type_: SqlType, zone: str) -> int:
    """A date, timestamp or timestamptz as an instant."""
    match type_.name:
        case "date":
            return to_instant(date_to_timestamp(value), zone)
        case "timestamp":
            return to_instant(value, zone)
        case _:
            return value


implements("date::timestamptz")(lambda x, zone: to_instant(date_to_timestamp(x), zone))
implements("timestamptz::date")(lambda x, zone: timestamp_to_date(to_local(x, zone)))
implements("timezone(text,timestamp)")(
    lambda zone, x, session: instant_in(x, named_zone(zone, session))
)
implements("timezone(text,timestamptz)")(
    lambda zone, x, session: local_time_in(x, named_zone(zone, session))
)


# --- arithmetic --------------------------------------------------------------------------------


@implements("date + int4")
def date_plus(days: int, count: int) -> int:
    """A date plus a number of days; 22008 outside of the range."""
    if not _DATE_MIN <= days + count < _DATE_END:
        raise SqlError("22008", "date out of range")
    return days + count


def plus_interval(local: int, span: Interval) -> int:
    """A timestamp plus an interval (G2)."""
    return in_range(_plus_days(local, span) + span.micros)


def _plus_days(local: int, span: Interval) -> int:
    days, within = divmod(local, MICROS_PER_DAY)
    if span.months:
        year, month, day = civil_from_days(days)
        year, month0 = divmod(year * 12 + month - 1 + span.months, 12)
        if not -4800 < year < 300_000:
            raise SqlError("22008", "timestamp out of range")
        days = days_from_civil(year, month0 + 1, min(day, days_in_month(year, month0 + 1)))
    return in_range((days + span.days) * MICROS_PER_DAY + within)


def plus_interval_zoned(micros: int, span: Interval, session: str) -> int:
    """An instant plus an interval, in the session's zone."""
    return plus_interval_in(micros, span, session_zone(session))


def plus_interval_in(micros: int, span: Interval, zone: tzinfo) -> int:
    """An instant plus an interval: months, then days, each in local time of the zone, where the
    hour after the months may not exist (timestamptz_pl_interval_internal).
    """
    if span.months:
        months = Interval(span.months, 0, 0)
        micros = instant_in(_plus_days(local_time_in(micros, zone), months), zone)
    if span.days:
        micros = instant_in(
            _plus_days(local_time_in(micros, zone), Interval(0, span.days, 0)), zone
        )
    return in_range(micros + span.micros)


@implements("- interval")
def interval_negate(span: Interval) -> Interval:
    """The interval with the sign of all three fields changed."""
    return _interval(-span.months, -span.days, -span.micros)


def _interval(months: int, days: int, micros: int) -> Interval:
    if abs(months) > _INT4_MAX or abs(days) > _INT4_MAX or abs(micros) >= 1 << 63:
        raise SqlError("22008", "interval out of range")
    return Interval(months, days, micros)


@implements("interval + interval")
def interval_add(a: Interval, b: Interval) -> Interval:
    """The sum of two intervals, field by field."""
    return _interval(a.months + b.months, a.days + b.days, a.micros + b.micros)


@implements("interval - interval")
def interval_subtract(a: Interval, b: Interval) -> Interval:
    """The difference of two intervals, field by field."""
    return _interval(a.months - b.months, a.days - b.days, a.micros - b.micros)


@implements("timestamp - timestamp", "timestamptz - timestamptz")
def timestamp_subtract(a: int, b: int) -> Interval:
    """The interval between two timestamps: days and time, both with one sign."""
    micros = a - b
    days = abs(micros) // MICROS_PER_DAY * (-1 if micros < 0 else 1)
    _interval(0, 0, micros)  # PostgreSQL subtracts before it takes the days off.
    return Interval(0, days, micros - days * MICROS_PER_DAY)


def interval_length(span: Interval) -> int:
    """The length by which intervals compare: months of 30 days, days of 24 hours."""
    return (span.months * 30 + span.days) * MICROS_PER_DAY + span.micros


implements("int4 + date")(lambda n, d: date_plus(d, n))
implements("date - int4")(lambda d, n: date_plus(d, -n))
implements("date - date")(operator.sub)
implements("isfinite(date)", "isfinite(timestamp)", "isfinite(timestamptz)", "isfinite(interval)")(
    lambda _value: True
)


# --- fields ------------------------------------------------------------------------------------


def unsupported_unit(field: str, type_: SqlType) -> SqlError:
    """The error for a field that values of this type do not have."""
    names = {
        "date": "date",
        "timestamp": "timestamp without time zone",
        "timestamptz": "timestamp with time zone",
        "interval": "interval",
    }
    return SqlError("0A000", f'unit "{field}" not supported for type {names[type_.name]}')


def _iso_week(days: int) -> tuple[int, int]:
    """ISO year and week: those of the week's Thursday."""
    thursday = days - iso_day(days) + 4
    year = civil_from_days(thursday)[0]
    return year, (thursday - days_from_civil(year, 1, 1)) // 7 + 1


def iso_day(days: int) -> int:
    """1 for Monday."""
    return (days + 3) % 7 + 1


def _date_field(field: str, days: int) -> int | None:
    year, month, day = civil_from_days(days)
    match field:
        case "day":
            return day
        case "month":
            return month
        case "quarter":
            return (month - 1) // 3 + 1
        case "year":
            return year if year > 0 else year - 1
        case "week":
            return _iso_week(days)[1]
        case "isoyear":
            iso = _iso_week(days)[0]
            return iso if iso > 0 else iso - 1
        case "dow":
            return iso_day(days) % 7
        case "isodow":
            return iso_day(days)
        case "doy":
            return days - days_from_civil(year, 1, 1) + 1
        case "decade":
            return year // 10
        case "century":
            return _era(year, 100)
        case "millennium":
            return _era(year, 1000)
        case _:
            return None


def _era(year: int, size: int) -> int:
    """Centuries and millennia count from 1 and have no zeroth."""
    return (year + size - 1) // size if year > 0 else -((size - year) // size)


def _time_field(field: str, within: int) -> Decimal | int | None:
    match field:
        case "hour":
            return within // (3600 * _SECOND)
        case "minute":
            return within // (60 * _SECOND) % 60
        case "second":
            return Decimal(within % (60 * _SECOND)).scaleb(-6, EXACT)
        case "milliseconds":
            return Decimal(within % (60 * _SECOND)).scaleb(-3, EXACT)
        case "microseconds":
            return within % (60 * _SECOND)
        case _:
            return None


def _zone_field(field: str, offset: int) -> int | None:
    sign = -1 if offset < 0 else 1
    match field:
        case "timezone":
            return offset
        case "timezone_hour":
            return sign * (abs(offset) // 3600)
        case "timezone_minute":
            return sign * (abs(offset) // 60 % 60)
        case _:
            return None


def _extract_interval(field: str, span: Interval, type_: SqlType) -> Decimal | int:
    months = abs(span.months) * (-1 if span.months < 0 else 1)
    years = abs(months) // 12 * (-1 if months < 0 else 1)
    rest = months - years * 12
    sign = -1 if span.micros < 0 else 1
    within = abs(span.micros)
    match field:
        case "epoch":
            days = Decimal(years) * Decimal("365.25") + rest * 30 + span.days
            return days * 86400 + Decimal(span.micros).scaleb(-6, EXACT)
        case "year":
            return years
        case "month":
            return rest
        case "day":
            return span.days
        case "quarter":
            return abs(rest) // 3 * (-1 if rest < 0 else 1) + (1 if months >= 0 else -1)
        case "hour":
            return sign * (within // (3600 * _SECOND))
        case "decade" | "century" | "millennium":
            size = {"decade": 10, "century": 100, "millennium": 1000}[field]
            return abs(years) // size * (-1 if years < 0 else 1)
        case "week":
            return abs(span.days) // 7 * (-1 if span.days < 0 else 1)
        case _:
            value = _time_field(field, within % (3600 * _SECOND))
            if value is None:
                raise unsupported_unit(field, type_)
            return sign * value


def extract(text: str, value: int | Interval, type_: SqlType, zone: str) -> Decimal | int:
    """A field of a date, timestamp, instant or interval."""
    field = canonical_field(text, type_)
    if isinstance(value, Interval):
        return _extract_interval(field, value, type_)
    if type_.name == "date":
        return _extract_date(field, value, type_)
    if field == "epoch":
        return Decimal(value).scaleb(-6, EXACT)
    local = to_local(value, zone) if type_.name == "timestamptz" else value
    days, within = divmod(local, MICROS_PER_DAY)
    if field == "julian":
        raise not_supported('extract of "julian" from a timestamp')
    result = _date_field(field, days)
    if result is None:
        found = _time_field(field, within)
        if found is None and type_.name == "timestamptz":
            found = _zone_field(field, (local - value) // _SECOND)
        if found is None:
            raise unsupported_unit(text.lower(), type_)
        return found
    return result


def _extract_date(field: str, days: int, type_: SqlType) -> int:
    if field == "epoch":
        return days * 86400
    if field == "julian":
        return days + 2_440_588
    result = _date_field(field, days)
    if result is None:
        raise unsupported_unit(field, type_)
    return result


def float_seconds(field: str, seconds: int, micros: int) -> float | None:
    """The fields second and milliseconds as date_part() adds them up, not the nearest double."""
    match field:
        case "second":
            return seconds + micros / 1_000_000.0
        case "milliseconds":
            return seconds * 1000.0 + micros / 1000.0
        case _:
            return None


def _float_field(text: str, value: int | Interval, type_: SqlType, zone: str) -> float:
    """date_part() of timestamps and intervals, in doubles."""
    field = canonical_field(text, type_)
    if isinstance(value, Interval):
        sign = -1 if value.micros < 0 else 1
        seconds, micros = divmod(abs(value.micros) % (60 * _SECOND), _SECOND)
        found = float_seconds(field, sign * seconds, sign * micros)
        epoch = _float_epoch(value) if field == "epoch" else None
    else:
        local = to_local(value, zone) if type_.name == "timestamptz" else value
        if field == "julian":
            return _julian(local)
        found = float_seconds(field, *divmod(local % (60 * _SECOND), _SECOND))
        epoch = value / 1_000_000.0 if field == "epoch" else None
    if epoch is not None:
        return epoch
    return float(extract(text, value, type_, zone)) if found is None else found


def _float_epoch(span: Interval) -> float:
    """One after the other, in doubles."""
    years = abs(span.months) // 12 * (-1 if span.months < 0 else 1)
    result = span.micros / 1_000_000.0
    result += 365.25 * 86_400 * years
    result += 30.0 * 86_400 * (span.months - years * 12)
    return result + 86_400.0 * span.days


def _julian(local: int) -> float:
    """The day, and how much of it is over, added up as date_part() does."""
    days, within = divmod(local, MICROS_PER_DAY)
    seconds, micros = divmod(within, _SECOND)
    return days + 2_440_588 + (seconds + micros / 1_000_000) / 86_400


@makes(
    *[
        f"{name}(text,{type_})"
        for name in ("extract", "date_part")
        for type_ in ("date", "timestamp", "timestamptz", "interval")
    ]
)
def make_extract(call: Call) -> Function:
    """extract(): numeric; date_part(): float8."""
    type_ = call.args[1].type
    shape = float if call.type.name == "float8" else Decimal
    if shape is float and type_.name == "date":
        # date_part() of a date is that of its midnight; extract() knows dates.
        of_midnight = _dated(TIMESTAMP, float)
        return lambda text, value: of_midnight(text, date_to_timestamp(value))
    return _dated(type_, shape)


def _dated(type_: SqlType, shape: type[float] | type[Decimal]) -> Function:
    def run(text: str, value: int | Interval, zone: str = "UTC") -> Value:
        if shape is float:
            return _float_field(text, value, type_, zone)
        return Decimal(extract(text, value, type_, zone))

    return run


# --- making ------------------------------------------------------------------------------------


@implements("make_date(int4,int4,int4)")
def make_date(year: int, month: int, day: int) -> int:
    """A date from its fields, a negative year being BC; 22008 if there is no such day."""
    civil = year if year > 0 else year + 1
    if year == 0 or not 1 <= month <= 12 or not 1 <= day <= 31:
        raise _no_such_date(year, month, day)
    if not -4713 <= civil <= 5_874_897 or day > days_in_month(civil, month):
        raise _no_such_date(year, month, day)
    return date_plus(days_from_civil(civil, month, day), 0)


def _no_such_date(year: int, month: int, day: int) -> SqlError:
    return SqlError("22008", f"date field value out of range: {year}-{month:02}-{day:02}")


@implements("make_timestamp(int4,int4,int4,int4,int4,float8)")
def make_timestamp(year: int, month: int, day: int, hour: int, minute: int, second: float) -> int:
    """A timestamp from its fields. Seconds go up to 60; 24:00:00 is the next midnight."""
    days = make_date(year, month, day)
    # Also false for NaN; the product of larger ones may be infinite.
    micros = round(second * 1_000_000) if abs(second) < 100 else -1
    whole = (hour * 60 + minute) * 60 * _SECOND + micros
    ordinary = 0 <= hour <= 24 and 0 <= minute < 60 and 0 <= micros <= 60 * _SECOND
    if not ordinary or whole > MICROS_PER_DAY:
        shown = f"{hour}:{minute:02}:{second:02g}"
        raise SqlError("22008", f"time field value out of range: {shown}")
    return in_range(days * MICROS_PER_DAY + whole)


@implements("to_timestamp(float8)")
def to_timestamp(seconds: float) -> int:
    """A timestamp from seconds since 1970, rounded half to even since 2000, as PostgreSQL does."""
    if math.isnan(seconds):
        raise SqlError("22008", "timestamp cannot be NaN")
    if math.isinf(seconds):
        raise SqlError("22008", "timestamp out of range")
    if not _TIME_MIN <= seconds * _SECOND < TIMESTAMP_MICROS_END:
        raise SqlError("22008", f'timestamp out of range: "{seconds:g}"')
    return in_range(round((seconds - 946_684_800) * 1_000_000) + 946_684_800 * _SECOND)
