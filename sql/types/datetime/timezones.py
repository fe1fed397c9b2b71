"""Time zones by name and abbreviation, and their offsets at any instant PostgreSQL can hold.

INVARIANTS
  Z1  offsets are seconds east of UTC.
  Z2  a local time that a change of clocks skips or repeats is read as standard time.
  Z3  names compare without case; a name never reaches the file system unless it is a known zone.
  Z4  a zone name in a statement is looked up as an abbreviation first. It then has the meaning that
      the session's zone gives it, at that time if the meaning changed. The setting TimeZone is
      never an abbreviation: `SET timezone = 'CET'` has daylight saving, AT TIME ZONE 'CET' has not.
  Z5  the rules come from the package tzdata, never from the machine: every server has the same, and
      they are those of a PostgreSQL of the same release, where machines may have rules of their own
      before 1970 (backzone).

Years outside Python's range borrow the rules of a year in range: the first known offset before it,
the same year of another 400-year cycle behind it. Abbreviations that the session's zone does not
know are in PostgreSQL's list, with one offset each, or with the zone that uses it (DYNTZ).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final, NamedTuple, TypeAlias
from zoneinfo import ZoneInfo

from sql.errors import not_supported
from sql.types.datetime.calendar import DAYS_PER_CYCLE

_ZONES_CACHED_MAX: Final = 1024
"""Users choose the names; beyond this many, a name is looked up again."""

_EPOCH: Final = datetime(1970, 1, 1)
_FIRST_DAY: Final = (datetime(2, 1, 1) - _EPOCH).days
_LAST_DAY: Final = (datetime(9000, 1, 1) - _EPOCH).days
# Local mean times ended after the first, and rules for ever began before the last.
_FIRST_USE: Final = (datetime(1840, 1, 1) - _EPOCH).days
_LAST_USE: Final = (datetime(2040, 1, 1) - _EPOCH).days

# A POSIX zone without daylight saving: a name, which may be empty, and hours *west*, as in `UTC+3`,
# `<+03>-03` or `+02`.
_POSIX: Final = re.compile(r"(?:([A-Za-z]*)|<([^>]+)>)([+-]?)(\d{1,3})(?::(\d{2}))?(?::(\d{2}))?")


# One with it: a second name, and perhaps an offset and when it begins and ends.
_DAYLIGHT: Final = re.compile(
    r"(?:<[^>]*>|[^\d,+-]*)[+-]?\d{1,3}(?::\d{1,2}){0,2}"
    r"(?:<[^>]+>|[^\d,+-]+)(?:[+-]?\d{1,3}(?::\d{1,2}){0,2})?(?:[,;][MJ\d].*)?",
    re.ASCII,
)
_POSIX_HOURS_MAX: Final = 167

_LINKS: Final = {
    "EST5EDT": "America/New_York",
    "CST6CDT": "America/Chicago",
    "MST7MDT": "America/Denver",
    "PST8PDT": "America/Los_Angeles",
}
"""As the zone database has them since 2024b; the package still has zones without a history."""

_Meaning: TypeAlias = tuple[str, int, bool]
"""A name, its offset, and whether that is daylight saving time."""


def zone_names() -> list[str]:
    """The names of all zones, as the list of zones spells them."""
    return list(_zone_names().values())


@lru_cache(maxsize=_ZONES_CACHED_MAX)
def find_zone(name: str) -> tzinfo | None:
    """The zone of that name, or None (Z3). 0A000 for rules of daylight saving in the name."""
    lowered = name.lower()
    if lowered in ("utc", "etc/utc", "zulu"):
        return UTC
    known = _zone_names().get(lowered)
    return _load(known) if known is not None else _posix_zone(name)


def canonical_zone_name(name: str) -> str | None:
    """The name as the list of zones spells it, or None for one that the list does not have."""
    return _zone_names().get(name.lower())


class FixedAbbreviation(NamedTuple):
    """An abbreviation that has always meant one offset (Z1)."""

    offset: int
    is_daylight: bool


def find_abbreviation(name: str, session: tzinfo) -> "FixedAbbreviation | ChangingZone | None":
    """The meaning of a lower-case abbreviation if this is the session's zone (Z4), or None."""
    meanings = {use.meaning for use in abbreviation_uses(session, name)}
    if meanings:
        return meanings.pop() if len(meanings) == 1 else ChangingZone(session, name)
    zone = _changing().get(name)
    return _abbreviations().get(name) if zone is None else ChangingZone(_load(zone), name)


