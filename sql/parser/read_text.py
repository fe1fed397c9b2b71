"""Give a text to PostgreSQL's parser or scanner, without its long constants and comments.

    SELECT length('xxxx..')  ─▶  SELECT length('k0_0k')  ─▶  tree, texts and places as they were

pglast counts the characters of a text one by one, while it has the GIL: 5 ms for a million of
ASCII, a second and 100 MB for others. So a constant or comment that is long, or not ASCII, stays
outside, and is put back into the tree.

INVARIANTS
  O1  trees, tokens and errors are those of the whole text (`tests/unit/sql/test_read_text.py`).
  O2  only a constant that means what it shows is taken out, not E'', U&'', B'' or X''. Where one
      of these may go on behind its end, the text stays whole.
  O3  no call that keeps the GIL looks at more than a slice of the text, but for `str.find`.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from pglast import ast, parser

from sql.parser.syntax import Node, tree_nodes

_LONG: Final = 256
"""Characters of a constant that stays outside. Smaller: more to put back."""
_TEXT_LONG: Final = 1 << 16
_FOREIGN_LONG: Final = 1 << 12
"""Characters from which a text is looked at, if it is ASCII, and if it is not. Smaller: more to do
for texts that take no time."""
_SLICE: Final = 1 << 14

_SPECIAL: Final = re.compile(r"['\"$]|--|/\*")
_WORD: Final = re.compile(r"[A-Za-z0-9_$\x80-\U0010ffff]+\Z")
_TAG: Final = re.compile(r"\$(?:[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_\x80-\U0010ffff]{0,62})?\$")
_IN_ESCAPES: Final = re.compile(r"['\\]")
_MAY_GO_ON: Final = re.compile(r"\s*(?:'|--|/\*)")
_LINE_END: Final = re.compile(r"[\r\n]")
_IN_COMMENT: Final = re.compile(r"/\*|\*/")


def parser_trees(text: str) -> Sequence[Node]:
    """The trees that pglast makes of a text. Raises ParseError."""
    short = _shortened(text)
    if short is None:
        trees: Sequence[Node] = parser.parse_sql(text)
        return trees
    try:
        trees = parser.parse_sql(short.text)
    except parser.ParseError as error:
        if short.tells_comment(error):
            parser.parse_sql(text)
        raise short.restored_error(error) from None
    for tree in trees:
        short.restore(tree)
    return trees


def scan_text(text: str) -> Iterator[parser.Token]:
    """The tokens of a text. Raises ParseError."""
    short = _shortened(text)
    if short is None:
        yield from parser.scan(text)
        return
    try:
        for token in parser.scan(short.text):
            start, end = short.place(token.start), short.place(token.end + 1) - 1
            yield token._replace(start=start, end=end)
    except parser.ParseError as error:
        if short.tells_comment(error):
            list(parser.scan(text))
        raise short.restored_error(error) from None


@dataclass(slots=True)
class _Short:
    """A text whose long parts have names. `ends`: where each ends here; `gained`: what a place
    from there on has more in the whole text.
    """

    text: str
    mark: str
    parts: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Each as it is written, and what it means."""
    ends: list[int] = field(default_factory=list[int])
    gained: list[int] = field(default_factory=list[int])

    def place(self, at: int) -> int:
        """Where a place of the short text is in the whole one."""
        before = bisect_right(self.ends, at)
        return at + self.gained[before - 1] if before else at

    def name(self, number: int) -> str:
        """What stands for a part."""
        return f"{self.mark}{number}k"

    def put_back(self, text: str, *, written: bool = False) -> str:
        """A text with the parts that it names."""
        if self.mark not in text:
            return text
        return re.sub(
            rf"{self.mark}(\d+)k", lambda found: self.parts[int(found[1])][not written], text
        )

    def restore(self, tree: Node) -> None:
        """Put texts and places back into a tree that nobody else has seen."""
        for node in [*tree_nodes(tree)]:
            if isinstance(node, ast.RawStmt) and node.stmt_len:
                start = node.stmt_location or 0
                node.stmt_len = self.place(start + node.stmt_len) - self.place(start)
            for name in node:
                value = getattr(node, name)
                if type(value) is str:
                    if self.mark in value:
                        setattr(node, name, self.put_back(value))
                elif type(value) is int and name in _places(type(node)):
                    setattr(node, name, self.place(value))

    def tells_comment(self, error: parser.ParseError) -> bool:
        """Whether what is told may have a comment in it, as a constant that goes on behind one."""
        return "--" in str(error.args[0])

    def restored_error(self, error: parser.ParseError) -> parser.ParseError:
        """What would be said of the whole text."""
        message, *rest = error.args
        places = [self.place(place) if isinstance(place, int) else place for place in rest]
        return parser.ParseError(self.put_back(str(message), written=True), *places)


_places_of: dict[type, frozenset[str]] = {}


def _places(kind: type) -> frozenset[str]:
    """The attributes of a node that are places in the text."""
    known = _places_of.get(kind)
    if known is None:
        known = _places_of[kind] = frozenset(
            name
            for name, slot in getattr(kind, "__slots__", {}).items()
            if slot.c_type == "ParseLoc" and name != "stmt_len"
        )
    return known


