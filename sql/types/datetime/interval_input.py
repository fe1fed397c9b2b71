"""Parse intervals as PostgreSQL's input function does, with IntervalStyle postgres (interval_in).

    '1 year 2 mons 03:04:05.6', '1-2 3 4:05', '@ 1 day ago', 'P1Y2M3DT4H', 'P0001-02-03T04:05:06'

INVARIANTS
  V1  months, days and microseconds are kept apart. Only fractions carry over, from a unit into the
      next smaller one, with a month of 30 days.
  V2  months and days fit 32 bits, microseconds 64; larger ones are 22015 or 22008.
  V3  infinite intervals are refused (22008), because no engine can hold them.
"""

import re
from typing import Final

from sql.errors import SqlError, out_of_engine_range
from sql.types.datetime.tokens import (
    INT32_MAX,
    INT64_MAX,
    INTERVAL_CHARACTERS_MAX,
    TOKEN_LENGTH_MAX,
    DatetimeToken,
    DatetimeTokenKind,
    Fault,
    FieldError,
    decode_time,
    parse_fraction,
    parse_leading_int,
    split_datetime_tokens,
)
from sql.types.sql_type import Interval

_SECOND: Final = 1_000_000
_MINUTE: Final = 60 * _SECOND
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_DAYS_PER_MONTH: Final = 30

_UNITS: Final = {
    "c": "century", "cent": "century", "centuries": "century", "century": "century",
    "d": "day", "day": "day", "days": "day",
    "dec": "decade", "decade": "decade", "decades": "decade", "decs": "decade",
    "h": "hour", "hour": "hour", "hours": "hour", "hr": "hour", "hrs": "hour",
    "m": "minute", "min": "minute", "mins": "minute", "minute": "minute", "minutes": "minute",
    "microsecon": "microsecond", "us": "microsecond", "usec": "microsecond",
    "usecond": "microsecond", "useconds": "microsecond", "usecs": "microsecond",
    "mil": "millennium", "millennia": "millennium", "millennium": "millennium",
    "mils": "millennium",
    "millisecon": "millisecond", "ms": "millisecond", "msec": "millisecond",
    "msecond": "millisecond", "mseconds": "millisecond", "msecs": "millisecond",
    "mon": "month", "mons": "month", "month": "month", "months": "month",
    "s": "second", "sec": "second", "second": "second", "seconds": "second", "secs": "second",
    "w": "week", "week": "week", "weeks": "week",
    "y": "year", "year": "year", "years": "year", "yr": "year", "yrs": "year",
}  # fmt: skip
_CLOCK_UNITS: Final = {
    "microsecond": 1, "millisecond": 1000, "second": _SECOND, "minute": _MINUTE, "hour": _HOUR,
}  # fmt: skip
_YEARS: Final = {"year": 1, "decade": 10, "century": 100, "millennium": 1000}
_IGNORED: Final = frozenset({"@", "at", "on"})
_ISO_NUMBER: Final = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_ISO_NUMBER_MAX: Final = 1e15
_TWO_PARTS: Final = r"[-+]?[0-9]+:[0-9]+"


def parse_interval(text: str, *, unit: str = "", minutes: bool = False) -> Interval:
    """The interval of the text (V1-V3). `unit`: of a number at the end without one, seconds.
    `minutes`: two parts of a clock are minutes and seconds.
    """
    total = _Total()
    try:
        words = split_datetime_tokens(text, characters_max=INTERVAL_CHARACTERS_MAX)
        try:
            if minutes:
                words = [_after_hours(word) for word in words]
            _decode_words(words, total, unit)
        except FieldError as error:
            if error.fault is not Fault.FORMAT:
                raise
            total = _Total()
            _IsoDecoder(text, total).decode()
    except FieldError as error:
        raise error.report("interval", text) from None
    return total.interval(text)


