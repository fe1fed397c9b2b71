"""Parse Meridian's own statements: recursive descent over the tokens of PostgreSQL's scanner.

    CREATE TIMELINE [IF NOT EXISTS] name [CLOCK system | MANUAL]
    DROP TIMELINE [IF EXISTS] name, ...
    ADVANCE TIMELINE name TO expression
    CREATE TABLE .. (..) .. IN TIMELINE name
    CREATE READ HOLD name [AT expression] [IN TIMELINE name]
    DROP READ HOLD [IF EXISTS] name, ...
    EXPLAIN [(options)] TIMESTAMP FOR query [AS OF ..]
    OPTIMIZE relation

It is tried only on a statement that PostgreSQL's grammar refuses, so that valid PostgreSQL keeps
its meaning. The PostgreSQL parts inside such a statement are given to PostgreSQL's parser, with
blanks in place of the rest (W1 of `meridian_nodes.py`). A text that begins like one of these
statements but goes on otherwise is refused here, at the token that does not fit. Any other text is
left to PostgreSQL's own error.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pglast import ast, parser

from sql.errors import SqlError, syntax_error
from sql.parser.as_of import parser_trees, single_target, split_as_of
from sql.parser.meridian_nodes import (
    AdvanceTimelineNode,
    CreateReadHoldNode,
    CreateTableInNode,
    CreateTimelineNode,
    DropReadHoldNode,
    DropTimelineNode,
    ExplainTimestampNode,
    Identifier,
    MeridianNode,
    OptimizeNode,
    ParsedPart,
)
from sql.parser.syntax import Node, is_a

_SELECT: Final = "SELECT "
_TABLE: Final = "TABLE "
_COMMENTS: Final = frozenset({"SQL_COMMENT", "C_COMMENT"})
_NESTING: Final = {"ASCII_40": 1, "ASCII_41": -1}


@dataclass(frozen=True, slots=True)
class MeridianStatement:
    """A statement of Meridian's grammar; `as_of` only with a query that is explained."""

    node: MeridianNode
    as_of: Node | None = None
    at_least: bool = False
    sources: tuple[str, ...] = ()


def parse_meridian_statement(text: str, start: int, end: int) -> MeridianStatement | None:
    """The statement `text[start:end]`, or None if it does not begin like one of Meridian's.

    Raises SqlError 42601 at the first token that does not fit.
    """
    try:
        scanned = parser.scan(text[:end])
    except parser.ParseError:
        return None
    tokens = [item for item in scanned if item.start >= start and item.name not in _COMMENTS]
    cursor = _Cursor(text, tokens, end)
    for words, production in _PRODUCTIONS:
        if cursor.accept(*words):
            return MeridianStatement(production(cursor))
    return _explain_timestamp(cursor) or _create_table_in(cursor)


class _Cursor:
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


# --- timelines ---------------------------------------------------------------------------------


def _create_timeline(cursor: _Cursor) -> MeridianNode:
    if_not_exists = cursor.accept("if", "not", "exists")
    name = cursor.name()
    clock: Identifier | None = Identifier("system", name.place)
    if cursor.accept("manual"):
        clock = None
    elif cursor.accept("clock"):
        clock = cursor.name()
    cursor.finish()
    return CreateTimelineNode(name, clock, if_not_exists)


def _drop_timeline(cursor: _Cursor) -> MeridianNode:
    missing_ok = cursor.accept("if", "exists")
    names = cursor.names()
    cursor.finish()
    return DropTimelineNode(names, missing_ok)


def _advance_timeline(cursor: _Cursor) -> MeridianNode:
    name = cursor.name()
    cursor.expect("to")
    return AdvanceTimelineNode(name, cursor.expression())


