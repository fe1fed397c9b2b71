"""Parse columns of COPY text, by Arrow's casts where they provably read as PostgreSQL does.

INVARIANTS
  Q1  a column is cast by Arrow only if its texts are of a form that both read alike; every other
      column goes value by value through `sql.types.text_input`.
  Q2  what Arrow refuses says nothing: the caller reads the rows again the exact way.
"""

import re
from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa

from ingest.copy_text.arrow_types import as_integers, shown_arrow_type, to_array
from ingest.copy_text.forms import (
    all_match,
    arrays,
    dates,
    intervals,
    signed_decimals,
    signed_integers,
    timestamps,
)
from ingest.copy_text.json_documents import json_texts, jsonb_texts
from ingest.copy_text.kernels import (
    Column,
    Ints,
    Mask,
    characters,
    column_of,
    decimal_scale,
    fill_nulls,
    mask_of,
    match_regex,
    numbers,
    offsets,
    round_decimals,
    text_lengths,
    to_python_list,
    trim_right,
    with_nulls_of,
)
from ingest.copy_text.quoted_arrays import quoted_arrays
from sql.types.datetime.typmods import POSTGRESQL_EPOCH_MICROS, seconds_precision
from sql.types.enums import is_enum
from sql.types.sql_type import NUMERIC_PRECISION_MAX, SECONDS_DIGITS_MAX, SqlType, Value
from sql.types.styles import DEFAULT_STYLES, Styles
from sql.types.text_input import NAME_BYTES_MAX, apply_typmod, parse_text

ParseColumn = Callable[[Column], Column]
"""Strings, NULL where the field was NULL, to the type's column. Raises SqlError or ArrowInvalid."""


def column_parser(type_: SqlType, timezone: str, styles: Styles = DEFAULT_STYLES) -> ParseColumn:
    """How the texts of a column are read."""
    fast = _labels if is_enum(type_.name) else _FAST.get(type_.name)
    if styles.reads(type_.name):
        fast = None
    if type_.name.startswith("_") and not is_enum(type_.name):
        return _array_parser(type_, timezone, styles)
    if fast is None:
        return lambda texts: _one_by_one(texts, type_, timezone, styles)
    is_utc = timezone.upper() == "UTC"

    def parse(texts: Column) -> Column:
        if type_.name == "timestamptz" and is_utc:
            parsed = _zoneless_timestamps(texts)
        else:
            parsed = fast(texts, type_)
        if parsed is None:
            return _one_by_one(texts, type_, timezone, styles)
        return _with_digits(parsed, type_) if type_.name.startswith("timestamp") else parsed

    return parse


def _array_parser(type_: SqlType, timezone: str, styles: Styles) -> ParseColumn:
    assert type_.element is not None, "it is an array"
    elements = column_parser(type_.element, timezone, styles)

    def parse(texts: Column) -> Column:
        parsed = arrays(texts, elements)
        if parsed is None:
            parsed = quoted_arrays(texts, elements)
        return _one_by_one(texts, type_, timezone, styles) if parsed is None else parsed

    return parse


def parse_field(text: str, type_: SqlType, timezone: str, styles: Styles) -> Value:
    """One field as an assignment to a column of the type."""
    value = parse_text(type_.name, text, timezone=timezone, styles=styles, typmod=type_.typmod)
    return apply_typmod(value, type_, explicit=False)


def _one_by_one(texts: Column, type_: SqlType, timezone: str, styles: Styles) -> Column:
    """Every spelling is read once."""
    spelled = texts.dictionary_encode()
    assert isinstance(spelled, pa.DictionaryArray), "encoding makes a dictionary"
    values = [
        parse_field(text, type_, timezone, styles) for text in to_python_list(spelled.dictionary)
    ]
    return to_array(values, type_).take(spelled.indices)


# ---------------------------------------------------------------- forms that both read alike


def _allowed(alphabet: str) -> Mask:
    table = np.zeros(256, np.bool_)
    table[list(alphabet.encode())] = True
    return table