def _shortened(text: str) -> _Short | None:
    """A text without its long parts; None if that gains nothing, or if it is in doubt (O2)."""
    if len(text) < (_TEXT_LONG if text.isascii() else _FOREIGN_LONG):
        return None
    number = 0
    while (mark := f"k{number}_") in text:
        number += 1
    short = _Short("", mark)
    pieces: list[str] = []
    done = length = 0
    try:
        parts = [*_long_parts(text)]
    except _InDoubtError:
        return None
    for start, end, is_comment in parts:
        written = text[start:end]
        if is_comment:
            name = "--" if written.startswith("--") else "/**/"
        else:
            name = short.name(len(short.parts))
            is_quoted = text[start - 1] == "'"
            short.parts.append((written, written.replace("''", "'") if is_quoted else written))
        pieces += (text[done:start], name)
        length += start - done + len(name)
        short.ends.append(length)
        short.gained.append(end - length)
        done = end
    if not short.ends:
        return None
    short.text = "".join([*pieces, text[done:]])
    return short


class _InDoubtError(Exception):
    """Where a constant ends is for the parser to say (O2)."""


def _long_parts(text: str) -> Iterator[tuple[int, int, bool]]:
    """Start and end of each part that is long or not ASCII, and whether it is a comment. Raises
    _InDoubtError.
    """
    at = 0
    while (found := _special(text, at)) is not None:
        start, end, at, is_comment = _part(text, found)
        if end > start and (end - start >= _LONG or not text[start:end].isascii()):
            yield start, end, is_comment


def _special(text: str, at: int) -> re.Match[str] | None:
    """The next place that may begin a constant, a name in quotes or a comment (O3)."""
    while at < len(text):
        found = _SPECIAL.search(text, at, at + _SLICE + 1)
        if found is not None:
            return found
        at += _SLICE
    return None


def _part(text: str, found: re.Match[str]) -> tuple[int, int, int, bool]:
    """What begins here: start and end of what may stay outside, and where to go on. Without an
    end, nothing may.
    """
    at = found.start()
    match found[0]:
        case "--":
            end = _line_end(text, at)
            return at, end, end, True
        case "/*":
            behind = _comment_end(text, at)
            return (at, at, len(text), True) if behind is None else (at, behind, behind, True)
        case '"':
            return at, at, _found_or_end(text, '"', at + 1) + 1, False
        case "$":
            return _dollar_part(text, at)
        case _:
            return _quoted_part(text, at)


def _found_or_end(text: str, words: str, at: int) -> int:
    found = text.find(words, at)
    return len(text) if found < 0 else found


def _line_end(text: str, at: int) -> int:
    while at < len(text):
        found = _LINE_END.search(text, at, at + _SLICE)
        if found is not None:
            return found.start()
        at += _SLICE
    return len(text)


def _comment_end(text: str, at: int) -> int | None:
    """Behind a comment, which may have others in it; None if it does not end."""
    depth = 0
    while (mark := _IN_COMMENT.search(text, at, at + _SLICE)) or at + _SLICE < len(text):
        if mark is None:
            at += _SLICE - 1
            continue
        depth += 1 if mark[0] == "/*" else -1
        at = mark.end()
        if not depth:
            return at
    return None


def _word_before(text: str, at: int) -> str:
    """The name that ends here, perhaps only the end of a long one. Raises _InDoubtError: a number,
    a parameter or a constant may end within.
    """
    found = _WORD.search(text[max(0, at - 64) : at])
    word = found[0] if found else ""
    if "$" in word or word[:1].isdigit():
        raise _InDoubtError
    return word


def _dollar_part(text: str, at: int) -> tuple[int, int, int, bool]:
    tag = _TAG.match(text, at)
    if tag is None or _word_before(text, at):
        return at, at, at + 1, False
    end = _found_or_end(text, tag[0], tag.end())
    return tag.end(), end, end + len(tag[0]), False


def _quoted_part(text: str, at: int) -> tuple[int, int, int, bool]:
    before = (_word_before(text, at) or text[max(0, at - 2) : at]).lower()
    if before == "e":
        return at, at, _known_end(text, _escapes_end(text, at + 1)), False
    if before in ("b", "x"):
        return at, at, _known_end(text, _found_or_end(text, "'", at + 1) + 1), False
    end = at
    while (end := _found_or_end(text, "'", end + 1)) < len(text) - 1 and text[end + 1] == "'":
        end += 1
    if before in ("n", "u&"):
        return at, at, _known_end(text, end + 1), False
    return at + 1, end, end + 1, False


def _known_end(text: str, end: int) -> int:
    """The end of a constant that is not what it shows. Raises _InDoubtError."""
    if _MAY_GO_ON.match(text, end):
        raise _InDoubtError
    return end


def _escapes_end(text: str, at: int) -> int:
    """Behind a constant with escapes."""
    while at < len(text):
        found = _IN_ESCAPES.search(text, at, at + _SLICE)
        if found is None:
            at += _SLICE
        elif found[0] == "\\" or text.startswith("'", found.end()):
            at = found.end() + 1
        else:
            return found.end()
    return len(text)
