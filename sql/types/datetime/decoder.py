"""Assemble a date and time from its tokens, one after the other (DecodeDateTime).

    tokens ─▶ `DatetimeDecoder.add`, `.finish`: validation, zone ─▶ days, microseconds, offset

INVARIANTS
  I1  a value lies between 0001-01-01 and PostgreSQL's last one; BC and infinity are refused
      (22008), because the engines cannot hold them.
  I2  every part of a date or time is given at most once.
  I3  `now`, `today` and the like come from the caller's clock; without a clock they are refused
      (0A000).

The order of decisions is PostgreSQL's DecodeDateTime, whose ambiguities (`5 Jan 24`, `20240105`,
`1/2/03`) are only settled by doing the same.
"""

from collections.abc import Callable
from datetime import tzinfo
from enum import Flag, auto
from typing import Final, TypeAlias

from sql.errors import not_supported, out_of_engine_range
from sql.types.datetime.calendar import (
    MICROS_PER_DAY,
    MICROS_PER_SECOND,
    civil_from_days,
    days_from_civil,
    days_in_month,
)
from sql.types.datetime.timezones import (
    ChangingZone,
    find_abbreviation,
    find_zone,
    offset_at_local,
    offset_at_utc,
)
from sql.types.datetime.tokens import (
    MONTH_NUMBERS,
    TOKEN_LENGTH_MAX,
    WEEKDAYS,
    DatetimePart,
    DatetimeToken,
    DatetimeTokenKind,
    Fault,
    FieldError,
    decode_time,
    decode_zone,
    parse_fraction,
    parse_leading_int,
    split_date,
)

_JULIAN_OF_EPOCH: Final = 2_440_588


class _Prefix(Flag):
    JULIAN = auto()
    TIME = auto()


_JULIAN_WORDS: Final = frozenset({"j", "jd", "julian"})
_UNIT_WORDS: Final = frozenset({"d", "dow", "doy", "h", "isodow", "isoyear", "m", "mm", "s", "y"})
_CLOCK_WORDS: Final = {"now": 0, "today": 0, "tomorrow": 1, "yesterday": -1}
"""Days from today."""

TransactionClock: TypeAlias = Callable[[], tuple[int, tzinfo]]
"""Returns the transaction's start, microseconds since 1970 UTC, and the session's zone."""


