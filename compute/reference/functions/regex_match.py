"""Find matches of regular expressions as PostgreSQL does: leftmost, then longest or shortest.

Groups match by the same preference, from the left. A set of positions is an integer with a bit for
each position. `ahead` carries a set through a node from the left, `back` from the right. So a text
is searched in one pass, and no pattern makes it exponential.

INVARIANTS
  J1  bit i of a set is the position before character i; bit n the end of a text of n characters.
  J2  a match is divided into parts as by regexec.c: a stretch of a branch that captures nothing and
      has one preference is one part (`_Part`), and the last of several repetitions is a part of its
      own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
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
    Regex,
    RegexNode,
    Repeat,
    has_back_references,
    sequence,
)

_CACHED_MAX: Final = 1024
_TABLES_MAX: Final = 4096
_WORD: Final = character_class("word") or ()
_ASCII_WORD: Final = ascii_part(_WORD)
_LINE: Final[Ranges] = ((10, 10),)


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
                return (places & self.mask(ranges)) << 1
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
        return places


# --- parts -------------------------------------------------------------------------------------

_LONGER, _SHORTER, _MIXED, _REMEMBERS = 1, 2, 4, 8
_PREFERENCE: Final = _LONGER | _SHORTER


@dataclass(frozen=True, slots=True)
class _Part:
    """A node, divided into parts only if something in it is captured (J2).

    `flags`: its preferences. `left` and `right`: one after the other; `either`: one of them;
    `repeated`: any of 0 to `most` repetitions; `number`: the capturing group.
    """

    node: RegexNode
    flags: int = 0
    left: "_Part | None" = None
    right: "_Part | None" = None
    either: tuple["_Part", ...] = ()
    repeated: "_Part | None" = None
    most: int | None = None
    number: int = 0

    @property
    def shorter(self) -> bool:
        return bool(self.flags & _SHORTER)


def _up(flags: int) -> int:
    mixed = _MIXED if flags & _PREFERENCE == _PREFERENCE else 0
    return (flags & ~_PREFERENCE) | mixed


def _combined(first: int, second: int) -> int:
    return _up(first | second) | ((first & _PREFERENCE) or (second & _PREFERENCE))


def _messy(flags: int) -> bool:
    return bool(flags & (_MIXED | _REMEMBERS))


def _part(node: RegexNode) -> _Part:
    match node:
        case CapturingGroup(inner, number):
            below = _part(inner)
            return _Part(node, below.flags | _REMEMBERS, repeated=below, number=number)
        case Either(items):
            parts = tuple(_part(item) for item in items)
            flags = _LONGER
            for part in parts:
                flags |= _up(flags | part.flags)
            return _Part(node, flags, either=parts if _messy(flags) else ())
        case Chain(items):
            return _branch(items)
        case Repeat():
            return _branch((node,))
        case _:
            return _Part(node)


def _branch(items: Sequence[RegexNode]) -> _Part:
    """The first stretch that is one part, the item that ends it, and the rest."""
    flags = 0
    for index, item in enumerate(items):
        atom, prefers = item, 0
        if isinstance(item, Repeat):
            if item.most == 0:
                continue
            atom = item.node
            prefers = {None: 0, False: _LONGER, True: _SHORTER}[item.lazy]
        inner = _part(atom)
        together = flags | prefers | inner.flags
        if not isinstance(atom, CapturingGroup) and not _messy(_up(together)):
            flags = together
            continue
        part = _quantified(item, inner, prefers)
        if index + 1 < len(items):
            part = _joined(part, _branch(items[index + 1 :]))
        return _joined(_Part(sequence(items[:index]), flags), part) if index else part
    return _Part(sequence(items), flags)


def _joined(left: _Part, right: _Part) -> _Part:
    return _Part(
        Chain((left.node, right.node)), _combined(left.flags, right.flags), left=left, right=right
    )


def _quantified(item: RegexNode, inner: _Part, prefers: int) -> _Part:
    if not isinstance(item, Repeat):
        return inner
    flags = _combined(prefers, inner.flags)
    own = inner.flags & (_PREFERENCE | _MIXED)
    if item.least == item.most == 1 and (not prefers or not own or prefers == own):
        return _Part(inner.node, flags, repeated=inner)
    if not inner.flags & _REMEMBERS:
        return _Part(item, flags)
    if item.least > 0:
        most = None if item.most is None else item.most - 1
        before = _Part(Repeat(inner.node, item.least - 1, most, item.lazy), flags & _PREFERENCE)
        return _Part(Chain((before.node, inner.node)), flags, left=before, right=inner)
    return _Part(item, flags, repeated=inner, most=item.most)


# --- matches -----------------------------------------------------------------------------------

Span = tuple[int, int]


class Matcher:
    """A compiled pattern."""

    def __init__(self, regex: Regex) -> None:
        self.groups = regex.groups
        self._node = regex.node
        self._part = _part(regex.node)

    def occurs(self, subject: SearchedText) -> bool:
        """Whether it matches anywhere."""
        return bool(subject.back(self._node, subject.everywhere))

    def starts(self, subject: SearchedText) -> int:
        """The set of positions where a match begins."""
        return subject.back(self._node, subject.everywhere)

    def match_at(self, subject: SearchedText, start: int) -> list[Span | None]:
        """The match that begins there: its span, then those of the groups."""
        ends = subject.ahead(self._node, 1 << start)
        end = _lowest(ends) if self._part.shorter else ends.bit_length() - 1
        spans: list[Span | None] = [(start, end), *([None] * self.groups)]
        if self.groups:
            _tell(subject, self._part, start, end, spans)
        return spans


@lru_cache(maxsize=_CACHED_MAX)
def compile_matcher(regex: Regex) -> Matcher:
    """The compiled pattern of a tree (cached); 0A000 for back-references."""
    if has_back_references(regex.node):
        raise not_supported("back-references where it matters what is matched")
    return Matcher(regex)


def _lowest(places: int) -> int:
    return (places & -places).bit_length() - 1


def _chosen(part: _Part, places: int) -> int:
    return _lowest(places) if part.shorter else places.bit_length() - 1


def _tell(
    subject: SearchedText, part: _Part, start: int, end: int, spans: list[Span | None]
) -> None:
    """Find what the groups of a part match, given that the part matches from start to end."""
    if part.left is not None and part.right is not None:
        ends = subject.ahead(part.left.node, 1 << start)
        middle = _chosen(part.left, ends & subject.back(part.right.node, 1 << end))
        _tell(subject, part.left, start, middle, spans)
        _tell(subject, part.right, middle, end, spans)
    elif part.either:
        chosen = next(p for p in part.either if subject.ahead(p.node, 1 << start) >> end & 1)
        _tell(subject, chosen, start, end, spans)
    elif part.number and part.repeated is not None:
        spans[part.number] = (start, end)
        _tell(subject, part.repeated, start, end, spans)
    elif part.repeated is not None and part.node is part.repeated.node:
        _tell(subject, part.repeated, start, end, spans)
    elif part.repeated is not None and start == end:
        # No repetition would do; one that matches nothing is remembered all the same, unless it
        # would rather have been short (creviterdissect).
        inner = part.repeated
        if not inner.shorter and subject.ahead(inner.node, 1 << start) >> end & 1:
            _tell(subject, inner, start, end, spans)
    elif part.repeated is not None:
        last = _last_repetition(subject, part, part.repeated, start, end)
        _tell(subject, part.repeated, last, end, spans)


def _last_repetition(subject: SearchedText, part: _Part, inner: _Part, start: int, end: int) -> int:
    """Where the last of several repetitions begins, none of which is empty."""
    # reaching[r]: from where r repetitions or fewer come to the end.
    reaching = [1 << end]
    limit = end - start if part.most is None else min(part.most, end - start)
    while len(reaching) < limit:
        further = reaching[-1] | subject.back(inner.node, reaching[-1])
        if further == reaching[-1]:
            break
        reaching.append(further)
    position, left = start, limit
    while True:
        left -= 1
        ends = subject.ahead(inner.node, 1 << position) & reaching[min(left, len(reaching) - 1)]
        ends = ends >> (position + 1) << (position + 1)
        following = _chosen(inner, ends)
        if following == end:
            return position
        position = following
