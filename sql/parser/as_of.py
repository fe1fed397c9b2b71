"""Parse Meridian's `<query> AS OF [AT LEAST] <expression>` at the end of a statement.

ORDER BY, LIMIT, OFFSET and FETCH may stand behind the time as well; they belong to the query.

`COPY (<query> AS OF ..) TO ..` has it inside; in any other parentheses it is refused.

It is tried only on text that PostgreSQL's grammar refuses, so that valid PostgreSQL keeps its
meaning: `SELECT 1 AS of` names a column, `FROM t AS of` an alias. The text is cut at the last
`AS OF` outside parentheses for which both halves parse. The second half is parsed with blanks in
place of the first, so that every position stays that of the client's text.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pglast import ast, parser

from sql.parser.read_text import parser_trees, scan_text
from sql.parser.syntax import Node, is_a

_PREFIX: Final = "SELECT "

_BEHIND: Final = frozenset({"ORDER", "LIMIT", "OFFSET", "FETCH", "ON", "RETURNING"})
"""Words that begin what may follow the time. An expression has them in parentheses only."""


@dataclass(frozen=True, slots=True)
class AsOfQuery:
    """A query with its AS OF time: the trees of both halves."""

    node: Node
    as_of: Node
    at_least: bool
    sources: tuple[str, str]


def split_as_of(text: str, start: int, end: int) -> AsOfQuery | None:
    """The statement `text[start:end]` split at its AS OF, or None if it has none."""
    try:
        tokens = [token for token in scan_text(text[:end]) if token.start >= start]
    except parser.ParseError:
        return None
    for time in _candidates(tokens, end):
        found = _halves(text, start, end, time)
        if found is not None:
            return found
    return None


def split_copy_as_of(text: str, start: int, end: int) -> AsOfQuery | None:
    """The query of `COPY (<query> AS OF ..) TO ..`, or None for any other statement."""
    for inner in inner_times(text, start, end):
        head = inner.without(" " * start + text[start:end])
        try:
            trees = parser_trees(head)
        except parser.ParseError:
            continue
        value = _expression(text, inner)
        if value is not None and is_a(trees[0].stmt, ast.CopyStmt) and inner.depth == 1:
            return AsOfQuery(trees[0].stmt, value[0], inner.at_least, (head, value[1]))
    return None


def nested_as_of_offset(text: str, start: int, end: int) -> int | None:
    """The offset of the first AS OF in parentheses, if the statement is valid without it."""
    rest = " " * start + text[start:end]
    place: int | None = None
    for inner in inner_times(text, start, end):
        if _expression(text, inner) is not None:
            rest, place = inner.without(rest), inner.place
    if place is None:
        return None
    try:
        parser_trees(rest)
    except parser.ParseError:
        return place if split_as_of(rest, start, end) is not None else None
    return place


@dataclass(frozen=True, slots=True)
class InnerTime:
    """An AS OF inside of parentheses, from `opened` to `closed`. The time ends at `close`;
    `depth` 1: in no other parentheses; `first_word`: what stands behind the opening one.
    """

    place: int
    expression: int
    close: int
    depth: int
    at_least: bool
    opened: int
    closed: int
    first_word: str

    def without(self, text: str) -> str:
        """The text with blanks in its place."""
        return text[: self.place] + " " * (self.close - self.place) + text[self.close :]

    def value(self, text: str) -> Node:
        """The tree of the time, or None if it is none."""
        found = _expression(text, self)
        return None if found is None else found[0]


def _expression(text: str, inner: InnerTime) -> tuple[Node, str] | None:
    """The tree of the time, and the text that the parser read for it."""
    if inner.expression < len(_PREFIX):
        return None
    tail = " " * (inner.expression - len(_PREFIX)) + _PREFIX + text[inner.expression : inner.close]
    try:
        time = parser_trees(tail)
    except parser.ParseError:
        return None
    value = single_target(time[0].stmt) if len(time) == 1 else None
    return None if value is None else (value, tail)


def inner_times(text: str, start: int, end: int) -> Sequence[InnerTime]:
    """Every AS OF inside of parentheses, the last one first."""
    try:
        tokens = [token for token in scan_text(text[:end]) if token.start >= start]
    except parser.ParseError:
        return ()
    significant = [token for token in tokens if token.name not in ("SQL_COMMENT", "C_COMMENT")]
    found: list[InnerTime] = []
    opened: list[list[_Time]] = []
    begun: list[int] = []
    for index, token in enumerate(significant):
        if token.name == "ASCII_40":
            opened.append([])
            begun.append(index)
        elif token.name == "ASCII_41" and opened:
            depth, first = len(opened), begun.pop()
            words = significant[first].start, token.start, significant[first + 1].name
            for time in opened.pop():
                close = time.ending(token.start)
                found.append(
                    InnerTime(time.place, time.expression, close, depth, time.at_least, *words)
                )
        elif opened and token.name in _BEHIND:
            opened[-1] = [replace(time, end=time.ending(token.start)) for time in opened[-1]]
        elif opened and token.name == "AS" and len(significant) > index + 2:
            opened[-1].extend(_time(significant[index : index + 5]))
    return sorted(found, key=lambda inner: -inner.place)


@dataclass(frozen=True, slots=True)
class _Time:
    """Where AS and the expression begin, and what is behind it, if that is known."""

    place: int
    expression: int
    at_least: bool
    end: int | None = None

    def ending(self, end: int) -> int:
        """The end that is known, otherwise this one."""
        return end if self.end is None else self.end


def _time(tokens: Sequence[parser.Token]) -> Iterator[_Time]:
    """The time that begins with these tokens; of `AS OF [AT LEAST]` only."""
    names = [token.name for token in tokens]
    if names[:2] != ["AS", "OF"]:
        return
    if names[2:4] == ["AT", "LEAST"] and len(tokens) > 4:
        yield _Time(tokens[0].start, tokens[4].start, at_least=True)
    elif len(tokens) > 2:
        yield _Time(tokens[0].start, tokens[2].start, at_least=False)


def _candidates(tokens: Sequence[parser.Token], end: int) -> Iterator[_Time]:
    """Every AS OF outside of parentheses; the last one first."""
    significant = [token for token in tokens if token.name not in ("SQL_COMMENT", "C_COMMENT")]
    depth = 0
    found: list[_Time] = []
    for index, token in enumerate(significant):
        depth += {"ASCII_40": 1, "ASCII_41": -1}.get(token.name, 0)
        if not depth and token.name in _BEHIND:
            found = [replace(time, end=time.ending(token.start)) for time in found]
        elif not depth and token.name == "AS":
            found.extend(_time(significant[index : index + 5]))
    return reversed([replace(time, end=time.ending(end)) for time in found])


def _halves(text: str, start: int, end: int, found: _Time) -> AsOfQuery | None:
    place, expression, behind = found.place, found.expression, found.ending(end)
    if expression < len(_PREFIX):
        return None
    head = " " * start + text[start:place]
    if behind < end:
        head += " " * (behind - place) + text[behind:end]
    tail = " " * (expression - len(_PREFIX)) + _PREFIX + text[expression:behind]
    try:
        query, time = parser_trees(head), parser_trees(tail)
    except parser.ParseError:
        return None
    if len(query) != 1 or len(time) != 1:
        return None
    select = time[0].stmt
    value = single_target(select)
    return None if value is None else AsOfQuery(query[0].stmt, value, found.at_least, (head, tail))


def single_target(select: Node) -> Node | None:
    """The target of a `SELECT <expression>` that has nothing else, or None."""
    plain = is_a(select, ast.SelectStmt) and len(select.targetList or ()) == 1
    if not plain or select.targetList[0].name is not None:
        return None
    used = [name for name in select if getattr(select, name)]
    allowed = {"targetList", "limitOption", "op"}
    return select.targetList[0].val if set(used) <= allowed else None


def statement_bounds(text: str) -> list[tuple[int, int]]:
    """The start and end of each statement of a text, by its top-level semicolons."""
    bounds: list[tuple[int, int]] = []
    start, depth = 0, 0
    for token in scan_text(text):
        depth += {"ASCII_40": 1, "ASCII_41": -1}.get(token.name, 0)
        if token.name == "ASCII_59" and depth <= 0:
            bounds.append((start, token.start))
            start = token.end + 1
    if text[start:].strip():
        bounds.append((start, len(text)))
    return bounds
