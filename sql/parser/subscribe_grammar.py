"""Parse SUBSCRIBE, alone and in COPY.

    {SUBSCRIBE | TAIL} [TO] {relation | (query)}
        [ENVELOPE {UPSERT | DEBEZIUM} (KEY (column, ..)) | WITHIN TIMESTAMP ORDER BY expression, ..]
        [WITH ({SNAPSHOT | PROGRESS} [[=] boolean], ..)] [AS OF [AT LEAST] time] [UP TO time]
    COPY (SUBSCRIBE ..) TO STDOUT [[WITH] (options)]

The grammar is Materialize's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pglast import ast, parser

from sql.errors import SqlError, not_supported
from sql.parser.meridian_nodes import (
    CopySubscribeNode,
    EnvelopeNode,
    ParsedPart,
    SubscribeNode,
)
from sql.parser.read_text import parser_trees
from sql.parser.syntax import Node, is_a
from sql.parser.token_cursor import TokenCursor, closing_token, token_outside

_OPTIONS: Final = "EXPLAIN "
_EMPTY_QUERY: Final = "SELECT"
_BEHIND_ORDER: Final = frozenset(
    {"limit", "offset", "fetch", "for", "union", "except", "intersect"}
)
_CLAUSES: Final = frozenset({"envelope", "within", "with", "as", "up"})


@dataclass(frozen=True, slots=True)
class SubscribeParts:
    """The statement, and its AS OF."""

    node: SubscribeNode
    as_of: ParsedPart | None
    at_least: bool


def subscribe_statement(cursor: TokenCursor) -> SubscribeParts | None:
    """The statement at the cursor up to its end; None if it is another one."""
    place = cursor.index
    if not (cursor.accept("subscribe") or cursor.accept("tail")):
        return None
    cursor.accept("to")
    is_query = cursor.follows("(")
    followed = _query(cursor) if is_query else _relation(cursor)
    envelope = _envelope(cursor)
    order = _order(cursor, envelope)
    options: Sequence[Node] = ()
    if cursor.accept("with"):
        options = with_options(cursor)
    as_of, at_least, up_to, up_to_place = _times(cursor)
    cursor.finish()
    offset = cursor.tokens[place].start
    node = SubscribeNode(
        followed, is_query, tuple(options), up_to, offset, up_to_place, envelope, order
    )
    return SubscribeParts(node, as_of, at_least)


def copy_subscribe(cursor: TokenCursor) -> tuple[CopySubscribeNode, SubscribeParts] | None:
    """COPY of a subscription; None if it is another COPY."""
    if not cursor.follows("copy", "("):
        return None
    close = closing_token(cursor, 1)
    if close is None or cursor.raw(2).lower() not in ("subscribe", "tail"):
        return None
    text, tokens = cursor.text, cursor.tokens
    inner = TokenCursor(text, tokens[2 : close - 1], tokens[close - 1].start)
    parts = subscribe_statement(inner)
    assert parts is not None, "it begins like one"
    first, last = tokens[1].end + 1, tokens[close - 1].start
    start = tokens[0].start
    # The query of COPY is another one: it stands for the subscription.
    blank = _EMPTY_QUERY.ljust(last - first)
    source = " " * start + text[start:first] + blank + text[last : cursor.end]
    tree = cursor.tree(source)
    if not is_a(tree, ast.CopyStmt):
        raise cursor.unexpected()
    return CopySubscribeNode(ParsedPart(tree, source), parts.node), parts


def _query(cursor: TokenCursor) -> ParsedPart:
    """A query in parentheses."""
    opened = cursor.index
    close = closing_token(cursor, opened)
    if close is None:
        cursor.index = len(cursor.tokens)
        raise cursor.unexpected()
    start, end = cursor.tokens[opened].start, cursor.tokens[close - 1].end + 1
    source = " " * start + cursor.text[start:end]
    try:
        tree = cursor.tree(source)
    except SqlError:
        for index in range(opened, close):
            if cursor.follows("as", "of", at=index):
                position = cursor.tokens[index].start + 1
                raise not_supported("AS OF in the query of SUBSCRIBE", position) from None
        raise
    if not is_a(tree, ast.SelectStmt):
        raise cursor.unexpected()
    cursor.index = close
    return ParsedPart(tree, source)


def _relation(cursor: TokenCursor) -> ParsedPart:
    """A relation, as the query TABLE."""
    first = cursor.index
    while cursor.index < len(cursor.tokens) and cursor.raw(cursor.index).lower() not in _CLAUSES:
        cursor.index += 1
    until = cursor.index
    cursor.index = first
    if until == first:
        raise cursor.unexpected()
    start, end = cursor.tokens[first].start, cursor.tokens[until - 1].end + 1
    # TAIL is shorter than TABLE: the name is parsed elsewhere, and put in its place.
    source = "TABLE " + cursor.text[start:end]
    try:
        (tree,) = parser_trees(source)
    except parser.ParseError as error:
        _to_failure(cursor, error, start - len("TABLE "))
        raise cursor.unexpected() from None
    select: Node = tree.stmt
    used = {name for name in select if getattr(select, name)}
    if not used <= {"targetList", "fromClause", "limitOption", "op"}:
        cursor.index = first + 1
        raise cursor.unexpected()
    select.fromClause[0].location = start
    cursor.index = until
    return ParsedPart(select, source)


def _to_failure(cursor: TokenCursor, error: parser.ParseError, moved: int) -> None:
    """Go to the token that a parser did not expect in a text that was moved."""
    found = error.args[1] if len(error.args) > 1 else None
    place = found + moved if isinstance(found, int) else cursor.end
    while cursor.index < len(cursor.tokens) and cursor.tokens[cursor.index].start < place:
        cursor.index += 1


def _envelope(cursor: TokenCursor) -> EnvelopeNode | None:
    if not cursor.accept("envelope"):
        return None
    style = cursor.raw(cursor.index).lower()
    if style not in ("upsert", "debezium"):
        raise cursor.unexpected()
    cursor.index += 1
    cursor.expect("(", "key", "(")
    key = cursor.names()
    cursor.expect(")", ")")
    return EnvelopeNode(style, key)


def _order(cursor: TokenCursor, envelope: EnvelopeNode | None) -> ParsedPart | None:
    """WITHIN TIMESTAMP ORDER BY, as a query of no columns."""
    if not cursor.follows("within"):
        return None
    if envelope is not None:
        place = cursor.tokens[cursor.index].start + 1
        raise not_supported("ENVELOPE with WITHIN TIMESTAMP ORDER BY", place)
    cursor.index += 1
    cursor.expect("timestamp")
    first = cursor.index
    cursor.expect("order", "by")
    until = _end_of_order(cursor)
    if until == cursor.index:
        cursor.index = until
        raise cursor.unexpected()
    cursor.index = first
    select, source = cursor.rest("SELECT ", until)
    used = {name for name in select if getattr(select, name)}
    if not used <= {"sortClause", "limitOption", "op"}:
        while cursor.raw(cursor.index).lower() not in _BEHIND_ORDER and cursor.index < until:
            cursor.index += 1
        raise cursor.unexpected()
    cursor.index = until
    return ParsedPart(select, source)


def _end_of_order(cursor: TokenCursor) -> int:
    """Where the next clause begins; `with` is also a word of types."""
    depth = 0
    for index in range(cursor.index, len(cursor.tokens)):
        depth += {"(": 1, ")": -1}.get(cursor.raw(index), 0)
        clauses = (("with", "("), ("as", "of"), ("up", "to"))
        if depth == 0 and any(cursor.follows(*words, at=index) for words in clauses):
            return index
    return len(cursor.tokens)


def with_options(cursor: TokenCursor) -> Sequence[Node]:
    """`(name [[=] value], ..)`, as the options of EXPLAIN, which are written without `=`."""
    opened = cursor.index
    close = closing_token(cursor, opened) if cursor.follows("(") else None
    if close is None:
        raise cursor.unexpected()
    tokens = cursor.tokens
    start, end = tokens[opened].start, tokens[close - 1].end + 1
    inside = list(cursor.text[start:end])
    for index in range(opened + 2, close - 1):
        if cursor.raw(index) == "=" and _is_between_words(cursor, index):
            inside[tokens[index].start - start] = " "
    source = " " * (start - len(_OPTIONS)) + _OPTIONS + "".join(inside) + " SELECT"
    options: Sequence[Node] = cursor.tree(source).options or ()
    cursor.index = close
    return options


def _is_between_words(cursor: TokenCursor, index: int) -> bool:
    return not {cursor.raw(index - 1), cursor.raw(index + 1)} & {",", "=", "(", ")"}


def _times(cursor: TokenCursor) -> tuple[ParsedPart | None, bool, ParsedPart | None, int]:
    """AS OF, whether AT LEAST, UP TO, and the place of its expression."""
    up = token_outside(cursor, "up", "to")
    if up is not None and up < cursor.index:
        up = None
    as_of: ParsedPart | None = None
    at_least = False
    if cursor.accept("as"):
        cursor.expect("of")
        at_least = cursor.accept("at", "least")
        as_of = cursor.expression(up)
    up_to: ParsedPart | None = None
    place = 0
    if cursor.accept("up"):
        cursor.expect("to")
        place = cursor.tokens[cursor.index].start if cursor.index < len(cursor.tokens) else 0
        up_to = cursor.expression()
    return as_of, at_least, up_to, place
