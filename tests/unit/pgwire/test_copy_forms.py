"""Forms of COPY text that are read a column at a time, against the reader of single values."""

import random
from collections.abc import Callable

import pyarrow as pa
import pytest

from ingest.copy_text.arrow_types import to_values
from ingest.copy_text.columns import column_parser, parse_field
from sql.errors import SqlError
from sql.types.sql_type import NUMERIC, SqlType
from sql.types.styles import DEFAULT_STYLES

_random = random.Random(11)


def _int() -> str:
    number = _random.choice((0, 5, -7, 12345, 2147483647, 2147483648))
    return _random.choice(("{}", "+{}", " {}", "{} ", "-{}", "+-{}", "0{}")).format(number)


def _date() -> str:
    year = _random.choice((1, 4, 1970, 1999, 2000, 2020, 2021, 9999))
    month, day = _random.randrange(0, 14), _random.choice((0, 1, 9, 28, 29, 30, 31, 32))
    forms = ("{y:04}-{m}-{d}", "{m}/{d}/{y:04}", "{y:04}-{m:02}-{d:02}", "{m:02}/{d:02}/{y:04}")
    return _random.choice((*forms, *forms, "{d}.{m}.{y:04}", "{y}-{m}-{d}")).format(
        y=year, m=month, d=day
    )


def _stamp() -> str:
    hour, minute = _random.choice((0, 9, 23, 24)), _random.choice((0, 5, 59, 60))
    time = _random.choice(
        (f"{hour:02}:{minute:02}", f"{hour}:{minute:02}:07", f"{hour:02}:{minute:02}:59.5",
         f"{hour:02}:{minute:02}:00.123456", f"{hour:02}:{minute:02}:60")
    )  # fmt: skip
    return f"{_date()}{_random.choice((' ', 'T'))}{time}"


def _zoned() -> str:
    zone = _random.choice(("Z", "z", "+00", "-05", "+0530", " +01:30", "-14", "+15", "", " UTC"))
    return _stamp() + zone


def _interval() -> str:
    number = _random.choice((0, 1, -1, 7, 999_999, 1_000_000))
    units = ("year", "years", "mon", "mons", "month", "day", "days", "hour", "hours", "weeks", "h")
    words = [f"{number} {unit}" for unit in _random.sample(units, _random.choice((0, 1, 1, 2, 3)))]
    clock = ("", "04:05:06", "-00:00:01", "+1:02:03.5", "04:60:00", "04:05", "99999:00:00.123456")
    blank = _random.choice((" ", " ", " ", "  ", ""))
    return blank.join(filter(None, [*words, _random.choice(clock)]))


def _words() -> str:
    number = _random.choice(("0", "1", "-1", "+7", "999999", "1.5", "-0.25", "2.000001", "1e2"))
    units = ("year", "mons", "weeks", "day", "hours", "mins", "minutes", "sec", "seconds", "ms")
    chosen = [unit for unit in units if _random.random() < 0.25]
    words = " ".join(f"{number} {unit}" for unit in chosen)
    return _random.choice(("{}", "{}", "@ {}", "{} ago", "@ {} ago", "{} ", "{}ago", "@{}")).format(
        words
    )


_NUMBERS = (
    "0", "-0", "-0.001", "1", "+1.5", " -2.5 ", "1.005", "-1.005", "0.0049", ".5", "5.", "1e2",
    "-1.5E-1", "12345678.999", "99999999.995", "-99999999.994", "1" * 40, "0." + "9" * 40, ".",
    "1e-30", "1e", "-", "+", "+-1", "1 2", "1-2", "1.2.3", "NaN", "1_000", "0x10", "1e30", "1e-400",
    "0.000000000000000001", "0.0000000000000000001", "123456789012345678901",
)  # fmt: skip


def _number() -> str:
    if _random.random() < 0.5:
        return _random.choice(_NUMBERS)
    digits = str(_random.randrange(10 ** _random.randrange(1, 60)))
    return f"{digits[: (point := _random.randrange(20))]}.{digits[point:]}"


_FIELDS = ("1", "-2", "+3", "abc", "", "NULL", "null", '"a b"', "nullx", " 4", "5 ", "a\\,b", "é")


def _array() -> str:
    fields = [_random.choice((*_FIELDS, "7", "8")) for _ in range(_random.choice((0, 1, 1, 2)))]
    return _random.choice(("{{{}}}", "{{{}}}", "{{{}}}", "{{{}", "[0:1]={{{}}}", " {{{}}}")).format(
        ",".join(fields)
    )


@pytest.mark.parametrize("timezone", ["UTC", "America/New_York"])
@pytest.mark.parametrize(
    ("type_name", "make"),
    [
        ("int2", _int),
        ("int4", _int),
        ("int8", _int),
        ("date", _date),
        ("timestamp", _stamp),
        ("timestamptz", _zoned),
        ("timestamptz", _stamp),
        ("interval", _interval),
        ("interval", _words),
        ("_int4", _array),
        ("_text", _array),
        ("_interval", lambda: f"{{{_interval()}}}"),
    ],
)
def test_a_column_is_read_as_its_values(
    type_name: str, make: Callable[[], str], timezone: str
) -> None:
    _check(SqlType(type_name), make, timezone)


@pytest.mark.parametrize(
    "type_", [NUMERIC, SqlType("numeric", 655366, 10, 2), SqlType("numeric", 655364, 10, 0)]
)
def test_numbers_are_read_as_their_values(type_: SqlType) -> None:
    _check(type_, _number, "UTC")


def _check(type_: SqlType, make: Callable[[], str], timezone: str) -> None:
    parse = column_parser(type_, timezone)
    read = 0
    for _ in range(400):
        text = make()
        try:
            expected = parse_field(text, type_, timezone, DEFAULT_STYLES)
        except SqlError:
            with pytest.raises((SqlError, pa.ArrowInvalid)):
                parse(pa.array([text]))
            continue
        try:
            column = parse(pa.array([text, None, text]))
        except pa.ArrowInvalid:
            continue  # the exact way reads it (Q2)
        assert to_values(column, type_) == [expected, None, expected], text
        read += 1
    assert read > 50
