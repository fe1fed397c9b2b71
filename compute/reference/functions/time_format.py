"""to_char() of timestamps and intervals: PostgreSQL's date templates (formatting.c), in locale C.

Not here: parsing the templates (`sql/types/datetime/format_templates.py`).
"""

from dataclasses import dataclass
from typing import Final

from compute.reference.functions.number_format import ordinal
from sql.errors import SqlError, not_supported
from sql.types.datetime.calendar import MICROS_PER_DAY, civil_from_days, days_from_civil
from sql.types.datetime.format_templates import (
    DAY_NAMES,
    MONTH_NAMES,
    ROMAN_MONTHS,
    TemplateField,
    TemplateLiteral,
    parse_template,
)
from sql.types.sql_type import Interval

_SECOND: Final = 1_000_000
_WORDS: Final = frozenset({"DAY", "DY", "MONTH", "MON", "RM", "A.D.", "AD", "B.C.", "BC"}) | {
    "A.M.", "AM", "P.M.", "PM", "TZ"
}  # fmt: skip
"""Fields whose case is that of their text."""
_ZONES: Final = frozenset({"OF", "TZH", "TZM", "FX"})
# --- broken down ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BrokenDownTime:
    """A timestamp or interval broken down to its fields. `year`: astronomical."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    micros: int
    day_of_year: int
    days: int | None = None
    """Since 1970; None for an interval."""
    offset: int = 0
    zone: str | None = None


def break_down_timestamp(local: int, offset: int = 0, zone: str | None = None) -> BrokenDownTime:
    """The fields of a local timestamp, with its zone's offset and abbreviation."""
    days, within = divmod(local, MICROS_PER_DAY)
    year, month, day = civil_from_days(days)
    seconds, micros = divmod(within, _SECOND)
    of_year = days - days_from_civil(year, 1, 1) + 1
    hour, rest = divmod(seconds, 3600)
    return BrokenDownTime(
        year, month, day, hour, rest // 60, rest % 60, micros, of_year, days, offset, zone
    )


