"""Output functions of all types: print a value as PostgreSQL's `value::text` shows it.

Settings are PostgreSQL's defaults: DateStyle ISO, IntervalStyle postgres, bytea_output hex.

INVARIANTS
  X1  `parse_text(format_text(v)) == v` for every value of a type.
  X2  a float has the fewest digits strictly between the midpoints to its neighbours.
"""

import math
import struct
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Final

from sql.errors import SqlError
from sql.types.array_text import format_array
from sql.types.datetime.calendar import MICROS_PER_SECOND, civil_from_days
from sql.types.datetime.timetz import timetz_local_time, timetz_offset
from sql.types.datetime.timezones import find_zone, offset_at_utc
from sql.types.enums import storage_type_name
from sql.types.json.path_printer import displayed_path_text as shown_path
from sql.types.sql_type import REG_TYPES, VECTOR_TYPE_OIDS, Interval, SqlType, Value
from sql.types.tuple_ids import format_tid

RECORD_LENGTH_DIGITS: Final = 8
"""The digits at the end of a row's text (`sql/types/records.py`)."""
_FLOAT8_DIGITS_MAX: Final = 15
_FLOAT4_DIGITS_MAX: Final = 6
_FLOAT4_INFINITY_BITS: Final = 0x7F800000


def format_text(value: Value, type_: SqlType, *, timezone: str = "UTC") -> str:
    """The text of a value that is not NULL, with the blanks of char(n) and the zeros of numeric."""
    assert value is not None, "NULL has no text"
    match type_.name:
        case "numeric":
            assert isinstance(value, Decimal), "numeric is a Decimal"
            return format_numeric(value, scale=type_.scale, trim=type_.trim)
        case "timestamptz":
            assert isinstance(value, int), "timestamptz is an int"
            return format_timestamptz(value, timezone=timezone)
        case "tid":
            assert isinstance(value, str), "tid is held as a text"
            return format_tid(value)
        case "bpchar":
            assert isinstance(value, str), "bpchar is a str"
            return value.ljust(type_.length or 0)
        case name if name in VECTOR_TYPE_OIDS:
            assert isinstance(value, tuple), "a vector is an array"
            return " ".join(map(str, value))
        case _ if (element := type_.element) is not None:
            assert isinstance(value, tuple), "an array is a tuple"
            return format_array(value, lambda item: format_text(item, element, timezone=timezone))
        case _:
            return _FORMATTERS[storage_type_name(type_.name)](value)


def _format_bool(value: Value) -> str:
    return "t" if value else "f"


def format_record(value: Value) -> str:
    """A row value as PostgreSQL shows it, cut out of its encoded text (`records.py`)."""
    assert isinstance(value, str), "a record is a text"
    length = int(value[-RECORD_LENGTH_DIGITS:])
    return value[-RECORD_LENGTH_DIGITS - length : -RECORD_LENGTH_DIGITS]


def _format_bytea(value: Value) -> str:
    assert isinstance(value, bytes), "bytea is bytes"
    return "\\x" + value.hex()


def _format_float8(value: Value) -> str:
    assert isinstance(value, float), "float8 is a float"
    return format_float8(value)


def _format_float4(value: Value) -> str:
    assert isinstance(value, float), "float4 is a float"
    return format_float4(value)


def _format_date(value: Value) -> str:
    assert isinstance(value, int), "date is an int"
    return format_date(value)


def _format_time(value: Value) -> str:
    assert isinstance(value, int), "time is an int"
    return _clock(*divmod(value, MICROS_PER_SECOND))


def _format_timetz(value: Value) -> str:
    assert isinstance(value, int), "timetz is an int"
    clock = _clock(*divmod(timetz_local_time(value), MICROS_PER_SECOND))
    return clock + format_offset(timetz_offset(value))


def _format_timestamp(value: Value) -> str:
    assert isinstance(value, int), "timestamp is an int"
    return format_timestamp(value)


def _format_interval(value: Value) -> str:
    assert isinstance(value, Interval), "interval is an Interval"
    return format_interval(value)


# ---------------------------------------------------------------- numbers


def format_numeric(value: Decimal, *, scale: int | None, trim: bool) -> str:
    """Plain digits: `scale` of them behind the point, or only the significant ones."""
    text = f"{value:f}" if trim or scale is None else f"{value:.{scale}f}"
    if trim and "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def format_float8(value: float) -> str:
    """The shortest text of a 64-bit float (X2)."""
    special = _special_float(value)
    if special is not None:
        return special
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int), "special values are handled above"
    figures = "".join(map(str, digits))
    # From 2^53 up, the shortest digits may lie exactly between two floats, where X2 wants more.
    if abs(value) >= 2.0**53:
        below = Fraction(math.nextafter(value, 0.0))
        above = 2 * Fraction(abs(value)) - abs(below)
        if math.frexp(value)[0] in (0.5, -0.5):
            above += Fraction(abs(value)) - abs(below)
        figures, exponent = _shortest(
            abs(value), abs(below), above, digits_min=len(figures.rstrip("0"))
        )
    return _layout(sign, figures, exponent, point_max=_FLOAT8_DIGITS_MAX)


def format_float4(value: float) -> str:
    """The shortest text of a float that 32 bits can hold (X2)."""
    special = _special_float(value)
    if special is not None:
        return special
    below, above = _single_neighbours(value)
    figures, exponent = _shortest(abs(value), below, above, digits_min=1)
    return _layout(1 if value < 0 else 0, figures, exponent, point_max=_FLOAT4_DIGITS_MAX)


