"""Rows of pg_timezone_names and pg_timezone_abbrevs: time zones at the transaction's start."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from coordinator.pgcatalog.named_row import NamedRow
from sql.binder.state import BindContext
from sql.types.datetime.timezones import (
    abbreviation_at_utc,
    abbreviation_meaning,
    abbreviation_names,
    find_zone,
    is_daylight_at_utc,
    offset_at_utc,
    zone_names,
)
from sql.types.sql_type import Interval

_MICROS: Final = 1_000_000


def _names(context: BindContext) -> Iterator[NamedRow]:
    seconds = context.now // _MICROS
    for name in sorted(zone_names()):
        zone = find_zone(name)
        if zone is not None:
            yield {
                "name": name,
                "abbrev": abbreviation_at_utc(zone, seconds),
                "utc_offset": _interval(offset_at_utc(zone, seconds)),
                "is_dst": is_daylight_at_utc(zone, seconds),
            }


def _abbreviations(context: BindContext) -> Iterator[NamedRow]:
    seconds = context.now // _MICROS
    session = find_zone(context.timezone)
    assert session is not None, "the session's zone is known"
    for name in sorted(abbreviation_names(session)):
        offset, is_daylight = abbreviation_meaning(name, session, seconds)
        yield {"abbrev": name.upper(), "utc_offset": _interval(offset), "is_dst": is_daylight}


def _interval(seconds: int) -> Interval:
    return Interval(micros=seconds * _MICROS)


TIME_ZONE_ROWS: Final[Mapping[str, Callable[[BindContext], Iterator[NamedRow]]]] = {
    "pg_timezone_abbrevs": _abbreviations,
    "pg_timezone_names": _names,
}
