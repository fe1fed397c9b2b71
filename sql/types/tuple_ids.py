"""The types tid and xid: their texts, and how values are held.

    '(0,1)' ─▶ (0000000000,00001), a text        '7' ─▶ 7, a bigint

INVARIANTS
  T1  a tid is held with all its digits, so that its text is ordered as it is. Results show it
      without leading zeros.
"""

import re
from collections.abc import Mapping
from typing import Final

from sql.errors import SqlError, invalid_text_representation

NUMBER_ENDS: Final[Mapping[str, int]] = {"xid": 1 << 32, "cid": 1 << 32, "xid8": 1 << 63}
"""Types held as bigint; no value reaches these ends."""

_TID: Final = re.compile(r" *\( *(\d+), *(\d+)\)")
_TID_ELEMENT: Final = re.compile(r'"(\([^"]*\))"')
_TIDS: Final = re.compile(r'\{(?:\s*"\([^"]*\)"\s*(?:,\s*"\([^"]*\)"\s*)*)?\}')


def parse_tid(text: str) -> str:
    """A tid as it is held (T1). Raises 22P02."""
    found = _TID.fullmatch(text)
    if found is None or int(found[1]) >= 1 << 32 or int(found[2]) >= 1 << 16:
        raise invalid_text_representation("tid", text)
    return held_tid(int(found[1]), int(found[2]))


def held_tid(block: int, number: int) -> str:
    """A tid as it is held (T1)."""
    return f"({block:010},{number:05})"


def parse_tid_array(text: str) -> tuple[str, ...]:
    """An array of one dimension, without NULL. Raises 22P02."""
    if not _TIDS.fullmatch(text):
        raise SqlError("22P02", f'malformed array literal: "{text}"')
    return tuple([parse_tid(part) for part in _TID_ELEMENT.findall(text)])


def format_tid(held: str) -> str:
    """The text of a tid (T1)."""
    block, number = held[1:-1].split(",")
    return f"({int(block)},{int(number)})"


def parse_number(type_: str, text: str) -> int:
    """An xid, cid or xid8. Raises 22P02, 22003."""
    number = text.strip()
    if not re.fullmatch(r"[+-]?\d+", number):
        raise invalid_text_representation(type_, text)
    if not 0 <= int(number) < NUMBER_ENDS[type_]:
        raise SqlError("22003", f'value "{text}" is out of range for type {type_}')
    return int(number)
