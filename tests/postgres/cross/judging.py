"""Whether Meridian's outcome is PostgreSQL's, a refusal, a known difference or a mistake.

INVARIANTS
  J1  an outcome is a value's text, NULL, or a failure; of a failure its SQLSTATE counts.
  J2  whatever differs and is no mistake is in `is_known`, with the reason.
"""

import re
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import zip_longest
from typing import TypeAlias

from tests.postgres.queries.answers import Failed

Outcome: TypeAlias = str | Failed | None

DECIMALS_MAX = 18
SIGNIFICANT = 16
"""Digits of a quotient that PostgreSQL shows at least."""
SHOWN_MAX = 3
"""Differences of one call that are printed: more of them tell nothing new."""

_UNKNOWN = frozenset({"42883", "42725", "42846"})
"""No such function, a choice of several, no such cast."""
_WITH_ZEROS = re.compile(r"\.\d+0('::numeric|,NULL}'::numeric)")
_COUNTING = re.compile(r"length\(|lpad\(|varchar\(")
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?)")


@dataclass(slots=True)
class Tally:
    """What came out so far; prints what differs."""

    compared: int = 0
    known: int = 0
    different: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    unknown: set[str] = field(default_factory=set)
    """Calls that Meridian does not find, or not for these types."""

    def judge(self, label: str, statement: str, expected: Outcome, found: Outcome) -> None:
        """Count one outcome."""
        self.compared += 1
        if _is_equal(expected, found):
            return
        if is_known(statement, expected, found):
            self.known += 1
        elif is_unknown(found):
            self.unknown.add(label)
        elif is_refusal(found):
            self.refused[label] += 1
        else:
            self.different[label] += 1
            if not self.is_enough(label):
                shown = f"-- expected: {_show(expected)}\n-- found:    {_show(found)}"
                print(f"# {label}\n{statement};\n{shown}\n", flush=True)

    def is_enough(self, label: str) -> bool:
        """Whether more differences of this call would not be printed."""
        return self.different[label] > SHOWN_MAX


def is_refusal(found: object) -> bool:
    """Whether it says that Meridian does not have this."""
    return isinstance(found, Failed) and found.sqlstate == "0A000"


def is_unknown(found: object) -> bool:
    """Whether it says so of the call, whatever its arguments are."""
    return isinstance(found, Failed) and found.sqlstate in _UNKNOWN


def _is_equal(expected: Outcome, found: Outcome) -> bool:
    if isinstance(expected, Failed) and isinstance(found, Failed):
        return expected.sqlstate == found.sqlstate
    return expected == found


def is_known(statement: str, expected: Outcome, found: Outcome) -> bool:
    """Whether the difference is documented, or decided and not worth a document (J2)."""
    # PostgreSQL calls it a bug of its own when acldefault's letter is no kind of object.
    if '"acldefault"' in statement and isinstance(expected, Failed):
        return expected.sqlstate == "XX000"
    if isinstance(expected, str) and isinstance(found, str):
        return _is_known_text(statement, expected, found)
    # percentile_disc(null) over arrays: there are no arrays of arrays, so no choice of functions.
    if "percentile_disc(null)" in statement and isinstance(expected, Failed):
        return expected.sqlstate == "42704"
    if not isinstance(found, Failed):
        return False
    if not isinstance(expected, Failed):
        # A numeric holds 38 digits and no NaN (docs/limitations.md).
        if found.sqlstate == "22003":
            return "numeric" in found.message or "numeric" in statement
        # Times and intervals are finite (docs/reference/types.md).
        if found.sqlstate == "22008":
            return "infinity" in (expected or "")
        # lpad and rpad to an enormous length with nothing to fill: there is a limit on the length.
        if re.search(r'"[lr]pad"', statement) and found.sqlstate == "54000":
            return True
        # A zone with a backslash in its name, of which PostgreSQL makes one of POSIX.
        return r"'\x41'" in statement and found.sqlstate == "22023"
    # Several rows fail, each in its own way: which comes first is up to the engine.
    return "object_agg_unique" in statement


def _is_known_text(statement: str, expected: str, found: str) -> bool:
    # A numeric without a modifier shows no zeros at its end and at most 18 decimals, also where
    # it stands in JSON, arrays and other texts (docs/limitations.md). Nor does what counts or cuts
    # its text.
    if _is_same_but_for_decimals(expected, found):
        return True
    if _WITH_ZEROS.search(statement) and _COUNTING.search(statement):
        return True
    # A quotient of 16 digits and more has the decimals of its operands. We know how many they
    # take to a multiple of four (sql/types/division_scale.py, Q2).
    is_quotient = " / " in statement or "avg(" in statement
    return is_quotient and _is_same_when_rounded(expected, found)


def _is_same_when_rounded(expected: str, found: str) -> bool:
    texts = (expected, found)
    if not all(map(_NUMBER.fullmatch, texts)) or min(map(len, texts)) < SIGNIFICANT:
        return False
    decimals = min(len(text.partition(".")[2]) for text in texts)
    return abs(Decimal(expected) - Decimal(found)) <= Decimal(5).scaleb(-decimals - 1)


def _is_same_but_for_decimals(expected: str, found: str) -> bool:
    parts = zip_longest(_NUMBER.split(expected), _NUMBER.split(found))
    return all(a == b or _is_same_number(a, b) for a, b in parts)


def _is_same_number(expected: str | None, found: str | None) -> bool:
    if expected is None or found is None or "." not in expected:
        return False
    if not _NUMBER.fullmatch(expected) or not _NUMBER.fullmatch(found):
        return False
    is_cut = len(expected.partition(".")[2]) > DECIMALS_MAX
    off = abs(Decimal(expected) - Decimal(found))
    return off <= (Decimal(1).scaleb(-DECIMALS_MAX) if is_cut else 0)


def _show(outcome: Outcome) -> str:
    if isinstance(outcome, Failed):
        return f"ERROR {outcome.sqlstate} {outcome.message}".rstrip()
    return "NULL" if outcome is None else repr(outcome)
