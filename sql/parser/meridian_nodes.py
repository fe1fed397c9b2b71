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
class ParsedPart:
    """A part that PostgreSQL's parser has parsed, with its text (W1).

    `is_expression`: the text is `SELECT` and the expression, the node the expression alone.
    """

    node: Node
    source: str
    is_expression: bool = False


@dataclass(frozen=True, slots=True)
class Identifier:
    """An identifier as PostgreSQL folds it; `place` is its offset."""

    text: str
    place: int


@dataclass(frozen=True, slots=True)
class CreateTimelineNode:
    """CREATE TIMELINE [IF NOT EXISTS] name [CLOCK clock | MANUAL]. `clock` None: MANUAL."""

    name: Identifier
    clock: Identifier | None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropTimelineNode:
    """DROP TIMELINE [IF EXISTS] name, ..."""

    names: tuple[Identifier, ...]
    missing_ok: bool = False


@dataclass(frozen=True, slots=True)
class AdvanceTimelineNode:
    """ADVANCE TIMELINE name TO expression."""

    name: Identifier
    to: ParsedPart


@dataclass(frozen=True, slots=True)
class CreateTableInNode:
    """CREATE TABLE .. IN TIMELINE name."""

    create: ParsedPart
    timeline: Identifier


@dataclass(frozen=True, slots=True)
class CreateReadHoldNode:
    """CREATE READ HOLD name [AT expression] [IN TIMELINE name]."""

    name: Identifier
    at: ParsedPart | None = None
    timeline: Identifier | None = None


@dataclass(frozen=True, slots=True)
class DropReadHoldNode:
    """DROP READ HOLD [IF EXISTS] name, ..."""

    names: tuple[Identifier, ...]
    missing_ok: bool = False


@dataclass(frozen=True, slots=True)
class ExplainTimestampNode:
    """EXPLAIN [options] TIMESTAMP FOR query; the query's AS OF is the statement's."""

    explain: ParsedPart


@dataclass(frozen=True, slots=True)
class OptimizeNode:
    """OPTIMIZE relation."""

    relation: ParsedPart


@dataclass(frozen=True, slots=True)
class EnvelopeNode:
    """ENVELOPE UPSERT or DEBEZIUM, in lower case, with its key."""

    style: str
    key: tuple[Identifier, ...]


@dataclass(frozen=True, slots=True)
class SubscribeNode:
    """SUBSCRIBE; its AS OF is the statement's. `is_query`: what is followed was written as a query,
    and not as the name of a relation. `place`: its offset; `up_to_place`: that of UP TO's
    expression. `order`: a query of nothing but WITHIN TIMESTAMP's ORDER BY.
    """

    followed: ParsedPart
    is_query: bool
    options: tuple[Node, ...]
    up_to: ParsedPart | None
    place: int
    up_to_place: int = 0
    envelope: EnvelopeNode | None = None
    order: ParsedPart | None = None


@dataclass(frozen=True, slots=True)
class CopySubscribeNode:
    """COPY (SUBSCRIBE ..) TO; the query in `copy` stands for the subscription."""

    copy: ParsedPart
    subscribe: SubscribeNode


@dataclass(frozen=True, slots=True)
class DeclareSubscribeNode:
    """DECLARE name CURSOR FOR SUBSCRIBE; the query in `declare` stands for the subscription."""

    declare: ParsedPart
    subscribe: SubscribeNode


@dataclass(frozen=True, slots=True)
class FetchWaitNode:
    """FETCH .. WITH (timeout = ..), in microseconds; None: there is no such option."""

    fetch: ParsedPart
    timeout_us: int | None


@dataclass(frozen=True, slots=True)
class AdvanceReadHoldNode:
    """ADVANCE READ HOLD name TO expression."""

    name: Identifier
    to: ParsedPart


@dataclass(frozen=True, slots=True)
class ArgumentNode:
    """One argument of EXECUTE, the `number`-th, for a parameter of that type."""

    execute: ParsedPart
    value: Node
    type: SqlType
    number: int


@dataclass(frozen=True, slots=True)
class SourceOption:
    """An option of a source or connection, and its offset from 1."""

    name: str
    value: int | str
    place: int


@dataclass(frozen=True, slots=True)
class CreateConnectionNode:
    """CREATE CONNECTION [IF NOT EXISTS] name TO connector (options)."""

    name: tuple[Identifier, ...]
    connector: str
    options: tuple[SourceOption, ...]
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterConnectionNode:
    """ALTER CONNECTION name SET (options)."""

    name: tuple[Identifier, ...]
    options: tuple[SourceOption, ...]


