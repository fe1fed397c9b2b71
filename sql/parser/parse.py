"""Parse SQL text: pglast (PostgreSQL's parser), then Meridian's own grammar where that refuses.

Positions are character offsets of the text the client sent (pglast counts in characters too).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from pglast import ast, parser

from sql.errors import SqlError, not_supported, statement_too_complex, syntax_error
from sql.parser.as_of import (
    nested_as_of_offset,
    split_as_of,
    split_copy_as_of,
    statement_bounds,
)
from sql.parser.dated_queries import split_dated, split_dated_source
from sql.parser.meridian_grammar import parse_meridian_statement
from sql.parser.meridian_nodes import MeridianNode
from sql.parser.nesting_limit import is_too_deep
from sql.parser.read_text import parser_trees, scan_text
from sql.parser.syntax import Node

STATEMENT_TEXT_MAX: Final = 1 << 28
"""A longer text would take gigabytes of syntax tree; a shorter limit would refuse honest bulk
INSERTs.
"""

_FOREIGN_STATES: Final = (
    ("invalid Unicode", "42601"),
    ("invalid byte sequence", "22021"),
    ("unsafe use of \\'", "22P06"),
    ("not yet implemented", "0A000"),
    ("not supported", "0A000"),
    ("no longer supported", "0A000"),
    ("is only supported for ON DELETE actions", "0A000"),
    ("constraints cannot be marked", "0A000"),
    ("cannot include schema elements", "0A000"),
    ("not implemented", "0A000"),
    ("frame start cannot", "42P20"),
    ("frame end cannot", "42P20"),
    ("frame starting from", "42P20"),
    ("WITH TIES cannot be specified without ORDER BY", "42601"),
    ("cannot be used as a role name", "42939"),
    ('" is reserved', "42939"),
    ("precision for type float must be", "22023"),
    ("invalid unicode surrogate", "42601"),
)

_NOT_SPACE: Final = re.compile(r"\S")
_JUNK: Final = re.compile(r"\$\d+[A-Za-z_\x80-\U0010ffff][\w$]*")
_IN_ESCAPE_STRING: Final = re.compile(r"(?i)(?<!\w)e'(?:[^'\\]|\\.|'')*$")
"""Of U&'' the same words are a syntax error."""

_HINTS: Final = {
    "UNENCRYPTED PASSWORD is no longer supported": (
        "Remove UNENCRYPTED to store the password in encrypted form instead."
    ),
}
"""What the parser's error leaves out."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a string. `node`: None for an empty one. `offset`: its first character in
    `text`.
    """

    text: str
    node: ast.Node | MeridianNode | None
    offset: int
    as_of: ast.Node | None = None
    as_of_at_least: bool = False
    sources: tuple[str, ...] = ()
    """What the parser read for `node` and `as_of` where that is not `text` itself; places are the
    same.
    """
    is_dated: bool = False
    """A query in it has a time of its own (`dated_queries.py`)."""
    length: int | None = None
    """The characters of the statement itself, if it is one of many; None: all of `text`."""

    @property
    def own_text(self) -> str:
        """The statement itself, without the others of its string."""
        if self.length is None:
            return self.text
        return self.text[self.offset : self.offset + self.length]


def parse(text: str) -> Sequence[Statement]:
    """All statements of a query string. Raises SqlError 42601 with PostgreSQL's message and
    position.
    """
    if "\x00" in text:
        raise SqlError("22021", 'invalid byte sequence for encoding "UTF8": 0x00')
    if len(text) > STATEMENT_TEXT_MAX:
        raise SqlError("54000", "statement is too long")
    try:
        if is_too_deep(text):
            raise statement_too_complex()
        trees = parser_trees(text)
    except parser.ParseError as error:
        statements = _own_grammar(text)
        if statements is None:
            raise _converted(error, text) from None
        return statements
    except RecursionError:
        raise statement_too_complex() from None
    if not trees:
        return (Statement(text, None, 0),)
    _check_parameters(text)
    many = len(trees) > 1
    return [_one_of(text, tree, many=many) for tree in trees]


def _one_of(text: str, tree: Node, *, many: bool) -> Statement:
    start = tree.stmt_location or 0
    offset = _offset(text, start)
    # The parser counts blanks before it; the last one goes to the end.
    end = start + tree.stmt_len if tree.stmt_len else len(text)
    return Statement(text, tree.stmt, offset, length=end - offset if many else None)


def _check_parameters(text: str) -> None:
    """42601 for a name that begins in a parameter, which the parser reads as two words."""
    if _JUNK.search(text) is None:
        return
    for token in scan_text(text):
        found = _JUNK.match(text, token.start) if token.name == "PARAM" else None
        if found is not None:
            message = f'trailing junk after parameter at or near "{found[0]}"'
            raise syntax_error(message, found.start() + 1)


def _offset(text: str, place: int | None) -> int:
    start = place or 0
    first = _NOT_SPACE.search(text, start)
    return len(text) if first is None else first.start()


def _converted(error: parser.ParseError, text: str) -> SqlError:
    message = str(error.args[0])
    place = error.args[1] if len(error.args) > 1 else None
    position = place + 1 if isinstance(place, int) and place >= 0 else None
    if position is None and message.endswith("at end of input"):
        position = len(text) + 1
    if "memory exhausted" in message or "stack depth" in message:
        return statement_too_complex()
    if message == "invalid Unicode escape" and _IN_ESCAPE_STRING.search(text[: place or 0]):
        return SqlError("22025", message, position)
    for words, sqlstate in _FOREIGN_STATES:
        if words in message:
            return SqlError(sqlstate, message, position, hint=_HINTS.get(message))
    return syntax_error(message, position)


def _own_grammar(text: str) -> Sequence[Statement] | None:
    """Statement by statement: PostgreSQL's grammar first, then ours.

    None if the text cannot be cut into statements. Raises SqlError at the first one that is of
    neither grammar.
    """
    try:
        bounds = statement_bounds(text)
    except parser.ParseError:
        return None
    statements: list[Statement] = []
    for start, end in bounds:
        offset = _offset(text, start)
        source = " " * start + text[start:end]
        try:
            trees = parser_trees(source)
        except parser.ParseError:
            own = _own_statement(text, start, end)
            statements.append(replace(own, length=end - offset) if len(bounds) > 1 else own)
        else:
            length = end - offset if len(bounds) > 1 else None
            statements.extend(
                Statement(text, tree.stmt, offset, sources=(source,), length=length)
                for tree in trees
            )
    return statements


def _own_statement(text: str, start: int, end: int) -> Statement:
    offset = _offset(text, start)
    dated = split_dated_source(text, start, end)
    if dated is not None:
        return Statement(text, dated.node, offset, sources=dated.sources, is_dated=True)
    timed = split_as_of(text, start, end)
    if timed is not None:
        return Statement(text, timed.node, offset, timed.as_of, timed.at_least, timed.sources)
    copied = split_copy_as_of(text, start, end)
    if copied is not None:
        return Statement(text, copied.node, offset, copied.as_of, copied.at_least, copied.sources)
    own = parse_meridian_statement(text, start, end)
    if own is not None:
        return Statement(text, own.node, offset, own.as_of, own.at_least, own.sources)
    parts = split_dated(text, start, end)
    if parts is not None:
        return Statement(text, parts[0], offset, sources=(parts[1],), is_dated=True)
    inner = nested_as_of_offset(text, start, end)
    if inner is not None:
        raise not_supported("AS OF in a subquery", inner + 1)
    raise _refusal(text, start, end)


def _refusal(text: str, start: int, end: int) -> SqlError:
    """What PostgreSQL says of a statement of neither grammar, its semicolon included."""
    try:
        parser_trees(" " * start + text[start : end + 1])
    except parser.ParseError as error:
        return _converted(error, text)
    raise AssertionError("W1 of `meridian_nodes.py`: it was refused without its semicolon")
