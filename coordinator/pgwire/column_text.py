"""Encode columns as PostgreSQL's text, a whole column at a time.

INVARIANTS
  U1  every cell equals `sql.types.text_output.format_text` of its value; where Arrow's casts differ
      (floats far from 1, tiny decimals, years before 1), those cells alone are made in Python.
  U2  NULL stays NULL here; `cells.variable` removes it.
"""

from collections.abc import Callable, Mapping
from datetime import tzinfo
from decimal import Decimal
from typing import Final

import numpy as np
import pyarrow as pa

from ingest.copy_text.arrow_types import as_integers, to_values
from ingest.copy_text.kernels import (
    Column,
    Floats,
    Ints,
    Mask,
    as_text,
    characters,
    choose_by_mask,
    column_of,
    decimal_scale,
    equal,
    fill_nulls,
    filter_rows,
    from_offsets,
    is_nearer_zero,
    join_pieces,
    numbers,
    offsets,
    pad_right,
    replace_masked,
    take_rows,
    trim_right,
    with_nulls_of,
)
from sql.errors import SqlError
from sql.types.datetime.calendar import MICROS_PER_DAY, MICROS_PER_SECOND, days_from_civil
from sql.types.datetime.timezones import find_zone, offset_at_utc
from sql.types.enums import storage_type_name
from sql.types.sql_type import REG_TYPES, SqlType
from sql.types.styled_output import styled_text
from sql.types.styles import DEFAULT_STYLES, Styles
from sql.types.text_output import format_offset, format_text

TextColumn = Callable[[Column], Column]
"""A normalized column to a string (or binary) column of the same length."""

# Arrow prints no years but these.
_DAYS_MIN: Final = days_from_civil(1, 1, 1)
_DAYS_END: Final = days_from_civil(32_767, 1, 1)
_DAYS_CACHED_MAX: Final = 100_000
_HEX: Final = np.array([f"{byte:02x}".encode() for byte in range(256)], "S2").view(np.uint8)
_HEX_PAIRS: Final = _HEX.reshape(256, 2)

# Where Arrow's shortest digits and PostgreSQL's have the same layout.
_FLOAT_BOUNDS: Final = {"float8": (1e-4, 1e10, 1e15), "float4": (1e-4, 1e6, 1e6)}
_ARROW_PLAIN_SCALE_MAX: Final = 6


def text_column(type_: SqlType, timezone: str, styles: Styles = DEFAULT_STYLES) -> TextColumn:
    """How a column of the type becomes text."""
    if styles.writes(type_.name):
        return lambda column: _styled_text(column, type_, timezone, styles)
    match type_.name:
        case "numeric":
            return lambda column: _numeric_text(column, type_)
        case "timestamptz":
            return ZonedText(type_, timezone).text
        case "bpchar" if type_.length is not None:
            width = type_.length
            return lambda column: pad_right(column, width)
        case "float4" | "float8":
            return lambda column: _float_text(column, type_)
        case "tid":
            return lambda column: _python_text(column, type_)
        case "date":
            return lambda column: _date_text(column, type_)
        case "timestamp":
            return lambda column: _timestamp_text(column, type_)
        case _:
            return _PLAIN.get(
                storage_type_name(type_.name), lambda column: _python_text(column, type_, timezone)
            )


def _python_text(column: Column, type_: SqlType, timezone: str = "UTC") -> Column:
    texts = [
        None if value is None else format_text(value, type_, timezone=timezone)
        for value in to_values(column, type_)
    ]
    return column_of(texts, pa.string())


def _styled_text(column: Column, type_: SqlType, timezone: str, styles: Styles) -> Column:
    texts = [
        None if value is None else styled_text(value, type_, styles, timezone=timezone)
        for value in to_values(column, type_)
    ]
    return column_of(texts, pa.string())


def _patched(
    texts: Column, column: Column, slow: Mask, type_: SqlType, timezone: str = "UTC"
) -> Column:
    """The texts, with the slow cells made in Python (U1)."""
    return replace_masked(texts, slow, _python_text(filter_rows(column, slow), type_, timezone))


# ---------------------------------------------------------------- simple types


def _bool_text(column: Column) -> Column:
    return choose_by_mask(column, "t", "f")


def _integer_text(column: Column) -> Column:
    return as_text(column)


def _bytea_text(column: Column) -> Column:
    """A prefix and two digits a byte, by a table."""
    present = fill_nulls(column, b"")
    starts = offsets(present)
    digits = _HEX_PAIRS[characters(present)[starts[0] : starts[-1]]].reshape(-1)
    hexadecimal = from_offsets((starts - starts[0]) * np.int32(2), digits)
    return with_nulls_of(join_pieces(b"\\x", hexadecimal), column)


_PLAIN: Final[Mapping[str, TextColumn]] = {
    "bool": _bool_text,
    "int2": _integer_text,
    "int4": _integer_text,
    "int8": _integer_text,
    "oid": _integer_text,
    "text": lambda column: column,
    "varchar": lambda column: column,
    "bpchar": lambda column: column,
    "name": lambda column: column,
    "char": lambda column: column,
    "unknown": lambda column: column,
    "uuid": lambda column: column,
    "json": lambda column: column,
    "jsonb": lambda column: column,
    "void": lambda column: column,
    "bytea": _bytea_text,
    **dict.fromkeys(REG_TYPES, lambda column: column),
}


