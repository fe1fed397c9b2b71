"""to_date() and to_timestamp() of text: parse it by a date template (DCH_from_char).

Fields of the ISO calendar, Julian days, weeks, centuries and names of time zones are refused.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from sql.errors import SqlError, not_supported
from sql.types.datetime.calendar import MICROS_PER_DAY, days_from_civil, days_in_month
from sql.types.datetime.format_templates import (
    DAY_NAMES,
    MONTH_NAMES,
    ROMAN_MONTHS,
    TemplateField,
    TemplateLiteral,
    parse_template,
)

_SECOND: Final = 1_000_000
_NUMBER: Final = re.compile(r"[ \t\n\r\f\v]*[+-]?[0-9]+")
_BLANKS: Final = " \t\n\r\f\v"
_INT_MAX: Final = 2**31 - 1
_ZONE_HOURS_MAX: Final = 15
_LETTERS_ONLY: Final = frozenset(
    {
        "MONTH", "MON", "DAY", "DY", "RM", "A.M.", "AM", "P.M.", "PM", "A.D.", "AD", "B.C.", "BC",
        "TZ", "TZH", "OF", "FX",
    }
)  # fmt: skip
_LENGTHS: Final = {
    "YYYY": 4, "YYY": 3, "YY": 2, "Y": 1, "MM": 2, "DD": 2, "DDD": 3, "HH24": 2, "HH12": 2,
    "HH": 2, "MI": 2, "SS": 2, "SSSS": 4, "SSSSS": 5, "TZM": 2, "D": 1, "MS": 3, "US": 6, "FF1": 1,
    "FF2": 2, "FF3": 3, "FF4": 4, "FF5": 5, "FF6": 6,
}  # fmt: skip
_SLOTS: Final = {
    "YYYY": "year", "YYY": "year", "YY": "year", "Y": "year", "MM": "month", "DD": "day",
    "DDD": "of_year", "HH24": "hour", "HH12": "hour", "HH": "hour", "MI": "minute",
    "SS": "second", "SSSS": "of_day", "SSSSS": "of_day", "TZM": "zone_minute", "D": "weekday",
    "MS": "millis",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ParsedTimestamp:
    """The result: a local timestamp, and the offset if the text has one. `digits`: of FFn."""

    local: int
    offset: int | None
    digits: int | None


def parse_by_template(text: str, template: str) -> ParsedTimestamp:
    """Parse a text by a template."""
    reader = _Reader(text, parse_template(template))
    reader.run()
    return reader.result()


def _is_separator(character: str) -> bool:
    return " " < character < "\x7f" and not character.isalnum()


@dataclass(slots=True)
class _Reader:
    """`skipped`: blanks and separators that were passed and that the template does not have."""

    text: str
    nodes: tuple[TemplateField | TemplateLiteral, ...]
    at: int = 0
    skipped: int = 0
    exact: bool = False
    found: dict[str, int] = field(default_factory=dict[str, int])
    digits: int | None = None
    zone_sign: int = 0

    def run(self) -> None:
        for index, node in enumerate(self.nodes):
            if self.at >= len(self.text):
                return
            if not self.exact and (isinstance(node, TemplateField) or not index):
                self._pass_blanks()
            if isinstance(node, TemplateLiteral):
                self._literal(node)
                continue
            self._field(node, index)
            if not self.exact:
                self.skipped = 0
                self._pass_blanks()

    def _pass_blanks(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in _BLANKS:
            self.at += 1
            self.skipped += 1

    def _literal(self, node: TemplateLiteral) -> None:
        current = self.text[self.at : self.at + 1]
        separator = not node.quoted and (_is_separator(node.character) or node.character in _BLANKS)
        if self.exact:
            self.at += 1
        elif separator:
            self.skipped -= 1
            if current and (current in _BLANKS or _is_separator(current)):
                self.at += 1
                self.skipped += 1
        elif self.skipped > 0:
            self.skipped -= 1
        else:
            self.at += 1

    # --- fields ---

    def _field(self, node: TemplateField, index: int) -> None:
        name = node.name
        if node.localized:
            raise not_supported("the modifier TM in to_timestamp() and to_date()")
        match name:
            case "FX":
                self.exact = True
            case "A.M." | "P.M." | "AM" | "PM":
                words = ("a.m.", "p.m.") if "." in name else ("am", "pm")
                self._set("pm", self._word(node, words), node)
                self.found["twelve"] = 1
            case "A.D." | "B.C." | "AD" | "BC":
                words = ("a.d.", "b.c.") if "." in name else ("ad", "bc")
                self._set("bc", self._word(node, words), node)
            case "MONTH" | "MON":
                names = MONTH_NAMES if name == "MONTH" else [month[:3] for month in MONTH_NAMES]
                self._set("month", self._word(node, names) + 1, node)
            case "DAY" | "DY":
                days = DAY_NAMES if name == "DAY" else [day[:3] for day in DAY_NAMES]
                self._set("weekday", self._word(node, days) + 1, node)
            case "RM":
                # The longer ones first: VIII before VII before VI.
                names = sorted(ROMAN_MONTHS, key=len, reverse=True)
                found = names[self._word(node, names)]
                self._set("month", ROMAN_MONTHS.index(found) + 1, node)
            case "TZH":
                self._zone_hour(node, index)
            case _:
                self._numeric(node, index)

    def _word(self, node: TemplateField, words: Sequence[str]) -> int:
        rest = self.text[self.at :].lower()
        for position, word in enumerate(words):
            if rest.startswith(word.lower()):
                self.at += len(word)
                return position
        value = re.split(r"\s", self.text[self.at :], maxsplit=1)[0]
        raise _wrong(value, node, "The given value did not match any of the allowed values")

    def _numeric(self, node: TemplateField, index: int) -> None:
        length = _LENGTHS.get(node.name)
        if length is None:
            raise not_supported(f'the field "{node.text}" in to_timestamp() and to_date()')
        value, used = self._number(node, index, length)
        name = node.name
        if name in ("US", "MS") or name.startswith("FF"):
            self._set("micros" if name != "MS" else "millis", value, node)
            slot = "micros" if name != "MS" else "millis"
            # By the digits that are there, however many the field asks for.
            self.found[slot] = value * 10 ** max((3 if name == "MS" else 6) - used, 0)
            if name.startswith("FF"):
                self.digits = length
        elif name in ("YYY", "YY", "Y"):
            self._set("year", value, node)
            if used < 4:
                self.found["year"] = _near_2020(value)
        else:
            self._set(_SLOTS[name], value, node)
        if name in ("HH", "HH12"):
            self.found["twelve"] = 1
        if name == "TZM":
            self.zone_sign = self.zone_sign or 1
        if node.ordinal:
            self.at += 2

    def _zone_hour(self, node: TemplateField, index: int) -> None:
        current = self.text[self.at : self.at + 1]
        if current and current in "+- ":
            self.zone_sign = -1 if current == "-" else 1
            self.at += 1
        else:
            swallowed = self.skipped > 0 and self.text[self.at - 1 : self.at] == "-"
            self.zone_sign = -1 if swallowed else 1
        value, _ = self._number(node, index, 2)
        self._set("zone_hour", value, node)

    def _number(self, node: TemplateField, index: int, length: int) -> tuple[int, int]:
        """A number and how many characters it took (from_char_parse_int_len)."""
        start = self.at
        while self.at < len(self.text) and self.text[self.at] in _BLANKS:
            self.at += 1
        if node.fill or self._ends(node, index):
            match = _NUMBER.match(self.text, start)
            if match is not None:
                self.at = match.end()
            else:
                self.at = start
        else:
            if len(self.text) - self.at < length:
                message = f'source string too short for "{node.text}" formatting field'
                raise SqlError("22007", message)
            match = _NUMBER.match(self.text[self.at : self.at + length])
            if match is not None:
                if match.end() < length:
                    raise _wrong(self.text[self.at : self.at + length], node, "Field requires more")
                self.at += length
        if match is None or self.at == start:
            raise _wrong(self.text[start : start + length], node, "Value must be an integer.")
        value = int(match[0])
        if abs(value) > _INT_MAX:
            raise SqlError("22008", f'value for "{node.text}" in source string is out of range')
        return value, self.at - start

    def _ends(self, node: TemplateField, index: int) -> bool:
        """Whether what follows in the template is no digit."""
        if node.ordinal or index + 1 >= len(self.nodes):
            return True
        following = self.nodes[index + 1]
        if isinstance(following, TemplateField):
            return following.name in _LETTERS_ONLY
        return not ("0" <= following.character <= "9")

    def _set(self, slot: str, value: int, node: TemplateField) -> None:
        before = self.found.get(slot, 0)
        if before and before != value:
            message = f'conflicting values for "{node.text}" field in formatting string'
            raise SqlError("22007", message)
        self.found[slot] = value

    # --- the whole ---

    def result(self) -> ParsedTimestamp:
        """The fields put together and checked (do_to_timestamp)."""
        get = self.found.get
        of_day = get("of_day", 0)
        hour, minute, second = of_day // 3600, of_day // 60 % 60, of_day % 60
        hour, minute = get("hour", 0) or hour, get("minute", 0) or minute
        second = get("second", 0) or second
        if get("twelve"):
            hour = self._of_twelve(hour)
        micros = get("millis", 0) * 1000 + get("micros", 0)
        days = self._days()
        good = 0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60 and 0 <= micros < _SECOND
        if not good:
            raise self._overflow()
        within = ((hour * 60 + minute) * 60 + second) * _SECOND + micros
        return ParsedTimestamp(days * MICROS_PER_DAY + within, self._offset(), self.digits)

    def _overflow(self) -> SqlError:
        return SqlError("22008", f'date/time field value out of range: "{self.text}"')

    def _of_twelve(self, hour: int) -> int:
        if not 1 <= hour <= 12:
            hint = "Use the 24-hour clock, or give an hour between 1 and 12."
            raise SqlError("22007", f'hour "{hour}" is invalid for the 12-hour clock', hint=hint)
        if self.found.get("pm"):
            return hour if hour == 12 else hour + 12
        return 0 if hour == 12 else hour

    def _days(self) -> int:
        get = self.found.get
        year = get("year", 0)
        if year:
            year = -year if get("bc") else year
            year += year < 0
        elif get("bc"):
            raise not_supported("BC without a year")
        month, day = get("month", 0) or 1, get("day", 0) or 1
        of_year = get("of_year", 0)
        if of_year and (month <= 1 or day <= 1):
            if not year:
                message = "cannot calculate day of year without year information"
                raise SqlError("22007", message)
            return self._of_year(year, of_year, month, day)
        if not 1 <= month <= 12 or not 1 <= day <= days_in_month(year, month):
            raise self._overflow()
        if not -4713 <= year <= 294_276:
            raise self._overflow()
        return days_from_civil(year, month, day)

    def _of_year(self, year: int, of_year: int, month: int, day: int) -> int:
        if month > 1 or day > 1:
            raise not_supported("DDD together with MM or DD")
        length = days_from_civil(year + 1, 1, 1) - days_from_civil(year, 1, 1)
        if not 1 <= of_year <= length:
            raise self._overflow()
        return days_from_civil(year, 1, 1) + of_year - 1

    def _offset(self) -> int | None:
        if not self.zone_sign:
            return None
        hours, minutes = self.found.get("zone_hour", 0), self.found.get("zone_minute", 0)
        if not 0 <= hours <= _ZONE_HOURS_MAX or not 0 <= minutes < 60:
            message = f'time zone displacement out of range: "{self.text}"'
            raise SqlError("22009", message)
        return self.zone_sign * (hours * 60 + minutes) * 60


def _near_2020(year: int) -> int:
    """The year of fewer digits that is near 2020."""
    if year < 70:
        return year + 2000
    if year < 100:
        return year + 1900
    if year < 520:
        return year + 2000
    return year + 1000 if year < 1000 else year


def _wrong(value: str, node: TemplateField, detail: str) -> SqlError:
    return SqlError("22007", f'invalid value "{value}" for "{node.text}"', detail=detail)


def round_to_digits(micros: int, digits: int | None) -> int:
    """A timestamp rounded to so many digits of a second."""
    if digits is None or digits >= 6:
        return micros
    unit = int(10 ** (6 - digits))
    # Away from zero, counted from 2000 (AdjustTimestampForTypmod).
    since = micros - 946_684_800 * _SECOND
    sign = -1 if since < 0 else 1
    whole = (abs(since) + unit // 2) // unit * unit
    return sign * whole + 946_684_800 * _SECOND
