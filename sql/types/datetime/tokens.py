"""Tokenise date, time and interval text (ParseDateTime), and decode tokens that inputs share.

    '2024-01-05 10:00+02' ─▶ (DATE 2024-01-05) (TIME 10:00) (ZONE +02)

INVARIANTS
  F1  only ASCII letters and digits count; all else but punctuation and blanks is refused.
  F2  texts are bounded (`FIELDS_MAX`, `characters_max`), so no number in them is long.

The kinds of tokens follow PostgreSQL's ParseDateTime, which decides by characters alone. The
meaning of a token is up to `decoder.py`, `time_input.py` and `interval_input.py`.
"""

import re
from dataclasses import dataclass
from enum import Enum, Flag, auto
from typing import Final

from sql.errors import SqlError

FIELDS_MAX: Final = 25
DATETIME_CHARACTERS_MAX: Final = 153
INTERVAL_CHARACTERS_MAX: Final = 256
INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1


class Fault(Enum):
    """Why a text is no date, time or interval."""

    FORMAT = auto()
    OVERFLOW = auto()
    MONTH_DAY_OVERFLOW = auto()
    ZONE_OVERFLOW = auto()
    UNKNOWN_ZONE = auto()


class FieldError(Exception):
    """Carries a fault to where the whole text and the type are known."""

    def __init__(self, fault: Fault, zone: str = "") -> None:
        super().__init__(fault)
        self.fault = fault
        self.zone = zone

    def report(self, type_name: str, text: str) -> SqlError:
        """The fault as PostgreSQL words it."""
        match self.fault:
            case Fault.FORMAT:
                return SqlError("22007", f'invalid input syntax for type {type_name}: "{text}"')
            case Fault.OVERFLOW if type_name == "interval":
                return SqlError("22015", f'interval field value out of range: "{text}"')
            case Fault.OVERFLOW:
                return SqlError("22008", f'date/time field value out of range: "{text}"')
            case Fault.MONTH_DAY_OVERFLOW:
                return SqlError(
                    "22008",
                    f'date/time field value out of range: "{text}"',
                    hint='Perhaps you need a different "DateStyle" setting.',
                )
            case Fault.ZONE_OVERFLOW:
                return SqlError("22009", f'time zone displacement out of range: "{text}"')
            case Fault.UNKNOWN_ZONE:
                return SqlError("22023", f'time zone "{self.zone}" not recognized')


class DatetimeTokenKind(Enum):
    """What a token looks like."""

    DATE = auto()
    TIME = auto()
    ZONE = auto()
    """A sign and digits: a time zone, or a signed number or year-month of an interval."""
    NUMBER = auto()
    WORD = auto()
    SIGNED_WORD = auto()


@dataclass(frozen=True, slots=True)
class DatetimeToken:
    """A token of the text, letters in lower case."""

    kind: DatetimeTokenKind
    text: str


class DatetimePart(Flag):
    """The parts that have been given so far (I2 of `decoder.py`)."""

    NONE = 0
    YEAR = auto()
    MONTH = auto()
    DAY = auto()
    TIME = auto()
    ZONE = auto()
    DAYLIGHT_ZONE = auto()
    DAYLIGHT = auto()
    DAY_OF_YEAR = auto()
    WEEKDAY = auto()
    HALF_DAY = auto()
    ERA = auto()
    RESERVED = auto()
    DATE = YEAR | MONTH | DAY


