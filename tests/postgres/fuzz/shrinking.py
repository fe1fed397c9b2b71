"""Statements made smaller through their parse trees, whatever made them.

    tree ─▶ a clause gone, an item of a list gone, a node replaced by one inside it ─▶ text

INVARIANTS
  M1  every candidate is shorter than the text it comes from, so there is an end.

Not here: whether a candidate means anything. Who asks finds that out.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pglast
from pglast import ast
from pglast.stream import RawStream


def smallest(text: str, is_wrong: Callable[[str], bool]) -> str:
    """A statement that is still wrong, and none of whose candidates is."""
    candidates = smaller(text)
    while (less := next(candidates, None)) is not None:
        if is_wrong(less):
            text, candidates = less, smaller(less)
    return text


def smaller(text: str) -> Iterator[str]:
    """Statements with less in them, the boldest cuts first (M1)."""
    (tree,) = pglast.parse_sql(text)
    for node, name, value in list(_cuts(tree)):
        kept = getattr(node, name)
        try:
            setattr(node, name, value)
            less = RawStream()(tree)
        except Exception:  # What cannot be written is no candidate.
            less = text
        setattr(node, name, kept)
        if 0 < len(less) < len(text):
            yield less


def _cuts(node: ast.Node) -> Iterator[tuple[ast.Node, str, Any]]:
    """Attributes of a node and of those inside it, with what they may become."""
    names = [name for name in node.__slots__ if isinstance(getattr(node, name), ast.Node | tuple)]
    for name in names:
        value = getattr(node, name)
        for less in (None, *_instead(value)):
            yield node, name, less
    for name in names:
        value = getattr(node, name)
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, ast.Node):
                yield from _cuts(item)


def _instead(value: Any) -> Iterator[Any]:
    if isinstance(value, ast.Node):
        yield from _inside(value)
        return
    for at, item in enumerate(value):
        yield (*value[:at], *value[at + 1 :])
        if isinstance(item, ast.Node):
            yield from ((*value[:at], less, *value[at + 1 :]) for less in _inside(item))


def _inside(node: ast.Node) -> Iterator[ast.Node]:
    """The nodes right below it."""
    for name in node.__slots__:
        value = getattr(node, name)
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, ast.Node):
                yield item
