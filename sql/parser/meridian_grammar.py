"""Parse Meridian's own statements: recursive descent over the tokens of PostgreSQL's scanner.

    CREATE TIMELINE [IF NOT EXISTS] name [CLOCK system | MANUAL]
    DROP TIMELINE [IF EXISTS] name, ...
    ADVANCE TIMELINE name TO expression
    CREATE TABLE .. (..) .. IN TIMELINE name
    CREATE READ HOLD name [AT expression] [IN TIMELINE name]
    ADVANCE READ HOLD name TO expression
    DROP READ HOLD [IF EXISTS] name, ...
    EXPLAIN [(options)] TIMESTAMP FOR query [AS OF ..]
    OPTIMIZE relation
    SUBSCRIBE .., COPY (SUBSCRIBE ..) .. (`subscribe_grammar.py`)
    DECLARE .. CURSOR FOR SUBSCRIBE .., FETCH .. WITH (timeout = ..) (`cursor_grammar.py`)
    CREATE SOURCE .. and its kin (`source_grammar.py`)

It is tried only on a statement that PostgreSQL's grammar refuses, so that valid PostgreSQL keeps
its meaning. The PostgreSQL parts inside such a statement are given to PostgreSQL's parser, with
blanks in place of the rest (W1 of `meridian_nodes.py`). A text that begins like one of these
statements but goes on otherwise is refused here, at the token that does not fit. Any other text is
left to PostgreSQL's own error.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pglast import ast

from sql.errors import SqlError
from sql.parser.as_of import split_as_of
from sql.parser.cursor_grammar import declare_subscribe, fetch_wait
from sql.parser.meridian_nodes import (
    AdvanceReadHoldNode,
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
from sql.parser.source_grammar import source_statement
from sql.parser.subscribe_grammar import SubscribeParts, copy_subscribe, subscribe_statement
from sql.parser.syntax import Node, is_a
from sql.parser.token_cursor import (
    TokenCursor,
    closing_token,
    scan_statement,
    token_outside,
)

_TABLE: Final = "TABLE "


@dataclass(frozen=True, slots=True)
class MeridianStatement:
    """A statement of Meridian's grammar; `as_of` with a query that is explained or followed."""

    node: MeridianNode
    as_of: Node | None = None
    at_least: bool = False
    sources: tuple[str, ...] = ()


def parse_meridian_statement(text: str, start: int, end: int) -> MeridianStatement | None:
    """The statement `text[start:end]`, or None if it does not begin like one of Meridian's.

    Raises SqlError 42601 at the first token that does not fit.
    """
    cursor = scan_statement(text, start, end)
    if cursor is None:
        return None
    for words, production in _PRODUCTIONS:
        if cursor.accept(*words):
            return MeridianStatement(production(cursor))
    of_source = source_statement(cursor)
    if of_source is not None:
        return MeridianStatement(of_source)
    return _explain_timestamp(cursor) or _create_table_in(cursor) or _subscribe(cursor)


def _subscribe(cursor: TokenCursor) -> MeridianStatement | None:
    around = copy_subscribe(cursor) or declare_subscribe(cursor)
    if around is not None:
        return _followed(*around)
    waits = fetch_wait(cursor)
    if waits is not None:
        return MeridianStatement(waits)
    parts = subscribe_statement(cursor)
    return None if parts is None else _followed(parts.node, parts)


def _followed(node: MeridianNode, parts: SubscribeParts) -> MeridianStatement:
    if parts.as_of is None:
        return MeridianStatement(node)
    return MeridianStatement(node, parts.as_of.node, parts.at_least, (parts.as_of.source,))


# --- timelines ---------------------------------------------------------------------------------


def _create_timeline(cursor: TokenCursor) -> MeridianNode:
    if_not_exists = cursor.accept("if", "not", "exists")
    name = cursor.name()
    clock: Identifier | None = Identifier("system", name.place)
    if cursor.accept("manual"):
        clock = None
    elif cursor.accept("clock"):
        clock = cursor.name()
    cursor.finish()
    return CreateTimelineNode(name, clock, if_not_exists)


def _drop_timeline(cursor: TokenCursor) -> MeridianNode:
    missing_ok = cursor.accept("if", "exists")
    names = cursor.names()
    cursor.finish()
    return DropTimelineNode(names, missing_ok)


def _advance_timeline(cursor: TokenCursor) -> MeridianNode:
    name = cursor.name()
    cursor.expect("to")
    return AdvanceTimelineNode(name, cursor.expression())


def _create_table_in(cursor: TokenCursor) -> MeridianStatement | None:
    """CREATE TABLE with IN TIMELINE behind the columns; None if it is not there."""
    if not cursor.follows("create", "table"):
        return None
    at = token_outside(cursor, "in", "timeline")
    if at is None:
        return None
    cursor.index = at + 2
    timeline = cursor.name()
    text, tokens = cursor.text, cursor.tokens
    first, last = tokens[at].start, tokens[cursor.index - 1].end + 1
    start = tokens[0].start
    source = " " * start + text[start:first] + " " * (last - first) + text[last : cursor.end]
    return MeridianStatement(CreateTableInNode(ParsedPart(cursor.tree(source), source), timeline))


# --- read holds --------------------------------------------------------------------------------


def _create_read_hold(cursor: TokenCursor) -> MeridianNode:
    name = cursor.name()
    until = token_outside(cursor, "in", "timeline")
    at: ParsedPart | None = None
    if cursor.accept("at"):
        at = cursor.expression(until)
    timeline: Identifier | None = None
    if cursor.accept("in"):
        cursor.expect("timeline")
        timeline = cursor.name()
    cursor.finish()
    return CreateReadHoldNode(name, at, timeline)


def _advance_read_hold(cursor: TokenCursor) -> MeridianNode:
    name = cursor.name()
    cursor.expect("to")
    return AdvanceReadHoldNode(name, cursor.expression())


def _drop_read_hold(cursor: TokenCursor) -> MeridianNode:
    missing_ok = cursor.accept("if", "exists")
    names = cursor.names()
    cursor.finish()
    return DropReadHoldNode(names, missing_ok)


# --- EXPLAIN TIMESTAMP, OPTIMIZE ---------------------------------------------------------------


def _explain_timestamp(cursor: TokenCursor) -> MeridianStatement | None:
    """None if it is another EXPLAIN."""
    if not cursor.follows("explain"):
        return None
    at = token_outside(cursor, "timestamp")
    options_end = closing_token(cursor, 1) if cursor.follows("(", at=1) else 1
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


def _optimize(cursor: TokenCursor) -> MeridianNode:
    select, source = cursor.rest(_TABLE)
    used = {name for name in select if getattr(select, name)}
    if not used <= {"targetList", "fromClause", "limitOption", "op"}:
        cursor.index += 1
        raise cursor.unexpected()
    return OptimizeNode(ParsedPart(select.fromClause[0], source))


_PRODUCTIONS: Final[tuple[tuple[tuple[str, ...], Callable[[TokenCursor], MeridianNode]], ...]] = (
    (("create", "timeline"), _create_timeline),
    (("drop", "timeline"), _drop_timeline),
    (("advance", "timeline"), _advance_timeline),
    (("create", "read", "hold"), _create_read_hold),
    (("drop", "read", "hold"), _drop_read_hold),
    (("advance", "read", "hold"), _advance_read_hold),
    (("optimize",), _optimize),
)
