"""Answer short statements of blocks as their bytes come: BEGIN, reads and writes by key.

    flight ─▶ known statement? ─▶ snapshot ─▶ one step of the core ─▶ rows, tag, ReadyForQuery
                    └── anything in doubt ─▶ message by message, in `commands.py`

INVARIANTS
  Z1  in doubt nothing has happened but what the general way does once more: the transaction has
      begun, has its snapshot, holds a lock or has read what it will read.
  Z2  the unnamed portal is that of the last flight, as if it had come message by message.
  Z3  whatever has to wait is not answered here: COMMIT is `short_commits.py`'s.

The other invariants are those of `short_answers.py`. What the core does: `core/short_writes/`.
"""

import re
from collections.abc import Sequence
from time import perf_counter
from typing import Final, cast

from pglast import ast

from compute.reference.expressions import Row
from coordinator.core.messages.locks import LockRows
from coordinator.core.short_writes.by_key import WriteAnswer
from coordinator.execution.context import Done, Rows, Services, stream_table, tag_with_count
from coordinator.execution.name_dependencies import dependent_names
from coordinator.execution.short_read import ShortRead
from coordinator.execution.short_writes.compile import CompiledWrite
from coordinator.execution.short_writes.run import write_in_block
from coordinator.pgwire.codec import encode_backend
from coordinator.pgwire.flights import BindFlight
from coordinator.pgwire.messages import (
    BindComplete,
    CommandComplete,
    NoData,
    ReadyForQuery,
    TransactionStatus,
)
from coordinator.session.bind_parameters import check_counts, decode_parameters
from coordinator.session.known_statements import KnownStatements
from coordinator.session.named_objects import PreparedStatements
from coordinator.session.portal import Portal, PreparedStatement
from coordinator.session.portals import Portals
from coordinator.session.short_statement import ResultShape, ShortStatement
from coordinator.session.statement_counting import StatementCounting
from coordinator.session.statement_templates import StatementTemplates
from coordinator.transaction.transaction import SessionTransaction
from coordinator.variables.variables import Variables
from sql.catalog.catalog import Catalog
from sql.parser.parse import Statement
from sql.statements.session import TransactionControl, TransactionVerb
from sql.types.sql_type import Value

_BEGIN: Final = re.compile(r"\s*(begin|start\s+transaction)\s*;?\s*", re.IGNORECASE)

_WITHOUT_MODES: Final = TransactionControl(TransactionVerb.BEGIN)

_MAY_BE_SHORT: Final = (ast.SelectStmt, ast.InsertStmt, ast.UpdateStmt, ast.DeleteStmt)

_BOUND: Final = bytes(encode_backend(BindComplete()))
_NO_DATA: Final = bytes(encode_backend(NoData()))
_READY: Final = bytes(encode_backend(ReadyForQuery(TransactionStatus.IN_TRANSACTION)))


