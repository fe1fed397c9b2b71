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

from typing import Final

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
from coordinator.session.short_statement import ShortStatement
from coordinator.session.statement_binder import StatementBinder
from coordinator.session.statement_templates import StatementTemplates
from coordinator.transaction.transaction import SessionTransaction
from coordinator.variables.variables import Variables
from sql.errors import SqlError
from sql.statements.bound import OutputColumn, ParameterizedStatement

_TEMPLATES_MAX: Final = 200
"""Of which a session remembers how they are answered."""

_BOUND: Final = bytes(encode_backend(BindComplete()))
_READY: Final = bytes(encode_backend(ReadyForQuery(TransactionStatus.IDLE)))


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
        self._of_templates: dict[int, tuple[Template, ShortStatement, str]] = {}

    def answer(self) -> bool:
        """Answer the flight that comes next, if it is one; False: nothing has happened (Y1)."""
        flight = self._client.flight()
        if flight is None or not self._is_on or not self._may_answer():
            return False
        match flight:
            case BindFlight():
                answer = self._run(flight)
            case QueryFlight(text=text):
                answer = self._query(text)
        if answer is None:
            return False
        self._client.drop(flight)
        self._client.send_encoded(answer)
        return True

    def _may_answer(self) -> bool:
        """Whether the session is in no transaction, and nothing waits to be said (Y2)."""
        transaction, variables = self._transaction, self._variables
        idle = not (transaction.has_begun or transaction.is_open or transaction.failed)
        if not idle or variables.has_limits or variables.has_unreported:
            return False
        return variables.level[0] is not Isolation.BOUNDED_STALENESS

    def _run(self, flight: BindFlight) -> bytes | None:
        prepared = self._statements.get(flight.bind.statement)
        if prepared is None:
            return None
        known = self._known(prepared)
        if known is None:
            return None
        read = known.read
        if read is None:
            return None
        try:
            check_counts(flight.bind, len(prepared.parameters))
            values = decode_parameters(flight.bind, prepared.parameters, self._variables)
            shape = known.shape(flight.bind.result_formats, self._variables)
        except SqlError:
            return None
        rows = read.rows(values)
        if rows is None:
            return None
        self._activity.answered(prepared.statement.text)
        described = shape.description if flight.described else b""
        tag = encode_backend(CommandComplete(f"{read.tag} {len(rows)}"))
        return b"".join((_BOUND, described, shape.encoder.encode_values(rows), tag, _READY))

    def _query(self, text: str) -> bytes | None:
        """A simple query that is a template filled in."""
        filled = self._templates.known(text)
        known = None if filled is None else self._known_template(filled.template)
        if filled is None or known is None or known.read is None:
            return None
        rows = known.read.rows(filled.values)
        if rows is None:
            return None
        self._statements.pop("", None)
        self._activity.answered(text)
        shape = known.shape((), self._variables)
        tag = encode_backend(CommandComplete(f"{known.read.tag} {len(rows)}"))
        return b"".join((shape.description, shape.encoder.encode_values(rows), tag, _READY))

    def _known_template(self, template: Template) -> ShortStatement | None:
        known = self._of_templates.get(id(template))
        if known is not None and known[0] is template:
            engine = self._variables.get("engine")
            return known[1] if engine == known[2] else None
        bound = self._services.plans.known(
            template.statement, template.types, setting=template.setting
        )
        if bound is None:
            return None
        read = self._compiled(bound, template.columns)
        made = ShortStatement(template.catalog, template.setting, read)
        if len(self._of_templates) >= _TEMPLATES_MAX:
            self._of_templates.clear()
        self._of_templates[id(template)] = template, made, self._variables.get("engine")
        return made

    def _known(self, prepared: PreparedStatement) -> ShortStatement | None:
        """What is known of the statement now; None before the general way has bound it."""
        catalog = self._services.coordination.newest_catalog
        setting = self._variables.binding_key
        known = prepared.short
        if known is not None and known.catalog is catalog and known.setting is setting:
            return known
        if prepared.read is not None or prepared.statement.as_of is not None:
            return None
        bound = self._services.plans.known(
            prepared.statement,
            prepared.declared,
            setting=self._binder.setting(catalog, fixed=True),
        )
        if bound is None:
            return None
        prepared.short = ShortStatement(catalog, setting, self._compiled(bound, prepared.columns))
        return prepared.short

    def _compiled(
        self, bound: ParameterizedStatement, promised: tuple[OutputColumn, ...] | None
    ) -> ShortRead | None:
        found = compile_short_read(bound, self._services)
        if found is None or found.columns != promised:
            return None
        if found.needs_engine and self._variables.get("engine") not in ("local", "auto"):
            return None
        return found
