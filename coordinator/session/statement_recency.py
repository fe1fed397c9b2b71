"""SET real_time_recency = on: a statement waits for all that upstream has, then takes its snapshot.

    bound ─▶ fed tables ─▶ their sources ─▶ read to upstream's position ─▶ snapshot ─▶ bound again

INVARIANTS
  Y1  whatever an upstream had committed before the statement came is in its snapshot. In a block
      the first snapshot is the only one, so the first statement names the sources; a later one that
      reads another source is refused.
  Y2  who holds leases does not wait (L2 of `core/leases.py`): they may be of the very tables that
      the source has to write.

Not here: the waiting itself (`core/sources/recency.py`).
"""

from collections.abc import Iterator

from coordinator.core.messages.identities import Isolation
from coordinator.core.messages.replies import Snapshot
from coordinator.execution.context import Execution
from coordinator.session.as_of import tables_read_by
from coordinator.session.requests import Request
from coordinator.session.statement_binder import StatementBinder
from coordinator.variables.special_checks import milliseconds
from sql.catalog.catalog import Catalog
from sql.catalog.sources import source_by_oid, sources_of_tables
from sql.errors import SqlError, not_supported
from sql.parser.parse import Statement
from sql.statements.bound import Explain, ParameterizedStatement


class StatementRecency:
    """See the module."""

    def __init__(self, execution: Execution, binder: StatementBinder) -> None:
        self._services = execution.services
        self._transaction = execution.transaction
        self._variables = execution.variables
        self._binder = binder
        self._ends = -1
        self._awaited: frozenset[int] = frozenset()

    @property
    def _is_on(self) -> bool:
        return self._variables.has_limits and self._variables.flag("real_time_recency")

    async def await_before_lease(self, request: Request, execution: Execution) -> None:
        """The same before the next attempt takes leases (Y2). Raises 57014."""
        await self.await_upstreams(request, execution)
        execution.has_awaited = True

    async def await_upstreams(self, request: Request, execution: Execution) -> None:
        """Before the transaction's snapshot is taken. Raises 57014."""
        has_awaited, execution.has_awaited = execution.has_awaited, False
        if has_awaited or not self._is_on or request.statement.as_of is not None:
            return
        if self._transaction.has_chosen:
            return
        present = await self._transaction.present()
        request = self._binder.under(request, present.catalog)
        prepared = await self._binder.bound(request.statement, present.catalog, request.declared)
        wanted = frozenset(_sources_read(prepared, present.catalog))
        self._awaited, self._ends = wanted, self._transaction.ends
        if not wanted:
            return
        if self._variables.level[0] is not Isolation.STRICT_SERIALIZABLE:
            raise _not_strict()
        timeout_us = milliseconds(self._variables.get("real_time_recency_timeout")) * 1_000
        with self._transaction.waiting("Client", "RealTimeRecency"):
            await self._services.coordination.await_upstreams(sorted(wanted), timeout_us)

    def check(
        self, statement: Statement, prepared: ParameterizedStatement, snapshot: Snapshot
    ) -> None:
        """That all sources that the statement reads have been waited for (Y1)."""
        if not self._is_on or statement.as_of is not None:
            return
        wanted = dict.fromkeys(_sources_read(prepared, snapshot.catalog))
        if not wanted or self._transaction.pinned(()) is not None:
            return
        if self._variables.level[0] is not Isolation.STRICT_SERIALIZABLE:
            raise _not_strict()
        known = self._awaited if self._ends == self._transaction.ends else frozenset[int]()
        for oid in wanted:
            source = source_by_oid(snapshot.catalog, oid)
            if oid in known or source is None:
                continue
            message = f'the transaction has not waited for source "{source.name}"'
            hint = "Read its tables in the first statement, or SET real_time_recency = off."
            raise SqlError("55000", message, hint=hint)


def _not_strict() -> SqlError:
    return not_supported("real_time_recency without strict serializability")


def _sources_read(prepared: ParameterizedStatement, catalog: Catalog) -> Iterator[int]:
    bound = prepared.bound
    if isinstance(bound, Explain) and bound.runs is None:
        return
    yield from sources_of_tables(tables_read_by(bound), catalog)
