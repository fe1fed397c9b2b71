"""Answer flights that end in a commit: a write that is its whole transaction; COMMIT and ROLLBACK.

    flight ─▶ known statement? ─▶ begin_write, begin_commit ─▶ fate ─▶ tag, ReadyForQuery
                    └── anything in doubt ─▶ message by message, in `commands.py`

INVARIANTS
  W1  a flight stays where it is until its fate is known. If it has met a conflict or a lock,
      nothing has happened, and the general way begins anew.
  W2  what fails otherwise may have happened, and is not tried again: the client gets the error.
  W3  what is answered is what the general way would (Y3 of `short_answers.py`); a statement that
      takes values of sequences goes there (V4 of `short_writes/given_values.py`).

A write alone, and the COMMIT of a block, may be begun where its bytes come (`begin`), and answered
where its fate is known (`finish`): no task is woken. Everything else is answered by the session's
task, which waits for the commit as it does in the general way, and can be interrupted as there (S3
of `session.py`).
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Final, TypeAlias, cast

from pglast import ast

from compute.reference.expressions import Row
from coordinator.core.messages.replies import RefusedReason
from coordinator.core.messages.requests import Insertion
from coordinator.driver.coordination import LockBlocks, RequestRefused
from coordinator.execution.blind_insert import BlindInsert
from coordinator.execution.context import Services
from coordinator.execution.name_dependencies import dependent_names
from coordinator.execution.short_writes.compile import CompiledWrite
from coordinator.pgwire.codec import encode_backend
from coordinator.pgwire.flights import BindFlight, Flight, QueryFlight
from coordinator.pgwire.messages import (
    BindComplete,
    CommandComplete,
    Execute,
    NoData,
    Query,
    ReadyForQuery,
    TransactionStatus,
)
from coordinator.session.activity import Activity
from coordinator.session.bind_parameters import check_counts, decode_parameters
from coordinator.session.client import Client
from coordinator.session.known_statements import KnownStatements
from coordinator.session.named_objects import PreparedStatements
from coordinator.session.portal import Portal, PreparedStatement
from coordinator.session.portals import Portals
from coordinator.session.short_statement import ResultShape, ShortStatement
from coordinator.session.statement_counting import StatementCounting
from coordinator.session.statement_log import StatementLog
from coordinator.session.statement_templates import StatementTemplates
from coordinator.transaction.begun_commits import BegunCommit, BlockCommit, WriteAlone
from coordinator.transaction.transaction import SessionTransaction
from coordinator.variables.variables import Variables
from sql.errors import SqlError
from sql.parser.parse import Statement
from sql.types.sql_type import Value

_END: Final = re.compile(
    r"\s*(commit|end|rollback|abort)(\s+(work|transaction))?\s*;?\s*", re.IGNORECASE
)
_IS_READ: Final = re.compile(r"\s*(?:select|values)\b", re.IGNORECASE)

_BOUND: Final = bytes(encode_backend(BindComplete()))
_BOUND_WITHOUT_ROWS: Final = _BOUND + bytes(encode_backend(NoData()))
_READY: Final = bytes(encode_backend(ReadyForQuery(TransactionStatus.IDLE)))

_Run: TypeAlias = Callable[[], Awaitable[None]]
"""Ends a block in the general way."""


@dataclass(slots=True)
class _Alone:
    """A write that is its whole transaction. `tag`: without the count, if that is only known then.
    `shape`: of what RETURNING shows.
    """

    write: WriteAlone
    known: ShortStatement
    tag: str
    rows: int | None = None
    shape: ResultShape | None = None


@dataclass(slots=True)
class _BlockEnd:
    """COMMIT or ROLLBACK. `run`: in the general way. `commit`: where the bytes come, if that
    is possible.
    """

    statement: Statement
    tag: str
    run: _Run
    commit: BlockCommit | None


@dataclass(slots=True)
class CommitFlight:
    """A flight that is to be answered here, with the statement's text. `prefix`: what the client
    hears before the outcome, whatever it is. `work`: what is done. `portal`: of the statement, if
    it is a prepared one. `is_left`: it goes the general way after all (W1). `failure`: what it met
    after its commit. `said`: what the client is to hear of the outcome.
    """

    flight: Flight
    text: str
    prefix: bytes
    work: _Alone | _BlockEnd
    portal: tuple[PreparedStatement, tuple[Value, ...]] | None = None
    is_left: bool = False
    began: float = 0.0
    failure: Exception | None = None
    said: bytes | None = None

    @property
    def pending(self) -> BegunCommit | None:
        """What may be begun where its bytes come."""
        return self.work.write if isinstance(self.work, _Alone) else self.work.commit


class ShortCommits:
    """See the module. `may_answer`: whether nothing waits to be done or said."""

    def __init__(
        self,
        services: Services,
        client: Client,
        transaction: SessionTransaction,
        variables: Variables,
        statements: PreparedStatements,
        portals: Portals,
        templates: StatementTemplates,
        known: KnownStatements,
        counting: StatementCounting,
        activity: Activity,
        log: StatementLog,
        may_answer: Callable[[], bool],
    ) -> None:
        self._services = services
        self._client = client
        self._transaction = transaction
        self._variables = variables
        self._statements = statements
        self._portals = portals
        self._templates = templates
        self._known = known
        self._counting = counting
        self._activity = activity
        self._log = log
        self._may_answer = may_answer
        self._is_on = services.limits.short_reads and services.limits.short_writes

    def next(self) -> CommitFlight | None:
        """The flight that comes next, if it is one; nothing has happened."""
        flight = self._client.flight()
        return None if flight is None else self.of(flight)

    def of(self, flight: Flight) -> CommitFlight | None:
        """The same of a flight that has come."""
        logging = self._variables.logging
        if not self._is_on or (logging is not None and logging.is_each):
            return None  # Y4 of `short_answers.py`
        if not self._may_answer():
            return None
        try:
            return (
                self._of_run(flight) if isinstance(flight, BindFlight) else self._of_query(flight)
            )
        except Exception:
            # Whatever it is, the general way meets it again, and says it.
            return None

    async def answer(self, found: CommitFlight) -> None:
        """Answer it, or leave it (W1). Raises what its commit raises (W2)."""
        self._begins(found)
        try:
            data = await self._outcome(found, found.work)
        except Exception:
            self._client.drop(found.flight)
            self._client.send_encoded(found.prefix)
            self._log.message = self._left_behind(found)
            raise
        if data is None:
            found.is_left = True
            return
        self._say(found, data)

    async def _outcome(self, found: CommitFlight, work: _Alone | _BlockEnd) -> bytes | None:
        """What the client is to hear of it; None: nothing has happened (W1)."""
        if isinstance(work, _BlockEnd):
            if work.commit is None or not work.commit.is_asked:
                await work.run()
                return self._ended(found, work)
            await work.commit.settle()
        else:
            if not work.write.is_asked:
                work.write.ask()
            await work.write.settle()
        return self._concluded(found)

    def startable(self, flight: Flight) -> CommitFlight | None:
        """A flight that may be begun where its bytes come; nothing has happened."""
        found = self.of(flight)
        return None if found is None or found.pending is None else found

    def begin(self, found: CommitFlight, settled: Callable[[], None]) -> bool:
        """Begin one that is startable; False: nothing has happened, and `answer` says why, or does
        it. `settled` is called when its fate is known, perhaps at once, unless a task waits for it.
        """
        assert found.pending is not None, "nothing else begins without a task"
        self._begins(found)
        try:
            return found.pending.ask(settled)
        except SqlError:
            return False

    def give_up(self, found: CommitFlight) -> None:
        """The session ends, and hears no more of one that was begun."""
        if found.pending is not None:
            found.pending.give_up()

    def finish(self, found: CommitFlight) -> bool:
        """Answer one that has committed, and that the session is ready; False: `answer` has to."""
        if found.pending is None or not found.pending.has_committed:
            return False
        try:
            data = self._concluded(found)
        except Exception as failure:
            found.failure = failure  # said by `answer` (W2)
            return False
        assert data is not None, "it has committed"
        if self._variables.has_unreported:
            return False  # a setting was the block's alone, and `answer` says what was said
        self._say(found, data + _READY)
        return True

    def _begins(self, found: CommitFlight) -> None:
        if not found.began:
            found.began = perf_counter()
            self._activity.running(found.text)

    def _say(self, found: CommitFlight, data: bytes) -> None:
        self._client.drop(found.flight)
        self._client.send_encoded(found.prefix + data)
        if found.portal is None:
            self._statements.drop("")
        logging = self._variables.logging
        if logging is not None:
            spent = perf_counter() - found.began
            if 0 < logging.least_ms <= 1_000 * spent:
                self._log.answered(found.flight, spent)

    def _concluded(self, found: CommitFlight) -> bytes | None:
        """What is said of one whose fate is known; None: nothing has happened (W1)."""
        if found.failure is not None:
            raise found.failure
        if found.said is None:
            work = found.work
            if isinstance(work, _Alone):
                found.said = self._written(found, work)
            else:
                assert work.commit is not None, "it was asked for"
                work.commit.conclude()
                self._portals.ended_at_once()
                found.said = self._ended(found, work)
        return found.said

    def _written(self, found: CommitFlight, work: _Alone) -> bytes | None:
        """The rows and the tag of a write."""
        try:
            done = work.write.conclude()
        except (LockBlocks, RequestRefused) as refused:
            self._left(refused)
            return None
        rows = done.affected if work.rows is None else work.rows
        tag = work.tag if work.rows is not None else f"{work.tag} {rows}"
        said = self._done(work.known, tag, rows, found.began)
        if work.shape is None:
            return said
        return work.shape.encoder.encode_values(cast("Sequence[Row]", done.returned)) + said

    def _left_behind(self, found: CommitFlight) -> Query | Execute:
        """The message that has failed; its portal tells the values."""
        if found.portal is None:
            return Query(found.text)
        prepared, values = found.portal
        if self._portals.may_replace_unnamed():
            portal = Portal(prepared, values, serial=self._transaction.serial)
            self._portals.replace_unnamed(portal)
        return Execute("", 0)

    # --- which flights --------------------------------------------------------------------------

    def _of_run(self, flight: BindFlight) -> CommitFlight | None:
        """One run of a prepared statement. Raises SqlError and others."""
        prepared = self._statements.get(flight.statement)
        if prepared is None:
            return None
        text = prepared.statement.text
        prefix = _BOUND_WITHOUT_ROWS if flight.described else _BOUND
        if self._transaction.in_block:
            if not isinstance(prepared.statement.node, ast.TransactionStmt):
                return None
            end = self._end_of_block(prepared.statement)
            if end is None:
                return None
            check_counts(flight.bind(), 0)
            return CommitFlight(flight, text, prefix, end, (prepared, ()))
        known = self._known.of_prepared(prepared, self._services.coordination.newest_catalog)
        if known is None or not known.writes:
            return None
        bind = flight.bind()
        check_counts(bind, len(known.types))
        values = decode_parameters(bind, known.types, self._variables)
        shape: ResultShape | None = None
        if known.write is not None and known.write.returning is not None:
            shape = known.shape(bind.result_formats, self._variables)
            prefix = _BOUND + shape.description if flight.described else _BOUND
        write = self._write(known, values, shape)
        return (
            None if write is None else CommitFlight(flight, text, prefix, write, (prepared, values))
        )

    def _of_query(self, flight: QueryFlight) -> CommitFlight | None:
        """A simple query. Raises SqlError and others."""
        text = flight.text
        if self._transaction.in_block:
            end = self._end_of_block(Statement(text, None, 0))
            return None if end is None else CommitFlight(flight, text, b"", end)
        if _IS_READ.match(text) is not None:
            return None
        filled = self._templates.known(text)
        known = None if filled is None else self._known.of_template(filled.template)
        if filled is None or known is None or not known.writes:
            return None
        shape: ResultShape | None = None
        if known.write is not None and known.write.returning is not None:
            shape = known.shape((), self._variables)
        prefix = b"" if shape is None else shape.description
        write = self._write(known, filled.values, shape)
        return None if write is None else CommitFlight(flight, text, prefix, write)

    # --- a write that is its whole transaction ---------------------------------------------------

    def _write(
        self, known: ShortStatement, values: tuple[Value, ...], shape: ResultShape | None
    ) -> _Alone | None:
        if self._transaction.read_only:
            return None
        if known.insert is not None:
            return self._insert(known, known.insert, values)
        assert known.write is not None, "a write outside of blocks has one of them"
        return self._change(known, known.write, values, shape)

    def _insert(
        self, known: ShortStatement, insert: BlindInsert, values: tuple[Value, ...]
    ) -> _Alone | None:
        """Rows for a table without keys."""
        transaction, runtime = self._transaction, insert.runtime
        given = None if runtime.moves_sequences else runtime.at_hand(self._services, transaction)
        found = None if given is None else insert.rows_and_size((*values, *given.values))
        if found is None:
            return None
        names = dependent_names(transaction, self._variables, known.bound, writes=True)
        insertion = Insertion(insert.table, *found, insert.encoder, names)
        write = WriteAlone(transaction, insertion)
        return _Alone(write, known, insert.tag, len(insertion.rows))

    def _change(
        self,
        known: ShortStatement,
        write: CompiledWrite,
        values: tuple[Value, ...],
        shape: ResultShape | None,
    ) -> _Alone | None:
        """Rows of a unique key."""
        transaction, runtime = self._transaction, write.runtime
        if write.only_locks or runtime.moves_sequences:
            return None
        given = runtime.at_hand(self._services, transaction)
        if given is None:
            return None
        names = dependent_names(transaction, self._variables, known.bound, writes=True)
        change = write.make((*values, *given.values), names)
        if change is None:
            return None
        return _Alone(WriteAlone(transaction, change), known, known.bound.tag, shape=shape)

    def _left(self, refused: LockBlocks | RequestRefused) -> None:
        """If nothing has happened, the general way may do better (W1); raises everything else, and
        what has interrupted the session meanwhile (X4 of `transaction.py`).
        """
        self._transaction.heed_interrupt()
        if isinstance(refused, RequestRefused):
            if refused.reason not in (RefusedReason.CONFLICT, RefusedReason.STALE):
                raise refused
            self._transaction.refused_shortly = True

    def _done(self, known: ShortStatement, tag: str, rows: int, began: float) -> bytes:
        """The statement has ended."""
        self._services.counters.completed(tag)
        if known.counted is not None:
            known.counted.add(began, perf_counter(), rows)
        return bytes(encode_backend(CommandComplete(tag)))

    # --- the end of a block ----------------------------------------------------------------------

    def _end_of_block(self, statement: Statement) -> _BlockEnd | None:
        """COMMIT or ROLLBACK, if that is all there is to do."""
        found = _END.fullmatch(statement.text)
        transaction = self._transaction
        if found is None or transaction.following.open or transaction.notifications:
            return None
        if transaction.changed_catalog or transaction.deferral.waiting:
            return None
        if found[1][0] not in "cCeE":
            return _BlockEnd(statement, "ROLLBACK", self._roll_back, None)
        commit = BlockCommit(transaction) if self._portals.may_end_at_once() else None
        return _BlockEnd(statement, "COMMIT", self._commit, commit)

    async def _commit(self) -> None:
        committed = await self._transaction.commit()
        assert committed, "no flight of a block that has failed is answered here"
        await self._portals.end()
        self._portals.keep()

    async def _roll_back(self) -> None:
        self._transaction.rollback()
        await self._portals.rolled_back()

    def _ended(self, found: CommitFlight, end: _BlockEnd) -> bytes:
        """The block has ended."""
        self._services.counters.completed(end.tag)
        counted = self._counting.of(end.statement)
        if counted is not None:
            counted.add(found.began, perf_counter(), 0)
        return bytes(encode_backend(CommandComplete(end.tag)))