_INTEGER_BYTES: Final = _allowed("-0123456789")
_DECIMAL_BYTES: Final = _allowed("-0123456789.")
_FLOAT_BYTES: Final = _allowed("-0123456789.eE")
_TINY: Final = 1e-30


def _has_only(texts: Column, table: Mask) -> bool:
    starts = offsets(texts)
    return bool(table[characters(texts)[starts[0] : starts[-1]]].all())


def _integers(texts: Column, type_: SqlType) -> Column | None:
    if not _has_only(texts, _INTEGER_BYTES):
        texts = signed_integers(texts)
    return texts.cast(shown_arrow_type(type_)) if _has_only(texts, _INTEGER_BYTES) else None


def _numerics(texts: Column, type_: SqlType) -> Column | None:
    """Declared ones are rounded; others are exact, or left to be refused."""
    if not _has_only(texts, _DECIMAL_BYTES):
        texts = signed_decimals(texts)
        if not all_match(texts, _DECIMAL):
            return None
    narrow = shown_arrow_type(type_)
    try:
        if _is_shorter(texts, NUMERIC_PRECISION_MAX - decimal_scale(narrow)):
            return texts.cast(narrow)
    except pa.ArrowInvalid:
        # It has too many digits; those behind the point may be rounded.
        pass
    if not _is_shorter(texts, _WIDE_DIGITS):
        return None
    try:
        wide = texts.cast(pa.decimal256(2 * _WIDE_DIGITS, _WIDE_DIGITS))
        is_rounded = type_.typmod >= 0 or not type_.trim
        return (round_decimals(wide, decimal_scale(narrow)) if is_rounded else wide).cast(narrow)
    except pa.ArrowInvalid:
        return None


_WIDE_DIGITS: Final = 38
_DECIMAL: Final = r"^-?[0-9.]+(?:[eE]-[0-9]{1,2})?$"


def _is_shorter(texts: Column, digits: int) -> bool:
    """Arrow multiplies a number with a power of ten, and does not see that it is too large then."""
    return bool((np.diff(offsets(texts)) <= digits).all())


def _floats(texts: Column, type_: SqlType) -> Column | None:
    if not _has_only(texts, _FLOAT_BYTES):
        return None
    values = texts.cast(shown_arrow_type(type_))
    magnitude = np.abs(numbers(values).astype(np.float64))
    # Overflow and underflow are errors in PostgreSQL; true zeros are told apart one by one.
    suspect = ~np.isfinite(magnitude) | (magnitude < _TINY)
    if texts.null_count:
        suspect &= mask_of(texts.is_valid())
    zeros = mask_of(match_regex(texts, r"^-?0*\.?0*$")) if suspect.any() else suspect
    return None if (suspect & ~zeros).any() else values


def _booleans(texts: Column, _: SqlType) -> Column | None:
    """A handful of spellings; each is read once."""
    spelled = texts.dictionary_encode()
    assert isinstance(spelled, pa.DictionaryArray), "encoding makes a dictionary"
    known = [parse_text("bool", str(text)) for text in to_python_list(spelled.dictionary)]
    return column_of(known, pa.bool_()).take(spelled.indices)


def _dates(texts: Column, _: SqlType) -> Column | None:
    """Arrow knows YYYY-MM-DD only, and no year 0."""
    if not _has_only(texts, _INTEGER_BYTES) or not all_match(texts, _ISO_DATE):
        return dates(texts)
    return texts.cast(pa.date32())


_ISO_DATE: Final = r"^-?[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_ISO_TIMESTAMP: Final = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?)?$"
)
_ISO_ZONED: Final = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"
    r"(Z|[+-](0[0-9]|1[0-4])(:?[0-5][0-9])?)$"
)


def _timestamps(texts: Column, _: SqlType) -> Column | None:
    if all_match(texts, _ISO_TIMESTAMP):
        return texts.cast(pa.timestamp("us"))
    return timestamps(texts, zoned=False)


