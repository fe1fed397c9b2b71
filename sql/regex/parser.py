"""Parse PostgreSQL's regular expressions into syntax trees (`sql/regex/syntax.py`)."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Final

from sql.errors import not_supported
from sql.regex.characters import (
    Ranges,
    ascii_part,
    character_class,
    complement,
    union,
    with_both_cases,
)
from sql.regex.syntax import (
    REPEATS_MAX,
    Anchor,
    AnchorKind,
    BackReference,
    CapturingGroup,
    Chain,
    Characters,
    Either,
    Flags,
    Lookaround,
    Regex,
    RegexNode,
    Repeat,
    any_character,
    character_set,
    invalid_regex,
    sequence,
    with_option_letters,
)

_SIZE_MAX: Final = 20_000
"""Characters that a pattern may stand for, counted ones repeated."""
_CLASSES: Final = {"d": "digit", "s": "space", "w": "word"}
_CONTROLS: Final = {
    "a": 7, "b": 8, "B": 92, "e": 27, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11,
}  # fmt: skip
_PLACES: Final = {
    "A": AnchorKind.START, "Z": AnchorKind.END, "m": AnchorKind.WORD_START,
    "M": AnchorKind.WORD_END, "y": AnchorKind.WORD_EDGE, "Y": AnchorKind.NO_WORD_EDGE,
}  # fmt: skip
_HEX: Final = frozenset("0123456789abcdefABCDEF")
_OCTAL: Final = frozenset("01234567")
_DIGITS: Final = frozenset("0123456789")
_BRACKETS: Final = "brackets [] not balanced"
_PARENTHESES: Final = "parentheses () not balanced"
_ESCAPE: Final = "invalid escape \\ sequence"
_COUNT: Final = "invalid repetition count(s)"
_NAMES: Final = {
    "NUL": 0, "tab": 9, "newline": 10, "carriage-return": 13, "space": 32, "hyphen": 45,
    "hyphen-minus": 45, "period": 46, "slash": 47, "backslash": 92, "underscore": 95, "comma": 44,
    "left-square-bracket": 91, "right-square-bracket": 93, "circumflex": 94, "dollar-sign": 36,
}  # fmt: skip


def _atomic(node: RegexNode) -> RegexNode:
    """What stands in parentheses may be repeated, even a place."""
    return Chain((node,)) if isinstance(node, Anchor | Lookaround) else node


def _one(code: int) -> Ranges:
    if not 0 < code <= 0x10FFFF:
        raise invalid_regex(_ESCAPE)
    return ((code, code),)


class Parser:
    """One pattern, read once from the left."""

    def __init__(self, pattern: str, flags: Flags, nesting_max: int) -> None:
        self._text = pattern
        self._flags = flags
        self._at = 0
        self._opened = 0
        self._closed: set[int] = set()
        self._nesting = nesting_max
        self._looking = 0

    def parse(self) -> Regex:
        """The tree of the whole pattern."""
        node = self._alternatives()
        if self._at < len(self._text):
            raise invalid_regex(_PARENTHESES)
        _check_size(node)
        return Regex(node, self._opened)

    def _peek(self, count: int = 1) -> str:
        return self._text[self._at : self._at + count]

    def _next(self, otherwise: str) -> str:
        character = self._peek()
        if not character:
            raise invalid_regex(otherwise)
        self._at += 1
        return character

    def _take(self, text: str) -> bool:
        found = self._text.startswith(text, self._at)
        self._at += len(text) if found else 0
        return found

    def _skip(self) -> None:
        """Comments; blanks too in the expanded syntax."""
        while True:
            if self._flags.expanded and self._peek() and self._peek() in " \t\n\r\f\v":
                self._at += 1
            elif self._flags.expanded and self._peek() == "#":
                end = self._text.find("\n", self._at)
                self._at = len(self._text) if end < 0 else end
            elif self._peek(3) == "(?#":
                end = self._text.find(")", self._at)
                self._at = len(self._text) if end < 0 else end + 1
            else:
                return

    # --- structure ---

    def _alternatives(self) -> RegexNode:
        self._nesting -= 1
        if self._nesting < 0:
            raise not_supported("a regular expression that is nested so deeply")
        branches = [self._branch()]
        while self._take("|"):
            branches.append(self._branch())
        self._nesting += 1
        return branches[0] if len(branches) == 1 else Either(tuple(branches))

    def _branch(self) -> RegexNode:
        items: list[RegexNode] = []
        while True:
            self._skip()
            if self._peek() in ("", "|", ")"):
                return sequence(items)
            items.append(self._quantified())

    def _quantified(self) -> RegexNode:
        node = self._atom()
        self._skip()
        if isinstance(node, Anchor | Lookaround):
            # A quantifier behind a place is none of an atom; the next atom finds it.
            return node
        counts = self._quantifier()
        if counts is None:
            return node
        least, most, fixed = counts
        lazy = self._take("?")
        return Repeat(node, least, most, None if fixed else lazy)

    def _quantifier(self) -> tuple[int, int | None, bool] | None:
        """Least, most, and whether there is no range to prefer something of."""
        match self._peek():
            case "*":
                counts: tuple[int, int | None, bool] = 0, None, False
            case "+":
                counts = 1, None, False
            case "?":
                counts = 0, 1, False
            case "{" if self._peek(2)[1:] in _DIGITS:
                return self._counted()
            case _:
                return None
        self._at += 1
        return counts

    def _counted(self) -> tuple[int, int | None, bool]:
        self._at += 1
        least = self._number()
        most: int | None = least
        ranged = self._take(",")
        if ranged:
            most = self._number() if self._peek() in _DIGITS else None
        if not self._peek():
            raise invalid_regex("braces {} not balanced")
        if not self._take("}") or (most is not None and most < least):
            raise invalid_regex(_COUNT)
        return least, most, not ranged

    def _number(self) -> int:
        start = self._at
        while self._peek() in _DIGITS:
            self._at += 1
        value = int(self._text[start : self._at] or -1)
        if not 0 <= value <= REPEATS_MAX:
            raise invalid_regex(_COUNT)
        return value

    # --- atoms ---

    def _atom(self) -> RegexNode:
        character = self._next("quantifier operand invalid")
        match character:
            case "(":
                return self._parenthesis()
            case "[":
                return self._bracket()
            case ".":
                return any_character(self._flags)
            case "^":
                lines = self._flags.lines
                return Anchor(AnchorKind.LINE_START if lines else AnchorKind.START)
            case "$":
                return Anchor(AnchorKind.LINE_END if self._flags.lines else AnchorKind.END)
            case "\\":
                return self._escape()
            case "*" | "+" | "?":
                raise invalid_regex("quantifier operand invalid")
            case "{" if self._peek() in _DIGITS:
                raise invalid_regex("quantifier operand invalid")
            case _:
                return character_set(_one(ord(character)), self._flags)

    def _parenthesis(self) -> RegexNode:
        if self._take("?:"):
            return _atomic(self._closing(self._alternatives()))
        looks = {"?=": (False, False), "?!": (False, True), "?<=": (True, False)}
        looks["?<!"] = (True, True)
        for sign, (behind, negative) in looks.items():
            if self._take(sign):
                # Parentheses in there do not remember.
                self._looking += 1
                inner = self._closing(self._alternatives())
                self._looking -= 1
                return Lookaround(inner, behind, negative)
        if self._peek() == "?":
            raise invalid_regex("quantifier operand invalid")
        if self._looking:
            return _atomic(self._closing(self._alternatives()))
        self._opened += 1
        number = self._opened
        node = CapturingGroup(self._closing(self._alternatives()), number)
        self._closed.add(number)
        return node

    def _closing(self, node: RegexNode) -> RegexNode:
        if not self._take(")"):
            raise invalid_regex(_PARENTHESES)
        return node

    def _escape(self) -> RegexNode:
        if not self._peek():
            raise invalid_regex(_ESCAPE)
        character = self._peek()
        if character in _PLACES:
            self._at += 1
            return Anchor(_PLACES[character])
        reference = self._reference()
        if reference is not None:
            return reference
        return character_set(self._escaped(), self._flags)

    def _reference(self) -> BackReference | None:
        r"""`\1`; two digits and more only if there are so many groups."""
        digits = 0
        while self._peek(digits + 1)[digits:] in _DIGITS:
            digits += 1
        if not digits or self._peek() == "0":
            return None
        number = int(self._peek(digits))
        if digits > 1 and number > self._opened:
            return None
        self._at += digits
        if self._looking or number not in self._closed:
            raise invalid_regex("invalid backreference number")
        return BackReference(number, self._flags.ignore_case)

    def _escaped(self) -> Ranges:
        """What a backslash begins, where a character may stand."""
        character = self._next(_ESCAPE)
        if character in _CLASSES:
            return self._class(_CLASSES[character]) or ()
        if character.lower() in _CLASSES:
            return complement(self._class(_CLASSES[character.lower()]) or ())
        if character in _CONTROLS:
            return _one(_CONTROLS[character])
        if not (character.isascii() and character.isalnum()):
            return _one(ord(character))
        return _one(self._code(character))

    def _code(self, kind: str) -> int:
        match kind:
            case "c":
                return ord(self._next(_ESCAPE)) & 0x1F
            case "u":
                return self._digits(_HEX, 4, 4, 16)
            case "U":
                return self._digits(_HEX, 8, 8, 16)
            case "x":
                return self._digits(_HEX, 1, REPEATS_MAX, 16)
            case "0":
                self._at -= 1
                return self._digits(_OCTAL, 1, 3, 8)
            case kind if kind in _OCTAL:
                self._at -= 1
                return self._digits(_OCTAL, 2, 3, 8)
            case _:
                raise invalid_regex(_ESCAPE)

    def _digits(self, allowed: frozenset[str], least: int, most: int, base: int) -> int:
        start = self._at
        while self._at - start < most and self._peek() in allowed:
            self._at += 1
        if self._at - start < least:
            raise invalid_regex(_ESCAPE)
        return int(self._text[start : self._at], base)

    # --- brackets ---

    def _bracket(self) -> RegexNode:
        for text, kind in (("[:<:]]", AnchorKind.WORD_START), ("[:>:]]", AnchorKind.WORD_END)):
            if self._take(text):
                return Anchor(kind)
        negated = self._take("^")
        sets: list[Ranges] = []
        first = True
        while first or self._peek() != "]":
            sets.append(self._bracket_item(first=first))
            first = False
        self._at += 1
        found = union(*sets)
        if self._flags.ignore_case:
            found = with_both_cases(found, ascii_letters=self._flags.ascii_letters)
        if negated:
            found = complement(union(found, ((10, 10),)) if self._flags.partly else found)
        return Characters(found)

    def _bracket_item(self, *, first: bool) -> Ranges:
        if self._peek() == "-" and not first and self._peek(2) != "-]":
            # Only at an end, or as the last of a range.
            raise invalid_regex("invalid character range")
        start = self._bracket_part()
        if self._peek() != "-" or self._peek(2) == "-]":
            return start
        self._at += 1
        stop = self._bracket_part()
        if len(start) != 1 or start[0][0] != start[0][1] or len(stop) != 1:
            raise invalid_regex("invalid character range")
        low, high = start[0][0], stop[0][1]
        if stop[0][0] != high or high < low:
            raise invalid_regex("invalid character range")
        return ((low, high),)

    def _bracket_part(self) -> Ranges:
        character = self._next(_BRACKETS)
        if character == "[":
            special: dict[str, Callable[[str], Ranges]] = {
                ":": self._named, ".": _element, "=": _element,
            }  # fmt: skip
            sign = self._peek()
            if sign in special and sign:
                return special[sign](self._enclosed(sign))
        if character == "\\":
            if not self._peek():
                raise invalid_regex(_ESCAPE)
            return self._escaped()
        return _one(ord(character))

    def _enclosed(self, sign: str) -> str:
        end = self._text.find(f"{sign}]", self._at + 1)
        if end < 0:
            raise invalid_regex(_BRACKETS)
        name = self._text[self._at + 1 : end]
        self._at = end + 2
        return name

    def _named(self, name: str) -> Ranges:
        if self._flags.ignore_case and name in ("upper", "lower"):
            name = "alpha"
        found = self._class(name)
        if found is None:
            raise invalid_regex("invalid character class")
        return found

    def _class(self, name: str) -> Ranges | None:
        found = character_class(name)
        return ascii_part(found) if found is not None and self._flags.ascii_letters else found


def _element(name: str) -> Ranges:
    if len(name) == 1:
        return _one(ord(name))
    if name not in _NAMES:
        raise not_supported("a collating element with a name")
    return _one(_NAMES[name])


def _check_size(node: RegexNode) -> None:
    if _size(node) > _SIZE_MAX:
        raise not_supported("a regular expression that stands for so much")


def _size(node: RegexNode) -> int:
    match node:
        case Chain(items) | Either(items):
            return 1 + sum(map(_size, items))
        case Repeat(inner, least, most):
            return 1 + _size(inner) * max(least if most is None else most, 1)
        case CapturingGroup(inner) | Lookaround(inner):
            return 1 + _size(inner)
        case _:
            return 1


_CACHED_MAX: Final = 1024


_NESTING_MAX: Final = 60


def _embedded(flags: Flags, pattern: str) -> tuple[Flags, str]:
    """`(?i)` and its like, at the beginning only."""
    if not pattern.startswith("(?") or not pattern[2:3].isalpha():
        return flags, pattern
    end = 2
    while end < len(pattern) and pattern[end].isascii() and pattern[end].isalpha():
        end += 1
    found = with_option_letters(flags, pattern[2:end], embedded=True)
    if found is None or pattern[end : end + 1] != ")":
        raise invalid_regex("invalid embedded option")
    return found, pattern[end + 1 :]


def _literal(pattern: str, flags: Flags) -> RegexNode:
    return sequence([character_set(((ord(c), ord(c)),), flags) for c in pattern])


_NO_FLAGS: Final = Flags()


@lru_cache(maxsize=_CACHED_MAX)
def parse_regex(pattern: str, flags: Flags = _NO_FLAGS) -> Regex:
    """The tree of a pattern (E2)."""
    if flags.literal:
        return Regex(_literal(pattern, flags), 0)
    if pattern.startswith("***"):
        if pattern.startswith("***="):
            return Regex(_literal(pattern[4:], replace(flags, literal=True)), 0)
        if not pattern.startswith("***:"):
            raise invalid_regex("quantifier operand invalid")
        pattern = pattern[4:]
    flags, pattern = _embedded(flags, pattern)
    return Parser(pattern, flags, nesting_max=_NESTING_MAX).parse()
