"""Read common forms of numbers, dates and times that Arrow does not know, a whole column at a time.

    +5    2020-1-2    01/02/2020    2020-01-01 00:00Z    1/2/2020 9:05:07.5 +01
    1 year 2 mons -3 days 04:05:06.7    2 days 3 hours    @ 5 mins 6.7 secs ago    {1,-2,3}

A form is taken apart by one regular expression, and its parts are counted as PostgreSQL counts
them, in the default styles. Whatever else it may be is left to the caller (Q1 of
`columns.py`).
"""

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingest.copy_text.arrow_types import shown_arrow_type
from ingest.copy_text.kernels import (
    Column,
    Ints,
    choose_by_mask,
    column_of,
    contains_substring,
    fill_nulls,
    lists_of,
    mask_of,
    match_regex,
    numbers,
    pad_right_with,
    parts_of_text,
    replace_regex,
    split_texts,
    structs_of,
    text_lengths,
    with_nulls_of,
)
from sql.types.datetime.calendar import MICROS_PER_DAY, MICROS_PER_SECOND
from sql.types.sql_type import SqlType

_Parts: TypeAlias = dict[str, Ints]

_YEAR_FIRST: Final = r"(?P<y>[0-9]{4})-(?P<m>[0-9]{1,2})-(?P<d>[0-9]{1,2})"
_MONTH_FIRST: Final = r"(?P<m>[0-9]{1,2})/(?P<d>[0-9]{1,2})/(?P<y>[0-9]{4})"
_TIME: Final = r"(?P<h>[0-9]{1,2}):(?P<n>[0-9]{2})(?::(?P<s>[0-9]{2})(?:\.(?P<f>[0-9]{1,6}))?)?"
_ZONE: Final = r" ?(?:[Zz]|(?P<q>[+-])(?P<zh>[0-9]{2})(?::?(?P<zn>[0-9]{2}))?)"
_FRACTION_DIGITS: Final = 6
_MINUTE: Final = 60 * MICROS_PER_SECOND
_HOUR: Final = 60 * _MINUTE
_AMOUNT: Final = r"[+-]?[0-9]{1,6}"
_INTERVAL: Final = (
    rf"^(?:(?P<y>{_AMOUNT}) years?(?: |$))?(?:(?P<m>{_AMOUNT}) mon(?:th)?s?(?: |$))?"
    rf"(?:(?P<d>{_AMOUNT}) days?(?: |$))?(?:(?P<o>{_AMOUNT}) hours?|"
    r"(?P<q>[+-])?(?P<h>[0-9]{1,6}):(?P<n>[0-5][0-9]):(?P<s>[0-5][0-9])"
    r"(?:\.(?P<f>[0-9]{1,6}))?)?$"
)
_INTERVAL_WORDS: Final = (
    rf"^(?:@ )?(?:(?P<y>{_AMOUNT}) years?(?: |$))?(?:(?P<m>{_AMOUNT}) mon(?:th)?s?(?: |$))?"
    rf"(?:(?P<w>{_AMOUNT}) weeks?(?: |$))?(?:(?P<d>{_AMOUNT}) days?(?: |$))?"
    rf"(?:(?P<o>{_AMOUNT}) hours?(?: |$))?(?:(?P<n>{_AMOUNT}) min(?:ute)?s?(?: |$))?"
    r"(?:(?P<q>[+-])?(?P<s>[0-9]{1,6})(?:\.(?P<f>[0-9]{1,6}))? sec(?:ond)?s?(?: |$))?(?P<a>ago)?$"
)
_PLAIN_ARRAY: Final = r'^\{(?:[^"\\{}\s,]+(?:,[^"\\{}\s,]+)*)?\}$'
_NULL_ELEMENT: Final = r"(?i)[{,]null[,}]"


def signed_integers(texts: Column) -> Column:
    """Numbers that may have a plus and blanks, as Arrow casts them; others stay what they are."""
    return replace_regex(texts, r"^ *(?:\+([0-9]+)|(-?[0-9]+)) *$", r"\1\2")


def signed_decimals(texts: Column) -> Column:
    """Numbers without plus and blanks, which may have a negative exponent; others stay."""
    number = r"[0-9.]+(?:[eE]-[0-9]{1,2})?"
    return replace_regex(texts, rf"^ *(?:\+({number})|(-?{number})) *$", r"\1\2")


def dates(texts: Column) -> Column | None:
    """Dates, year first or month first; None if one has another form or is no day."""
    for form in (_YEAR_FIRST, _MONTH_FIRST):
        parts = _parts(texts, f"^{form}$")
        if parts is not None:
            days = _days(parts)
            if days is None:
                return None
            made = column_of(days.astype(np.int32), pa.int32()).view(pa.date32())
            return with_nulls_of(made, texts)
    return None


