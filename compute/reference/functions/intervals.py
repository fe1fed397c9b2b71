"""age(), date_bin(), OVERLAPS, make_interval(), justify_*(), and the to_char() family."""

import math
from typing import Final

from compute.reference.functions.datetime import (
    date_to_timestamp,
    day_counting_zone,
    instant_in,
    interval_negate,
    make_timestamp,
    named_zone,
    plus_interval,
    plus_interval_in,
    plus_interval_zoned,
    to_instant,
    to_local,
    zone_name,
)
from compute.reference.functions.number_format import (
    float_to_char,
)
from compute.reference.functions.numbers import wrap_signed
from compute.reference.functions.time_format import (
    break_down_interval,
    break_down_timestamp,
    time_to_char,
)
from compute.reference.functions.to_timestamp import parse_by_template, round_to_digits
from compute.reference.registry import Function, implements
from sql.errors import SqlError
from sql.types.datetime.calendar import MICROS_PER_DAY, civil_from_days, days_in_month
from sql.types.datetime.date_input import TIMESTAMP_MICROS_END
from sql.types.datetime.tokens import Fault, FieldError, decode_zone
from sql.types.sql_type import Interval, Value

_SECOND: Final = 1_000_000
_INT_MAX: Final = 2**31 - 1
_MICROS_END: Final = 1 << 63
_TIME_MIN: Final = -210_866_803_200 * _SECOND


def _out_of_range(what: str) -> SqlError:
    return SqlError("22008", f"{what} out of range")


def _moment(micros: int) -> int:
    if not _TIME_MIN <= micros < TIMESTAMP_MICROS_END:
        raise _out_of_range("timestamp")
    return micros


def _interval(months: int, days: int, micros: int) -> Interval:
    if max(abs(months), abs(days)) > _INT_MAX or abs(micros) >= _MICROS_END:
        raise _out_of_range("interval")
    return Interval(months, days, micros)


# --- by template ---------------------------------------------------------------------------------


