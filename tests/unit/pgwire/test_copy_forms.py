"""Forms of COPY text that are read a column at a time, against the reader of single values."""

import random
from collections.abc import Callable

import pyarrow as pa
import pytest

from ingest.copy_text.arrow_types import to_values
from ingest.copy_text.columns import column_parser, parse_field
from sql.errors import SqlError
from sql.types.sql_type import SqlType
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
        ("_int4", _array),
        ("_text", _array),
        ("_interval", lambda: f"{{{_interval()}}}"),
    ],
)
def test_a_column_is_read_as_its_values(
    type_name: str, make: Callable[[], str], timezone: str
) -> None:
    type_ = SqlType(type_name)
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
