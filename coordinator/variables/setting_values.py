"""Parse and show values of settings by type: boolean, enum, integer and real with units (guc.c).

    text of the client ──▶ value in the setting's unit ──▶ bounds ──▶ text that SHOW prints

A check takes the setting's name and the client's text and returns the text that SHOW prints, or
raises 22023 with PostgreSQL's words.

INVARIANTS
  C1  what SHOW prints is parsed to the same value again: pg_settings and RESET rely on it.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from sql.errors import SqlError

Check: TypeAlias = Callable[[str, str], str]

_TIME: Final = {
    "us": 1,
    "ms": 1_000,
    "s": 10**6,
    "min": 6 * 10**7,
    "h": 36 * 10**8,
    "d": 864 * 10**8,
}
_SIZE: Final = {"B": 1, "kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_BLOCK: Final = 8_192
_INTEGER: Final = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|\d+(?![0-9.eE]))")
_DECIMAL: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_INFINITE: Final = re.compile(r"[+-]?(?:inf(?:inity)?|nan)", re.IGNORECASE)
_BROKEN_OCTAL: Final = re.compile(r"[+-]?0[0-7]*[89]")
INT_MAX: Final = 2_147_483_647
_LEAST_REAL: Final = 2.2250738585072014e-308
_EXCEEDED: Final = "Value exceeds integer range."


def invalid_value(
    name: str, value: str, *, detail: str | None = None, hint: str | None = None
) -> SqlError:
    """22023, PostgreSQL's words."""
    message = f'invalid value for parameter "{name}": "{value}"'
    return SqlError("22023", message, detail=detail, hint=hint)


def check_boolean(name: str, value: str) -> str:
    """`on` or `off`, from any unambiguous beginning of a word (parse_bool)."""
    word = value.strip().lower()
    if word:
        for spelling in ("true", "yes", "on", "1"):
            if spelling.startswith(word) and word != "o":
                return "on"
        for spelling in ("false", "no", "off", "0"):
            if spelling.startswith(word) and word != "o":
                return "off"
    raise SqlError("22023", f'parameter "{name}" requires a Boolean value')


def choice(*allowed: str, aliases: Mapping[str, str] | None = None) -> Check:
    """One of the words. `aliases`: words for others, which hints do not name."""

    def check(name: str, value: str) -> str:
        word = value.lower()
        for known in allowed:
            if known.lower() == word:
                return known
        if aliases and word in aliases:
            return aliases[word]
        raise invalid_value(name, value, hint=f"Available values: {', '.join(allowed)}.")

    return check


def integer(low: int, high: int = INT_MAX, unit: str = "") -> Check:
    """A whole number; fractions are rounded."""
    return _number(low, high, unit, whole=True)


def real(low: float, high: float, unit: str = "") -> Check:
    """A number that is shown with six digits."""
    return _number(low, high, unit, whole=False)


def _number(low: float, high: float, unit: str, *, whole: bool) -> Check:
    suffix = f" {unit}" if unit else ""

    def check(name: str, value: str) -> str:
        amount = _amount(name, value, unit, whole=whole)
        if low <= amount <= high:
            return show_amount(amount, unit)
        shown, least, greatest = (
            f"{_plain(item, whole=whole)}{suffix}" for item in (amount, low, high)
        )
        raise SqlError(
            "22023",
            f'{shown} is outside the valid range for parameter "{name}" ({least} .. {greatest})',
        )

    return check


def _plain(amount: float, *, whole: bool) -> str:
    if math.isinf(amount):
        return "Infinity" if amount > 0 else "-Infinity"
    return str(int(amount)) if whole else f"{amount:g}"


def _amount(name: str, value: str, unit: str, *, whole: bool) -> float:
    """The number in the setting's unit (parse_int, parse_real)."""
    text = value.lstrip()
    first = _INTEGER if whole else _INFINITE
    match = first.match(text) or _DECIMAL.match(text)
    if match is None or (whole and _BROKEN_OCTAL.match(text)):
        raise invalid_value(name, value)
    amount = _read_number(match[0])
    overflows = math.isinf(amount) and "inf" not in match[0].lower()
    if math.isnan(amount) or overflows or 0 < abs(amount) < _LEAST_REAL:
        raise invalid_value(name, value)
    rest = text[match.end() :].strip()
    if rest:
        amount = _converted(name, value, (amount, rest), unit)
    if whole:
        amount = amount if math.isinf(amount) else round(amount)
        if not -INT_MAX - 1 <= amount <= INT_MAX:
            raise invalid_value(name, value, hint=_EXCEEDED)
    return amount


def _read_number(text: str) -> float:
    digits = text.lstrip("+-").lower()
    sign = -1 if text.startswith("-") else 1
    if digits.startswith("0x"):
        return sign * int(digits, 16)
    if len(digits) > 1 and digits[0] == "0" and digits.isdigit() and set(digits) <= set("01234567"):
        return sign * int(digits, 8)
    return float(text)


def _units(unit: str) -> Mapping[str, int]:
    """The units that a setting in `unit` may be written in, and their size."""
    if not unit:
        return {}
    return _TIME if unit in _TIME else _SIZE


def _size(unit: str) -> int:
    return _BLOCK if unit == "8kB" else _units(unit)[unit]


def _converted(name: str, value: str, given: tuple[float, str], unit: str) -> float:
    """A number with a unit, in the setting's unit (convert_to_base_unit)."""
    amount, written = given
    units = _units(unit)
    if written not in units:
        raise invalid_value(name, value, hint=_units_hint(list(units)) if units else None)
    converted = amount * units[written] / _size(unit)
    smaller = [size for size in units.values() if size < units[written]]
    if smaller and units[written] > _size(unit) and amount != int(amount):
        step = max(smaller) / _size(unit)
        converted = round(converted / step) * step
    return converted


def _units_hint(units: Sequence[str]) -> str:
    words = ", ".join(f'"{item}"' for item in units[:-1])
    return f'Valid units for this parameter are {words}, and "{units[-1]}".'


def parse_amount(shown: str, unit: str) -> float:
    """The number behind what SHOW prints, in `unit` (C1)."""
    return _amount("", shown, unit, whole=False)


def show_amount(amount: float, unit: str) -> str:
    """What SHOW prints: the greatest unit that needs no fraction."""
    if amount > 0 and unit:
        size = _size(unit)
        for name, larger in reversed([*_units(unit).items()]):
            converted = amount * size / larger
            if abs(converted - round(converted)) <= 1e-8 * converted and round(converted):
                return f"{round(converted)}{name}"
        smallest = next(iter(_units(unit)))
        return f"{amount * size:g}{smallest}"
    return f"{amount:g}" if amount != int(amount) or abs(amount) > INT_MAX else str(int(amount))