class ShortBlocks:
    """See the module. Every method answers with the bytes, or None (Z1)."""

    def __init__(
        self,
        services: Services,
        transaction: SessionTransaction,
        variables: Variables,
        statements: PreparedStatements,
        portals: Portals,
        templates: StatementTemplates,
        known: KnownStatements,
        counting: StatementCounting,
    ) -> None:
        self._services = services
        self._transaction = transaction
        self._variables = variables
        self._statements = statements
        self._portals = portals
        self._templates = templates
        self._known = known
        self._counting = counting
        self._began = 0.0
        """When the statement came that is looked at."""

    def begin(self, text: str) -> bytes | None:
        """BEGIN without modes, as a simple query outside of a block."""
        self._began = perf_counter()
        if _BEGIN.fullmatch(text) is None or not self._portals.may_replace_unnamed():
            return None
        self._portals.replace_unnamed(None)
        return bytes(encode_backend(CommandComplete(self._begun(text)))) + _READY

    def begin_prepared(self, flight: BindFlight, prepared: PreparedStatement) -> bytes | None:
        """The same, prepared."""
        self._began = perf_counter()
        text = prepared.statement.text
        if _BEGIN.fullmatch(text) is None or not self._portals.may_replace_unnamed():
            return None
        check_counts(flight.bind(), 0)
        tag = self._begun(text)
        self._keep_portal(prepared, (), Done(tag))
        return _done(flight, tag)

    def _begun(self, text: str) -> str:
        """Its tag."""
        self._transaction.begin_block(_WITHOUT_MODES)
        tag = "BEGIN" if text.lstrip()[:1] in "bB" else "START TRANSACTION"
        self._services.counters.completed(tag)
        if self._services.statistics.is_on:
            counted = self._counting.of(Statement(text, None, 0))
            if counted is not None:
                counted.add(self._began, perf_counter(), 0)
        return tag

    def run(self, flight: BindFlight) -> bytes | None:
        """One run of a prepared statement, in a block. Raises SqlError and others (Z1)."""
        self._began = perf_counter()
        prepared = self._statements.get(flight.statement)
        if prepared is None or not self._portals.may_replace_unnamed():
            return None
        if not isinstance(prepared.statement.node, _MAY_BE_SHORT):
            return None  # SET TRANSACTION, say, comes before the snapshot
        catalog = self._catalog()
        known = None if catalog is None else self._known.of_prepared(prepared, catalog)
        if known is None or (known.read is None and known.write is None):
            return None
        bind = flight.bind()
        check_counts(bind, len(known.types))
        values = decode_parameters(bind, known.types, self._variables)
        if known.write is not None:
            returning = known.write.returning
            if returning is None:
                answer = self._write(known, known.write, values)
                if answer is None:
                    return None
                tag = _tag(known, answer)
                self._keep_portal(prepared, values, Done(tag))
                return _done(flight, tag)
            # Before it writes: formats that the result cannot have are refused.
            shape = known.shape(bind.result_formats, self._variables)
            answer = self._write(known, known.write, values)
            if answer is None:
                return None
            found = self._returned(known, shape, answer)
            tag_of = tag_with_count(known.bound.tag)
            empty = Rows(returning.columns, stream_table(returning.table(())), tag_of)
        else:
            assert known.read is not None, "it is one or the other"
            shape = known.shape(bind.result_formats, self._variables)
            read = self._read(known, known.read, values, bind.result_formats)
            if read is None:
                return None
            found = read
            empty = Rows(known.read.columns, stream_table(known.read.no_rows), _selected)
        self._keep_portal(prepared, values, empty)
        return b"".join((_BOUND, shape.description if flight.described else b"", found, _READY))

    def query(self, text: str) -> bytes | None:
        """A simple query that is a template filled in, in a block. Raises SqlError and others."""
        self._began = perf_counter()
        if not self._portals.may_replace_unnamed():
            return None
        filled = self._templates.known(text)
        known = None if filled is None else self._known.of_template(filled.template)
        if filled is None or known is None:
            return None  # SET TRANSACTION, say, comes before the snapshot
        if self._catalog() is not self._services.coordination.newest_catalog:
            return None  # T2 of `literal_templates.py`
        answer: bytes | None = None
        if known.write is not None:
            answer = self._written(known, known.write, filled.values)
        elif known.read is not None:
            found = self._read(known, known.read, filled.values, ())
            shape = known.shape((), self._variables)
            answer = None if found is None else shape.description + found
        if answer is None:
            return None
        self._portals.replace_unnamed(None)
        return answer + _READY

    def _catalog(self) -> Catalog | None:
        """Of the block's snapshot, which is taken if it need not be waited for."""
        transaction = self._transaction
        if transaction.changed_catalog or transaction.past_is_open:
            return None
        # Asked for before the statement begins, which would forget that a lock was waited for.
        snapshot = transaction.snapshot_now()
        if snapshot is None:
            return None
        transaction.begin_statement()
        return snapshot.catalog

    def _written(
        self, known: ShortStatement, write: CompiledWrite, values: tuple[Value, ...]
    ) -> bytes | None:
        """What a simple query that writes is answered."""
        shape = None if write.returning is None else known.shape((), self._variables)
        answer = self._write(known, write, values)
        if answer is None:
            return None
        if shape is None:
            return bytes(encode_backend(CommandComplete(_tag(known, answer))))
        return shape.description + self._returned(known, shape, answer)

    def _write(
        self, known: ShortStatement, write: CompiledWrite, values: tuple[Value, ...]
    ) -> WriteAnswer | None:
        """How many rows it has changed, and what RETURNING shows."""
        transaction, limits = self._transaction, self._services.limits
        if transaction.inline.nbytes > limits.transaction_inline_bytes_max // 2:
            return None  # rows have to be moved to files
        if write.only_locks and not self._services.coordination.locks_are_sure(transaction.id):
            return None
        answer = write_in_block(
            self._services, transaction, self._variables, known.bound, write, values
        )
        if isinstance(answer, LockRows):
            return None
        if answer is not None:
            transaction.statements += 1
            self._services.counters.completed(_tag(known, answer))
            if known.counted is not None:
                known.counted.add(self._began, perf_counter(), answer.affected)
        return answer

    def _read(
        self,
        known: ShortStatement,
        read: ShortRead,
        values: tuple[Value, ...],
        formats: tuple[int, ...],
    ) -> bytes | None:
        """Its rows and its tag."""
        transaction = self._transaction
        names = dependent_names(transaction, self._variables, known.bound, writes=False)
        rows = read.rows_in_block(transaction.id, values, names)
        if rows is None:
            return None
        transaction.statements += 1
        shape = known.shape(formats, self._variables)
        tag = f"{read.tag} {len(rows)}"
        data = shape.encoder.encode_values(rows) + encode_backend(CommandComplete(tag))
        self._services.counters.completed(tag)
        if known.counted is not None:
            known.counted.add(self._began, perf_counter(), len(rows))
        return data

    def _returned(self, known: ShortStatement, shape: ResultShape, answer: WriteAnswer) -> bytes:
        """The rows of RETURNING and the tag."""
        tag = encode_backend(CommandComplete(_tag(known, answer)))
        try:
            rows = shape.encoder.encode_values(cast("Sequence[Row]", answer.returned))
        except Exception:
            # It has written, and must not do so again (Z1).
            self._transaction.fail()
            raise
        return b"".join((rows, tag))

    def _keep_portal(
        self, prepared: PreparedStatement, values: tuple[Value, ...], outcome: Done | Rows
    ) -> None:
        """Z2."""
        serial = self._transaction.serial
        portal = Portal(prepared, values, serial=serial, outcome=outcome, finished=True)
        self._portals.replace_unnamed(portal)


def _tag(known: ShortStatement, answer: WriteAnswer) -> str:
    return f"{known.bound.tag} {answer.affected}"


def _done(flight: BindFlight, tag: str) -> bytes:
    """The answer to a run without rows."""
    described = _NO_DATA if flight.described else b""
    return b"".join((_BOUND, described, encode_backend(CommandComplete(tag)), _READY))


_selected: Final = tag_with_count("SELECT")