@dataclass(frozen=True, slots=True)
class CreateSourceNode:
    """CREATE SOURCE [IF NOT EXISTS] name FROM connector .. [(options)] [WITH (settings)]. `kind`:
    of a generator. `connection`: empty for one.
    """

    name: tuple[Identifier, ...]
    connector: str
    kind: str = ""
    connection: tuple[Identifier, ...] = ()
    options: tuple[SourceOption, ...] = ()
    settings: tuple[SourceOption, ...] = ()
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterSourceNode:
    """ALTER SOURCE name {PAUSE | RESUME | SET (settings) ..}."""

    name: tuple[Identifier, ...]
    action: str
    settings: tuple[SourceOption, ...] = ()
    place: int = 0


@dataclass(frozen=True, slots=True)
class AlterNamedNode:
    """What is done alike to connections and sources, which `kind` names. `action`: `rename`,
    `schema`, `owner`, with its name; `comment`, with its text, None for none.
    """

    kind: str
    name: tuple[Identifier, ...]
    action: str
    new: Identifier | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class DropSourceNode:
    """DROP {SOURCE | CONNECTION} [IF EXISTS] name, .. [CASCADE]. `kind` says of which."""

    names: tuple[tuple[Identifier, ...], ...]
    missing_ok: bool = False
    cascade: bool = False
    kind: str = "source"


@dataclass(frozen=True, slots=True)
class CreateTableFromNode:
    """CREATE TABLE [IF NOT EXISTS] name [(columns)] FROM SOURCE source [(REFERENCE 'reference')]
    [WITH (options)]. `create`: the part before FROM, if it has columns.
    """

    name: tuple[Identifier, ...]
    source: tuple[Identifier, ...]
    reference: str | None = None
    if_not_exists: bool = False
    create: ParsedPart | None = None
    options: tuple[SourceOption, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateTablesFromNode:
    """CREATE TABLES FROM SOURCE source [IN SCHEMA schema]."""

    source: tuple[Identifier, ...]
    schema: Identifier | None = None


@dataclass(frozen=True, slots=True)
class DetachSourceNode:
    """ALTER TABLE table DETACH SOURCE."""

    table: tuple[Identifier, ...]


SourceNode: TypeAlias = (
    CreateSourceNode | AlterSourceNode | DropSourceNode | CreateTableFromNode
    | CreateTablesFromNode | DetachSourceNode | CreateConnectionNode | AlterConnectionNode
    | AlterNamedNode
)  # fmt: skip
MeridianNode: TypeAlias = (
    CreateTimelineNode | DropTimelineNode | AdvanceTimelineNode | CreateTableInNode
    | CreateReadHoldNode | DropReadHoldNode | ExplainTimestampNode | OptimizeNode | ArgumentNode
    | SubscribeNode | CopySubscribeNode | DeclareSubscribeNode | FetchWaitNode | AdvanceReadHoldNode
    | SourceNode
)  # fmt: skip


def parsed_parts(node: MeridianNode) -> Sequence[ParsedPart]:
    """The parts that PostgreSQL's parser has parsed (W1)."""
    match node:
        case CreateTableInNode():
            return (node.create,)
        case AdvanceTimelineNode() | AdvanceReadHoldNode():
            return (node.to,)
        case CreateReadHoldNode():
            return () if node.at is None else (node.at,)
        case ExplainTimestampNode():
            return (node.explain,)
        case OptimizeNode():
            return (node.relation,)
        case ArgumentNode():
            return (node.execute,)
        case SubscribeNode():
            # The name of a relation has no constants, and stands elsewhere in its text.
            parts = (node.followed if node.is_query else None, node.order, node.up_to)
            return [part for part in parts if part is not None]
        case CopySubscribeNode() | DeclareSubscribeNode():
            return parsed_parts(node.subscribe)
        case CreateTimelineNode() | DropTimelineNode() | DropReadHoldNode() | FetchWaitNode():
            return ()
        case CreateSourceNode() | AlterSourceNode() | DropSourceNode() | DetachSourceNode():
            return ()
        case CreateConnectionNode() | AlterConnectionNode() | AlterNamedNode():
            return ()
        case CreateTableFromNode(create=create):
            return () if create is None else (create,)
        case CreateTablesFromNode():
            return ()
