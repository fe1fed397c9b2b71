"""Answer short statements as their bytes come: no task is woken, and no transaction is begun.

    flight ─▶ known statement? ─▶ ShortRead.rows ─▶ DataRows, CommandComplete, ReadyForQuery
                    └── anything in doubt ─▶ message by message, in `commands.py`

INVARIANTS
  Y1  a flight is answered whole or not at all. In doubt nothing of it is taken, and nothing of the
      session has changed.
  Y2  a session answers here only while it waits for its client: all that it was sent before is
      answered, and its commits are acknowledged. So a read comes after them, and replies leave in
      the order of the statements. What is in a block is answered by `short_blocks.py`.
  Y3  what is answered is what the general way would: the statement was bound under the present
      catalog and settings, and the client was promised these columns.
  Y4  nothing is answered here while the log has a record of each statement. If it has records of
      slow ones only, those that were slow here are among them (L2 of `statement_log.py`).

Flights that wait for a commit are those of `short_commits.py`.

Not here: which queries are short (`execution/short_read.py`), bytes (`pgwire/flights.py`).
"""

import re
from collections.abc import Sequence
from time import perf_counter
from typing import Final

from pglast import ast

from compute.reference.expressions import Row
from coordinator.core.messages.identities import Isolation
from coordinator.execution.context import Services
from coordinator.execution.short_read import ShortRead
from coordinator.pgwire.codec import encode_backend
from coordinator.pgwire.flights import BindFlight, Flight, QueryFlight
from coordinator.pgwire.messages import (
    BindComplete,
    CommandComplete,
    ReadyForQuery,
    TransactionStatus,
)
from coordinator.session.activity import Activity
from coordinator.session.bind_parameters import check_counts, decode_parameters
from coordinator.session.client import Client
from coordinator.session.known_statements import KnownStatements
from coordinator.session.named_objects import PreparedStatements
from coordinator.session.portals import Portals
from coordinator.session.short_blocks import ShortBlocks
from coordinator.session.short_commits import ShortCommits
from coordinator.session.short_statement import ResultShape, ShortStatement
from coordinator.session.statement_binder import StatementBinder
from coordinator.session.statement_counting import StatementCounting
from coordinator.session.statement_log import StatementLog
from coordinator.session.statement_templates import StatementTemplates
from coordinator.transaction.transaction import SessionTransaction
from coordinator.variables.variables import Variables
from storage.fast_dataclass import fast_dataclass

_IS_QUERY: Final = re.compile(r"\s*(?:select|values)\b", re.IGNORECASE)

_BOUND: Final = bytes(encode_backend(BindComplete()))
_READY: Final = bytes(encode_backend(ReadyForQuery(TransactionStatus.IDLE)))


@fast_dataclass(frozen=True, slots=True)
class _Answer:
    """The bytes of an answer, and the text that it is an answer to."""

    text: str
    data: bytes


