"""Parse TimeZone for SET and print it for SHOW: a name, hours or an interval (check_timezone).

SET TIME ZONE 'Europe/Oslo'      Europe/Oslo
SET TIME ZONE -3.5               <-03:30>+03:30
SET TIME ZONE INTERVAL '+05:30' HOUR TO MINUTE, or the value INTERVAL '05:30:00'
                                 <+05:30>-05:30
"""

import re
from typing import Final

from sql.errors import SqlError
from sql.types.datetime.timezones import canonical_zone_name, find_zone
from sql.types.sql_type import Interval
from sql.types.styles import DEFAULT_STYLES, Styles
from sql.types.text_input import parse_text

_HOURS_MAX: Final = 100
"""Characters; a longer one is no zone whatever it says."""
_HOURS: Final = re.compile(r"[+-]?(\d+)(\.\d*)?")
"""Anything with a colon is a POSIX zone instead, which counts west."""
_INTERVAL: Final = re.compile(r"interval\s*'([^']*)'", re.IGNORECASE)
_SECOND_US: Final = 1_000_000


def check_time_zone(name: str, value: str, styles: Styles = DEFAULT_STYLES) -> str:
    """The zone as SHOW prints it. `styles`: an interval is read in them. Raises 22023, 22007."""
    if value[:8].lower() == "interval":
        found = _INTERVAL.fullmatch(value)
        if found is None:
            raise _invalid(name, value)
        return _fixed_zone(name, value, _interval_seconds(name, value, found[1], styles))
    text = value.strip().strip("'")
    if _HOURS.fullmatch(text) and len(text) <= _HOURS_MAX:
        return _fixed_zone(name, value, int(float(text) * 3600))
    if find_zone(text) is None:
        raise _invalid(name, value)
    return canonical_zone_name(text) or text.upper()


def _interval_seconds(name: str, value: str, text: str, styles: Styles) -> int:
    """The offset east of Greenwich that an interval says, without parts of seconds."""
    interval = parse_text("interval", text, styles=styles)
    assert isinstance(interval, Interval), "the text of an interval is one"
    for unit, count in (("months", interval.months), ("days", interval.days)):
        if count:
            raise _invalid(name, value, f"Cannot specify {unit} in time zone interval.")
    seconds = abs(interval.micros) // _SECOND_US
    return -seconds if interval.micros < 0 else seconds


def _fixed_zone(name: str, value: str, seconds: int) -> str:
    """The zone that is always so far east (pg_tzset_offset)."""
    # POSIX zones count hours west of Greenwich, SQL counts them east: PostgreSQL's spelling.
    east, west = ("-", "+") if seconds < 0 else ("+", "-")
    shown = _shown_offset(abs(seconds))
    zone = f"<{east}{shown}>{west}{shown}"
    if find_zone(zone) is None:
        raise _invalid(name, value, "UTC timezone offset is out of range.")
    return zone


def _shown_offset(seconds: int) -> str:
    """`05`, `05:30` or `05:30:15`."""
    parts = [seconds // 3600, seconds // 60 % 60, seconds % 60]
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return ":".join(f"{part:02d}" for part in parts)


def _invalid(name: str, value: str, detail: str | None = None) -> SqlError:
    return SqlError("22023", f'invalid value for parameter "{name}": "{value}"', detail=detail)