@lru_cache(maxsize=_ZONES_CACHED_MAX)
def find_named_zone(name: str, session: str) -> tzinfo | None:
    """The zone that AT TIME ZONE uses for the name of an abbreviation or a zone (Z4), or None.
    `session`: the name of the session's zone.
    """
    own = find_zone(session)
    known = None if own is None else find_abbreviation(name.lower(), own)
    if isinstance(known, FixedAbbreviation):
        return timezone(timedelta(seconds=known.offset))
    return find_zone(name) if known is None else known


def find_calendar_zone(name: str, session: str) -> tzinfo | None:
    """The same for counting days and months in a zone, as date_trunc() does: an abbreviation whose
    meaning changed stands for the whole zone that used it (DecodeTimezoneNameToTz).
    """
    found = find_named_zone(name, session)
    return found.zone if isinstance(found, ChangingZone) else found


@dataclass(frozen=True, slots=True)
class AbbreviationUse:
    """The meaning of a zone's abbreviation from an instant on (Z1)."""

    since: int
    offset: int
    is_daylight: bool

    @property
    def meaning(self) -> FixedAbbreviation:
        """The meaning in the form that `find_abbreviation` returns."""
        return FixedAbbreviation(self.offset, self.is_daylight)


def abbreviation_uses(zone: tzinfo, name: str) -> tuple[AbbreviationUse, ...]:
    """Every use that a zone makes of a lower-case abbreviation, in order."""
    if isinstance(zone, timezone):
        # Not to be looked up: zones of POSIX are equal where only their offsets are.
        is_own = name != "" and zone.tzname(None).lower() == name
        return (AbbreviationUse(0, offset_at_utc(zone, 0), False),) if is_own else ()
    return _uses(zone).get(name, ())


def _use_at(uses: Sequence[AbbreviationUse], instant: int) -> AbbreviationUse:
    """The last one that has begun, or the first (pg_interpret_timezone_abbrev)."""
    begun = [use for use in uses if use.since <= instant]
    return begun[-1] if begun else uses[0]


class ChangingZone(tzinfo):
    """A zone in which an abbreviation is in force, with the offset that it has at the time, or if
    the zone never used it, the zone's own (DetermineTimeZoneAbbrevOffsetTS).
    """

    def __init__(self, zone: tzinfo, name: str) -> None:
        self.zone = zone
        self._name = name
        self._uses = abbreviation_uses(zone, name)

    def utcoffset(self, moment: datetime | None, /) -> timedelta | None:
        """The offset at a local time; None without one, as for every zone whose offset changes."""
        if moment is None:
            return None
        since = moment.replace(tzinfo=None) - _EPOCH
        return timedelta(seconds=self.at_local(since.days * 86_400 + since.seconds))

    def tzname(self, _moment: datetime | None, /) -> str:
        """The abbreviation."""
        return self._name.upper()

    def dst(self, _moment: datetime | None, /) -> None:
        """Never called."""

    def at_utc(self, seconds: int) -> int:
        """The offset at an instant."""
        if self._uses:
            return _use_at(self._uses, seconds).offset
        return offset_at_utc(self.zone, seconds)

    def at_local(self, seconds: int) -> int:
        """The offset at a local time."""
        own = offset_at_local(self.zone, seconds)
        return _use_at(self._uses, seconds - own).offset if self._uses else own


@lru_cache(maxsize=_ZONES_CACHED_MAX)
def _uses(zone: tzinfo) -> dict[str, tuple[AbbreviationUse, ...]]:
    """Found by looking at one day a fortnight: none was in use for less."""
    found: dict[str, list[AbbreviationUse]] = {}
    last: _Meaning | None = None
    for day in range(_FIRST_USE, _LAST_USE, 14):
        now = _meaning(zone, day * 86_400)
        if now != last:
            since = day * 86_400 if last is None else _begin(zone, (day - 14) * 86_400, last)
            name, offset, is_daylight = now
            found.setdefault(name, []).append(AbbreviationUse(since, offset, is_daylight))
            last = now
    return {name: tuple(uses) for name, uses in found.items()}


def _meaning(zone: tzinfo, seconds: int) -> _Meaning:
    moment = zone.fromutc((_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=zone))
    name = (moment.tzname() or "").lower()
    return name, _seconds(moment.utcoffset()), bool(moment.dst())


def _begin(zone: tzinfo, old: int, meaning: _Meaning) -> int:
    """The instant within the fortnight behind `old` at which a meaning ends."""
    new = old + 14 * 86_400
    while new - old > 1:
        middle = (old + new) // 2
        if _meaning(zone, middle) == meaning:
            old = middle
        else:
            new = middle
    return new


def fixed_offset(zone: tzinfo) -> int | None:
    """The offset that is always in force; None for a zone whose offset changes."""
    offset = zone.utcoffset(None)
    return None if offset is None else _seconds(offset)