def _zoned_timestamps(texts: Column, _: SqlType) -> Column | None:
    parsed: Column | None
    if all_match(texts, _ISO_ZONED):
        parsed = texts.cast(pa.timestamp("us", tz="UTC"))
    else:
        parsed = timestamps(texts, zoned=True)
    # The year 0 that an offset may lead to is refused by the exact way.
    return None if parsed is None or any_before_year_one(parsed) else parsed


def any_before_year_one(stamps: Column) -> bool:
    """Whether a timestamp is outside what we hold."""
    return bool((numbers(stamps.view(pa.int64())) < _MICROS_MIN).any())


def _intervals(texts: Column, type_: SqlType) -> Column | None:
    return intervals(texts) if type_.typmod < 0 else None


def _zoneless_timestamps(texts: Column) -> Column | None:
    if all_match(texts, _ISO_TIMESTAMP):
        return texts.cast(pa.timestamp("us")).view(pa.timestamp("us", tz="UTC"))
    zoneless = timestamps(texts, zoned=False)
    if zoneless is not None:
        return zoneless.view(pa.timestamp("us", tz="UTC"))
    return _zoned_timestamps(texts, _TIMESTAMPTZ)


_TIMESTAMPTZ: Final = SqlType("timestamptz")
_MICROS_MIN: Final = -62_135_596_800_000_000
"""0001-01-01."""


def _with_digits(stamps: Column, type_: SqlType) -> Column:
    """As `sql.types.datetime.typmods` rounds them."""
    if seconds_precision(type_) == SECONDS_DIGITS_MAX:
        return stamps
    scale = 10 ** (SECONDS_DIGITS_MAX - seconds_precision(type_))
    micros: Ints = numbers(as_integers(stamps)) - POSTGRESQL_EPOCH_MICROS
    size = (np.abs(micros) + scale // 2) // scale * scale
    rounded = np.where(micros < 0, -size, size) + POSTGRESQL_EPOCH_MICROS
    return with_nulls_of(column_of(rounded, pa.int64()).view(stamps.type), stamps)


def _strings(texts: Column, type_: SqlType) -> Column | None:
    length = type_.length
    if length is not None and (text_lengths(texts) > length).any():
        return None
    trimmed = type_.name == "bpchar" and not type_.has_blanks
    return trim_right(texts, " ") if trimmed else texts


def _labels(texts: Column, type_: SqlType) -> Column | None:
    """Every spelling is looked at once."""
    spelled = texts.dictionary_encode()
    assert isinstance(spelled, pa.DictionaryArray), "encoding makes a dictionary"
    for text in to_python_list(spelled.dictionary):
        parse_text(type_.name, str(text))
    return texts


def _json(texts: Column, _: SqlType) -> Column | None:
    return json_texts(texts)


def _jsonb(texts: Column, _: SqlType) -> Column | None:
    return jsonb_texts(texts)


def _names(texts: Column, _: SqlType) -> Column | None:
    is_short = (np.diff(offsets(fill_nulls(texts, ""))) <= NAME_BYTES_MAX).all()
    return texts if is_short else None


_CANONICAL_UUID: Final = re.compile(
    r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
).pattern


def _uuids(texts: Column, _: SqlType) -> Column | None:
    return texts if all_match(texts, _CANONICAL_UUID) else None


_FAST: Final[dict[str, Callable[[Column, SqlType], Column | None]]] = {
    "bool": _booleans,
    "int2": _integers,
    "int4": _integers,
    "int8": _integers,
    "float4": _floats,
    "float8": _floats,
    "numeric": _numerics,
    "text": _strings,
    "varchar": _strings,
    "bpchar": _strings,
    "name": _names,
    "uuid": _uuids,
    "date": _dates,
    "timestamp": _timestamps,
    "timestamptz": _zoned_timestamps,
    "interval": _intervals,
    "json": _json,
    "jsonb": _jsonb,
}
