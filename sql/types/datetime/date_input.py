"""Parse date, timestamp and timestamptz as PostgreSQL's input functions do.

    text ─ ISO shape? ─▶ arithmetic                                  (what drivers send)
         └ otherwise ─▶ tokens ─▶ `decoder.Decoder` ─▶ value

See `decoder.py` for the range of values (I1), and for the clock (I3).
"""

import re
from datetime import UTC, tzinfo
from typing import Final

from sql.errors import SqlError
from sql.types.datetime.calendar import (
    MICROS_PER_DAY,
    MICROS_PER_SECOND,
    days_from_civil,
    days_in_month,
)
from sql.types.datetime.decoder import DatetimeDecoder, TransactionClock
from sql.types.datetime.timezones import find_zone, offset_at_local
from sql.types.datetime.tokens import (
    DATETIME_CHARACTERS_MAX,
    ZONE_HOURS_MAX,
    FieldError,
    split_datetime_tokens,
)

DATE_DAYS_MAX: Final = days_from_civil(5_874_897, 12, 31)
TIMESTAMP_MICROS_END: Final = 2**63
"""294247-01-10: PostgreSQL counts from 2000 and so gets 30 years further."""
_DAYS_MIN: Final = days_from_civil(1, 1, 1)

_ISO_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_ISO_TIMESTAMP: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[ T]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,6}))?"
    r"(?:(Z)|([+-])([0-9]{2})(?::?([0-9]{2}))?)?"
)


def parse_date(text: str, order: str = "MDY", clock: TransactionClock | None = None) -> int:
    """Days since 1970-01-01 (I1 of `decoder.py`). `order`: of day, month and year, e.g. `MDY`."""
    if match := _ISO_DATE.fullmatch(text):
        year, month, day = int(match[1]), int(match[2]), int(match[3])
        if year >= 1 and 1 <= month <= 12 and 1 <= day <= days_in_month(year, month):
            return days_from_civil(year, month, day)
    days, _, _ = _decode_moment("date", text, UTC, order, clock)
    if days > DATE_DAYS_MAX:
        raise SqlError("22008", f'date out of range: "{text}"')
    return days


def parse_timestamp(text: str, order: str = "MDY", clock: TransactionClock | None = None) -> int:
    """Microseconds since 1970-01-01 on the clock that the text shows; a zone in it is ignored."""
    micros = _iso_timestamp(text, None)
    if micros is not None:
        return micros
    days, micros, _ = _decode_moment("timestamp", text, UTC, order, clock)
    return _checked_timestamp(days * MICROS_PER_DAY + micros, text)


def parse_timestamptz(
    text: str, *, timezone: str, order: str = "MDY", clock: TransactionClock | None = None
) -> int:
    """Microseconds since 1970-01-01 UTC; a text without zone is in `timezone`."""
    zone = find_zone(timezone)
    if zone is None:
        raise SqlError("22023", f'time zone "{timezone}" not recognized')
    micros = _iso_timestamp(text, zone)
    if micros is not None:
        return micros
    name = "timestamp with time zone"
    days, micros, offset = _decode_moment(name, text, zone, order, clock)
    return _checked_timestamp(days * MICROS_PER_DAY + micros - offset * MICROS_PER_SECOND, text)


def _iso_timestamp(text: str, zone: tzinfo | None) -> int | None:
    """The value of a plain ISO text, or None where the long way must decide. No zone: local."""
    match = _ISO_TIMESTAMP.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in match.group(1, 2, 3, 4, 5, 6))
    # Year 1 may leave the range through its offset; the long way reports it.
    if year <= 1 or not 1 <= month <= 12 or not 1 <= day <= days_in_month(year, month):
        return None
    if hour > 23 or minute > 59 or second > 59:
        return None
    local = days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second
    micros = local * MICROS_PER_SECOND + int((match[7] or "").ljust(6, "0"))
    if match[9] is not None:
        offset = int(match[10]) * 3600 + int(match[11] or 0) * 60
        if int(match[10]) > ZONE_HOURS_MAX or int(match[11] or 0) > 59:
            return None
        offset = -offset if match[9] == "-" else offset
    elif match[8] is not None or zone is None:
        offset = 0
    else:
        offset = offset_at_local(zone, local)
    return micros if zone is None else micros - offset * MICROS_PER_SECOND


def _checked_timestamp(micros: int, text: str) -> int:
    if not _DAYS_MIN * MICROS_PER_DAY <= micros < TIMESTAMP_MICROS_END:
        raise SqlError("22008", f'timestamp out of range: "{text}"')
    return micros


def _decode_moment(
    type_name: str, text: str, zone: tzinfo, order: str, clock: TransactionClock | None
) -> tuple[int, int, int]:
    """Days, microseconds of the day, offset east in seconds."""
    try:
        words = split_datetime_tokens(text, characters_max=DATETIME_CHARACTERS_MAX)
        decoder = DatetimeDecoder(text, order, zone, clock)
        for word in words:
            decoder.add(word)
        return decoder.finish()
    except FieldError as error:
        raise error.report(type_name, text) from None
