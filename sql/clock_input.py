"""The input and output functions of time: microseconds since midnight, 24:00:00 included.

A text is a clock, `10:00[:00[.5]] [am|pm]`, `100000` or `allballs`, perhaps behind a date and
before a zone, both of which a time without zone ignores.

INVARIANTS
  C1  a value is in 0 .. 86,400,000,000; PostgreSQL's other clocks are its errors.
"""

import re
from typing import Final

from sql.dates import MICROS_PER_DAY, MICROS_PER_SECOND
from sql.datetime_input import parse_timestamp
from sql.errors import SqlError

_CLOCK: Final = re.compile(
    r"[ \t\n\v\f\r]*T?(?:([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(\.[0-9]*)?)?"
    r"|([0-9]{2})([0-9]{2})([0-9]{2})?(\.[0-9]*)?)"
    r"[ \t\n\v\f\r]*(am|pm)?"
    r"[ \t\n\v\f\r]*(?:z|utc|gmt|[+-][0-9]{1,2}(?::?[0-9]{2}(?::?[0-9]{2})?)?)?[ \t\n\v\f\r]*",
    re.IGNORECASE,
)
_HALF_DAY: Final = 12
_PARTS: Final = (1, 2, 3, 4)
_TOGETHER: Final = (5, 6, 7, 8)


def parse_time(text: str) -> int:
    """Microseconds since midnight (C1)."""
    match = _CLOCK.fullmatch(text)
    if match is None:
        return _other(text)
    parts = match.group(*(_PARTS if match[1] is not None else _TOGETHER))
    hour, minute, second = (int(part or 0) for part in parts[:3])
    micros = round(float(f"0{parts[3] or '.'}0") * MICROS_PER_SECOND)
    if match[9] is not None:
        if hour > _HALF_DAY:
            raise _out_of_range(text)
        hour = hour % _HALF_DAY + (_HALF_DAY if match[9].lower() == "pm" else 0)
    if minute > 59 or second > 60:
        raise _out_of_range(text)
    value = ((hour * 60 + minute) * 60 + second) * MICROS_PER_SECOND + micros
    if value > MICROS_PER_DAY:
        raise _out_of_range(text)
    return value


def _other(text: str) -> int:
    if text.strip(" \t\n\v\f\r").lower() == "allballs":
        return 0
    try:
        return parse_timestamp(text) % MICROS_PER_DAY if ":" in text else _refuse(text)
    except SqlError as error:
        if error.sqlstate == "22008":
            raise _out_of_range(text) from None
        return _refuse(text)


def _refuse(text: str) -> int:
    raise SqlError("22007", f'invalid input syntax for type time: "{text}"')


def _out_of_range(text: str) -> SqlError:
    return SqlError("22008", f'date/time field value out of range: "{text}"')
