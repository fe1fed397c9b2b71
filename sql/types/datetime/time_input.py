"""Parse time and timetz as PostgreSQL's input functions do, 24:00:00 included (DecodeTimeOnly).

    text ─ HH:MM:SS? ─▶ arithmetic                                   (what drivers send)
         └ otherwise ─▶ tokens ─▶ `_TimeDecoder` ─▶ validation ─▶ zone ─▶ value

INVARIANTS
  C1  a time of day lies in 0 .. 86,400,000,000 microseconds; others fail with PostgreSQL's errors.
  C2  a time with time zone has a fixed offset. In a zone with daylight saving the offset depends on
      the date: without one in the text it is today's, by the caller's clock. Without a clock, too,
      the text is refused (0A000).

The order of decisions is PostgreSQL's DecodeTimeOnly: a number is a time of day unless it stands
where only a date can, and a date is allowed only together with a zone that needs it.
"""

import re
from collections.abc import Sequence
from datetime import UTC, tzinfo
from typing import Final

from sql.errors import SqlError, not_supported
from sql.types.datetime.calendar import MICROS_PER_DAY, MICROS_PER_SECOND, civil_from_days
from sql.types.datetime.decoder import DatetimeDecoder, TransactionClock
from sql.types.datetime.timetz import encode_timetz
from sql.types.datetime.timezones import ChangingZone, find_zone, fixed_offset
from sql.types.datetime.tokens import (
    DATETIME_CHARACTERS_MAX,
    KEYWORDS,
    DatetimePart,
    DatetimeToken,
    DatetimeTokenKind,
    Fault,
    FieldError,
    decode_time,
    decode_zone,
    split_datetime_tokens,
)

_USUAL: Final = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9])(?:\.([0-9]{1,6}))?")
_WORDS: Final = frozenset({"am", "pm", "ad", "bc", "dst", "at", "on", "allballs"})
_PREFIXES: Final = frozenset({"j", "jd", "julian", "t"})
_ZONELESS, _WITH_ZONE = "time", "time with time zone"


def parse_time(text: str, clock: TransactionClock | None = None) -> int:
    """Microseconds since midnight (C1)."""
    usual = _USUAL.fullmatch(text)
    if usual is not None:
        hour, minute, second = int(usual[1]), int(usual[2]), int(usual[3])
        micros = int((usual[4] or "").ljust(6, "0"))
        return ((hour * 60 + minute) * 60 + second) * MICROS_PER_SECOND + micros
    try:
        return _decoded(text, UTC, clock).clock()
    except FieldError as error:
        raise error.report(_ZONELESS, text) from None


def parse_timetz(text: str, *, timezone: str, clock: TransactionClock | None = None) -> int:
    """See `sql/types/datetime/timetz.py`; a text without a zone is in `timezone` (C1, C2)."""
    try:
        decoder = _decoded(text, _zone(timezone), clock)
        return encode_timetz(decoder.clock(), decoder.offset(timezone))
    except FieldError as error:
        raise error.report(_WITH_ZONE, text) from None


def _decoded(text: str, session_zone: tzinfo, clock: TransactionClock | None) -> "_TimeDecoder":
    words = split_datetime_tokens(text, characters_max=DATETIME_CHARACTERS_MAX)
    decoder = _TimeDecoder(text, words, session_zone, clock)
    for word in words:
        decoder.add(word)
    return decoder


class _TimeDecoder(DatetimeDecoder):
    """Collects the parts of one text, token by token."""

    def __init__(
        self,
        text: str,
        words: Sequence[DatetimeToken],
        session_zone: tzinfo,
        clock: TransactionClock | None,
    ) -> None:
        super().__init__(text, "MDY", session_zone, clock)
        self._is_first = True
        ends_in_date = len(words) > 1 and words[-1].kind is DatetimeTokenKind.DATE
        self._number_may_be_date = ends_in_date
        self._may_begin_with_date = ends_in_date or (
            len(words) > 1 and words[1].kind is DatetimeTokenKind.TIME
        )

    def add(self, word: DatetimeToken) -> None:
        """Take the next token (I2 of `decoder.py`)."""
        super().add(word)
        self._is_first = False

    def clock(self) -> int:
        """Microseconds since midnight, after the last token (C1)."""
        if self._prefix is not None:
            raise FieldError(Fault.FORMAT)
        self._validate_date()
        self._apply_half_day()
        ordinary = self._hour <= 24 and self._minute < 60 and self._second <= 60
        micros = self._micros_of_day()
        if not ordinary or micros > MICROS_PER_DAY:
            raise FieldError(Fault.OVERFLOW)
        if DatetimePart.TIME not in self._seen:
            raise FieldError(Fault.FORMAT)
        self._check_zone()
        return micros

    def _check_zone(self) -> None:
        """A zone whose offset changes needs a complete date."""
        if not self._needs_date or DatetimePart.DATE in self._seen:
            return
        named = self._zone is not None and not isinstance(self._zone, ChangingZone)
        fixed = self._zone is not None and fixed_offset(self._zone) is not None
        if (named and not fixed) or self._seen & DatetimePart.DATE:
            raise FieldError(Fault.FORMAT)

    def offset(self, timezone: str) -> int:
        """Seconds east; call it after `clock` (C2)."""
        if not self._needs_date:
            return self._offset
        if DatetimePart.DATE in self._seen:
            return self._offset_of_moment()
        fixed = fixed_offset(self._zone or self._session_zone)
        if fixed is None and self._clock is None:
            raise not_supported(f'a time with time zone without its offset in "{timezone}"')
        if fixed is None:
            today, _, _ = self._now("now")
            self._year, self._month, self._day = civil_from_days(today)
            return self._offset_of_moment()
        return fixed

    # ------------------------------------------------------------ words

    def _add_date(self, text: str) -> DatetimePart:
        if self._is_first and self._may_begin_with_date:
            return self._add_written_date(text)
        if not text[0].isdigit():
            return self._add_zone_name(text)
        digits, dash, _ = text.partition("-")
        if DatetimePart.TIME in self._seen or not dash:
            raise FieldError(Fault.FORMAT)
        self._offset = decode_zone(text[len(digits) :])
        return self._add_concatenated(digits, self._seen | DatetimePart.DATE) | DatetimePart.ZONE

    def _add_time(self, text: str) -> DatetimePart:
        self._end_time_prefix()
        self._hour, self._minute, self._second, self._micros = decode_time(text)
        return DatetimePart.TIME

    def _add_number(self, text: str) -> DatetimePart:
        if self._prefix is not None:
            return self._add_labelled_number(text)
        digits, point, _ = text.partition(".")
        if point and self._is_first and self._number_may_be_date:
            return self._add_written_date(text)
        if point and len(digits) <= 2:
            raise FieldError(Fault.FORMAT)
        seen = self._seen | DatetimePart.DATE
        if point or len(text) > 4:
            return self._add_concatenated(text, seen)
        return self._add_date_number(text, seen, has_text_month=False)

    def _add_plain_word(self, text: str, token: str) -> DatetimePart:
        if token in _PREFIXES:
            return self._add_prefix(token)
        if token == "now":
            _, micros, _ = self._now(token)
            self._set_time(micros)
            return DatetimePart.TIME
        if token in _WORDS:
            return super()._add_plain_word(text, token)
        if token in KEYWORDS or not token[0].isalpha():
            raise FieldError(Fault.FORMAT)
        return self._add_named_zone(text)


def _zone(timezone: str) -> tzinfo:
    zone = find_zone(timezone)
    if zone is None:
        raise SqlError("22023", f'time zone "{timezone}" not recognized')
    return zone