def _shortest(
    value: float, below: Fraction, above: Fraction, *, digits_min: int
) -> tuple[str, int]:
    """The fewest digits, and their exponent, between the midpoints to the neighbours (X2)."""
    exact = Fraction(value)
    low, high = (exact + below) / 2, (exact + above) / 2
    for precision in range(digits_min - 1, 18):
        _, digits, exponent = Decimal(f"{value:.{precision}e}").as_tuple()
        assert isinstance(exponent, int), "special values are not shortened"
        nearest = int("".join(map(str, digits)))
        # The nearest digits may be a midpoint, or miss the narrow side of a power of two.
        for figures in (nearest, nearest + 1, nearest - 1):
            if low < figures * Fraction(10) ** exponent < high:
                return str(figures), exponent
    raise AssertionError("seventeen digits tell all floats apart (X2)")


def _single_neighbours(value: float) -> tuple[Fraction, Fraction]:
    """The 32-bit floats beside `value`, without signs."""
    (bits,) = struct.unpack("<i", struct.pack("<f", abs(value)))
    below = Fraction(struct.unpack("<f", struct.pack("<i", bits - 1))[0])
    # Above the largest float comes what would be 2^128.
    is_largest = bits + 1 == _FLOAT4_INFINITY_BITS
    above = 2.0**128 if is_largest else struct.unpack("<f", struct.pack("<i", bits + 1))[0]
    return below, Fraction(above)


def _special_float(value: float) -> str | None:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0" if math.copysign(1.0, value) < 0 else "0"
    return None


def _layout(sign: int, digits: str, exponent: int, *, point_max: int) -> str:
    """Digits as C's %g lays them out: a point within `point_max` places, else an exponent."""
    figures = digits.rstrip("0")
    exponent += len(digits) - 1
    minus = "-" if sign else ""
    if not -4 <= exponent < point_max:
        mantissa = figures[0] + ("." + figures[1:] if len(figures) > 1 else "")
        return f"{minus}{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if exponent < 0:
        return f"{minus}0.{'0' * (-exponent - 1)}{figures}"
    whole = figures[: exponent + 1].ljust(exponent + 1, "0")
    rest = figures[exponent + 1 :]
    return f"{minus}{whole}.{rest}" if rest else minus + whole


# ---------------------------------------------------------------- dates and times


def format_date(days: int) -> str:
    """`YYYY-MM-DD`, years before 1 with BC."""
    year, month, day = civil_from_days(days)
    if year > 0:
        return f"{year:04d}-{month:02d}-{day:02d}"
    return f"{1 - year:04d}-{month:02d}-{day:02d} BC"


def format_timestamp(micros: int) -> str:
    """`YYYY-MM-DD HH:MM:SS[.f]`."""
    date_text, time_text, era = _timestamp_parts(micros)
    return f"{date_text} {time_text}{era}"


def format_timestamptz(micros: int, *, timezone: str) -> str:
    """The same in the zone, with its offset then."""
    zone = find_zone(timezone)
    if zone is None:
        raise SqlError("22023", f'time zone "{timezone}" not recognized')
    offset = offset_at_utc(zone, micros // MICROS_PER_SECOND)
    date_text, time_text, era = _timestamp_parts(micros + offset * MICROS_PER_SECOND)
    return f"{date_text} {time_text}{format_offset(offset)}{era}"


def format_offset(offset: int) -> str:
    """An offset in seconds east as `+hh[:mm[:ss]]`."""
    seconds = abs(offset)
    text = f"{'-' if offset < 0 else '+'}{seconds // 3600:02d}"
    if seconds % 3600:
        text += f":{seconds // 60 % 60:02d}"
    if seconds % 60:
        text += f":{seconds % 60:02d}"
    return text


def _timestamp_parts(micros: int) -> tuple[str, str, str]:
    seconds, fraction = divmod(micros, MICROS_PER_SECOND)
    days, within = divmod(seconds, 86_400)
    date_text, _, era = format_date(days).partition(" ")
    return date_text, _clock(within, fraction), f" {era}" if era else ""


def _clock(seconds: int, micros: int) -> str:
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{micros:06d}".rstrip("0") if micros else text


def format_interval(value: Interval) -> str:
    """`1 year 2 mons -3 days +04:05:06.789`."""
    years = int(value.months / 12)
    parts: list[str] = []
    is_before = False
    for count, unit in ((years, "year"), (value.months - 12 * years, "mon"), (value.days, "day")):
        if count:
            # A positive part behind a negative one shows its sign.
            plus = "+" if is_before and count > 0 else ""
            parts.append(f"{plus}{count} {unit}{'' if count == 1 else 's'}")
            is_before = count < 0
    if value.micros or not parts:
        seconds, micros = divmod(abs(value.micros), MICROS_PER_SECOND)
        sign = "-" if value.micros < 0 else "+" if is_before else ""
        parts.append(sign + _clock(seconds, micros))
    return " ".join(parts)


_FORMATTERS: Final[Mapping[str, Callable[[Value], str]]] = {
    "bool": _format_bool,
    "int2": str,
    "int4": str,
    "int8": str,
    "oid": str,
    "float4": _format_float4,
    "float8": _format_float8,
    "text": str,
    "varchar": str,
    "name": str,
    "char": str,
    "unknown": str,
    "uuid": str,
    "json": str,
    "jsonb": str,
    "jsonpath": shown_path,
    "record": format_record,
    "void": lambda _: "",
    **dict.fromkeys(REG_TYPES, str),
    "bytea": _format_bytea,
    "date": _format_date,
    "time": _format_time,
    "timetz": _format_timetz,
    "timestamp": _format_timestamp,
    "interval": _format_interval,
}