class _Total:
    """The sum so far (V1, V2)."""

    def __init__(self) -> None:
        self.years = self.months = self.days = self.micros = 0

    def interval(self, text: str) -> Interval:
        """The result; years and months together must still fit."""
        months = self.years * 12 + self.months
        if not -INT32_MAX - 1 <= months <= INT32_MAX:
            raise SqlError("22008", "interval out of range")
        value = Interval(months, self.days, self.micros)
        is_infinite = value in (
            Interval(INT32_MAX, INT32_MAX, INT64_MAX),
            Interval(-INT32_MAX - 1, -INT32_MAX - 1, -INT64_MAX - 1),
        )
        if is_infinite:
            raise SqlError("22008", f'interval out of range: "{text}"')
        return value

    def add_years(self, value: int, part: float, scale: int) -> None:
        """`value` years of `scale`, a fraction rounded to months."""
        self.years = _fits(self.years + _fits(value, INT32_MAX) * scale, INT32_MAX)
        self.months = _fits(self.months + round(part * scale * 12), INT32_MAX)

    def add_months(self, value: int, part: float) -> None:
        """Months; a fraction spills into days of a month of 30."""
        self.months = _fits(self.months + _fits(value, INT32_MAX), INT32_MAX)
        self._add_part_of_days(part, _DAYS_PER_MONTH)

    def add_days(self, value: int, part: float, scale: int) -> None:
        """Days or weeks; a fraction spills into days, then into the clock."""
        self.days = _fits(self.days + _fits(value, INT32_MAX) * scale, INT32_MAX)
        if scale == 1:
            self.add_part_of_micros(part, _DAY)
        else:
            self._add_part_of_days(part, scale)

    def add_micros(self, value: int, part: float, scale: int) -> None:
        """Clock units of `scale` microseconds."""
        self.micros = _fits(self.micros + value * scale, INT64_MAX)
        self.add_part_of_micros(part, scale)

    def _add_part_of_days(self, part: float, scale: int) -> None:
        whole = int(part * scale)
        self.days = _fits(self.days + whole, INT32_MAX)
        self.add_part_of_micros(part * scale - whole, _DAY)

    def add_part_of_micros(self, part: float, scale: int) -> None:
        """A fraction of a unit, rounded half away from the next microsecond."""
        exact = part * scale
        whole = int(exact)
        rest = exact - whole
        if rest > 0.5:
            whole += 1
        elif rest < -0.5:
            whole -= 1
        self.micros = _fits(self.micros + whole, INT64_MAX)

    def negate(self) -> None:
        """For `ago`."""
        self.years = _fits(-self.years, INT32_MAX)
        self.months = _fits(-self.months, INT32_MAX)
        self.days = _fits(-self.days, INT32_MAX)
        self.micros = _fits(-self.micros, INT64_MAX)


def _after_hours(word: DatetimeToken) -> DatetimeToken:
    """`10:20` as minutes and seconds."""
    if (
        word.kind not in (DatetimeTokenKind.TIME, DatetimeTokenKind.ZONE)
        or re.fullmatch(_TWO_PARTS, word.text) is None
    ):
        return word
    sign = word.text[:1] if word.kind is DatetimeTokenKind.ZONE else ""
    return DatetimeToken(word.kind, f"{sign}0:{word.text.removeprefix(sign)}")


def _fits(value: int, maximum: int) -> int:
    if not -maximum - 1 <= value <= maximum:
        raise FieldError(Fault.OVERFLOW)
    return value


# ---------------------------------------------------------------- units and clocks


