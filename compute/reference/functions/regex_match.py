"""Find matches of regular expressions as PostgreSQL does: leftmost, then longest or shortest.

Groups match by the same preference, from the left. Sets of positions are carried through the tree
(`sql/regex/searched_text.py`). So a text is searched in one pass, and no pattern makes it
exponential. Where a match ends is looked for in a window behind its start.

INVARIANTS
  J2  a match is divided into parts as by regexec.c: a stretch of a branch that captures nothing and
      has one preference is one part (`_Part`), and the last of several repetitions is a part of its
      own.
  J3  a window whose end was reached is made larger (W2 of `sql/regex/searched_text.py`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from sql.errors import SqlError, not_supported
from sql.regex.searched_text import SearchedText, lowest_place, next_place, places_as_bytes
from sql.regex.syntax import (
    Anchor,
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
WINDOW: Final = 1024
"""Characters of a window. Larger: short matches cost more. Smaller: there are more windows."""
_DIVISIONS_MAX: Final = 1 << 32
"""Bits of sets that tell how a match is divided: half a gigabyte."""


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

    def matches(
        self, subject: SearchedText, first: int, *, every: bool = True
    ) -> Iterator[list[Span | None]]:
        """The matches from a position on, from left to right, without overlaps."""
        starts, start = places_as_bytes(self.starts(subject)), first
        window = subject.window(0, WINDOW)
        while (found := next_place(starts, start)) is not None:
            if window is not subject and found - window.base >= window.end // 2:
                window = subject.window(found, WINDOW)
            match = self._match_in(window, found - window.base)
            size = WINDOW
            while match is None:
                size *= 2
                # It is for this match alone: the next one may be short.
                larger = subject.window(found, size)
                match = self._match_in(larger, found - larger.base)
            yield match
            if not every:
                return
            span = match[0]
            assert span is not None, "the whole is always matched"
            start = span[1] + (span[0] == span[1])

    def _match_in(self, window: SearchedText, start: int) -> list[Span | None] | None:
        """The match that begins there in a window; None if it may go on behind it (J3)."""
        window.has_reached_end = False
        ends = window.ahead(self._node, 1 << start)
        if window.has_reached_end:
            return None
        match, base = self._divided(window, ends, start), window.base
        if not base:
            return match
        return [None if span is None else (span[0] + base, span[1] + base) for span in match]

    def match_at(self, subject: SearchedText, start: int) -> list[Span | None]:
        """The match that begins there: its span, then those of the groups."""
        return self._divided(subject, subject.ahead(self._node, 1 << start), start)

    def _divided(self, subject: SearchedText, ends: int, start: int) -> list[Span | None]:
        """The match that begins there and may have one of these ends."""
        end = lowest_place(ends) if self._part.shorter else ends.bit_length() - 1
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


def _chosen(part: _Part, places: int) -> int:
    return lowest_place(places) if part.shorter else places.bit_length() - 1


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
    width = _width(inner.node)
    if width:
        return end - width
    # reaching[r]: from where r repetitions or fewer come to the end.
    reaching = [1 << end]
    limit = end - start if part.most is None else min(part.most, end - start)
    while len(reaching) < limit:
        if len(reaching) * end > _DIVISIONS_MAX:
            raise SqlError("54000", "the match of the regular expression is too long")
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


def _width(node: RegexNode) -> int | None:
    """How many characters it matches, if it is always the same number."""
    match node:
        case Characters():
            return 1
        case Anchor() | Lookaround():
            return 0
        case CapturingGroup(inner):
            return _width(inner)
        case Chain(items):
            widths = [_width(item) for item in items]
            return None if None in widths else sum(width or 0 for width in widths)
        case Either(items):
            each = {_width(item) for item in items}
            return each.pop() if len(each) == 1 else None
        case Repeat(inner, least, most):
            width = _width(inner)
            return None if width is None or least != most else least * width
        case BackReference():
            return None