def _create_table_in(cursor: _Cursor) -> MeridianStatement | None:
    """CREATE TABLE with IN TIMELINE behind the columns; None if it is not there."""
    if not cursor.follows("create", "table"):
        return None
    at = _outside(cursor, "in", "timeline")
    if at is None:
        return None
    cursor.index = at + 2
    timeline = cursor.name()
    text, tokens = cursor.text, cursor.tokens
    first, last = tokens[at].start, tokens[cursor.index - 1].end + 1
    start = tokens[0].start
    source = " " * start + text[start:first] + " " * (last - first) + text[last : cursor.end]
    return MeridianStatement(CreateTableInNode(ParsedPart(cursor.tree(source), source), timeline))


def _outside(cursor: _Cursor, *words: str) -> int | None:
    """Where these words stand outside of parentheses; the last place."""
    depth, found = 0, None
    for index, token in enumerate(cursor.tokens):
        depth += _NESTING.get(token.name, 0)
        if depth == 0 and cursor.follows(*words, at=index):
            found = index
    return found


# --- read holds --------------------------------------------------------------------------------


def _create_read_hold(cursor: _Cursor) -> MeridianNode:
    name = cursor.name()
    until = _outside(cursor, "in", "timeline")
    at: ParsedPart | None = None
    if cursor.accept("at"):
        at = cursor.expression(until)
    timeline: Identifier | None = None
    if cursor.accept("in"):
        cursor.expect("timeline")
        timeline = cursor.name()
    cursor.finish()
    return CreateReadHoldNode(name, at, timeline)


def _drop_read_hold(cursor: _Cursor) -> MeridianNode:
    missing_ok = cursor.accept("if", "exists")
    names = cursor.names()
    cursor.finish()
    return DropReadHoldNode(names, missing_ok)


# --- EXPLAIN TIMESTAMP, OPTIMIZE ---------------------------------------------------------------


def _explain_timestamp(cursor: _Cursor) -> MeridianStatement | None:
    """None if it is another EXPLAIN."""
    if not cursor.follows("explain"):
        return None
    at = _outside(cursor, "timestamp")
    options_end = _closing(cursor, 1) if cursor.follows("(", at=1) else 1
    if at is None or options_end is None or not cursor.follows("timestamp", at=options_end):
        return None
    cursor.index = options_end + 1
    cursor.expect("for")
    if cursor.index >= len(cursor.tokens):
        raise cursor.unexpected()
    text, tokens = cursor.text, cursor.tokens
    start, query = tokens[0].start, tokens[cursor.index].start
    head = text[start : tokens[options_end].start]
    source = " " * start + head + " " * (query - start - len(head)) + text[query : cursor.end]
    try:
        tree = cursor.tree(source)
    except SqlError:
        timed = split_as_of(source, start, cursor.end)
        if timed is None or not is_a(timed.node, ast.ExplainStmt):
            raise
        node = ExplainTimestampNode(ParsedPart(timed.node, timed.sources[0]))
        return MeridianStatement(node, timed.as_of, timed.at_least, timed.sources)
    return MeridianStatement(ExplainTimestampNode(ParsedPart(tree, source)))


def _closing(cursor: _Cursor, opening: int) -> int | None:
    """The place behind the parenthesis that closes the one at `opening`."""
    depth = 0
    for index in range(opening, len(cursor.tokens)):
        depth += _NESTING.get(cursor.tokens[index].name, 0)
        if depth == 0:
            return index + 1
    return None


def _optimize(cursor: _Cursor) -> MeridianNode:
    select, source = cursor.rest(_TABLE)
    used = {name for name in select if getattr(select, name)}
    if not used <= {"targetList", "fromClause", "limitOption", "op"}:
        cursor.index += 1
        raise cursor.unexpected()
    return OptimizeNode(ParsedPart(select.fromClause[0], source))


_PRODUCTIONS: Final[tuple[tuple[tuple[str, ...], Callable[[_Cursor], MeridianNode]], ...]] = (
    (("create", "timeline"), _create_timeline),
    (("drop", "timeline"), _drop_timeline),
    (("advance", "timeline"), _advance_timeline),
    (("create", "read", "hold"), _create_read_hold),
    (("drop", "read", "hold"), _drop_read_hold),
    (("optimize",), _optimize),
)
