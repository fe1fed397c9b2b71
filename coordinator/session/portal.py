"""Prepared statements and portals of the extended protocol; a portal waits between two Executes.

    Parse ─▶ PreparedStatement ─Bind─▶ Portal ─Execute(max_rows)─▶ rows, then suspended or complete

INVARIANTS
  O1  a portal lives to the end of its transaction at most, or to the ROLLBACK TO a savepoint that
      it was opened after; closing it ends the engine's work.
  O2  a portal that was run to its end yields nothing more; its tag counts the rows of one Execute.
  O3  rows are encoded off the loop when they are many, so that one result never stalls the others.
  O4  a literal is read when its statement is prepared, under the settings and the clock of then.
"""

from collections.abc import AsyncGenerator
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from coordinator.execution.context import Done, Outcome, Rows
from coordinator.memory_account import Holding
from coordinator.session.prepared_statements import FetchCommand
from coordinator.session.requests import TemplateOrigin
from coordinator.session.short_statement import ShortStatement
from coordinator.session.statement_counting import CountedRun
from coordinator.streams import close_batches
from sql.binder.resolve.setting_literals import with_read_literals
from sql.parser.parse import Statement
from sql.statements.bound import OutputColumn
from sql.statements.literals import ResolvedLiterals
from sql.types.sql_type import SqlType, Value


class PortalCursor(Protocol):
    """The cursor on a portal, as the portal holds it (`session/cursors.py`)."""

    failed: bool
    scroll: bool

    async def keep_all(self) -> None:
        """Read to the end now."""
        ...

    def fetch(self, fetch: FetchCommand) -> AsyncGenerator[pa.RecordBatch, None]:
        """The rows that a FETCH gives."""
        ...


@dataclass(slots=True)
class PreparedStatement:
    """A statement of the client: its text, declared types, and types and columns as bound."""

    statement: Statement
    declared: tuple[SqlType | None, ...]
    parameters: tuple[SqlType, ...]
    columns: tuple[OutputColumn, ...] | None
    """None: no rows, ever (NoData)."""
    read: ResolvedLiterals | None = None
    """Literals that mean something else now and then, or under another setting than `setting`."""
    setting: tuple[object, ...] = ()
    prepared_at: int = 0
    """When it got its name, in microseconds."""
    template: TemplateOrigin | None = None
    """The text with literals that it stands for, if it does."""
    short: ShortStatement | None = None
    """How it is answered at once, if that was asked (`short_answers.py`)."""

    def under(self, setting: tuple[object, ...]) -> Statement:
        """The statement, to be bound under a setting: literals stay what they were (O4)."""
        if self.read is not None and (self.read.of_clock or setting != self.setting):
            self.statement, self.read = with_read_literals(self.statement, self.read), None
        return self.statement


@dataclass(slots=True)
class Portal:
    """A statement with parameter values, and how far it has run."""

    prepared: PreparedStatement
    parameters: tuple[Value, ...]
    formats: tuple[int, ...] = ()
    serial: int = 0
    """Of the newest savepoint when it was opened."""
    cursor: PortalCursor | None = None
    """Of DECLARE."""
    hold: bool = False
    """WITH HOLD; `kept`: the transaction that declared it has committed."""
    kept: bool = False
    binary: bool = False
    """Of DECLARE BINARY: what FETCH by a simple query sends is in binary."""
    opened_at: int = 0
    memory: Holding | None = None
    """For its values, and for rows that its cursor keeps; None while it has no name."""
    outcome: Outcome | None = None
    run: CountedRun | None = None
    """Since it has an outcome."""
    finished: bool = False
    _rest: pa.RecordBatch | None = field(default=None, repr=False)

    async def rows(self, limit: int) -> AsyncGenerator[pa.RecordBatch, None]:
        """The next rows, `limit` at most (0: all); sets `finished` at the end (O2)."""
        assert isinstance(self.outcome, Rows), "only a portal with rows is read"
        reader = self.outcome.reader
        with nullcontext() if reader is None else reader.reading():
            left = limit
            while not self.finished:
                batch, self._rest = self._rest, None
                if batch is None:
                    batch = await anext(self.outcome.batches, None)
                if batch is None:
                    self.finished = True
                    return
                if limit and batch.num_rows > left:
                    self._rest = batch.slice(left)
                    batch = batch.slice(0, left)
                if batch.num_rows:
                    left -= batch.num_rows
                    yield batch
                if (limit and left == 0) or (reader is not None and reader.ends_at(batch)):
                    return

    async def close(self) -> None:
        """Release the rows and end the engine's work (O1)."""
        self.finished = True
        self._rest = None
        if self.memory is not None:
            self.memory.close()
        if isinstance(self.outcome, Rows):
            await close_batches(self.outcome.batches)


def command_tag(outcome: Outcome, count: int) -> str:
    """The command tag after `count` rows were sent."""
    match outcome:
        case Done(tag=tag):
            return tag
        case Rows(tag=tag):
            return tag(count)
