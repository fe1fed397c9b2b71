"""Date and time literals whose meaning depends on settings or the clock, with their values."""

from dataclasses import dataclass
from typing import TypeAlias

from sql.parser.syntax import Node
from sql.plan.nodes import Const

ResolvedLiteral: TypeAlias = tuple[Node, Const]
"""A literal in a tree, and the value that was read."""


@dataclass(frozen=True, slots=True)
class ResolvedLiterals:
    """The literals read in a statement's trees, or those of an equal one with the same plan."""

    trees: tuple[Node, Node]
    literals: tuple[ResolvedLiteral, ...]
    of_clock: bool
    """One of them has another value in every transaction, such as `now`."""
