"""Find the text offsets of a statement's constants, which pglast's tree leaves out.

The parser's JSON has them, so tree and JSON are walked side by side. This costs as much as parsing,
so it is done only for a statement that failed.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from pglast import ast, parser

from sql.parser.meridian_nodes import ParsedPart, parsed_parts
from sql.parser.parse import Statement
from sql.parser.syntax import Node, is_a

# What json.loads returns: only this module reads it.
ParserJson: TypeAlias = Any


def find_constant_offsets(statement: Statement) -> Mapping[int, int]:
    """The offset of every constant, by the identity of its node."""
    places: dict[int, int] = {}
    for part in _parts(statement):
        places.update(_in_source(part, statement))
    return places


def _parts(statement: Statement) -> Iterator[ParsedPart]:
    """What PostgreSQL's parser has read of the statement, each with its text."""
    sources = statement.sources or (statement.text,)
    if statement.as_of is not None:
        yield ParsedPart(statement.as_of, sources[-1], is_expression=True)
    if isinstance(statement.node, ast.Node):
        yield ParsedPart(statement.node, sources[0])
    elif statement.node is not None:
        yield from parsed_parts(statement.node)


def _in_source(part: ParsedPart, statement: Statement) -> Iterator[tuple[int, int]]:
    node, source = part.node, part.source
    trees = json.loads(parser.parse_sql_json(source))["stmts"]
    encoded = source.encode()
    for tree in trees:
        start = len(encoded[: tree.get("stmt_location", 0)].decode())
        rest = source[start:]
        is_it = start + len(rest) - len(rest.lstrip()) == statement.offset
        if len(trees) > 1 and not is_it:
            continue
        (found,) = tree["stmt"].values()
        if part.is_expression:
            found = found["targetList"][0]["ResTarget"]["val"]
            (found,) = found.values()
        for constant, place in _side_by_side(node, found):
            yield id(constant), len(encoded[:place].decode())


def _side_by_side(node: Node, found: ParserJson) -> Iterator[tuple[Node, int]]:
    if isinstance(node, tuple):
        if isinstance(found, dict) and "List" in found:
            found = found["List"].get("items", [])
        if isinstance(found, list):
            for part, other in zip(node, found, strict=False):
                yield from _side_by_side(part, other)
        return
    if not is_a(node, ast.Node) or not isinstance(found, dict):
        return
    if len(found) == 1:
        ((tag, inside),) = found.items()
        found = inside if getattr(ast, tag, None) is type(node) else found
    if is_a(node, ast.A_Const):
        yield node, found.get("location", 0)
        return
    for field in node:
        if field in found:
            yield from _side_by_side(getattr(node, field), found[field])
