"""Literals of dates and times whose reading depended on settings: the values they were read as."""

from dataclasses import dataclass
from typing import TypeAlias

from sql.parser.syntax import Node
from sql.plan.nodes import Const

ReadLiteral: TypeAlias = tuple[Node, Const]
"""A literal in a tree, and what it was read as."""


@dataclass(frozen=True, slots=True)
class ReadLiterals:
    """What was read in the trees of a statement, or of an equal one that the plan was made of."""

    trees: tuple[Node, Node]
    literals: tuple[ReadLiteral, ...]
    of_clock: bool
    """One of them is another with every transaction."""
