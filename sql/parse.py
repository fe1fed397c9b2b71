"""Text to statements: pglast (the PostgreSQL parser) plus Meridian's own grammar where it refuses.

Positions are character offsets of the text the client sent (pglast counts bytes: converted here).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pglast import ast


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a string. `node`: None for an empty one. `offset`: its first character in `text`."""

    text: str
    node: ast.Node | None
    offset: int
    as_of: ast.Node | None = None
    as_of_at_least: bool = False


def parse(text: str) -> Sequence[Statement]:
    """All statements of a query string. Raises SqlError 42601 with PostgreSQL's message and position."""
    raise AssertionError("contract only")