# Months, and the other words that a digit or `+` may follow without making it a zone name.
MONTH_NUMBERS: Final = {
    "jan": 1, "january": 1, "feb": 2, "february": 2, "mar": 3, "march": 3, "apr": 4, "april": 4,
    "may": 5, "jun": 6, "june": 6, "jul": 7, "july": 7, "aug": 8, "august": 8, "sep": 9, "sept": 9,
    "september": 9, "oct": 10, "october": 10, "nov": 11, "november": 11, "dec": 12, "december": 12,
}  # fmt: skip
WEEKDAYS: Final = frozenset({
    "sun", "sunday", "mon", "monday", "tue", "tues", "tuesday", "wed", "wednesday", "weds",
    "thu", "thur", "thurs", "thursday", "fri", "friday", "sat", "saturday",
})  # fmt: skip
KEYWORDS: Final = WEEKDAYS | frozenset(MONTH_NUMBERS) | frozenset({
    "ad", "allballs", "am", "at", "bc", "d", "dow", "doy", "dst", "epoch", "h", "infinity",
    "isodow", "isoyear", "j", "jd", "julian", "m", "mm", "now", "on", "pm", "s", "t", "today",
    "tomorrow", "y", "yesterday",
})  # fmt: skip
TOKEN_LENGTH_MAX: Final = 10
"""PostgreSQL compares no more of a word with its keywords."""
ZONE_HOURS_MAX: Final = 15

_BLANK: Final = " \t\n\v\f\r"
_TIME: Final = re.compile(r"[0-9]+:[0-9:.]*")
_NUMERIC_DATE: Final = re.compile(r"[0-9]+([-/.])[0-9]+(\1(?:[0-9]|\1)*)?")
_TEXT_DATE: Final = re.compile(r"[0-9]+([-/.])(?:[A-Za-z0-9]|\1)*")
_NUMBER: Final = re.compile(r"[0-9]+|\.[0-9]*")
_LETTERS: Final = re.compile(r"[A-Za-z]+")
_ZONE_NAME: Final = re.compile(r"[A-Za-z]+[-+/_.:A-Za-z0-9]*")
_SIGNED_NUMBER: Final = re.compile(r"([-+])[ \t\n\v\f\r]*([0-9][0-9:.-]*)")
_SIGNED_WORD: Final = re.compile(r"([-+])[ \t\n\v\f\r]*([A-Za-z]+)")
_PUNCTUATION: Final = frozenset("!\"#$%&'()*,/:;<=>?@[\\]^_`{|}~")
_LEADING_INT: Final = re.compile(r"[ \t\n\v\f\r]*[-+]?[0-9]+")


def split_datetime_tokens(text: str, *, characters_max: int) -> list[DatetimeToken]:
    """The tokens of the text in order (F1, F2)."""
    words: list[DatetimeToken] = []
    position = 0
    room = characters_max
    while position < len(text):
        if text[position] in _BLANK:
            position += 1
            continue
        word, position = _next_word(text, position)
        if word is None:
            continue
        room -= len(word.text) + 1
        if len(words) == FIELDS_MAX or room < 0:
            raise FieldError(Fault.FORMAT)
        words.append(word)
    return words


def _next_word(text: str, position: int) -> tuple[DatetimeToken | None, int]:
    first = text[position]
    if first in "0123456789.":
        return _numeric_word(text, position)
    if first.isascii() and first.isalpha():
        return _letters_word(text, position)
    if first in "+-":
        for pattern, kind in (
            (_SIGNED_NUMBER, DatetimeTokenKind.ZONE),
            (_SIGNED_WORD, DatetimeTokenKind.SIGNED_WORD),
        ):
            if match := pattern.match(text, position):
                return DatetimeToken(kind, match[1] + match[2].lower()), match.end()
        raise FieldError(Fault.FORMAT)
    if first in _PUNCTUATION:
        return None, position + 1
    raise FieldError(Fault.FORMAT)


def _numeric_word(text: str, position: int) -> tuple[DatetimeToken, int]:
    if match := _TIME.match(text, position):
        return DatetimeToken(DatetimeTokenKind.TIME, match[0]), match.end()
    if match := _NUMERIC_DATE.match(text, position):
        kind = (
            DatetimeTokenKind.NUMBER
            if match[1] == "." and match[2] is None
            else DatetimeTokenKind.DATE
        )
        return DatetimeToken(kind, match[0]), match.end()
    if match := _TEXT_DATE.match(text, position):
        return DatetimeToken(DatetimeTokenKind.DATE, match[0].lower()), match.end()
    match = _NUMBER.match(text, position)
    assert match is not None, "a digit or a point starts a number"
    return DatetimeToken(DatetimeTokenKind.NUMBER, match[0]), match.end()