def _decode_words(words: list[DatetimeToken], total: _Total, unit: str) -> None:
    """Words right to left: a unit is read before its number."""
    seen: set[str] = set()
    unit_waits = False
    is_ago = False
    for index in range(len(words) - 1, -1, -1):
        word = words[index]
        if word.kind in (DatetimeTokenKind.WORD, DatetimeTokenKind.SIGNED_WORD):
            if unit_waits:
                raise FieldError(Fault.FORMAT)
            token = word.text[:TOKEN_LENGTH_MAX]
            if token in _IGNORED:
                continue
            if token == "ago" and index == len(words) - 1:
                is_ago = True
                unit = "ago"
                continue
            unit = _unit(token, is_alone=len(words) == 1)
            unit_waits = True
            continue
        parts, unit = _add_word(word, unit, total)
        unit_waits = False
        if parts & seen:
            raise FieldError(Fault.FORMAT)
        seen |= parts
    if not seen or unit_waits:
        raise FieldError(Fault.FORMAT)
    if is_ago:
        total.negate()


def _unit(token: str, *, is_alone: bool) -> str:
    if token in ("infinity", "+infinity", "-infinity") and is_alone:
        raise out_of_engine_range(
            "22008", "interval out of range", detail="Infinite intervals are not supported."
        )
    unit = _UNITS.get(token)
    if unit is None:
        raise FieldError(Fault.FORMAT)
    return unit


_CLOCK: Final = frozenset({"hour", "minute", "second", "millisecond", "microsecond"})
_SUBSECONDS: Final = frozenset({"second", "millisecond", "microsecond"})


def _add_word(word: DatetimeToken, unit: str, total: _Total) -> tuple[frozenset[str], str]:
    """Add a number or a clock: what it says, and the unit of a bare number before it."""
    text = word.text
    if word.kind is DatetimeTokenKind.TIME:
        total.micros = _clock_micros(text)
        return _CLOCK, "day"
    if word.kind is DatetimeTokenKind.ZONE and ":" in text:
        try:
            micros = _clock_micros(text[1:])
        except FieldError:
            pass
        else:
            total.micros = -micros if text[0] == "-" else micros
            return _CLOCK, "day"
    value, rest = parse_leading_int(text, maximum=INT64_MAX)
    part = 0.0
    if rest.startswith("-"):
        value, unit = _year_month(text, value, rest), "month"
    elif rest.startswith("."):
        part = -parse_fraction(rest) if text.startswith("-") else parse_fraction(rest)
    elif rest:
        raise FieldError(Fault.FORMAT)
    unit = unit or "second"
    _add_unit(unit, value, part, total)
    if unit == "second" and part:
        return _SUBSECONDS, unit
    # A number before hours is days.
    return frozenset({unit}), "day" if unit == "hour" else unit


def _clock_micros(text: str) -> int:
    hour, minute, second, micros = decode_time(text)
    return _fits(hour * _HOUR + minute * _MINUTE + second * _SECOND + micros, INT64_MAX)


def _year_month(text: str, years: int, rest: str) -> int:
    """Months of SQL's `years-months`."""
    months, rest = parse_leading_int(rest[1:])
    if not 0 <= months < 12:
        raise FieldError(Fault.OVERFLOW)
    if rest:
        raise FieldError(Fault.FORMAT)
    return _fits(years * 12 + (-months if text.startswith("-") else months), INT64_MAX)


def _add_unit(unit: str, value: int, part: float, total: _Total) -> None:
    if unit in _CLOCK_UNITS:
        total.add_micros(value, part, _CLOCK_UNITS[unit])
    elif unit == "day":
        total.add_days(value, part, 1)
    elif unit == "week":
        total.add_days(value, part, 7)
    elif unit == "month":
        total.add_months(value, part)
    elif unit in _YEARS:
        total.add_years(value, part, _YEARS[unit])
    else:
        raise FieldError(Fault.FORMAT)


# ---------------------------------------------------------------- ISO 8601


