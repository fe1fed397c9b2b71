"""Answer short statements as their bytes come: no task is woken, and no transaction is begun.

    flight ─▶ known statement? ─▶ ShortRead.rows ─▶ DataRows, CommandComplete, ReadyForQuery
                    └── anything in doubt ─▶ message by message, in `commands.py`

INVARIANTS
  Y1  a flight is answered whole or not at all. In doubt nothing of it is taken, and nothing of the
      session has changed.
  Y2  a session answers here only while it waits for its client, outside of any transaction: all
      that it was sent before is answered, and its commits are acknowledged. So a read comes after
      them, and replies leave in the order of the statements.
  Y3  what is answered is what the general way would: the statement was bound under the present
      catalog and settings, and the client was promised these columns.

Not here: which queries are short (`execution/short_read.py`), bytes (`pgwire/flights.py`).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from compute.identity_cache import IdentityCache
from compute.reference.expressions import Row
from coordinator.core.messages import Isolation
from coordinator.execution.context import Services
from coordinator.execution.short_read import ShortRead, compile_short_read
from coordinator.pgwire.codec import encode_backend
from coordinator.pgwire.flights import BindFlight, QueryFlight
from coordinator.pgwire.messages import (
    BindComplete,
    CommandComplete,
    ReadyForQuery,
    TransactionStatus,
)
from coordinator.planning.literal_templates import Template
from coordinator.session.activity import Activity
from coordinator.session.bind_parameters import check_counts, decode_parameters
from coordinator.session.client import Client
from coordinator.session.named_objects import PreparedStatements
from coordinator.session.portal import PreparedStatement
from coordinator.session.short_statement import ResultShape, ShortStatement
from coordinator.session.statement_binder import StatementBinder
from coordinator.session.statement_templates import StatementTemplates
from coordinator.transaction.transaction import SessionTransaction
from coordinator.variables.variables import Variables
from sql.binder.resolve.type_names import latest_types
from sql.statements.bound import OutputColumn, ParameterizedStatement
from sql.types.sql_type import SqlType

_TEMPLATES_MAX: Final = 200
"""Of which a session remembers how they are answered."""

_IS_QUERY: Final = re.compile(r"\s*(?:select|values)\b", re.IGNORECASE)

_BOUND: Final = bytes(encode_backend(BindComplete()))
_READY: Final = bytes(encode_backend(ReadyForQuery(TransactionStatus.IDLE)))


@dataclass(frozen=True, slots=True)
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
        templates: StatementTemplates,
        binder: StatementBinder,
        activity: Activity,
    ) -> None:
        self._services = services
        self._client = client
        self._transaction = transaction
        self._variables = variables
        self._statements = statements
        self._templates = templates
        self._binder = binder
        self._activity = activity
        self._is_on = services.limits.short_reads
        self._of_templates: IdentityCache[Template, ShortStatement] = IdentityCache(_TEMPLATES_MAX)

    def answer(self) -> bool:
        """Answer the flight that comes next, if it is one; False: nothing has happened (Y1)."""
        flight = self._client.flight()
        if flight is None or not self._is_on or not self._may_answer():
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
        """Whether the session is in no transaction, and nothing waits to be said (Y2)."""
        transaction, variables = self._transaction, self._variables
        idle = not (transaction.has_begun or transaction.is_open or transaction.failed)
        if not idle or variables.has_limits or variables.has_unreported:
            return False
        return variables.level[0] is not Isolation.BOUNDED_STALENESS

    def _run(self, flight: BindFlight) -> _Answer | None:
        """One run of a prepared statement. Raises SqlError and others (Y1)."""
        prepared = self._statements.get(flight.statement)
        known = None if prepared is None else self._known(prepared)
        if prepared is None or known is None or known.read is None:
            return None
        bind = flight.bind()
        check_counts(bind, len(known.types))
        rows = known.read.rows(decode_parameters(bind, known.types, self._variables))
        if rows is None:
            return None
        shape = known.shape(bind.result_formats, self._variables)
        described = shape.description if flight.described else b""
        return _Answer(prepared.statement.text, _BOUND + described + _rows(known.read, shape, rows))

    def _query(self, text: str) -> _Answer | None:
        """A simple query that is a template filled in. Raises SqlError and others (Y1)."""
        filled = self._templates.known(text) if _IS_QUERY.match(text) is not None else None
        known = None if filled is None else self._known_template(filled.template)
        if filled is None or known is None or known.read is None:
            return None
        rows = known.read.rows(filled.values)
        if rows is None:
            return None
        shape = known.shape((), self._variables)
        return _Answer(text, shape.description + _rows(known.read, shape, rows))

    def _known_template(self, template: Template) -> ShortStatement | None:
        engine = self._variables.get("engine")
        known = self._of_templates.get(template)
        if known is None or known.engine != engine:
            bound = self._services.plans.known(
                template.statement, template.types, setting=template.setting
            )
            if bound is None:
                return None
            known = self._short(bound, template.columns, template.types, template.setting)
            self._of_templates.put(template, known)
        return known

    def _known(self, prepared: PreparedStatement) -> ShortStatement | None:
        """What is known of the statement now; None before the general way has bound it."""
        catalog = self._services.coordination.newest_catalog
        setting = self._binder.setting(catalog, fixed=True)
        known = prepared.short
        engine = self._variables.get("engine")
        if known is not None and known.setting == setting and known.engine == engine:
            return known
        if prepared.read is not None or prepared.statement.as_of is not None:
            return None
        plans = self._services.plans
        bound = plans.known(prepared.statement, prepared.declared, setting=setting)
        if bound is None:
            return None
        # A label of an enum may have come, or have another name, since it was prepared.
        types = latest_types(catalog, prepared.parameters)
        prepared.short = self._short(bound, prepared.columns, types, setting)
        return prepared.short

    def _short(
        self,
        bound: ParameterizedStatement,
        promised: tuple[OutputColumn, ...] | None,
        types: Sequence[SqlType],
        setting: tuple[object, ...],
    ) -> ShortStatement:
        engine = self._variables.get("engine")
        read = compile_short_read(bound, self._services)
        if read is not None and (read.columns != promised or not read.may_run_on(engine)):
            read = None
        return ShortStatement(setting, engine, tuple(types), read)


def _rows(read: ShortRead, shape: ResultShape, rows: Sequence[Row]) -> bytes:
    """The rows, their tag, and that the session is ready."""
    tag = encode_backend(CommandComplete(f"{read.tag} {len(rows)}"))
    return b"".join((shape.encoder.encode_values(rows), tag, _READY))