def offset_at_utc(zone: tzinfo, seconds: int) -> int:
    """The offset in force at an instant, given in seconds since 1970 UTC."""
    if zone is UTC:
        return 0
    if isinstance(zone, ChangingZone):
        return zone.at_utc(seconds)
    moment = _naive(seconds).replace(tzinfo=zone)
    return _seconds(zone.fromutc(moment).utcoffset())


def abbreviation_at_utc(zone: tzinfo, seconds: int) -> str:
    """The name in force at an instant, like `CET`."""
    return zone.fromutc(_naive(seconds).replace(tzinfo=zone)).tzname() or ""


def is_daylight_at_utc(zone: tzinfo, seconds: int) -> bool:
    """Whether daylight saving time is in force at an instant."""
    return bool(zone.fromutc(_naive(seconds).replace(tzinfo=zone)).dst())


def abbreviation_names(session: tzinfo) -> set[str]:
    """The lower-case abbreviations that mean something if this is the session's zone (Z4)."""
    listed = _abbreviations().keys() | _changing().keys()
    if isinstance(session, timezone):
        return {*listed, *filter(None, [session.tzname(None).lower()])}
    names = {name for name in _uses(session) if name.isalpha()}
    return listed | names


def abbreviation_meaning(name: str, session: tzinfo, seconds: int) -> FixedAbbreviation:
    """The meaning of such an abbreviation at an instant."""
    found = find_abbreviation(name, session)
    assert found is not None, "the abbreviation is known"
    if isinstance(found, FixedAbbreviation):
        return found
    uses = abbreviation_uses(found.zone, name)
    if uses:
        return _use_at(uses, seconds).meaning
    return FixedAbbreviation(
        offset_at_utc(found.zone, seconds), is_daylight_at_utc(found.zone, seconds)
    )


def offset_at_local(zone: tzinfo, seconds: int) -> int:
    """The offset of a local time, given in seconds since 1970 as its clock shows them (Z2)."""
    if zone is UTC:
        return 0
    if isinstance(zone, ChangingZone):
        return zone.at_local(seconds)
    moment = _naive(seconds)
    before = _seconds(zone.utcoffset(moment.replace(fold=0)))
    after = _seconds(zone.utcoffset(moment.replace(fold=1)))
    return min(before, after)


def _naive(seconds: int) -> datetime:
    days, within = divmod(seconds, 86_400)
    if days < _FIRST_DAY:
        days = _FIRST_DAY
    elif days > _LAST_DAY:
        days = _LAST_DAY - DAYS_PER_CYCLE + (days - _LAST_DAY) % DAYS_PER_CYCLE
    return _EPOCH + timedelta(days=days, seconds=within)


def _seconds(offset: timedelta | None) -> int:
    assert offset is not None, "zones are aware"
    return offset.days * 86_400 + offset.seconds


@cache
def _zone_names() -> dict[str, str]:
    names = files("tzdata").joinpath("zones").read_text("ascii").split()
    return {name.lower(): name for name in names}


@cache
def _load(name: str) -> ZoneInfo:
    """The zone of a name that `_zone_names` has (Z5)."""
    with files("tzdata.zoneinfo").joinpath(*_LINKS.get(name, name).split("/")).open("rb") as rules:
        return ZoneInfo.from_file(rules, key=name)


def _posix_zone(name: str) -> tzinfo | None:
    match = _POSIX.fullmatch(name)
    if match is None:
        if _DAYLIGHT.fullmatch(name):
            raise not_supported(f'time zone "{name}", which has rules of its own,')
        return None
    hours, minutes, seconds = (int(part or 0) for part in match.group(4, 5, 6))
    if hours > _POSIX_HOURS_MAX:
        return None
    west = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if west >= timedelta(hours=24):
        raise not_supported(f'time zone "{name}", a day or more from UTC,')
    abbreviation = (match[1] or match[2] or "").upper()
    return timezone(west if match[3] == "-" else -west, abbreviation)


@cache
def _abbreviations() -> dict[str, FixedAbbreviation]:
    rows = [row for row in _rows() if "/" not in row[1]]
    return {row[0]: FixedAbbreviation(int(row[1]), len(row) > 2) for row in rows}


@cache
def _changing() -> dict[str, str]:
    return {row[0]: row[1] for row in _rows() if "/" in row[1]}


def _rows() -> list[list[str]]:
    text = files("sql").joinpath("data/timezone_abbreviations.txt").read_text("ascii")
    return [line.split() for line in text.splitlines() if not line.startswith("#")]