def break_down_interval(span: Interval) -> BrokenDownTime:
    """The fields of an interval; each has the sign of its part."""
    sign = -1 if span.months < 0 else 1
    years, months = sign * (abs(span.months) // 12), sign * (abs(span.months) % 12)
    sign = -1 if span.micros < 0 else 1
    seconds, micros = divmod(abs(span.micros), _SECOND)
    hour, rest = divmod(seconds, 3600)
    of_year = (years * 12 + months) * 30 + span.days
    return BrokenDownTime(
        years, months, span.days, sign * hour, sign * (rest // 60), sign * (rest % 60),
        sign * micros, of_year,
    )  # fmt: skip


# --- writing -------------------------------------------------------------------------------------


def time_to_char(value: BrokenDownTime, template: str) -> str | None:
    """to_char(); NULL for an empty template."""
    if not template:
        return None
    out: list[str] = []
    for node in parse_template(template):
        if isinstance(node, TemplateLiteral):
            out.append(node.character)
            continue
        if node.localized and node.name not in ("MONTH", "MON", "DAY", "DY"):
            raise not_supported("the modifier TM")
        text = _word(value, node) if node.name in _WORDS else _number(value, node)
        if node.ordinal and text and node.name not in _WORDS | _ZONES:
            text += ordinal(text, upper=node.ordinal == "TH")
        out.append(text)
    return "".join(out)


def _dated(value: BrokenDownTime) -> int:
    if value.days is None:
        hint = "Intervals are not tied to specific calendar dates."
        raise SqlError("22007", "invalid format specification for an interval value", hint=hint)
    return value.days


def _calendar(value: BrokenDownTime) -> int:
    """For fields of the calendar, which PostgreSQL makes up for intervals."""
    if value.days is None:
        raise not_supported("this field of an interval in to_char()")
    return value.days


def _word(value: BrokenDownTime, node: TemplateField) -> str:
    width = 0 if node.fill or node.localized else 9
    match node.name:
        case "DAY":
            return node.cased(DAY_NAMES[_weekday(value)]).ljust(width)
        case "DY":
            return node.cased(DAY_NAMES[_weekday(value)][:3])
        case "MONTH":
            _dated(value)
            return node.cased(MONTH_NAMES[value.month - 1]).ljust(width)
        case "MON":
            _dated(value)
            return node.cased(MONTH_NAMES[value.month - 1][:3])
        case "RM":
            return _roman_month(value, node)
        case "TZ":
            _dated(value)
            name = value.zone or ""  # mixed in ChST, and TZ leaves it so
            return name.lower() if node.text == "tz" else name
        case "A.D." | "AD" | "B.C." | "BC":
            _dated(value)
            letters = "BC" if value.year <= 0 else "AD"
        case _:
            letters = "PM" if _c_remainder(value.hour, 24) >= 12 else "AM"
    dotted = "." in node.name
    return node.cased(f"{letters[0]}.{letters[1]}." if dotted else letters)


def _roman_month(value: BrokenDownTime, node: TemplateField) -> str:
    if not value.month and not value.year:
        return ""
    if value.month == 0:
        index = 11
        if value.year < 0:
            index = 0
    else:
        index = value.month - 1 if value.month > 0 else 12 + value.month
    return node.cased(ROMAN_MONTHS[index]).ljust(0 if node.fill else 4)


def _weekday(value: BrokenDownTime) -> int:
    return (_dated(value) + 4) % 7


def _c_remainder(a: int, b: int) -> int:
    rest = abs(a) % b
    return -rest if a < 0 else rest


def _c_quotient(a: int, b: int) -> int:
    quotient = abs(a) // b
    return -quotient if a < 0 else quotient


def _padded(number: int, width: int, node: TemplateField, *, signed: bool = True) -> str:
    """With zeros to the width, one more for a sign."""
    if node.fill:
        return str(number)
    return f"{number:0{width + (signed and number < 0)}d}"


def _number(value: BrokenDownTime, node: TemplateField) -> str:
    name = node.name
    clock = _clock(value, node)
    if clock is not None:
        return clock
    if name in _YEARS or name == "Y,YYY":
        return _year(value, node)
    match name:
        case "FX":
            return ""
        case "MM":
            return _padded(value.month, 2, node)
        case "DD":
            return _padded(value.day, 2, node, signed=False)
        case "DDD":
            return _padded(value.day_of_year, 3, node, signed=False)
        case "WW":
            return _padded(_c_quotient(value.day_of_year - 1, 7) + 1, 2, node, signed=False)
        case "W":
            return str(_c_quotient(value.day - 1, 7) + 1)
        case "Q":
            return "" if not value.month else str(_c_quotient(value.month - 1, 3) + 1)
        case "CC":
            return _century(value, node)
        case "J":
            return str(_calendar(value) + 2_440_588)
        case "D":
            return str(_weekday(value) + 1)
        case "ID":
            return str((_weekday(value) + 6) % 7 + 1)
        case "IDDD":
            year = iso_week(_calendar(value))[0]
            return _padded(_calendar(value) - iso_start(year) + 1, 3, node)
        case "IW":
            return _padded(iso_week(_calendar(value))[1], 2, node)
        case _:
            return _zone(value, node)


def _clock(value: BrokenDownTime, node: TemplateField) -> str | None:
    match node.name:
        case "HH" | "HH12":
            hour = _c_remainder(value.hour, 12)
            width = 2 if value.hour >= 0 else 3
            return str(hour or 12) if node.fill else f"{hour or 12:0{width}d}"
        case "HH24":
            return _padded(value.hour, 2, node)
        case "MI":
            return _padded(value.minute, 2, node)
        case "SS":
            return _padded(value.second, 2, node)
        case "MS":
            return f"{_c_quotient(value.micros, 1000):03d}"
        case "US":
            return f"{value.micros:06d}"
        case "SSSS" | "SSSSS":
            return str(value.hour * 3600 + value.minute * 60 + value.second)
        case name if name.startswith("FF"):
            digits = int(name[2])
            return f"{_c_quotient(value.micros, 10 ** (6 - digits)):0{digits}d}"
        case _:
            return None


_YEARS: Final = {
    "YYYY": 4, "YYY": 3, "YY": 2, "Y": 1, "IYYY": 4, "IYY": 3, "IY": 2, "I": 1,
}  # fmt: skip


def _year(value: BrokenDownTime, node: TemplateField) -> str:
    year = value.year
    if node.name.startswith("I"):
        year = iso_week(_calendar(value))[0]
    if value.days is not None and year <= 0:
        year = 1 - year
    if node.name == "Y,YYY":
        thousands = _c_quotient(year, 1000)
        return f"{thousands},{year - thousands * 1000:03d}"
    width = _YEARS[node.name]
    if width == 1:
        return str(_c_remainder(year, 10))
    shown = year if width == 4 else _c_remainder(year, 10**width)
    if node.fill:
        return str(shown)
    return f"{shown:0{width + (year < 0)}d}"


def _century(value: BrokenDownTime, node: TemplateField) -> str:
    if value.days is None:
        century = _c_quotient(value.year, 100)
    elif value.year > 0:
        century = (value.year - 1) // 100 + 1
    else:
        century = _c_quotient(value.year, 100) - 1
    return _padded(century, 2, node) if -99 <= century <= 99 else str(century)


def _zone(value: BrokenDownTime, node: TemplateField) -> str:
    _dated(value)
    sign, offset = "-" if value.offset < 0 else "+", abs(value.offset)
    match node.name:
        case "TZH":
            return f"{sign}{offset // 3600:02d}"
        case "TZM":
            return f"{offset % 3600 // 60:02d}"
        case _:
            minutes = f":{offset % 3600 // 60:02d}" if offset % 3600 else ""
            hours = offset // 3600
            return f"{sign}{hours if node.fill else f'{hours:02d}'}{minutes}"


def iso_week(days: int) -> tuple[int, int]:
    """ISO year and week: those of the week's Thursday."""
    thursday = days - (days + 3) % 7 + 3
    year = civil_from_days(thursday)[0]
    return year, (thursday - days_from_civil(year, 1, 1)) // 7 + 1


def iso_start(year: int) -> int:
    """The first day of an ISO year."""
    fourth = days_from_civil(year, 1, 4)
    return fourth - (fourth + 3) % 7