@implements("to_char(timestamptz,text)")
def timestamptz_to_char(micros: int, template: str, zone: str) -> str | None:
    """to_char() of the zone's local time."""
    local = to_local(micros, zone)
    return time_to_char(
        break_down_timestamp(local, (local - micros) // _SECOND, zone_name(micros, zone)), template
    )


@implements("to_date(text,text)")
def to_date(text: str, template: str) -> int:
    """The day in a text."""
    return parse_by_template(text, template).local // MICROS_PER_DAY


@implements("to_timestamp(text,text)")
def to_timestamp(text: str, template: str, zone: str) -> int:
    """The instant in a text, in the zone's local time unless the text names an offset."""
    read = parse_by_template(text, template)
    if read.offset is None:
        instant = to_instant(read.local, zone)
    else:
        instant = read.local - read.offset * _SECOND
    return _moment(round_to_digits(instant, read.digits))


# --- times and intervals ------------------------------------------------------------------------


def _shifted(type_: str, *, back: bool = False, swapped: bool = False) -> Function:
    """A time of a type and an interval: the sum, in either order, or the difference (`back`)."""

    def run(a: Value, b: Value, zone: str = "UTC") -> Value:
        moment, span = (b, a) if swapped else (a, b)
        span = interval_negate(span) if back else span  # type: ignore[arg-type]
        if type_ == "date":
            moment = date_to_timestamp(moment)  # type: ignore[arg-type]
        if type_ == "timestamptz":
            return plus_interval_zoned(moment, span, zone)  # type: ignore[arg-type]
        return plus_interval(moment, span)  # type: ignore[arg-type]

    return run


for _type in ("date", "timestamp", "timestamptz"):
    implements(f"{_type} + interval")(_shifted(_type))
    implements(f"interval + {_type}")(_shifted(_type, swapped=True))
    implements(f"{_type} - interval")(_shifted(_type, back=True))


# --- ages and bins -------------------------------------------------------------------------------


@implements("age(timestamp,timestamp)")
def age(later: int, earlier: int) -> Interval:
    """The difference in years, months, days and time, by the calendar."""
    return _age(later, earlier, negative=later < earlier)


@implements("age(timestamptz,timestamptz)")
def age_zoned(later: int, earlier: int, zone: str) -> Interval:
    """The same in the zone's local time."""
    return _age(to_local(later, zone), to_local(earlier, zone), negative=later < earlier)


def _age(later: int, earlier: int, *, negative: bool) -> Interval:
    if negative:
        later, earlier = earlier, later
    (days, within), (days_before, within_before) = (
        divmod(later, MICROS_PER_DAY),
        divmod(earlier, MICROS_PER_DAY),
    )
    year, month, day = civil_from_days(days)
    year_before, month_before, day_before = civil_from_days(days_before)
    micros, day = within - within_before, day - day_before
    months = (year - year_before) * 12 + month - month_before
    if micros < 0:
        micros += MICROS_PER_DAY
        day -= 1
    while day < 0:
        day += days_in_month(year_before, month_before)
        months -= 1
    found = Interval(months, day, micros)
    return Interval(-months, -day, -micros) if negative else found


@implements("date_bin(interval,timestamp,timestamp)", "date_bin(interval,timestamptz,timestamptz)")
def date_bin(stride: Interval, moment: int, origin: int) -> int:
    """The beginning of the bin, counted from the origin."""
    if stride.months:
        message = "timestamps cannot be binned into intervals containing months or years"
        raise SqlError("0A000", message)
    width = stride.days * MICROS_PER_DAY + stride.micros
    if width <= 0:
        raise SqlError("22008", "stride must be greater than zero")
    return _moment(origin + (moment - origin) // width * width)


@implements(
    "overlaps(timestamp,timestamp,timestamp,timestamp)",
    "overlaps(timestamptz,timestamptz,timestamptz,timestamptz)",
)
def overlaps(
    start: int | None, end: int | None, other: int | None, other_end: int | None
) -> bool | None:
    """(start, end) OVERLAPS (other, other_end): in any order, NULL where it matters."""
    start, end = _ordered(start, end)
    other, other_end = _ordered(other, other_end)
    if start is None or other is None:
        return None
    if start == other:
        return None if end is None or other_end is None else True
    if start < other:
        start, end, other, other_end = other, other_end, start, end
    if other_end is None:
        return None
    if start < other_end:
        return True
    return None if end is None else False


def _ordered(start: int | None, end: int | None) -> tuple[int | None, int | None]:
    if start is None:
        return end, None
    if end is not None and start > end:
        return end, start
    return start, end


Bound = int | Interval | None


@implements(
    "overlaps(timestamp,interval,timestamp,interval)",
    "overlaps(timestamp,timestamp,timestamp,interval)",
    "overlaps(timestamp,interval,timestamp,timestamp)",
)
def _overlaps_spans(
    start: int | None, end: Bound, other: int | None, other_end: Bound
) -> bool | None:
    return overlaps(start, _end(start, end, None), other, _end(other, other_end, None))


@implements(
    "overlaps(timestamptz,interval,timestamptz,interval)",
    "overlaps(timestamptz,timestamptz,timestamptz,interval)",
    "overlaps(timestamptz,interval,timestamptz,timestamptz)",
)
def _overlaps_zoned(
    start: int | None, end: Bound, other: int | None, other_end: Bound, zone: str
) -> bool | None:
    return overlaps(start, _end(start, end, zone), other, _end(other, other_end, zone))


def _end(start: int | None, end: Bound, zone: str | None) -> int | None:
    if not isinstance(end, Interval):
        return end
    if start is None:
        return None
    return plus_interval(start, end) if zone is None else plus_interval_zoned(start, end, zone)


# --- zones ---------------------------------------------------------------------------------------


def zone_span(span: Interval) -> int:
    """An interval as the offset of a time zone, in microseconds."""
    if span.months or span.days:
        raise SqlError("22023", "interval time zone must not include months or days")
    seconds = abs(span.micros) // _SECOND
    return (-seconds if span.micros < 0 else seconds) * _SECOND


def _wrapped(offset: int) -> int:
    """An offset whose seconds PostgreSQL keeps in 32 bits, as C cuts them."""
    return wrap_signed(offset // _SECOND, 32) * _SECOND


@implements("make_timestamptz(int4,int4,int4,int4,int4,float8)")
def _make_of_session(
    year: int, month: int, day: int, hour: int, minute: int, second: float, session: str
) -> int:
    return to_instant(make_timestamp(year, month, day, hour, minute, second), session)


@implements("make_timestamptz(int4,int4,int4,int4,int4,float8,text)")
def _make_zoned(
    year: int, month: int, day: int, hour: int, minute: int, second: float, zone: str, session: str
) -> int:
    micros = make_timestamp(year, month, day, hour, minute, second)
    east = _numeric_zone(zone)
    if east is None:
        return instant_in(micros, named_zone(zone, session))
    return _moment(micros - east * _SECOND)


def _numeric_zone(zone: str) -> int | None:
    """Seconds east of `+2` or `-03:30`, which are not west as in POSIX (parse_sane_timezone)."""
    if zone[:1].isdecimal():
        message = f'invalid input syntax for type numeric time zone: "{zone}"'
        hint = 'Numeric time zones must have "-" or "+" as first character.'
        raise SqlError("22023", message, hint=hint)
    try:
        return decode_zone(zone)
    except FieldError as error:
        if error.fault is Fault.ZONE_OVERFLOW:
            raise SqlError("22023", f'numeric time zone "{zone}" out of range') from None
        return None


# --- intervals -----------------------------------------------------------------------------------


@implements("make_interval(int4,int4,int4,int4,int4,int4,float8)")
def make_interval(
    years: int = 0,
    months: int = 0,
    weeks: int = 0,
    days: int = 0,
    hours: int = 0,
    minutes: int = 0,
    seconds: float = 0.0,
) -> Interval:
    """An interval by its parts."""
    # Also true of NaN.
    if not abs(seconds) < _MICROS_END / _SECOND:
        raise _out_of_range("interval")
    micros = (hours * 3600 + minutes * 60) * _SECOND + round(seconds * _SECOND)
    return _interval(years * 12 + months, weeks * 7 + days, micros)


def _divided(value: int, size: int) -> tuple[int, int]:
    """Quotient toward zero, and the rest."""
    quotient = abs(value) // size * (-1 if value < 0 else 1)
    return quotient, value - quotient * size


@implements("justify_hours(interval)")
def justify_hours(span: Interval) -> Interval:
    """Turn 24 hours into a day; days and time get the same sign."""
    more, micros = _divided(span.micros, MICROS_PER_DAY)
    days, micros = _same_sign(span.days + more, micros, MICROS_PER_DAY)
    return _interval(span.months, days, micros)


@implements("justify_days(interval)")
def justify_days(span: Interval) -> Interval:
    """Turn 30 days into a month; months and days get the same sign."""
    more, days = _divided(span.days, 30)
    months, days = _same_sign(span.months + more, days, 30)
    return _interval(months, days, span.micros)


def _same_sign(large: int, small: int, size: int) -> tuple[int, int]:
    if large > 0 > small:
        return large - 1, small + size
    if large < 0 < small:
        return large + 1, small - size
    return large, small


@implements("justify_interval(interval)")
def justify_interval(span: Interval) -> Interval:
    """Do both; all three fields get the same sign."""
    more, micros = _divided(span.micros, MICROS_PER_DAY)
    whole, days = _divided(span.days + more, 30)
    months = span.months + whole
    if months > 0 and (days < 0 or (days == 0 and micros < 0)):
        months, days = months - 1, days + 30
    elif months < 0 and (days > 0 or (days == 0 and micros > 0)):
        months, days = months + 1, days - 30
    days, micros = _same_sign(days, micros, MICROS_PER_DAY)
    return _interval(months, days, micros)


@implements("interval * float8")
def interval_multiply(span: Interval, factor: float) -> Interval:
    """An interval times a factor: fractions of months become days, those of days time
    (interval_mul).
    """
    return _scaled(span, lambda value: value * factor)


@implements("interval / float8")
def interval_divide(span: Interval, divisor: float) -> Interval:
    """An interval divided by a number, by the same rules."""
    if divisor == 0:
        raise SqlError("22012", "division by zero")
    return _scaled(span, lambda value: value / divisor)


def _scaled(span: Interval, scale: "Function") -> Interval:
    def scaled(value: int) -> float:
        found = scale(float(value))
        if not isinstance(found, float) or not math.isfinite(found):
            raise _out_of_range("interval")
        return found

    months, days = int(scaled(span.months)), int(scaled(span.days))
    more_days = _rounded((scaled(span.months) - months) * 30)
    seconds = _rounded((scaled(span.days) - days + more_days - int(more_days)) * 86_400)
    if abs(seconds) >= 86_400:
        days += int(seconds / 86_400)
        seconds -= int(seconds / 86_400) * 86_400
    micros = round(scaled(span.micros) + seconds * _SECOND)
    return _interval(months, days + int(more_days), micros)


def _rounded(value: float) -> float:
    return float(round(value * 1e6)) / 1e6


@implements("date_add(timestamptz,interval,text)")
def date_add(moment: int, span: Interval, zone: str, session: str) -> int:
    """An instant plus an interval in a zone's local time; the zone must exist in any case."""
    return plus_interval_in(moment, span, day_counting_zone(zone, session))


implements("date_subtract(timestamptz,interval,text)")(
    lambda x, span, *zone: date_add(x, interval_negate(span), *zone)
)
implements("to_char(timestamp,text)")(lambda x, f: time_to_char(break_down_timestamp(x), f))
implements("to_char(interval,text)")(lambda x, f: time_to_char(break_down_interval(x), f))
implements("to_char(float4,text)")(lambda x, f: float_to_char(x, f, 6))
implements("to_char(float8,text)")(lambda x, f: float_to_char(x, f, 15))
implements("timezone(interval,timestamp)")(lambda z, x: _moment(x - _wrapped(zone_span(z))))
implements("timezone(interval,timestamptz)")(lambda z, x: _moment(x - _wrapped(-zone_span(z))))
implements("float8 * interval")(lambda factor, span: interval_multiply(span, factor))
