"""Read the tokens of a statement of Meridian's own grammar, by PostgreSQL's scanner.

The parts that are PostgreSQL's (a query, an expression) are given to PostgreSQL's parser with
blanks in place of all else, so that positions are the client's (W1 of `meridian_nodes.py`).
"""

from collections.abc import Sequence
from typing import Final

from pglast import parser

from sql.errors import SqlError, syntax_error
from sql.parser.as_of import single_target
from sql.parser.meridian_nodes import Identifier, ParsedPart
from sql.parser.read_text import parser_trees, scan_text
from sql.parser.syntax import Node

_SELECT: Final = "SELECT "
_COMMENTS: Final = frozenset({"SQL_COMMENT", "C_COMMENT"})
_NESTING: Final = {"ASCII_40": 1, "ASCII_41": -1}


def scan_statement(text: str, start: int, end: int) -> "TokenCursor | None":
    """The tokens of `text[start:end]` but for comments; None if they are none of PostgreSQL's."""
    try:
        scanned = [*scan_text(text[:end])]
    except parser.ParseError:
        return None
    tokens = [item for item in scanned if item.start >= start and item.name not in _COMMENTS]
    return TokenCursor(text, tokens, end)


class TokenCursor:
    """The tokens of one statement, and how far they are read."""

    def __init__(self, text: str, tokens: Sequence[parser.Token], end: int) -> None:
        self.text = text
        self.end = end
        self.tokens = tokens
        self.index = 0

    def raw(self, index: int) -> str:
        """A token as it was written; empty behind the last one."""
        if index >= len(self.tokens):
            return ""
        token = self.tokens[index]
        return self.text[token.start : token.end + 1]

    def follows(self, *words: str, at: int | None = None) -> bool:
        """True if these words stand here, or at another place."""
        first = self.index if at is None else at
        return all(self.raw(first + i).lower() == word for i, word in enumerate(words))

    def accept(self, *words: str) -> bool:
        """Read these words if they all stand here."""
        if not self.follows(*words):
            return False
        self.index += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Read these words. Raises 42601 at the first that is another one."""
        for word in words:
            if not self.accept(word):
                raise self.unexpected()

    def name(self) -> Identifier:
        """Read an identifier, by PostgreSQL's own rules."""
        if self.index >= len(self.tokens):
            raise self.unexpected()
        try:
            trees = parser_trees(f"DROP SCHEMA {self.raw(self.index)}")
        except parser.ParseError:
            raise self.unexpected() from None
        place = self.tokens[self.index].start
        self.index += 1
        return Identifier(trees[0].stmt.objects[0].sval, place)

    def names(self) -> tuple[Identifier, ...]:
        """Read identifiers with commas between."""
        found = [self.name()]
        while self.accept(","):
            found.append(self.name())
        return tuple(found)

    def qualified_name(self) -> tuple[Identifier, ...]:
        """Read a name, perhaps with its schema."""
        first = self.name()
        return (first, self.name()) if self.accept(".") else (first,)

    def string(self) -> str:
        """Read a plain text constant."""
        raw = self.raw(self.index)
        if len(raw) < 2 or raw[0] != "'":
            raise self.unexpected()
        self.index += 1
        return raw[1:-1].replace("''", "'")

    def whole_number(self) -> int:
        """Read a number of digits alone."""
        text = self.raw(self.index)
        if not (text.isascii() and text.isdecimal()):
            raise self.unexpected()
        self.index += 1
        return int(text)

    def place(self) -> int:
        """The offset of what is read next, from 1; 0 behind the last token."""
        return self.tokens[self.index].start + 1 if self.index < len(self.tokens) else 0

    def finish(self) -> None:
        """Nothing may follow."""
        if self.index < len(self.tokens):
            raise self.unexpected()

    def unexpected(self) -> SqlError:
        """42601 at this place, in PostgreSQL's words."""
        if self.index >= len(self.tokens):
            if self.text[self.end : self.end + 1] == ";":
                return syntax_error('syntax error at or near ";"', self.end + 1)
            return syntax_error("syntax error at end of input", self.end + 1)
        place = self.tokens[self.index].start
        return syntax_error(f'syntax error at or near "{self.raw(self.index)}"', place + 1)

    def rest(self, prefix: str, until: int | None = None) -> tuple[Node, str]:
        """What PostgreSQL's parser makes of `prefix` and all tokens from here to `until` (W1 of
        `meridian_nodes.py`).
        """
        stop = len(self.tokens) if until is None else until
        if self.index >= stop:
            raise self.unexpected()
        start, end = self.tokens[self.index].start, self.tokens[stop - 1].end + 1
        source = " " * (start - len(prefix)) + prefix + self.text[start:end]
        return self.tree(source), source

    def tree(self, source: str) -> Node:
        """The one statement of a text that stands in its place. Raises 42601."""
        try:
            (tree,) = parser_trees(source)
        except parser.ParseError as error:
            message, *places = map(str, error.args)
            place = int(places[0]) if places and places[0].isdecimal() else len(source)
            raise syntax_error(message, place + 1) from None
        return tree.stmt

    def expression(self, until: int | None = None) -> ParsedPart:
        """Read one expression, up to `until`."""
        first = self.index
        select, source = self.rest(_SELECT, until)
        value = single_target(select)
        if value is None:
            raise self.unexpected()
        self.index = len(self.tokens) if until is None else until
        assert self.index > first, "an expression has a token"
        return ParsedPart(value, source, is_expression=True)


def token_outside(cursor: TokenCursor, *words: str) -> int | None:
    """Where these words stand outside of parentheses; the last place."""
    depth, found = 0, None
    for index, token in enumerate(cursor.tokens):
        depth += _NESTING.get(token.name, 0)
        if depth == 0 and cursor.follows(*words, at=index):
            found = index
    return found


def closing_token(cursor: TokenCursor, opening: int) -> int | None:
    """The place behind the parenthesis that closes the one at `opening`."""
    depth = 0
    for index in range(opening, len(cursor.tokens)):
        depth += _NESTING.get(cursor.tokens[index].name, 0)
        if depth == 0:
            return index + 1
    return None