# ---------------------------------------------------------------- numbers


def _float_text(column: Column, type_: SqlType) -> Column:
    low, high, integer_end = _FLOAT_BOUNDS[type_.name]
    values: Floats = numbers(column).astype(np.float64)
    magnitude = np.abs(values)
    is_integer = (values == np.floor(values)) & (magnitude < integer_end)
    negative_zero = (values == 0) & np.signbit(values)
    is_plain = (magnitude >= low) & (magnitude < high)
    slow = ~(is_plain | is_integer) | negative_zero
    texts = _mixed_floats(column, values, is_integer)
    return _patched(texts, column, slow, type_) if slow.any() else texts


def _mixed_floats(column: Column, values: Floats, is_integer: Mask) -> Column:
    """Whole numbers print as integers: Arrow would put an exponent or a point on them."""
    if not is_integer.any():
        return as_text(column)
    whole = np.where(is_integer, values, 0).astype(np.int64)
    texts = as_text(column_of(whole, pa.int64()))
    if not is_integer.all():
        texts = choose_by_mask(is_integer, texts, as_text(column))
    return with_nulls_of(texts, column)


def _numeric_text(column: Column, type_: SqlType) -> Column:
    scale = decimal_scale(column.type)
    texts = as_text(column)
    if scale > _ARROW_PLAIN_SCALE_MAX:
        texts = _without_exponents(texts, column, type_)
    if type_.trim and scale > 0:
        texts = trim_right(trim_right(texts, "0"), ".")
    return texts


def _without_exponents(texts: Column, column: Column, type_: SqlType) -> Column:
    """Arrow gives numbers below 1e-6 an exponent, zero among them."""
    scale = decimal_scale(column.type)
    bound = Decimal(1).scaleb(-_ARROW_PLAIN_SCALE_MAX)
    small = is_nearer_zero(column, pa.scalar(bound, pa.decimal128(38, scale)))
    if not small.any():
        return texts
    zero = equal(column, pa.scalar(Decimal(0), column.type))
    if zero.any():
        texts = with_nulls_of(choose_by_mask(zero, "0." + "0" * scale, texts), column)
    small &= ~zero
    return _patched(texts, column, small, type_) if small.any() else texts


# ---------------------------------------------------------------- dates and times


def _date_text(column: Column, type_: SqlType) -> Column:
    texts = as_text(column)
    slow = _beyond(numbers(as_integers(column)).astype(np.int64), 1)
    return _patched(texts, column, slow, type_) if slow.any() else texts


def _beyond(values: Ints, units_per_day: int) -> Mask:
    """Which are not in a year that Arrow prints."""
    return (values < _DAYS_MIN * units_per_day) | (values >= _DAYS_END * units_per_day)


def _timestamp_text(column: Column, type_: SqlType) -> Column:
    texts = _local_text(column)
    slow = _beyond(numbers(as_integers(column)).astype(np.int64), MICROS_PER_DAY)
    return _patched(texts, column, slow, type_) if slow.any() else texts


def _local_text(column: Column) -> Column:
    """`YYYY-MM-DD HH:MM:SS[.f]` of timestamps without zone."""
    # The zeros end at the point, so that no whole second loses a digit.
    return trim_right(trim_right(as_text(column), "0"), ".")


class ZonedText:
    """timestamptz in one zone. Offsets are found once for each day that appears."""

    def __init__(self, type_: SqlType, timezone: str) -> None:
        zone = find_zone(timezone)
        if zone is None:
            raise SqlError("22023", f'time zone "{timezone}" not recognized')
        self._type = type_
        self._timezone = timezone
        self._zone: tzinfo = zone
        self._days: dict[int, int | None] = {}

    def text(self, column: Column) -> Column:
        """See `TextColumn`."""
        micros: Ints = numbers(as_integers(column)).astype(np.int64)
        shifts, slow = self._offsets(micros)
        shown = micros + shifts * MICROS_PER_SECOND
        slow |= _beyond(shown, MICROS_PER_DAY)
        local = column_of(shown, pa.int64()).view(pa.timestamp("us"))
        texts = with_nulls_of(join_pieces(_local_text(local), _suffixes(shifts)), column)
        if slow.any():
            texts = _patched(texts, column, slow, self._type, self._timezone)
        return texts

    def _offsets(self, micros: Ints) -> tuple[Ints, Mask]:
        """Offsets in seconds, and where the day has more than one."""
        days, places = np.unique(micros // MICROS_PER_DAY, return_inverse=True)
        found = [self._offset_of_day(int(day)) for day in days]
        mixed = np.array([offset is None for offset in found], np.bool_)
        shifts = np.array([offset or 0 for offset in found], np.int64)
        return shifts[places], mixed[places]

    def _offset_of_day(self, day: int) -> int | None:
        if day not in self._days:
            if len(self._days) > _DAYS_CACHED_MAX:
                self._days.clear()
            first = offset_at_utc(self._zone, day * 86_400)
            last = offset_at_utc(self._zone, day * 86_400 + 86_399)
            self._days[day] = first if first == last else None
        return self._days[day]


def _suffixes(shifts: Ints) -> Column:
    kinds, places = np.unique(shifts, return_inverse=True)
    names = column_of([format_offset(int(kind)) for kind in kinds], pa.string())
    return take_rows(names, places)