def timestamps(texts: Column, *, zoned: bool) -> Column | None:
    """Timestamps with a time, and with an offset or without; None as above."""
    for form in (_YEAR_FIRST, _MONTH_FIRST):
        parts = _parts(texts, f"^{form}[ T]{_TIME}{_ZONE if zoned else ''}$")
        if parts is not None:
            micros = _micros(parts)
            if micros is None:
                return None
            type_ = pa.timestamp("us", tz="UTC") if zoned else pa.timestamp("us")
            return with_nulls_of(column_of(micros, pa.int64()).view(type_), texts)
    return None


def intervals(texts: Column) -> Column | None:
    """Intervals as PostgreSQL writes them, and those of numbers with units; None as above."""
    parts = _parts(texts, _INTERVAL)
    if parts is None:
        parts = _parts(texts, _INTERVAL_WORDS)
    # Without a number it is none.
    if parts is None or not all_match(texts, "[0-9]"):
        return None
    months, days = parts["y"] * 12 + parts["m"], parts["d"]
    sign = np.where(parts["q"] < 0, -1, 1)
    micros = sign * (parts["s"] * MICROS_PER_SECOND + parts["f"])
    micros = micros + parts["o"] * _HOUR
    if "h" in parts:
        micros = micros + sign * (parts["h"] * _HOUR + parts["n"] * _MINUTE)
    else:
        back = np.where(parts["a"] > 0, -1, 1)
        months, days = months * back, (days + parts["w"] * 7) * back
        micros = (micros + parts["n"] * _MINUTE) * back
    columns = [
        column_of(months.astype(np.int32), pa.int32()),
        column_of(days.astype(np.int32), pa.int32()),
        column_of(micros, pa.int64()),
    ]
    return structs_of(columns, shown_arrow_type(SqlType("interval")), mask_of(texts.is_null()))


def arrays(texts: Column, parse: Callable[[Column], Column]) -> Column | None:
    """Arrays of elements without quotes, blanks and NULL, which `parse` reads; None as above."""
    if not all_match(texts, _PLAIN_ARRAY) or mask_of(match_regex(texts, _NULL_ELEMENT)).any():
        return None
    elements, counts = split_texts(texts, 1, ",")
    return lists_of(parse(elements), counts, mask_of(texts.is_null()))


def all_match(texts: Column, pattern: str) -> bool:
    """Whether all texts do; NULL counts as one that does."""
    matched = mask_of(match_regex(texts, pattern))
    return bool(
        matched.all() if texts.null_count == 0 else matched[mask_of(texts.is_valid())].all()
    )


def _parts(texts: Column, form: str) -> _Parts | None:
    """The numbers in the texts, by the names of the form's groups; None if one does not match."""
    found = parts_of_text(texts, form)
    if found is None:
        return None
    parts: _Parts = {}
    for name, column in found.items():
        words = fill_nulls(column, "")
        is_empty = text_lengths(words) == 0
        if is_empty.all():
            parts[name] = np.zeros(len(words), np.int64)
            continue
        if name == "q":
            words = replace_regex(replace_regex(words, r"^-$", "-1"), r"^\+$", "1")
        elif name == "a":
            words = replace_regex(words, "^ago$", "1")
        elif name == "f":
            words = pad_right_with(words, _FRACTION_DIGITS, "0")
        if is_empty.any():
            words = choose_by_mask(is_empty, "0", words)
        if contains_substring(words, "+").any():
            words = replace_regex(words, r"^\+", "")
        parts[name] = numbers(words.cast(pa.int64()))
    absent = texts.is_null()
    if texts.null_count:
        missing: npt.NDArray[np.bool_] = absent.to_numpy(zero_copy_only=False)
        for name in ("y", "m", "d"):
            parts[name] = np.where(missing, 1, parts[name])
    return parts


def _days(parts: _Parts) -> Ints | None:
    """Days since 1970; None if one of them is not in the calendar."""
    year, month, day = parts["y"], parts["m"], parts["d"]
    if ((year < 1) | (month < 1) | (month > 12) | (day < 1)).any():
        return None
    months = (year - 1970) * 12 + month - 1
    first = months.astype("M8[M]").astype("M8[D]").astype(np.int64)
    after = (months + 1).astype("M8[M]").astype("M8[D]").astype(np.int64)
    days: Ints = first + day - 1
    return None if (days >= after).any() else days


def _micros(parts: _Parts) -> Ints | None:
    """Microseconds since 1970, of UTC if there is an offset; None for what is no time of a day."""
    days = _days(parts)
    hour, minute, second = parts["h"], parts["n"], parts["s"]
    if days is None or ((hour > 23) | (minute > 59) | (second > 59)).any():
        return None
    micros: Ints = days * MICROS_PER_DAY
    micros = micros + (hour * 3600 + minute * 60 + second) * MICROS_PER_SECOND + parts["f"]
    if "q" not in parts:
        return micros
    if ((parts["zh"] > 14) | (parts["zn"] > 59)).any():
        return None
    offset: Ints = parts["q"] * (parts["zh"] * 3600 + parts["zn"] * 60)
    shifted: Ints = micros - offset * MICROS_PER_SECOND
    return shifted
