"""Parse `(<query> AS OF <expression>)`: a query of the past inside of a statement.

The times are cut out of the text, and what is left is parsed by PostgreSQL's grammar. Each time
hangs in the tree of its query, in the place of a locking clause: a query of the past locks nothing.

    (SELECT .. AS OF x)  ──▶  SelectStmt, lockingClause: DefElem "as_of", argument x
    INSERT INTO t SELECT .. AS OF x, CREATE TABLE t AS SELECT .. AS OF x: the same
"""

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import Final

from pglast import ast, parser

from sql.parser.as_of import AsOfQuery, InnerTime, inner_times, split_as_of
from sql.parser.read_text import parser_trees
from sql.parser.syntax import Node, is_a, tree_nodes

_KINDS: Final[Mapping[bool, str]] = {False: "as_of", True: "as_of_at_least"}

_BEGINS: Final = frozenset({"SELECT", "WITH", "VALUES", "TABLE"})
"""Words that a query in parentheses begins with."""

_MAY_READ_THE_PAST: Final = (
    ast.SelectStmt,
    ast.InsertStmt,
    ast.UpdateStmt,
    ast.DeleteStmt,
    ast.MergeStmt,
    ast.CreateTableAsStmt,
    ast.CopyStmt,
    ast.ExplainStmt,
)
"""Statements that run at once. What is stored as text has no times in it."""


@dataclass(frozen=True, slots=True)
class DatedQuery:
    """A query without its time, and the time."""

    node: Node
    time: Node
    at_least: bool


def dated_query(node: Node) -> DatedQuery | None:
    """A SELECT that has a time of its own, or None."""
    for clause in node.lockingClause or ():
        if is_a(clause, ast.DefElem):
            bare = copy(node)
            bare.lockingClause = None
            return DatedQuery(bare, clause.arg, clause.defname == _KINDS[True])
    return None


def split_dated(text: str, start: int, end: int) -> tuple[Node, str] | None:
    """A statement with queries of the past in parentheses, and the text without their times; None
    if it has none, or in a place where there may be none.
    """
    rest = " " * start + text[start:end]
    times: list[tuple[InnerTime, Node]] = []
    for inner in inner_times(text, start, end):
        value = inner.value(text)
        if value is not None:
            rest = inner.without(rest)
            times.append((inner, value))
    try:
        trees = parser_trees(rest)
    except parser.ParseError:
        return None
    if not times or len(trees) != 1 or not is_a(trees[0].stmt, *_MAY_READ_THE_PAST):
        return None
    for inner, value in times:
        query = _query_between(trees[0].stmt, inner) if inner.first_word in _BEGINS else None
        if query is None or query.lockingClause:
            return None
        _give_time(query, value, at_least=inner.at_least)
    return trees[0].stmt, rest


def split_dated_source(text: str, start: int, end: int) -> AsOfQuery | None:
    """`INSERT INTO t <query> AS OF x` and `CREATE TABLE t AS <query> AS OF x`, or None: the time is
    in the tree of the query.
    """
    timed = split_as_of(text, start, end)
    if timed is None:
        return None
    query: Node = None
    if is_a(timed.node, ast.InsertStmt):
        query = timed.node.selectStmt
    elif is_a(timed.node, ast.CreateTableAsStmt):
        query = timed.node.query
    if not is_a(query, ast.SelectStmt) or query.lockingClause or query.valuesLists:
        return None
    _give_time(query, timed.as_of, at_least=timed.at_least)
    return timed


def _give_time(query: Node, time: Node, *, at_least: bool) -> None:
    query.lockingClause = (ast.DefElem(defname=_KINDS[at_least], arg=time),)


def _query_between(tree: Node, inner: InnerTime) -> Node:
    """The outermost query that lies in the parentheses, or None."""
    largest, found = 0, None
    for node in tree_nodes(tree):
        if not is_a(node, ast.SelectStmt):
            continue
        places = [place for part in tree_nodes(node) if (place := _place(part)) is not None]
        within = places and inner.opened < min(places) and max(places) < inner.closed
        if within and len(places) > largest:
            largest, found = len(places), node
    return found


def _place(node: Node) -> int | None:
    place = getattr(node, "location", None)
    return place if isinstance(place, int) and place >= 0 else None
