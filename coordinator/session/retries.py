"""What a statement that begins again needs: the tables to lease, the notices that were sent.

INVARIANTS
  B1  a client hears a notice as often as the try says it that says it most often: what an earlier
      try has said already is not sent again.
"""

from collections import Counter
from collections.abc import Callable
from typing import Final, TypeAlias

from coordinator.core.messages.replies import RefusedReason
from coordinator.driver.coordination import Coordination, RequestRefused
from coordinator.execution.modify import tables_read_and_written
from coordinator.pgwire.messages import Severity
from coordinator.transaction.transaction import SessionTransaction
from sql.catalog.catalog import Catalog, Table
from sql.catalog.foreign_keys import foreign_key_closure
from sql.catalog.meridian_schema import is_server_state
from sql.errors import SqlError
from sql.statements.bound import (
    AlterTable,
    BoundStatement,
    CreateTableAs,
    Modify,
    ModifyingWith,
    RefreshMaterializedView,
    Truncate,
)

UNPROVED: Final = "repeatable read"
"""The level at which a view is stored from the second attempt on."""

SendNotice: TypeAlias = Callable[[SqlError, Severity], None]


def contended_tables(bound: BoundStatement | None, catalog: Catalog) -> tuple[Table, ...]:
    """The tables that others may write to while a statement runs (A2 of `statement_runner.py`)."""
    match bound:
        case Modify() | ModifyingWith() | Truncate():
            read = bound.tables if isinstance(bound, Truncate) else tables_read_and_written(bound)
            touched = [table for table in dict.fromkeys(read) if not is_server_state(table)]
            return foreign_key_closure(catalog, touched)
        case CreateTableAs() | RefreshMaterializedView() if stores_followed_view(bound):
            return (bound.table,) if isinstance(bound, RefreshMaterializedView) else ()
        case CreateTableAs(tables=tables):
            return tuple([one for one in tables if not is_server_state(one)])
        case RefreshMaterializedView(table=table, tables=tables):
            return tuple([one for one in (table, *tables) if not is_server_state(one)])
        case AlterTable():
            return tuple([change.before for change in bound.tables])
        case _:
            return ()


def stores_followed_view(bound: BoundStatement | None) -> bool:
    """Whether it writes the rows of a view that follows its inputs. Nobody who writes to an input
    waits for that (V3 of `coordinator/core/views`): from the second attempt on it is no part of the
    commit that nothing has changed since, the view is behind, and catch-up goes on from there.
    """
    match bound:
        case CreateTableAs(table=table) | RefreshMaterializedView(table=table):
            return table.query is not None and table.query.on_commit
        case _:
            return False


async def has_awaited_load(
    coordination: Coordination, transaction: SessionTransaction, refused: RequestRefused
) -> bool:
    """Wait for what was refused because it is not loaded; False: it was something else. The single
    statement begins again, also if its source cannot load it. Waiting is no attempt.
    """
    if refused.reason is not RefusedReason.NOT_LOADED:
        return False
    transaction.heed_interrupt()
    transaction.restart()
    await coordination.await_load(refused.source)
    return True


class StatementNotices:
    """The notices of one statement after the other (B1)."""

    def __init__(self, send: SendNotice) -> None:
        self._send = send
        self._said: Counter[tuple[str, str]] = Counter()
        self._to_repeat: Counter[tuple[str, str]] = Counter()

    def begin(self) -> None:
        """Another statement."""
        self._said.clear()
        self._to_repeat.clear()

    def begin_again(self) -> None:
        """The same one, from the start."""
        self._to_repeat = self._said.copy()

    def say(self, notice: SqlError, severity: Severity) -> None:
        """Send it, unless an earlier try has."""
        key = notice.sqlstate, notice.message
        if self._to_repeat[key]:
            self._to_repeat[key] -= 1
            return
        self._said[key] += 1
        self._send(notice, severity)