class _IsoDecoder:
    """`PnYnMnDTnHnMnS` and the alternative forms `PYYYYMMDDTHHMMSS`, `Pyyyy-mm-ddThh:mm:ss`."""

    def __init__(self, text: str, total: _Total) -> None:
        self._text = text
        self._total = total
        self._position = 1
        self._has_field = False

    def decode(self) -> None:
        """Add all of the text to the total."""
        if len(self._text) < 2 or self._text[0] != "P":
            raise FieldError(Fault.FORMAT)
        in_date = True
        while self._position < len(self._text):
            if self._peek() == "T":
                in_date, self._has_field = False, False
                self._position += 1
                continue
            if in_date:
                in_date = self._date_field()
            else:
                self._time_field()

    def _peek(self) -> str:
        return self._text[self._position : self._position + 1]

    def _take(self) -> str:
        taken = self._peek()
        self._position += 1
        return taken

    def _number(self) -> tuple[int, float]:
        match = _ISO_NUMBER.match(self._text, self._position)
        if match is None or match[0][0] == "+":
            raise FieldError(Fault.FORMAT)
        self._position = match.end()
        value = float(match[0])
        if abs(value) > _ISO_NUMBER_MAX:
            raise FieldError(Fault.OVERFLOW)
        return int(value), value - int(value)

    def _width(self, start: int) -> int:
        match = re.compile(r"-?([0-9]*)").match(self._text, start)
        return len(match[1]) if match else 0

    def _date_field(self) -> bool:
        """Read one field; false when the time follows or nothing does."""
        start = self._position
        value, part = self._number()
        unit = self._take()
        match unit:
            case "Y":
                self._total.add_years(value, part, 1)
            case "M":
                self._total.add_months(value, part)
            case "W":
                self._total.add_days(value, part, 7)
            case "D":
                self._total.add_days(value, part, 1)
            case "T" | "" if self._width(start) == 8 and not self._has_field:
                years, within = int(value / 10_000), _remainder(value, 10_000)
                self._total.add_years(years, 0.0, 1)
                self._total.add_months(int(within / 100), 0.0)
                self._total.add_days(_remainder(within, 100), part, 1)
                self._has_field = False
                return False
            case "T" | "" | "-":
                self._written_date(value, part, unit)
                return False
            case _:
                raise FieldError(Fault.FORMAT)
        self._has_field = True
        return True

    def _written_date(self, value: int, part: float, following: str) -> None:
        if self._has_field:
            raise FieldError(Fault.FORMAT)
        self._total.add_years(value, part, 1)
        if following != "-":
            return
        self._total.add_months(*self._number())
        following = self._take()
        if following == "-":
            self._total.add_days(*self._number(), 1)
            following = self._take()
        if following not in ("", "T"):
            raise FieldError(Fault.FORMAT)

    def _time_field(self) -> None:
        start = self._position
        value, part = self._number()
        unit = self._take()
        match unit:
            case "H":
                self._total.add_micros(value, part, _HOUR)
            case "M":
                self._total.add_micros(value, part, _MINUTE)
            case "S":
                self._total.add_micros(value, part, _SECOND)
            case "" if self._width(start) == 6 and not self._has_field:
                self._total.add_micros(int(value / 10_000), 0.0, _HOUR)
                self._total.add_micros(_remainder(int(value / 100), 100), 0.0, _MINUTE)
                self._total.add_micros(_remainder(value, 100), 0.0, _SECOND)
                # PostgreSQL reads this fraction as one of a microsecond.
                self._total.add_part_of_micros(part, 1)
            case "" | ":":
                self._written_time(value, part, unit)
            case _:
                raise FieldError(Fault.FORMAT)
        self._has_field = True

    def _written_time(self, value: int, part: float, following: str) -> None:
        if self._has_field:
            raise FieldError(Fault.FORMAT)
        self._total.add_micros(value, part, _HOUR)
        if following == "":
            return
        self._total.add_micros(*self._number(), _MINUTE)
        following = self._take()
        if following == ":":
            self._total.add_micros(*self._number(), _SECOND)
            following = self._take()
        if following:
            raise FieldError(Fault.FORMAT)


def _remainder(value: int, divisor: int) -> int:
    """The remainder with the sign of the value, as in C."""
    return value - int(value / divisor) * divisor