def _letters_word(text: str, position: int) -> tuple[DatetimeToken, int]:
    match = _LETTERS.match(text, position)
    assert match is not None, "a letter starts a word"
    letters = match[0].lower()
    following = text[match.end() : match.end() + 1]
    is_date = following in tuple("-/.") or (
        following in tuple("+0123456789") and letters[:TOKEN_LENGTH_MAX] not in KEYWORDS
    )
    if not is_date:
        return DatetimeToken(DatetimeTokenKind.WORD, letters), match.end()
    match = _ZONE_NAME.match(text, position)
    assert match is not None, "a letter starts a zone name"
    return DatetimeToken(DatetimeTokenKind.DATE, match[0].lower()), match.end()


def parse_leading_int(text: str, *, maximum: int = INT32_MAX) -> tuple[int, str]:
    """The integer at the front and the rest, as strtol reads it: no digits are 0."""
    match = _LEADING_INT.match(text)
    if match is None:
        return 0, text
    value = int(match[0])
    if not -maximum - 1 <= value <= maximum:
        raise FieldError(Fault.OVERFLOW)
    return value, text[match.end() :]


def parse_fraction(text: str) -> float:
    """The value of a text like `.25`; a lone point is 0."""
    if re.fullmatch(r"\.[0-9]*", text) is None:
        raise FieldError(Fault.FORMAT)
    return float(text) if len(text) > 1 else 0.0


def decode_time(text: str) -> tuple[int, int, int, int]:
    """Hours (unchecked upwards), minutes, seconds and microseconds of `h:m[:s[.f]]` or `m:s.f`."""
    hour, rest = parse_leading_int(text, maximum=INT64_MAX)
    if not rest.startswith(":"):
        raise FieldError(Fault.FORMAT)
    minute, rest = parse_leading_int(rest[1:])
    second, micros = 0, 0
    if rest.startswith("."):
        # Two fields with a point are minutes and seconds.
        micros = round(parse_fraction(rest) * 1_000_000)
        if hour > INT32_MAX:
            raise FieldError(Fault.OVERFLOW)
        hour, minute, second = 0, hour, minute
    elif rest.startswith(":"):
        second, rest = parse_leading_int(rest[1:])
        if rest.startswith("."):
            micros = round(parse_fraction(rest) * 1_000_000)
        elif rest:
            raise FieldError(Fault.FORMAT)
    elif rest:
        raise FieldError(Fault.FORMAT)
    if hour < 0 or not 0 <= minute <= 59 or not 0 <= second <= 60:
        raise FieldError(Fault.OVERFLOW)
    return hour, minute, second, micros


def decode_zone(text: str) -> int:
    """Seconds east of `+hh[[:]mm[:ss]]`."""
    if not text.startswith(("+", "-")):
        raise FieldError(Fault.FORMAT)
    try:
        hours, rest = parse_leading_int(text[1:])
        minutes = seconds = 0
        if rest.startswith(":"):
            minutes, rest = parse_leading_int(rest[1:])
            if rest.startswith(":"):
                seconds, rest = parse_leading_int(rest[1:])
        elif not rest and len(text) > 3:
            hours, minutes = divmod(hours, 100)
    except FieldError:
        raise FieldError(Fault.ZONE_OVERFLOW) from None
    if not (0 <= hours <= ZONE_HOURS_MAX and 0 <= minutes <= 59 and 0 <= seconds <= 59):
        raise FieldError(Fault.ZONE_OVERFLOW)
    if rest:
        raise FieldError(Fault.FORMAT)
    east = hours * 3600 + minutes * 60 + seconds
    return -east if text[0] == "-" else east


def split_date(text: str) -> list[str]:
    """The runs of digits and of letters; the character behind each run is a separator."""
    pieces: list[str] = []
    position = 0
    while position < len(text):
        match = re.compile(r"[^A-Za-z0-9]*([0-9]+|[A-Za-z]+)").match(text, position)
        if match is None:
            raise FieldError(Fault.FORMAT)
        pieces.append(match[1])
        position = match.end() + 1
    return pieces
