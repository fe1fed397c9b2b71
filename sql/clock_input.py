"""The input functions of time and timetz, 24:00:00 included.

A text is a clock, `10:00[:00[.5]] [am|pm]`, `100000` or `allballs`, perhaps behind a date and
before a zone. A time without zone ignores both.

INVARIANTS
  C1  a clock is in 0 .. 86,400,000,000; PostgreSQL's other clocks are its errors.
  C2  a time with time zone has a fixed offset. Which one a zone with daylight saving has depends on
      the date; without one it would be today's, and input has no clock: that is refused (0A000).
"""

import re
from datetime import UTC, tzinfo
from typing import Final

from sql.dates import MICROS_PER_DAY, MICROS_PER_SECOND
from sql.datetime_fields import FieldError
from sql.datetime_input import decode_moment, decode_zone
from sql.errors import SqlError, not_supported
from sql.timetz import packed
from sql.timezones import find_abbreviation, find_zone, fixed_offset

_CLOCK: Final = (
    r"[ \t\n\v\f\r]*T?(?:([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(\.[0-9]*)?)?"
    r"|([0-9]{2})([0-9]{2})([0-9]{2})?(\.[0-9]*)?)"
    r"[ \t\n\v\f\r]*(?:(am|pm)(?![A-Za-z]))?[ \t\n\v\f\r]*"
)
_LOCAL: Final = re.compile(
    _CLOCK + r"(z|utc|gmt|[+-][0-9]{1,2}(?::?[0-9]{2}(?::?[0-9]{2})?)?)?[ \t\n\v\f\r]*",
    re.IGNORECASE,
)
_ZONED: Final = re.compile(_CLOCK + r"([-+A-Za-z][^ \t\n\v\f\r]*)?[ \t\n\v\f\r]*", re.IGNORECASE)
_JOINED: Final = re.compile(r"[0-9]T[0-9]", re.IGNORECASE)
"""A date and a clock with ISO 8601's T between them, which a time without zone may not have."""
_NUMBER_BEHIND: Final = re.compile(r":\S*\s(?:.*\s)?[0-9]+(?:\s|$)", re.DOTALL)
"""A part of a date behind the clock, which only a whole date may be."""
_HALF_DAY: Final = 12
_PARTS: Final = (1, 2, 3, 4)
_TOGETHER: Final = (5, 6, 7, 8)
_ZONELESS, _WITH_ZONE = "time", "time with time zone"


def parse_time(text: str) -> int:
    """Microseconds since midnight (C1)."""
    match = _LOCAL.fullmatch(text)
    if match is not None:
        if match[10] is not None and match[10][0] in "+-":
            _numbered_zone(match[10], _ZONELESS, text)
        return _clock(match, text)
    if _word(text, _ZONELESS) == "allballs":
        return 0
    if ":" not in text or _JOINED.search(text) or _NUMBER_BEHIND.search(text):
        raise _refused(_ZONELESS, text)
    try:
        _, micros, _ = decode_moment(_ZONELESS, text, UTC)
    except SqlError as error:
        raise _reworded(error, _ZONELESS, text) from None
    return micros


def parse_timetz(text: str, *, timezone: str) -> int:
    """See `sql/timetz.py`; a text without a zone is in `timezone` (C1, C2)."""
    match = _ZONED.fullmatch(text)
    if match is not None:
        return packed(_clock(match, text), _offset(match[10], text, timezone))
    if _word(text, _WITH_ZONE) == "allballs":
        return packed(0, 0)
    if ":" not in text or _NUMBER_BEHIND.search(text):
        raise _refused(_WITH_ZONE, text)
    try:
        _, micros, offset = decode_moment(_WITH_ZONE, text, _zone(timezone))
    except SqlError as error:
        raise _reworded(error, _WITH_ZONE, text) from None
    return packed(micros, offset)


def _clock(match: re.Match[str], text: str) -> int:
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


def _offset(written: str | None, text: str, timezone: str) -> int:
    if written is None:
        found = fixed_offset(_zone(timezone))
        if found is None:
            raise not_supported(f'a time with time zone without its offset in "{timezone}"')
        return found
    if written[0] in "+-":
        return _numbered_zone(written, _WITH_ZONE, text)
    abbreviation = find_abbreviation(written.lower())
    if abbreviation is not None:
        return abbreviation[0]
    zone = find_zone(written)
    offset = None if zone is None else fixed_offset(zone)
    if zone is None and "/" in written:
        raise SqlError("22023", f'time zone "{written.lower()}" not recognized')
    if offset is None:
        raise _refused(_WITH_ZONE, text)
    return offset


def _numbered_zone(written: str, type_name: str, text: str) -> int:
    try:
        return decode_zone(written)
    except FieldError as error:
        raise error.report(type_name, text) from None


def _zone(timezone: str) -> tzinfo:
    zone = find_zone(timezone)
    if zone is None:
        raise SqlError("22023", f'time zone "{timezone}" not recognized')
    return zone


def _word(text: str, type_name: str) -> str:
    word = text.strip(" \t\n\v\f\r").lower()
    if word == "now":
        raise not_supported(f'input "now" of type {type_name}')
    return word


def _refused(type_name: str, text: str) -> SqlError:
    return SqlError("22007", f'invalid input syntax for type {type_name}: "{text}"')


def _reworded(error: SqlError, type_name: str, text: str) -> SqlError:
    if error.sqlstate in ("22008", "22009", "22023", "0A000"):
        return _out_of_range(text) if error.sqlstate == "22008" else error
    return _refused(type_name, text)


def _out_of_range(text: str) -> SqlError:
    return SqlError("22008", f'date/time field value out of range: "{text}"')
