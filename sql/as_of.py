"""Meridian's own grammar: `<query> AS OF [AT LEAST] <expression>` at the end of a statement.

It is tried only on text that PostgreSQL's grammar refuses, so that what is valid PostgreSQL keeps
its meaning: `SELECT 1 AS of` names a column, `FROM t AS of` an alias. The text is cut at the last
`AS OF` outside parentheses for which both halves parse. The second half is parsed behind blanks, in
place, so that every position stays that of the text the client sent.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pglast import ast, parser

from sql.syntax import Node, is_a

_PREFIX: Final = "SELECT "


@dataclass(frozen=True, slots=True)
class Cut:
    """A query with its time: the trees of both halves."""

    node: Node
    as_of: Node
    at_least: bool
    sources: tuple[str, str]


def cut(text: str, start: int, end: int) -> Cut | None:
    """The statement `text[start:end]` read by our grammar, or None if it is not of it."""
    try:
        tokens = [token for token in parser.scan(text[:end]) if token.start >= start]
    except parser.ParseError:
        return None
    for place, expression, at_least in _candidates(tokens):
        found = _halves(text, start, end, (place, expression), at_least=at_least)
        if found is not None:
            return found
    return None


def _candidates(tokens: Sequence[parser.Token]) -> Iterator[tuple[int, int, bool]]:
    """Places of AS, of the expression, and whether AT LEAST stands between; the last one first."""
    significant = [token for token in tokens if token.name not in ("SQL_COMMENT", "C_COMMENT")]
    depth = 0
    found: list[tuple[int, int, bool]] = []
    for index, token in enumerate(significant[:-2]):
        depth += {"ASCII_40": 1, "ASCII_41": -1}.get(token.name, 0)
        following = significant[index + 1]
        if depth or token.name != "AS" or following.name != "OF":
            continue
        rest = significant[index + 2 :]
        if len(rest) > 2 and rest[0].name == "AT" and rest[1].name == "LEAST":
            found.append((token.start, rest[2].start, True))
        else:
            found.append((token.start, rest[0].start, False))
    return reversed(found)


def _halves(
    text: str, start: int, end: int, places: tuple[int, int], *, at_least: bool
) -> Cut | None:
    place, expression = places
    if expression < len(_PREFIX):
        return None
    head = " " * start + text[start:place]
    tail = " " * (expression - len(_PREFIX)) + _PREFIX + text[expression:end]
    try:
        query, time = parser_trees(head), parser_trees(tail)
    except parser.ParseError:
        return None
    if len(query) != 1 or len(time) != 1:
        return None
    select = time[0].stmt
    value = only_expression(select)
    return None if value is None else Cut(query[0].stmt, value, at_least, (head, tail))


def only_expression(select: Node) -> Node | None:
    """The single target of `SELECT <expression>` and nothing else."""
    plain = is_a(select, ast.SelectStmt) and len(select.targetList or ()) == 1
    if not plain or select.targetList[0].name is not None:
        return None
    used = [name for name in select if getattr(select, name)]
    allowed = {"targetList", "limitOption", "op"}
    return select.targetList[0].val if set(used) <= allowed else None


def parser_trees(text: str) -> Sequence[Node]:
    """The trees that pglast makes of a text."""
    trees: Sequence[Node] = parser.parse_sql(text)
    return trees


def statement_bounds(text: str) -> list[tuple[int, int]]:
    """Where the statements of a text lie, by its top-level semicolons."""
    bounds: list[tuple[int, int]] = []
    start, depth = 0, 0
    for token in parser.scan(text):
        depth += {"ASCII_40": 1, "ASCII_41": -1}.get(token.name, 0)
        if token.name == "ASCII_59" and depth <= 0:
            bounds.append((start, token.start))
            start = token.end + 1
    if text[start:].strip():
        bounds.append((start, len(text)))
    return bounds
