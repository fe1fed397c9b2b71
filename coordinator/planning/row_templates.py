"""Split an INSERT of many rows into rows that share templates, as if each came alone.

    insert into t (a, b) values │(1, 'x')│, │(2, 'y')│, │(3, null)│ on conflict do nothing
             head                   row        row         row        tail
                                      └────────┴── one shape ┘└ another one

PostgreSQL computes the rows of INSERT .. VALUES one by one, so a row means in its text what it
means alone between head and tail. The template of that (`literal_templates.py`) is proved on the
first row of its shape.

INVARIANTS
  W1  head and tail have no literals and no comments; parentheses of a row are its own alone. What
      has others (calls, arrays, sub-queries) is left to the statement's own text.
  W2  memory is bounded by TEXT_MAX and ROW_SHAPES_MAX.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from coordinator.planning.literal_templates import LITERAL, Literals, literal_of

SPLIT_ROWS_MIN: Final = 10
"""Fewer rows share a template of their whole text."""
TEXT_MAX: Final = 4 << 20
"""Characters. Larger: longer stalls of the loop."""
ROW_SHAPES_MAX: Final = 16
"""Of the rows of one text."""

_HEAD: Final = re.compile(
    r"\s*insert\s+into\s+(?:[^'\"();$\\/\-]|\"[^\"]*\")*?"
    r"(?:\((?:[^'\"();$\\/\-]|\"[^\"]*\")*\)\s*)?\bvalues\s*\(",
    re.IGNORECASE,
)
_BETWEEN: Final = re.compile(r"\)\s*,\s*\(")
_PARENTHESES: Final = re.compile(r"[()]")


@dataclass(frozen=True, slots=True)
class TextRow:
    """A row: the shape that it has alone, its text, and its literals."""

    key: str
    text: str
    literals: Literals


@dataclass(frozen=True, slots=True)
class RowsOfText:
    """The rows of a text in their order. `of`: for each the place of the first row of its shape;
    that row is in `shapes`.
    """

    shapes: Sequence[TextRow]
    of: Sequence[int]
    literals: Sequence[Literals]


def split_rows(text: str) -> RowsOfText | None:
    """The rows of a text; None if it has none that are split (W1)."""
    if len(text) > TEXT_MAX or text.count("(") < SPLIT_ROWS_MIN:
        return None
    head = _HEAD.match(text)
    if head is None:
        return None
    splitter = _Splitter(text[: head.end()])
    at = head.end()
    try:
        # One by one: to split a long text at once takes the GIL until it is done.
        for found in LITERAL.finditer(text, at):
            splitter.piece(text[at : found.start()])
            splitter.literal(found[1], found[2])
            at = found.end()
        return splitter.end(text[at:])
    except _CannotSplit:
        return None


class _CannotSplit(Exception):
    """W1, W2."""


class _Splitter:
    def __init__(self, head: str) -> None:
        self._head = head
        self._known: dict[str, Sequence[str]] = {}
        self._pieces: list[str] = []
        self._words: list[str] = []
        self._kinds = ""
        self._literals: Literals = []
        self._places: dict[tuple[str, ...], int] = {}
        self._firsts: list[tuple[list[str], list[str], str, Literals]] = []
        self._of: list[int] = []
        self._rows: list[Literals] = []

    def piece(self, text: str) -> None:
        """What stands between two literals."""
        known = self._known.get(text)
        if known is None:
            known = _BETWEEN.split(text)
            if any(map(_PARENTHESES.search, known)):
                raise _CannotSplit
            self._known[text] = known
        self._add(known)

    def _add(self, segments: Sequence[str]) -> None:
        self._pieces.append(segments[0])
        for segment in segments[1:]:
            self._row()
            self._pieces.append(segment)

    def literal(self, word: str | None, number: str | None) -> None:
        """A string without its quotes, or a number."""
        kind, value = literal_of(word, number)
        self._words.append(f"'{word}'" if word is not None else number or "")
        self._kinds += kind
        self._literals.append(value)

    def _row(self) -> None:
        shape = (*self._pieces, self._kinds)
        place = self._places.get(shape)
        if place is None:
            place = self._places[shape] = len(self._firsts)
            if place == ROW_SHAPES_MAX:
                raise _CannotSplit
            self._firsts.append((self._pieces, self._words, self._kinds, self._literals))
        self._of.append(place)
        self._rows.append(self._literals)
        self._pieces, self._words, self._kinds, self._literals = [], [], "", []

    def end(self, text: str) -> RowsOfText | None:
        """What stands behind the last literal: the rest of the last row, and the tail."""
        *segments, last = _BETWEEN.split(text)
        rest, closing, tail = last.partition(")")
        segments.append(rest)
        if not closing or any(map(_PARENTHESES.search, segments)):
            raise _CannotSplit
        self._add(segments)
        self._row()
        if len(self._rows) < SPLIT_ROWS_MIN:
            return None
        return RowsOfText(
            [self._alone(first, tail) for first in self._firsts], self._of, self._rows
        )

    def _alone(self, first: tuple[list[str], list[str], str, Literals], tail: str) -> TextRow:
        """The row as the only one of its statement."""
        pieces, words, kinds, literals = first
        pieces = [*pieces]
        pieces[0] = self._head + pieces[0]
        pieces[-1] += ")" + tail
        text = "".join([piece + word for piece, word in zip(pieces, [*words, ""], strict=True)])
        return TextRow("\0".join([*pieces, kinds]), text, literals)
