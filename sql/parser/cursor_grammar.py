"""Parse DECLARE CURSOR FOR SUBSCRIBE, and FETCH with a time that it waits at most.

    DECLARE name [[NO] SCROLL | BINARY | ..] CURSOR [{WITH | WITHOUT} HOLD] FOR SUBSCRIBE ..
    FETCH [[direction] [FROM]] name WITH (timeout = interval)

Only PostgreSQL's parser reads what stands in front of SUBSCRIBE and of WITH.
"""

from typing import Final

from pglast import ast

from sql.errors import SqlError, not_supported
from sql.parser.meridian_nodes import DeclareSubscribeNode, FetchWaitNode, ParsedPart
from sql.parser.option_values import option_text, options_by_name
from sql.parser.subscribe_grammar import SubscribeParts, subscribe_statement, with_options
from sql.parser.syntax import Node, is_a, offset_to_position
from sql.parser.token_cursor import TokenCursor
from sql.types.datetime.interval_input import parse_interval

_QUERY: Final = " SELECT"
_REFUSED: Final = ("binary", "scroll", "hold")
_DAY_US: Final = 86_400_000_000
_MONTH_DAYS: Final = 30


def declare_subscribe(cursor: TokenCursor) -> tuple[DeclareSubscribeNode, SubscribeParts] | None:
    """DECLARE of a cursor that follows; None if it is another statement."""
    if not cursor.follows("declare"):
        return None
    words = [cursor.raw(index).lower() for index in range(len(cursor.tokens))]
    if "for" not in words:
        return None
    query = words.index("for") + 1
    if not (cursor.follows("subscribe", at=query) or cursor.follows("tail", at=query)):
        return None
    start, end = cursor.tokens[0].start, cursor.tokens[query - 1].end + 1
    # Any query will do: it stands for the subscription.
    source = " " * start + cursor.text[start:end] + _QUERY
    tree = cursor.tree(source)
    if not is_a(tree, ast.DeclareCursorStmt):
        raise cursor.unexpected()
    _refuse_options(cursor, words[2:query])
    cursor.index = query
    parts = subscribe_statement(cursor)
    assert parts is not None, "it begins like one"
    return DeclareSubscribeNode(ParsedPart(tree, source), parts.node), parts


def _refuse_options(cursor: TokenCursor, words: list[str]) -> None:
    """A cursor that follows goes forward, in its transaction; the words begin behind its name."""
    for place, word in enumerate(words, 2):
        before = cursor.raw(place - 1).lower()
        if word in _REFUSED and before not in ("no", "without"):
            shown = "WITH HOLD" if word == "hold" else word.upper()
            position = cursor.tokens[place].start + 1
            raise not_supported(f"{shown} of a cursor for SUBSCRIBE", position)


def fetch_wait(cursor: TokenCursor) -> FetchWaitNode | None:
    """FETCH with options; None if it is another statement."""
    if not cursor.follows("fetch"):
        return None
    places = range(1, len(cursor.tokens))
    options = next((at for at in places if cursor.follows("with", "(", at=at)), None)
    if options is None:
        return None
    start, end = cursor.tokens[0].start, cursor.tokens[options - 1].end + 1
    source = " " * start + cursor.text[start:end]
    tree = cursor.tree(source)
    if not is_a(tree, ast.FetchStmt):
        raise cursor.unexpected()
    cursor.index = options + 1
    timeout_us: int | None = None
    for name, option in options_by_name(with_options(cursor)).items():
        if name != "timeout":
            message = f'unrecognized FETCH option "{name}"'
            raise SqlError("42601", message, offset_to_position(option.location))
        timeout_us = _timeout(option)
    cursor.finish()
    return FetchWaitNode(ParsedPart(tree, source), timeout_us)


def _timeout(option: Node) -> int:
    """In microseconds. Raises 22007, 22023."""
    position = offset_to_position(option.location)
    try:
        found = parse_interval(option_text(option))
    except SqlError as error:
        raise error.at(position) from None
    length = (found.months * _MONTH_DAYS + found.days) * _DAY_US + found.micros
    if length < 0:
        raise SqlError("22023", "timeout of FETCH must not be negative", position)
    return length