class DatetimeDecoder:
    """Collects the parts of one text, token by token."""

    def __init__(
        self, text: str, order: str, session_zone: tzinfo, clock: TransactionClock | None
    ) -> None:
        self._text = text
        self._clock = clock
        self._order = order
        self._session_zone = session_zone
        self._seen = DatetimePart.NONE
        self._prefix: _Prefix | None = None
        self._year = self._month = self._day = self._day_of_year = 0
        self._hour = self._minute = self._second = self._micros = 0
        self._offset = 0
        self._zone: tzinfo | None = None
        self._has_text_month = False
        self._is_julian = False
        self._is_short_year = False
        self._is_bc = False
        self._is_epoch = False
        self._afternoon: bool | None = None

    def add(self, word: DatetimeToken) -> None:
        """Take the next token (I2)."""
        match word.kind:
            case DatetimeTokenKind.DATE:
                parts = self._add_date(word.text)
            case DatetimeTokenKind.TIME:
                parts = self._add_time(word.text)
            case DatetimeTokenKind.ZONE:
                self._offset = decode_zone(word.text)
                parts = DatetimePart.ZONE
            case DatetimeTokenKind.NUMBER:
                parts = self._add_number(word.text)
            case DatetimeTokenKind.WORD | DatetimeTokenKind.SIGNED_WORD:
                parts = self._add_word(word.text)
        self._mark(parts)

    def finish(self) -> tuple[int, int, int]:
        """Days, microseconds of the day, offset (I1)."""
        if self._prefix is not None:
            raise FieldError(Fault.FORMAT)
        if self._is_epoch:
            return 0, 0, 0
        self._validate_date()
        self._apply_half_day()
        if DatetimePart.DATE not in self._seen:
            raise FieldError(Fault.FORMAT)
        if self._is_bc or self._year < 1:
            raise out_of_engine_range(
                "22008",
                f'date/time field value out of range: "{self._text}"',
                detail="Dates before year 1 are not supported.",
            )
        if self._needs_date:
            self._offset = self._offset_of_moment()
        days = days_from_civil(self._year, self._month, self._day)
        return days, self._micros_of_day(), self._offset

    @property
    def _needs_date(self) -> bool:
        """Whether the offset depends on the date and time."""
        if self._zone is None and DatetimePart.ZONE in self._seen:
            return False
        if DatetimePart.DAYLIGHT in self._seen:
            raise FieldError(Fault.FORMAT)
        return True

    def _offset_of_moment(self) -> int:
        days = days_from_civil(self._year, self._month, self._day)
        seconds = days * 86_400 + self._micros_of_day() // MICROS_PER_SECOND
        return offset_at_local(self._zone or self._session_zone, seconds)

    def _mark(self, parts: DatetimePart) -> None:
        if parts & self._seen:
            raise FieldError(Fault.FORMAT)
        self._seen |= parts

    def _micros_of_day(self) -> int:
        seconds = self._hour * 3600 + self._minute * 60 + self._second
        return seconds * MICROS_PER_SECOND + self._micros

    # ------------------------------------------------------------ words that begin with a digit

    def _add_date(self, text: str) -> DatetimePart:
        if self._prefix is _Prefix.JULIAN:
            return self._add_julian_with_zone(text)
        # `mmm dd hh:mm:ss zone yyyy`: behind a month and a day it is a zone.
        if DatetimePart.MONTH | DatetimePart.DAY not in self._seen and self._prefix is None:
            return self._add_written_date(text)
        if text[0].isdigit() or self._prefix is not None:
            return self._add_time_with_zone(text)
        return self._add_zone_name(text)

    def _add_julian_with_zone(self, text: str) -> DatetimePart:
        julian, rest = parse_leading_int(text)
        if julian < 0:
            raise FieldError(Fault.OVERFLOW)
        self._set_julian(julian)
        self._offset = decode_zone(rest)
        self._prefix = None
        return DatetimePart.DATE | DatetimePart.TIME | DatetimePart.ZONE

    def _add_time_with_zone(self, text: str) -> DatetimePart:
        """`hhmmss-zz` behind a date."""
        self._end_time_prefix()
        if DatetimePart.TIME in self._seen or "-" not in text:
            raise FieldError(Fault.FORMAT)
        digits, _, _ = text.partition("-")
        self._offset = decode_zone(text[len(digits) :])
        return self._add_concatenated(digits, self._seen) | DatetimePart.ZONE

    def _add_zone_name(self, text: str) -> DatetimePart:
        self._zone = find_zone(text)
        if self._zone is None:
            raise FieldError(Fault.UNKNOWN_ZONE, text)
        return DatetimePart.ZONE

    def _add_written_date(self, text: str) -> DatetimePart:
        """A date with separators, e.g. `1/8/99`, `5-jan-2024`."""
        pieces = split_date(text)
        found = DatetimePart.NONE
        for piece in pieces:
            if piece[0].isalpha() and piece not in ("at", "on"):
                month = MONTH_NUMBERS.get(piece[:TOKEN_LENGTH_MAX])
                if month is None or (self._seen | found) & DatetimePart.MONTH:
                    raise FieldError(Fault.FORMAT)
                self._month = month
                found |= DatetimePart.MONTH
        # A month inside the word says nothing about numbers in other words, nor they about it.
        has_text_month = bool(found & DatetimePart.MONTH)
        for piece in pieces:
            if piece[0].isdigit():
                seen = self._seen | found
                part = self._add_date_number(piece, seen, has_text_month=has_text_month)
                if part & seen:
                    raise FieldError(Fault.FORMAT)
                found |= part
        if (
            (self._seen | found) & ~(DatetimePart.DAY_OF_YEAR | DatetimePart.ZONE)
        ) != DatetimePart.DATE:
            raise FieldError(Fault.FORMAT)
        return found

    def _add_time(self, text: str) -> DatetimePart:
        self._end_time_prefix()
        hour, self._minute, self._second, self._micros = decode_time(text)
        if hour > 24:
            raise FieldError(Fault.OVERFLOW)
        self._hour = hour
        if self._micros_of_day() > MICROS_PER_DAY:
            raise FieldError(Fault.OVERFLOW)
        return DatetimePart.TIME

    def _end_time_prefix(self) -> None:
        if self._prefix not in (None, _Prefix.TIME):
            raise FieldError(Fault.FORMAT)
        self._prefix = None

    def _add_number(self, text: str) -> DatetimePart:
        if self._prefix is not None:
            return self._add_labelled_number(text)
        digits, point, _ = text.partition(".")
        if point and not self._seen & DatetimePart.DATE:
            return self._add_written_date(text)
        if point and len(digits) > 2:
            return self._add_concatenated(text, self._seen)
        complete = self._seen & DatetimePart.DATE and DatetimePart.TIME in self._seen
        if len(text) >= 6 and not complete:
            return self._add_concatenated(text, self._seen)
        return self._add_date_number(text, self._seen, has_text_month=self._has_text_month)

    def _add_labelled_number(self, text: str) -> DatetimePart:
        """A number behind `J` or `T`."""
        prefix, self._prefix = self._prefix, None
        value, rest = parse_leading_int(text)
        if rest and not rest.startswith("."):
            raise FieldError(Fault.FORMAT)
        if prefix is _Prefix.TIME:
            parts = self._add_concatenated(text, self._seen | DatetimePart.DATE)
            if parts != DatetimePart.TIME:
                raise FieldError(Fault.FORMAT)
            return parts
        self._set_julian(value)
        if not rest:
            return DatetimePart.DATE
        self._set_time(round(parse_fraction(rest) * MICROS_PER_DAY))
        return DatetimePart.DATE | DatetimePart.TIME

    def _set_julian(self, julian: int) -> None:
        self._year, self._month, self._day = civil_from_days(julian - _JULIAN_OF_EPOCH)
        self._is_julian = True

    def _add_concatenated(self, text: str, seen: DatetimePart) -> DatetimePart:
        """`20240105`, `240105`, `103000.5`, `1030`: a run of digits is a date, then a time."""
        digits, point, decimals = text.partition(".")
        if not (digits + decimals).isdigit() and text != ".":
            raise FieldError(Fault.FORMAT)
        if point:
            self._micros = round(parse_fraction(point + decimals) * MICROS_PER_SECOND)
        elif DatetimePart.DATE not in seen and len(digits) >= 6:
            self._year, self._month = int(digits[:-4]), int(digits[-4:-2])
            self._day = int(digits[-2:])
            self._is_short_year |= len(digits) == 6
            return DatetimePart.DATE
        if DatetimePart.TIME not in seen and len(digits) in (4, 6):
            self._hour, self._minute = int(digits[:2]), int(digits[2:4])
            self._second = int(digits[4:] or 0)
            return DatetimePart.TIME
        raise FieldError(Fault.FORMAT)

    def _add_date_number(
        self, text: str, seen: DatetimePart, *, has_text_month: bool
    ) -> DatetimePart:
        """One number: which part of the date it is depends on the parts before it."""
        value, rest = parse_leading_int(text)
        if rest.startswith("."):
            if len(text) - len(rest) > 2:
                return self._add_concatenated(text, seen | DatetimePart.DATE)
            self._micros = round(parse_fraction(rest) * MICROS_PER_SECOND)
        elif rest:
            raise FieldError(Fault.FORMAT)
        if len(text) == 3 and seen & DatetimePart.DATE == DatetimePart.YEAR and 1 <= value <= 366:
            self._day_of_year = value
            return DatetimePart.DAY_OF_YEAR | DatetimePart.MONTH | DatetimePart.DAY
        if seen & DatetimePart.DATE == DatetimePart.DATE:
            return self._add_concatenated(text, seen)
        is_long = len(text) >= 3
        known = seen & DatetimePart.DATE
        if (
            known == DatetimePart.YEAR | DatetimePart.MONTH
            and has_text_month
            and is_long
            and self._is_short_year
        ):
            # `24-jan-2003`: the number taken for a year was the day.
            self._day, self._year, self._is_short_year = self._year, value, False
            return DatetimePart.DAY
        part = _guess_part(known, self._order, is_long=is_long, has_text_month=has_text_month)
        match part:
            case DatetimePart.YEAR:
                self._year, self._is_short_year = value, len(text) <= 2
            case DatetimePart.MONTH:
                self._month = value
            case _:
                self._day = value
        return part

    # ------------------------------------------------------------ words that begin with a letter

    def _add_word(self, text: str) -> DatetimePart:
        abbreviation = find_abbreviation(text, self._session_zone)
        if abbreviation is None:
            return self._add_plain_word(text, text[:TOKEN_LENGTH_MAX])
        if isinstance(abbreviation, ChangingZone):
            self._zone = abbreviation
            return DatetimePart.ZONE
        self._offset, is_daylight = abbreviation
        return DatetimePart.ZONE | (
            DatetimePart.DAYLIGHT_ZONE if is_daylight else DatetimePart.NONE
        )

    def _add_plain_word(self, text: str, token: str) -> DatetimePart:
        if token in MONTH_NUMBERS:
            return self._add_text_month(MONTH_NUMBERS[token])
        if token in WEEKDAYS:
            return DatetimePart.WEEKDAY
        if token in ("at", "on"):
            return DatetimePart.NONE
        if token in ("am", "pm"):
            self._afternoon = token == "pm"
            return DatetimePart.HALF_DAY
        if token in ("ad", "bc"):
            self._is_bc = token == "bc"
            return DatetimePart.ERA
        if token == "dst":
            self._offset += 3600
            return DatetimePart.DAYLIGHT | DatetimePart.DAYLIGHT_ZONE
        if token in _JULIAN_WORDS or token in _UNIT_WORDS or token == "t":
            if token == "t" and DatetimePart.DATE not in self._seen:
                raise FieldError(Fault.FORMAT)
            return self._add_prefix(token)
        return self._add_reserved(text, token)

    def _add_text_month(self, month: int) -> DatetimePart:
        parts = DatetimePart.MONTH
        number_was_day = (
            DatetimePart.MONTH in self._seen
            and not self._has_text_month
            and DatetimePart.DAY not in self._seen
            and 1 <= self._month <= 31
        )
        if number_was_day:
            self._day = self._month
            parts = DatetimePart.DAY
        self._has_text_month = True
        self._month = month
        return parts

    def _add_prefix(self, token: str) -> DatetimePart:
        # Whatever follows a unit of its own, PostgreSQL refuses it.
        if self._prefix is not None or token in _UNIT_WORDS:
            raise FieldError(Fault.FORMAT)
        self._prefix = _Prefix.TIME if token == "t" else _Prefix.JULIAN
        return DatetimePart.NONE

    def _add_reserved(self, text: str, token: str) -> DatetimePart:
        if token == "allballs":
            self._hour = self._minute = self._second = self._micros = self._offset = 0
            return DatetimePart.TIME | DatetimePart.ZONE
        if token == "epoch":
            self._is_epoch = True
            return DatetimePart.DATE | DatetimePart.TIME | DatetimePart.ZONE
        if token in ("infinity", "+infinity", "-infinity"):
            raise out_of_engine_range(
                "22008",
                f'date/time field value out of range: "{self._text}"',
                detail="Infinite dates and timestamps are not supported.",
            )
        if token in _CLOCK_WORDS:
            today, micros, offset = self._now(token)
            self._year, self._month, self._day = civil_from_days(today + _CLOCK_WORDS[token])
            if token != "now":
                return DatetimePart.DATE
            self._set_time(micros)
            self._offset = offset
            return DatetimePart.DATE | DatetimePart.TIME | DatetimePart.ZONE
        return self._add_named_zone(text)

    def _now(self, word: str) -> tuple[int, int, int]:
        """The session's date, microseconds of its day, and offset (I3)."""
        if self._clock is None:
            raise not_supported(f'date/time input "{word}"')
        micros, zone = self._clock()
        offset = offset_at_utc(zone, micros // MICROS_PER_SECOND)
        return *divmod(micros + offset * MICROS_PER_SECOND, MICROS_PER_DAY), offset

    def _set_time(self, micros: int) -> None:
        seconds, self._micros = divmod(micros, MICROS_PER_SECOND)
        self._hour, self._minute, self._second = seconds // 3600, seconds // 60 % 60, seconds % 60

    def _add_named_zone(self, text: str) -> DatetimePart:
        self._zone = find_zone(text)
        if self._zone is None:
            raise FieldError(Fault.FORMAT)
        return DatetimePart.ZONE

    # ------------------------------------------------------------ at the end

    def _validate_date(self) -> None:
        if DatetimePart.YEAR in self._seen and not self._is_julian:
            self._validate_year()
        if DatetimePart.DAY_OF_YEAR in self._seen:
            first = days_from_civil(self._year, 1, 1)
            self._year, self._month, self._day = civil_from_days(first + self._day_of_year - 1)
        if DatetimePart.MONTH in self._seen and not 1 <= self._month <= 12:
            raise FieldError(Fault.MONTH_DAY_OVERFLOW)
        if DatetimePart.DAY in self._seen and not 1 <= self._day <= 31:
            raise FieldError(Fault.MONTH_DAY_OVERFLOW)
        if DatetimePart.DATE in self._seen and self._day > days_in_month(self._year, self._month):
            raise FieldError(Fault.OVERFLOW)

    def _validate_year(self) -> None:
        if self._is_bc:
            if self._year <= 0:
                raise FieldError(Fault.OVERFLOW)
            self._year = 1 - self._year
        elif self._is_short_year:
            if self._year < 70:
                self._year += 2000
            elif self._year < 100:
                self._year += 1900
        elif self._year <= 0:
            raise FieldError(Fault.OVERFLOW)

    def _apply_half_day(self) -> None:
        if self._afternoon is None:
            return
        if self._hour > 12:
            raise FieldError(Fault.OVERFLOW)
        self._hour = self._hour % 12 + (12 if self._afternoon else 0)


def _guess_part(
    known: DatetimePart, order: str, *, is_long: bool, has_text_month: bool
) -> DatetimePart:
    """What a number means behind the parts that are known."""
    is_long |= order == "YMD"
    if known == DatetimePart.NONE:
        return (
            DatetimePart.YEAR
            if is_long
            else DatetimePart.DAY
            if order == "DMY"
            else DatetimePart.MONTH
        )
    if known in (DatetimePart.YEAR, DatetimePart.DAY):
        return DatetimePart.MONTH
    if known == DatetimePart.MONTH:
        return DatetimePart.YEAR if has_text_month and is_long else DatetimePart.DAY
    return DatetimePart.YEAR if known == DatetimePart.MONTH | DatetimePart.DAY else DatetimePart.DAY
