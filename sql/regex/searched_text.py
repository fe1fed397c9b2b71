"""A text that is searched for regular expressions: sets of positions, carried through a tree.

A set of positions is an integer with a bit for each position. `ahead` carries a set through a node
from the left, `back` from the right. A window is a stretch of the text, for what is looked for
behind one position: many short matches in a long text cost as much as they are long.

INVARIANTS
  W1  bit i of a set is the position before character i; bit n the end of a text of n characters.
  W2  what is found in a window is what is found in the whole text: anchors and lookaround are of
      the whole, and `has_reached_end` says that there may be more behind its end.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from sql.errors import not_supported
from sql.regex.characters import Ranges, ascii_part, character_class, contains_character
from sql.regex.syntax import (
    Anchor,
    AnchorKind,
    BackReference,
    CapturingGroup,
    Chain,
    Characters,
    Either,
    Lookaround,
    RegexNode,
    Repeat,
)

_CACHED_MAX: Final = 1024
_TABLES_MAX: Final = 4096
_WORD: Final = character_class("word") or ()
_ASCII_WORD: Final = ascii_part(_WORD)
_LINE: Final[Ranges] = ((10, 10),)
_OCCUPIED: Final = re.compile(rb"[^\0]")


class _Table(dict[int, str]):
    """For str.translate: 1 for the characters of a set, 0 for the others."""

    def __init__(self, ranges: Ranges) -> None:
        super().__init__()
        self._ranges = ranges

    def __missing__(self, code: int) -> str:
        found = "1" if contains_character(self._ranges, code) else "0"
        if len(self) < _TABLES_MAX:
            self[code] = found
        return found


@lru_cache(maxsize=_CACHED_MAX)
def _table(ranges: Ranges) -> _Table:
    return _Table(ranges)


class SearchedText:
    """A text to search; `ascii_letters`: what is beyond ASCII belongs to no word."""

    def __init__(self, text: str, *, ascii_letters: bool = False) -> None:
        self.text = text
        self._word = _ASCII_WORD if ascii_letters else _WORD
        self.end = len(text)
        self.everywhere = (1 << (len(text) + 1)) - 1
        self._reversed = text[::-1]
        self._masks: dict[Ranges, int] = {}
        self._places: dict[RegexNode, int] = {}
        self._bytes: dict[Ranges | RegexNode, bytes] = {}
        self.base = 0
        self.is_cut = False
        """Whether there is more of the text behind the end, as of a window."""
        self.has_reached_end = False
        """Whether a set has come to the end of a window."""

    def window(self, start: int, size: int) -> "SearchedText":
        """What is behind a position, for `ahead` from there: `size` characters or more (W2)."""
        if size >= self.end:
            return self
        return _Window(self, start & ~7, size + (start & 7))

    def bytes_of(self, key: Ranges | Anchor | Lookaround) -> bytes:
        """A mask, or the places of a node, by bytes: parts of them are cut out at once."""
        found = self._bytes.get(key)
        if found is None:
            places = self.mask(key) if isinstance(key, tuple) else self.places(key)
            found = self._bytes[key] = places_as_bytes(places)
        return found

    def _moved(self, places: int) -> int:
        if self.is_cut and places >> self.end:
            self.has_reached_end = True
        return places

    def mask(self, ranges: Ranges) -> int:
        """The positions before characters of a set."""
        found = self._masks.get(ranges)
        if found is None:
            found = int(self._reversed.translate(_table(ranges)) or "0", 2)
            self._masks[ranges] = found
        return found

    def places(self, node: Anchor | Lookaround) -> int:
        """The positions where an anchor or a lookaround constraint holds."""
        found = self._places.get(node)
        if found is None:
            found = self._anchored(node.kind) if isinstance(node, Anchor) else self._looked(node)
            self._places[node] = found
        return found

    def _anchored(self, kind: AnchorKind) -> int:
        match kind:
            case AnchorKind.START:
                return 1
            case AnchorKind.END:
                return 1 << self.end
            case AnchorKind.LINE_START:
                return (self.mask(_LINE) << 1) | 1
            case AnchorKind.LINE_END:
                return self.mask(_LINE) | (1 << self.end)
            case _:
                return self._word_edge(kind)

    def _word_edge(self, kind: AnchorKind) -> int:
        following = self.mask(self._word)
        before = following << 1
        starts, ends = following & ~before, before & ~following
        match kind:
            case AnchorKind.WORD_START:
                return starts
            case AnchorKind.WORD_END:
                return ends
            case AnchorKind.WORD_EDGE:
                return starts | ends
            case _:
                return self.everywhere & ~(starts | ends)

    def _looked(self, node: Lookaround) -> int:
        carry = self.ahead if node.behind else self.back
        found = carry(node.node, self.everywhere)
        return self.everywhere & ~found if node.negative else found

    # --- carrying sets through nodes ---

    def ahead(self, node: RegexNode, places: int) -> int:
        """The positions where the node ends if it begins at one of these."""
        match node:
            case Characters(ranges):
                return self._moved((places & self.mask(ranges)) << 1)
            case Anchor() | Lookaround():
                return places & self.places(node)
            case Chain(items):
                for item in items:
                    places = self.ahead(item, places)
                return places
            case Either(items):
                return self._either([self.ahead(item, places) for item in items])
            case CapturingGroup(inner):
                return self.ahead(inner, places)
            case Repeat():
                return self._repeated(node, places, forward=True)
            case BackReference():
                raise not_supported("back-references where it matters what is matched")

    def back(self, node: RegexNode, places: int) -> int:
        """The positions where the node begins if it ends at one of these."""
        match node:
            case Characters(ranges):
                return (places >> 1) & self.mask(ranges)
            case Anchor() | Lookaround():
                return places & self.places(node)
            case Chain(items):
                for item in reversed(items):
                    places = self.back(item, places)
                return places
            case Either(items):
                return self._either([self.back(item, places) for item in items])
            case CapturingGroup(inner):
                return self.back(inner, places)
            case Repeat():
                return self._repeated(node, places, forward=False)
            case BackReference():
                raise not_supported("back-references where it matters what is matched")

    def _either(self, sets: Sequence[int]) -> int:
        found = 0
        for places in sets:
            found |= places
        return found

    def _repeated(self, node: Repeat, places: int, *, forward: bool) -> int:
        carry = self.ahead if forward else self.back
        for _ in range(node.least):
            if not places:
                return 0
            places = carry(node.node, places)
        if node.most is None and isinstance(node.node, Characters):
            return self._run(node.node.ranges, places, forward=forward)
        # More than one repetition for each character brings nothing new.
        rest = self.end + 1 if node.most is None else min(node.most - node.least, self.end + 1)
        fresh = places
        for _ in range(rest):
            fresh = carry(node.node, fresh) & ~places
            if not fresh:
                break
            places |= fresh
        return places

    def _run(self, ranges: Ranges, places: int, *, forward: bool) -> int:
        """Any number of characters of a set, by runs of 1, 2, 4 ..; they add up to any length."""
        run, length = self.mask(ranges), 1
        while run:
            places |= (places & run) << length if forward else (places >> length) & run
            run &= run >> length
            length *= 2
        return self._moved(places)


class _Window(SearchedText):
    """A stretch of a text, whose position 0 is `base` (W2)."""

    def __init__(self, whole: SearchedText, base: int, size: int) -> None:
        self._whole = whole
        self.base = base
        self.end = min(size, whole.end - base)
        self.is_cut = base + self.end < whole.end
        self.has_reached_end = False
        self._masks = {}
        self._places = {}

    def mask(self, ranges: Ranges) -> int:
        found = self._masks.get(ranges)
        if found is None:
            found = self._masks[ranges] = self._cut_out(ranges, self.end)
        return found

    def places(self, node: Anchor | Lookaround) -> int:
        found = self._places.get(node)
        if found is None:
            found = self._places[node] = self._cut_out(node, self.end + 1)
        return found

    def _cut_out(self, key: Ranges | Anchor | Lookaround, length: int) -> int:
        first = self.base >> 3
        part = self._whole.bytes_of(key)[first : first + (length + 7 >> 3)]
        return int.from_bytes(part, "little") & ((1 << length) - 1)


def places_as_bytes(places: int) -> bytes:
    """A set of positions by bytes, the lowest first."""
    return places.to_bytes((places.bit_length() + 7) // 8, "little")


def next_place(places: bytes, first: int) -> int | None:
    """The lowest position of a set that is not below `first`."""
    index = first >> 3
    if index >= len(places):
        return None
    rest = places[index] >> (first & 7)
    if rest:
        return first + lowest_place(rest)
    found = _OCCUPIED.search(places, index + 1)
    return None if found is None else 8 * found.start() + lowest_place(places[found.start()])


def lowest_place(places: int) -> int:
    """The lowest position of a set; -1 of an empty one."""
    return (places & -places).bit_length() - 1
