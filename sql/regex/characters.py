"""Character classes, case mappings and character sets of PostgreSQL's locale C.UTF-8.

INVARIANTS
  H1  a `Ranges` is sorted, and its ranges neither touch nor overlap.
  H2  classes and mappings are PostgreSQL's own (`data/characters.txt`): Python, Java and RE2 have
      others, of other versions of Unicode.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""First and last code point of each range."""

LAST_CODE_POINT: Final = 0x10FFFF
_ASCII_LAST: Final = 0x7F
ALL_CHARACTERS: Final[Ranges] = ((1, LAST_CODE_POINT),)
NEWLINE: Final[Ranges] = ((10, 10),)
_DATA: Final = Path(__file__).parents[1] / "data" / "characters.txt"
_MAPPINGS: Final = frozenset({"tolower", "toupper"})
_DIGITS: Final = ((0x30, 0x39),)
_SHORT: Final[Mapping[str, Ranges]] = {
    "digit": _DIGITS,
    "xdigit": ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
    "blank": ((0x09, 0x09), (0x20, 0x20)),
    "cntrl": ((0x01, 0x1F), (0x7F, 0x9F)),
    "ascii": ((0x01, 0x7F),),
    "space": (
        (0x09, 0x0D), (0x20, 0x20), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A),
        (0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000),
    ),
}  # fmt: skip
_SPACES_PRINTED: Final = (
    (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x202F, 0x202F),
    (0x205F, 0x205F), (0x3000, 0x3000),
)  # fmt: skip


# --- sets --------------------------------------------------------------------------------------


def union(*sets: Iterable[tuple[int, int]]) -> Ranges:
    """The union of character sets."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(pair for ranges in sets for pair in ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return tuple(merged)


def complement(ranges: Ranges) -> Ranges:
    """All characters that are not in the set."""
    found: list[tuple[int, int]] = []
    start = 1
    for first, last in ranges:
        if first > start:
            found.append((start, first - 1))
        start = last + 1
    return (*found, (start, LAST_CODE_POINT)) if start <= LAST_CODE_POINT else tuple(found)


def contains_character(ranges: Ranges, code: int) -> bool:
    """Whether a character is in the set."""
    index = bisect_right(ranges, (code, LAST_CODE_POINT + 1)) - 1
    return index >= 0 and code <= ranges[index][1]


def ascii_part(ranges: Ranges) -> Ranges:
    """The characters of a set that are ASCII."""
    return tuple((first, min(last, _ASCII_LAST)) for first, last in ranges if first <= _ASCII_LAST)


def overlap(a: Ranges, b: Ranges) -> bool:
    """Whether two sets share a character."""
    return any(first <= stop and start <= last for first, last in a for start, stop in b)


def with_both_cases(ranges: Ranges, *, ascii_letters: bool = False) -> Ranges:
    """The set with the other case of each of its characters, or of its ASCII letters."""
    if ascii_letters:
        letters = ascii_part(ranges)
        low, high = (
            [
                (max(first, start) + step, min(last, start + 25) + step)
                for first, last in letters
                if first <= start + 25 and last >= start
            ]
            for start, step in ((0x41, 32), (0x61, -32))
        )
        return union(ranges, low, high)
    lower, upper = _data()[1]["tolower"], _data()[1]["toupper"]
    others = [
        (other, other)
        for mapping in (lower, upper)
        for code, other in mapping.items()
        if contains_character(ranges, code)
    ]
    return union(ranges, others)


# --- classes and case --------------------------------------------------------------------------


@cache
def character_class(name: str) -> Ranges | None:
    """The characters of `[[:name:]]`, or None if there is no such class."""
    if name in _SHORT:
        return _SHORT[name]
    classes = _data()[0]
    match name:
        case "alnum":
            return union(classes["alpha"], _DIGITS)
        case "word":
            return union(classes["alpha"], _DIGITS, ((0x5F, 0x5F),))
        case "print":
            return union(classes["graph"], _SPACES_PRINTED)
        case _:
            return classes.get(name)


def lower(text: str) -> str:
    """The text in lower case, character by character."""
    if text.isascii():
        return text.lower()
    return text.translate(_data()[1]["tolower"])


def upper(text: str) -> str:
    """The text in upper case, character by character."""
    if text.isascii():
        return text.upper()
    return text.translate(_data()[1]["toupper"])


@cache
def case_mapping(function: str) -> tuple[str, str]:
    """The characters that upper() or lower() changes, and what each of them becomes."""
    mapping = _data()[1][f"to{function}"]
    return "".join(map(chr, mapping)), "".join(map(chr, mapping.values()))


def is_alphanumeric(character: str) -> bool:
    """Whether a character belongs to a word, as initcap() means it."""
    if character.isascii():
        return character.isalnum()
    return contains_character(_alphanumeric(), ord(character))


@cache
def _alphanumeric() -> Ranges:
    return character_class("alnum") or ()


@cache
def _data() -> tuple[dict[str, Ranges], dict[str, dict[int, int]]]:
    classes: dict[str, Ranges] = {}
    mappings: dict[str, dict[int, int]] = {name: {} for name in _MAPPINGS}
    name = ""
    for line in _DATA.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        words = line.split()
        if not line.startswith(" "):
            name = words.pop(0)
        if name in _MAPPINGS:
            mappings[name].update(_mapped(words))
        else:
            classes[name] = classes.get(name, ()) + tuple(_range(word) for word in words)
    return classes, mappings


def _range(word: str) -> tuple[int, int]:
    first, _, last = word.partition("-")
    return int(first, 16), int(last or first, 16)


def _mapped(words: Iterable[str]) -> Iterator[tuple[int, int]]:
    for word in words:
        span, _, delta = word.partition(":")
        span, _, step = span.partition("/")
        first, last = _range(span)
        for code in range(first, last + 1, int(step or 1)):
            yield code, code + int(delta)
