"""Parse PREPARE, EXECUTE, what is around EXECUTE, DECLARE, FETCH and MOVE into values.

They are read off the syntax tree here and executed in `commands.py`, which owns the names.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from pglast import ast
from pglast.enums import FetchDirection

from sql.binder.resolve.type_names import declared_type_by_name
from sql.binder.session.cursors import BINARY, HOLD, SCROLL, cursor_query
from sql.errors import SqlError
from sql.parser.meridian_nodes import (
    ArgumentNode,
    DeclareSubscribeNode,
    FetchWaitNode,
    ParsedPart,
)
from sql.parser.parse import Statement
from sql.parser.syntax import Node, is_a
from sql.types.sql_type import SqlType, type_declaration

FETCH_ALL_ROWS: Final = 9_223_372_036_854_775_807
"""FETCH ALL, as the parser counts it."""

# Places below those of AS OF: what is inside must not be taken for the statement by the plan cache.
_INSIDE: Final = -10


@dataclass(frozen=True, slots=True)
class PrepareCommand:
    """PREPARE name (types) AS statement."""

    name: str
    declared: tuple[SqlType | None, ...]
    statement: Statement


@dataclass(frozen=True, slots=True)
class ExecuteCommand:
    """EXECUTE name (arguments)."""

    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class CreateTableAsExecute:
    """CREATE TABLE .. AS EXECUTE name (arguments)."""

    invocation: ExecuteCommand

    def statement(self, own: Statement, prepared: Statement) -> Statement:
        """CREATE TABLE .. AS the query that was prepared. Raises 42809."""
        if not is_a(prepared.node, ast.SelectStmt):
            raise SqlError("42809", "prepared statement is not a SELECT")
        return _filled(own, prepared)


@dataclass(frozen=True, slots=True)
class ExplainExecute:
    """EXPLAIN (options) EXECUTE name (arguments)."""

    invocation: ExecuteCommand

    def statement(self, own: Statement, prepared: Statement) -> Statement:
        """EXPLAIN (options) the statement that was prepared."""
        return _filled(own, prepared)


def _filled(own: Statement, prepared: Statement) -> Statement:
    node: Node = own.node
    filled = type(node)(**({name: getattr(node, name) for name in node} | {"query": prepared.node}))
    # Both texts, and which statement of its text it is, say what this one is to the plan cache.
    text = f"{prepared.text}\n-- {own.offset} {own.text}"
    return replace(prepared, text=text, node=filled)


@dataclass(frozen=True, slots=True)
class DeclareCursorCommand:
    """DECLARE name CURSOR FOR query."""

    name: str
    statement: Statement
    scroll: bool
    hold: bool
    binary: bool


@dataclass(frozen=True, slots=True)
class FetchCommand:
    """FETCH and MOVE. `absolute`, `relative`: to one row; else `count` rows, backward if < 0.

    `timeout_us`: how long it waits for changes, if that was said.
    """

    name: str
    count: int
    absolute: bool = False
    relative: bool = False
    move: bool = False
    timeout_us: int | None = None


NamedCommand: TypeAlias = (
    PrepareCommand
    | ExecuteCommand
    | CreateTableAsExecute
    | ExplainExecute
    | DeclareCursorCommand
    | FetchCommand
)


def parse_named_command(statement: Statement) -> NamedCommand | None:
    """The statement as one of these values; None for any other statement."""
    node: Node = statement.node
    if is_a(node, ast.PrepareStmt):
        declared = tuple(declared_type_by_name(item) for item in node.argtypes or ())
        return PrepareCommand(node.name, declared, _inside(statement, node.query))
    if is_a(node, ast.ExecuteStmt):
        return _invocation(node)
    if is_a(node, ast.CreateTableAsStmt) and is_a(node.query, ast.ExecuteStmt):
        return CreateTableAsExecute(_invocation(node.query))
    if is_a(node, ast.ExplainStmt) and is_a(node.query, ast.ExecuteStmt):
        return ExplainExecute(_invocation(node.query))
    if is_a(node, ast.DeclareCursorStmt):
        return DeclareCursorCommand(
            node.portalname,
            _inside(statement, cursor_query(node)),
            scroll=bool(node.options & SCROLL),
            hold=bool(node.options & HOLD),
            binary=bool(node.options & BINARY),
        )
    if isinstance(node, DeclareSubscribeNode):
        cursor_query(node.declare.node)
        name = node.declare.node.portalname
        inside = _inside(statement, node.subscribe)
        return DeclareCursorCommand(name, inside, scroll=False, hold=False, binary=False)
    if isinstance(node, FetchWaitNode):
        return replace(_fetch(node.fetch.node), timeout_us=node.timeout_us)
    return _fetch(node) if is_a(node, ast.FetchStmt) else None


def _invocation(node: Node) -> ExecuteCommand:
    return ExecuteCommand(node.name, tuple(node.params or ()))


def _fetch(node: Node) -> FetchCommand:
    move = bool(node.ismove)
    match node.direction:
        case FetchDirection.FETCH_ABSOLUTE:
            return FetchCommand(node.portalname, node.howMany, absolute=True, move=move)
        case FetchDirection.FETCH_RELATIVE:
            return FetchCommand(node.portalname, node.howMany, relative=True, move=move)
        case FetchDirection.FETCH_BACKWARD:
            return FetchCommand(node.portalname, -node.howMany, move=move)
        case _:
            return FetchCommand(node.portalname, node.howMany, move=move)


def _inside(statement: Statement, node: Node) -> Statement:
    return replace(statement, node=node, offset=_INSIDE - statement.offset)


def argument_query(statement: Statement, argument: Node, type_: SqlType, place: int) -> Statement:
    """The value of the `place`-th argument in the parameter's type."""
    node = ArgumentNode(ParsedPart(statement.node, statement.text), argument, type_, place)
    # The text says the type, for the plan cache; places in front of it stay what they are.
    text = f"{statement.text}\n-- ${place} {type_declaration(type_)}"
    return replace(statement, text=text, node=node)


def argument_count_error(
    name: str, arguments: Sequence[object], wanted: int
) -> tuple[str, str] | None:
    """Message and detail if an EXECUTE has the wrong number of arguments."""
    if len(arguments) == wanted:
        return None
    return (
        f'wrong number of parameters for prepared statement "{name}"',
        f"Expected {wanted} parameters but got {len(arguments)}.",
    )
