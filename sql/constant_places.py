"""Where the constants of a statement stand in its text: what pglast's tree leaves out.

The parser's JSON has it, so tree and JSON are walked side by side. This costs as much as parsing,
so it is done only for a statement that failed.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from pglast import ast, parser

from sql.parse import Statement
from sql.syntax import Node, is_a

# What json.loads returns: only this module reads it.
Json: TypeAlias = Any


def constant_places(statement: Statement) -> Mapping[int, int]:
    """The offset of every constant by the identity of its node."""
    sources = statement.sources or (statement.text,)
    places: dict[int, int] = {}
    for node, source in zip((statement.node, statement.as_of), sources, strict=False):
        if node is not None:
            places.update(_in_source(node, source, statement))
    return places


def _in_source(node: Node, source: str, statement: Statement) -> Iterator[tuple[int, int]]:
    trees = json.loads(parser.parse_sql_json(source))["stmts"]
    encoded = source.encode()
    for tree in trees:
        start = len(encoded[: tree.get("stmt_location", 0)].decode())
        rest = source[start:]
        is_it = start + len(rest) - len(rest.lstrip()) == statement.offset
        if len(trees) > 1 and not is_it:
            continue
        (found,) = tree["stmt"].values()
        if node is statement.as_of:
            found = found["targetList"][0]["ResTarget"]["val"]
            (found,) = found.values()
        for constant, place in _side_by_side(node, found):
            yield id(constant), len(encoded[:place].decode())


def _side_by_side(node: Node, found: Json) -> Iterator[tuple[Node, int]]:
    if isinstance(node, tuple):
        if isinstance(found, dict) and "List" in found:
            found = found["List"].get("items", [])
        if isinstance(found, list):
            for part, other in zip(node, found, strict=False):
                yield from _side_by_side(part, other)
        return
    if not is_a(node, ast.Node) or not isinstance(found, dict):
        return
    name = type(node).__name__
    if set(found) == {name}:
        found = found[name]
    if is_a(node, ast.A_Const):
        yield node, found.get("location", 0)
        return
    for field in node:
        if field in found:
            yield from _side_by_side(getattr(node, field), found[field])