class ShortAnswers:
    """See the module."""

    def __init__(
        self,
        services: Services,
        client: Client,
        transaction: SessionTransaction,
        variables: Variables,
        statements: PreparedStatements,
        portals: Portals,
        templates: StatementTemplates,
        binder: StatementBinder,
        activity: Activity,
        counting: StatementCounting,
        log: StatementLog,
    ) -> None:
        self._services = services
        self._client = client
        self._transaction = transaction
        self._variables = variables
        self._statements = statements
        self._templates = templates
        self._activity = activity
        self._log = log
        self._is_on = services.limits.short_reads
        self._counters = services.counters
        self._known = KnownStatements(services, variables, binder, counting)
        self._blocks = ShortBlocks(
            services, transaction, variables, statements, portals, templates, self._known, counting
        )
        self.commits = ShortCommits(
            services, client, transaction, variables, statements, portals, templates, self._known,
            counting, activity, log, self._may_answer,
        )  # fmt: skip

    def answer(self, flight: Flight) -> bool:
        """Answer the flight that comes next, if it is one; False: nothing has happened (Y1)."""
        logging = self._variables.logging
        if logging is None:
            return self._answer(flight)
        if logging.is_each:
            return False  # Y4
        began = perf_counter()
        answered = self._answer(flight)
        # Nearly all are quick, and a call for each would cost as much as to find that out.
        if answered and 0 < logging.least_ms <= 1_000 * (spent := perf_counter() - began):
            self._log.answered(flight, spent)
        return answered

    def _answer(self, flight: Flight) -> bool:
        if not self._is_on or not self._may_answer():
            return False
        try:
            match flight:
                case BindFlight():
                    answer = self._run(flight)
                case QueryFlight(text=text):
                    answer = self._query(text)
        except Exception:
            # Y1: whatever it is, the general way meets it again, and says it.
            return False
        if answer is None:
            return False
        self._client.drop(flight)
        self._client.send_encoded(answer.data)
        self._activity.answered(answer.text)
        if isinstance(flight, QueryFlight):
            self._statements.drop("")
        return True

    def _may_answer(self) -> bool:
        """Whether nothing waits to be done or said; outside of a block, if the session is in no
        transaction (Y2).
        """
        transaction, variables = self._transaction, self._variables
        if transaction.failed or variables.has_limits or variables.has_unreported:
            return False
        if not transaction.in_block and (transaction.has_begun or transaction.is_open):
            return False
        return variables.level[0] is not Isolation.BOUNDED_STALENESS

    def _run(self, flight: BindFlight) -> _Answer | None:
        """One run of a prepared statement. Raises SqlError and others (Y1)."""
        began = perf_counter()
        prepared = self._statements.get(flight.statement)
        if prepared is None:
            return None
        if self._transaction.in_block:
            return _answer(prepared.statement.text, self._blocks.run(flight))
        if isinstance(prepared.statement.node, ast.TransactionStmt):
            begun = self._blocks.begin_prepared(flight, prepared)
            return _answer(prepared.statement.text, begun)
        catalog = self._services.coordination.newest_catalog
        known = self._known.of_prepared(prepared, catalog)
        if known is None or known.read is None:
            return None
        bind = flight.bind()
        check_counts(bind, len(known.types))
        rows = known.read.rows(decode_parameters(bind, known.types, self._variables))
        if rows is None:
            return None
        shape = known.shape(bind.result_formats, self._variables)
        described = shape.description if flight.described else b""
        found = self._rows(known.read, shape, rows)
        self._count(known, began, len(rows))
        return _Answer(prepared.statement.text, _BOUND + described + found)

    def _query(self, text: str) -> _Answer | None:
        """A simple query that is a template filled in. Raises SqlError and others (Y1)."""
        began = perf_counter()
        if self._transaction.in_block:
            return _answer(text, self._blocks.query(text))
        if _IS_QUERY.match(text) is None:
            return _answer(text, self._blocks.begin(text))
        filled = self._templates.known(text)
        known = None if filled is None else self._known.of_template(filled.template)
        if filled is None or known is None or known.read is None:
            return None
        rows = known.read.rows(filled.values)
        if rows is None:
            return None
        shape = known.shape((), self._variables)
        found = self._rows(known.read, shape, rows)
        self._count(known, began, len(rows))
        return _Answer(text, shape.description + found)

    def _count(self, known: ShortStatement, began: float, rows: int) -> None:
        """A transaction of one read."""
        self._transaction.counts.commits += 1
        if known.counted is not None:
            known.counted.add(began, perf_counter(), rows)

    def _rows(self, read: ShortRead, shape: ResultShape, rows: Sequence[Row]) -> bytes:
        """The rows, their tag, and that the session is ready."""
        tag = f"{read.tag} {len(rows)}"
        done = encode_backend(CommandComplete(tag))
        data = b"".join((shape.encoder.encode_values(rows), done, _READY))
        self._counters.completed(tag)
        return data


def _answer(text: str, data: bytes | None) -> _Answer | None:
    return None if data is None else _Answer(text, data)
