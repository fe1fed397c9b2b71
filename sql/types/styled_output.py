"""Print values in non-default styles (EncodeDateTime, EncodeInterval and others of PostgreSQL).

DateStyle, IntervalStyle, extra_float_digits and bytea_output choose the style.

Not here: the default styles, and types without styles (`text_output.py`).
"""

from typing import Final

from sql.errors import SqlError
from sql.types.array_text import format_array
from sql.types.datetime.calendar import MICROS_PER_SECOND, civil_from_days
from sql.types.datetime.timezones import abbreviation_at_utc, find_zone, offset_at_utc
from sql.types.sql_type import Interval, SqlType, Value
from sql.types.styles import Styles
from sql.types.text_output import format_text

_FLOAT_DIGITS: Final = {"float4": 6, "float8": 15}
_WEEKDAYS: Final = ("Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed")
_MONTHS: Final = (
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
)  # fmt: skip
_HOUR_S: Final = 3600


def styled_text(value: Value, type_: SqlType, styles: Styles, *, timezone: str) -> str:
    """The text of a value that is not NULL."""
    if not styles.writes(type_.name):
        return format_text(value, type_, timezone=timezone)
    if (element := type_.element) is not None:
        assert isinstance(value, tuple), "an array is a tuple"
        return format_array(
            value, lambda item: styled_text(item, element, styles, timezone=timezone)
        )
    match value:
        case bytes():
            return _escaped(value)
        case float():
            return _rounded(value, type_, styles)
        case Interval():
            return _INTERVALS[styles.intervals](value)
        case int() if type_.name == "date":
            return _date(value, styles)
        case int() if type_.name == "timestamp":
            return _timestamp(value, styles, "")
        case int():
            return _timestamptz(value, styles, timezone)
        case _:
            raise AssertionError(f"{type_.name} has no styles")


def _escaped(value: bytes) -> str:
    return "".join(
        "\\\\" if byte == 0x5C else chr(byte) if 0x20 <= byte <= 0x7E else f"\\{byte:03o}"
        for byte in value
    )


def _rounded(value: float, type_: SqlType, styles: Styles) -> str:
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - NaN
        return format_text(value, type_)
    digits = max(1, _FLOAT_DIGITS[type_.name] + styles.digits)
    return f"{value:.{digits}g}"


# --- dates -------------------------------------------------------------------------------------


def _date(days: int, styles: Styles) -> str:
    text, era = _date_parts(days, styles)
    return text + era


def _date_parts(days: int, styles: Styles) -> tuple[str, str]:
    year, month, day = civil_from_days(days)
    era = "" if year > 0 else " BC"
    shown = year if year > 0 else 1 - year
    first, second = (day, month) if styles.order == "DMY" else (month, day)
    match styles.dates:
        case "SQL":
            text = f"{first:02d}/{second:02d}/{shown:04d}"
        case "German":
            text = f"{day:02d}.{month:02d}.{shown:04d}"
        case _:
            text = f"{first:02d}-{second:02d}-{shown:04d}"
    return text, era


def _timestamp(micros: int, styles: Styles, zone: str) -> str:
    seconds, fraction = divmod(micros, MICROS_PER_SECOND)
    days, within = divmod(seconds, 86_400)
    clock = f"{within // 3600:02d}:{within // 60 % 60:02d}:{within % 60:02d}"
    if fraction:
        clock += f".{fraction:06d}".rstrip("0")
    if styles.dates != "Postgres":
        text, era = _date_parts(days, styles)
        return f"{text} {clock}{zone}{era}"
    year, month, day = civil_from_days(days)
    named = _MONTHS[month - 1]
    middle = f"{day:02d} {named}" if styles.order == "DMY" else f"{named} {day:02d}"
    shown = year if year > 0 else 1 - year
    era = "" if year > 0 else " BC"
    return f"{_WEEKDAYS[days % 7]} {middle} {clock} {shown:04d}{zone}{era}"


