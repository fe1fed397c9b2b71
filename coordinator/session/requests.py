"""Requests to the statement runner, and properties of statements that need no catalog."""

from dataclasses import dataclass
from types import NoneType
from typing import Final

from pglast import ast

from coordinator.core.messages.identities import Isolation
from coordinator.pgwire.messages import Sync
from coordinator.session.client import Client
from coordinator.session_errors import forbidden_in_block
from coordinator.transaction.transaction import SessionTransaction
from sql.catalog.catalog import Catalog
from sql.parser.parse import Statement
from sql.statements.bound import BoundStatement, Explain, OutputColumn
from sql.statements.session import TransactionControl, TransactionVerb
from sql.types.sql_type import SqlType, Value

# They mean the same under every catalog: binding them must not choose a timestamp.
_WITHOUT_CATALOG: Final = (
    NoneType, ast.TransactionStmt, ast.VariableSetStmt, ast.VariableShowStmt, ast.DiscardStmt,
    ast.DeallocateStmt, ast.ClosePortalStmt, ast.ListenStmt, ast.UnlistenStmt, ast.NotifyStmt,
)  # fmt: skip

_SHORT: Final = (ast.InsertStmt, ast.UpdateStmt, ast.DeleteStmt)

# PostgreSQL takes a snapshot to prepare them and to bind their values (analyze_requires_snapshot).
_ANALYZED: Final = (
    ast.SelectStmt, ast.InsertStmt, ast.UpdateStmt, ast.DeleteStmt, ast.MergeStmt,
    ast.DeclareCursorStmt, ast.ExplainStmt, ast.CreateTableAsStmt, ast.CallStmt,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Identity:
    """Where the session is: part of what a statement may mean."""

    database: str
    pid: int
    started_at: int = 0
    ports: tuple[int | None, int | None] = (None, None)
    temporary: str = ""
    """The schema of its temporary relations."""
    address: str | None = None
    """Of the client; None: it came by the Unix socket."""


@dataclass(frozen=True, slots=True)
class Request:
    """A statement to run. `expected`: the columns that the client was promised, if it was.

    `template`: the statement stands for a text with literals, as long as the catalog is this one.
    `shapes`: it stands for the rows of an INSERT, as long as the catalog is this one.
    """

    statement: Statement
    declared: tuple[SqlType | None, ...] = ()
    expected: tuple[OutputColumn, ...] | None = None
    template: "TemplateOrigin | None" = None
    shapes: "RowShapes | None" = None


@dataclass(frozen=True, slots=True)
class TemplateOrigin:
    """What a statement whose literals are parameters was made of (T2 of `literal_templates.py`)."""

    catalog: Catalog
    text: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class RowShapes:
    """The statements that rows of one INSERT are, each alone, and the types of their parameters."""

    catalog: Catalog
    statements: tuple[tuple[Statement, tuple[SqlType, ...]], ...]


def needs_catalog(statement: Statement) -> bool:
    """Whether binding looks at the catalog."""
    return not isinstance(statement.node, _WITHOUT_CATALOG)


def analysis_needs_snapshot(statement: Statement) -> bool:
    """Whether preparing the statement already fixes its transaction's modes."""
    return isinstance(statement.node, _ANALYZED)


def check_not_concurrently(statement: Statement) -> None:
    """Raises 25001 for CONCURRENTLY, which neither a block nor a pipeline can have."""
    node = statement.node
    if isinstance(node, ast.IndexStmt | ast.DropStmt) and node.concurrent:
        verb = "CREATE" if isinstance(node, ast.IndexStmt) else "DROP"
        raise forbidden_in_block(f"{verb} INDEX CONCURRENTLY")


def can_end_failed_block(bound: BoundStatement) -> bool:
    """Whether the statement is allowed in a failed block: COMMIT, ROLLBACK [TO] end that."""
    return isinstance(bound, TransactionControl) and bound.verb in (
        TransactionVerb.COMMIT,
        TransactionVerb.ROLLBACK,
        TransactionVerb.ROLLBACK_TO,
    )


def executed_statement(bound: BoundStatement) -> BoundStatement | None:
    """The statement that runs when this one is executed: for EXPLAIN ANALYZE the explained one, for
    EXPLAIN none.
    """
    return bound.runs if isinstance(bound, Explain) else bound


async def is_alone(client: Client, transaction: SessionTransaction, statement: Statement) -> bool:
    """Whether the statement is its whole transaction (A1 of `statement_runner.py`). Who waits has
    sent Sync or Flush, but for a COPY: looking ahead waits for nobody.
    """
    if transaction.has_begun or isinstance(statement.node, ast.CopyStmt):
        return False
    while (message := client.peek()) is None:
        await client.more()
    return isinstance(message, Sync)


def may_be_short_write(statement: Statement) -> bool:
    """Whether it may be one row that changes (`coordinator/execution/short_writes/`)."""
    return isinstance(statement.node, _SHORT)


def may_be_short_in_block(statement: Statement, transaction: SessionTransaction) -> bool:
    """The same, or SELECT FOR UPDATE of a row; at levels with one timestamp alone. At the others
    the general way takes a snapshot of its own, and asks who leads again.
    """
    if transaction.isolation in (Isolation.READ_COMMITTED, Isolation.BOUNDED_STALENESS):
        return False
    node = statement.node
    return isinstance(node, _SHORT) or (
        isinstance(node, ast.SelectStmt) and bool(node.lockingClause)
    )
