"""Syntax nodes of Meridian's own statements; `meridian_grammar.py` makes them for the binder.

INVARIANTS
  W1  PostgreSQL's parser reads the parts of a statement that are PostgreSQL's (a query, a time, a
      CREATE TABLE, a relation), each at its place in the client's text, so that positions are the
      client's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sql.parser.syntax import Node
from sql.types.sql_type import SqlType


@dataclass(frozen=True, slots=True)
class Parsed:
    """A part that PostgreSQL's parser has parsed, with its text (W1).

    `is_expression`: the text is `SELECT` and the expression, the node the expression alone.
    """

    node: Node
    source: str
    is_expression: bool = False


@dataclass(frozen=True, slots=True)
class Name:
    """An identifier as PostgreSQL folds it; `place` is its offset."""

    text: str
    place: int


@dataclass(frozen=True, slots=True)
class CreateTimelineNode:
    """CREATE TIMELINE [IF NOT EXISTS] name [CLOCK clock | MANUAL]. `clock` None: MANUAL."""

    name: Name
    clock: Name | None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropTimelineNode:
    """DROP TIMELINE [IF EXISTS] name, ..."""

    names: tuple[Name, ...]
    missing_ok: bool = False


@dataclass(frozen=True, slots=True)
class AdvanceTimelineNode:
    """ADVANCE TIMELINE name TO expression."""

    name: Name
    to: Parsed


@dataclass(frozen=True, slots=True)
class CreateTableInNode:
    """CREATE TABLE .. IN TIMELINE name."""

    create: Parsed
    timeline: Name


@dataclass(frozen=True, slots=True)
class CreateReadHoldNode:
    """CREATE READ HOLD name [AT expression] [IN TIMELINE name]."""

    name: Name
    at: Parsed | None = None
    timeline: Name | None = None


@dataclass(frozen=True, slots=True)
class DropReadHoldNode:
    """DROP READ HOLD [IF EXISTS] name, ..."""

    names: tuple[Name, ...]
    missing_ok: bool = False


@dataclass(frozen=True, slots=True)
class ExplainTimestampNode:
    """EXPLAIN [options] TIMESTAMP FOR query; the query's AS OF is the statement's."""

    explain: Parsed


@dataclass(frozen=True, slots=True)
class OptimizeNode:
    """OPTIMIZE relation."""

    relation: Parsed


@dataclass(frozen=True, slots=True)
class ArgumentNode:
    """One argument of EXECUTE, the `number`-th, for a parameter of that type."""

    execute: Parsed
    value: Node
    type: SqlType
    number: int


OwnNode: TypeAlias = (
    CreateTimelineNode | DropTimelineNode | AdvanceTimelineNode | CreateTableInNode
    | CreateReadHoldNode | DropReadHoldNode | ExplainTimestampNode | OptimizeNode | ArgumentNode
)  # fmt: skip


def parsed_parts(node: OwnNode) -> Sequence[Parsed]:
    """The parts that PostgreSQL's parser has parsed (W1)."""
    match node:
        case CreateTableInNode():
            return (node.create,)
        case AdvanceTimelineNode():
            return (node.to,)
        case CreateReadHoldNode():
            return () if node.at is None else (node.at,)
        case ExplainTimestampNode():
            return (node.explain,)
        case OptimizeNode():
            return (node.relation,)
        case ArgumentNode():
            return (node.execute,)
        case CreateTimelineNode() | DropTimelineNode() | DropReadHoldNode():
            return ()