def _timestamptz(micros: int, styles: Styles, timezone: str) -> str:
    zone = find_zone(timezone)
    if zone is None:
        raise SqlError("22023", f'time zone "{timezone}" not recognized')
    seconds = micros // MICROS_PER_SECOND
    offset = offset_at_utc(zone, seconds)
    shown = f" {abbreviation_at_utc(zone, seconds)}"
    return _timestamp(micros + offset * MICROS_PER_SECOND, styles, shown)


# --- intervals ---------------------------------------------------------------------------------


def _fields(value: Interval) -> tuple[int, int, int, int, int, int, int]:
    """Years, months, days, hours, minutes, seconds, microseconds; each with its own sign."""
    years = int(value.months / 12)
    sign = -1 if value.micros < 0 else 1
    seconds, micros = divmod(abs(value.micros), MICROS_PER_SECOND)
    clock = (seconds // _HOUR_S, seconds // 60 % 60, seconds % 60, micros)
    hours, minutes, rest, micros = (sign * part for part in clock)
    return years, value.months - 12 * years, value.days, hours, minutes, rest, micros


def _seconds(seconds: int, micros: int, *, filled: bool) -> str:
    text = f"{abs(seconds):02d}" if filled else str(abs(seconds))
    return text + (f".{abs(micros):06d}".rstrip("0") if micros else "")


def _sql_standard(value: Interval) -> str:
    years, months, days, hours, minutes, seconds, micros = parts = _fields(value)
    negative, positive = any(p < 0 for p in parts), any(p > 0 for p in parts)
    has_months, has_time = bool(years or months), any(parts[2:])
    if not negative and not positive:
        return "0"
    clock = f"{abs(hours)}:{abs(minutes):02d}:{_seconds(seconds, micros, filled=True)}"
    if (negative and positive) or (has_months and has_time):
        signs = ["-" if any(p < 0 for p in part) else "+" for part in (parts[:2], parts[2:3])]
        time_sign = "-" if any(p < 0 for p in parts[3:]) else "+"
        return f"{signs[0]}{abs(years)}-{abs(months)} {signs[1]}{abs(days)} {time_sign}{clock}"
    minus = "-" if negative else ""
    if has_months:
        return f"{minus}{abs(years)}-{abs(months)}"
    return f"{minus}{abs(days)} {clock}" if days else minus + clock


def _iso_8601(value: Interval) -> str:
    years, months, days, hours, minutes, seconds, micros = parts = _fields(value)
    if not any(parts):
        return "PT0S"
    text = "P" + "".join(
        f"{count}{unit}" for count, unit in ((years, "Y"), (months, "M"), (days, "D")) if count
    )
    if any(parts[3:]):
        text += "T" + "".join(
            f"{count}{unit}" for count, unit in ((hours, "H"), (minutes, "M")) if count
        )
        if seconds or micros:
            minus = "-" if seconds < 0 or micros < 0 else ""
            text += f"{minus}{_seconds(seconds, micros, filled=False)}S"
    return text


def _verbose(value: Interval) -> str:
    *large, seconds, micros = _fields(value)
    text, is_before, is_zero = "@", False, True
    for count, unit in zip(large, ("year", "mon", "day", "hour", "min"), strict=True):
        if not count:
            continue
        shown = count
        if is_zero:
            is_before, shown = count < 0, abs(count)
        elif is_before:
            shown = -count
        text += f" {shown} {unit}{'' if shown == 1 else 's'}"
        is_zero = False
    if seconds or micros:
        minus = ""
        if seconds < 0 or micros < 0:
            if is_zero:
                is_before = True
            elif not is_before:
                minus = "-"
        elif is_before:
            minus = "-"
        plural = "s" if abs(seconds) != 1 or micros else ""
        text += f" {minus}{_seconds(seconds, micros, filled=False)} sec{plural}"
        is_zero = False
    return text + (" 0" if is_zero else "") + (" ago" if is_before else "")


_INTERVALS: Final = {
    "sql_standard": _sql_standard,
    "iso_8601": _iso_8601,
    "postgres_verbose": _verbose,
}
