"""Batches of drivers: runs of one writing statement that stand behind each other are done at once.

    Bind Execute │ Bind Execute │ Bind Execute │ .. ─▶ sets of values ─▶ one batch ─▶ a tag each
      this one      have come, of the same statement    (`execution/dml/repeated_writes.py`)

INVARIANTS
  R1  a message is dropped only after the batch that it is part of has succeeded. Otherwise nothing
      has happened but this run's Bind, and all of them run message by message.
  R2  what is answered is what the messages one by one would be answered. A run whose values are
      wrong ends the batch before it.
"""

from collections.abc import Sequence
from time import perf_counter
from typing import Final

from pglast import ast

from coordinator.execution.context import Done, Services, StatementRuns
from coordinator.execution.dml.repeated_writes import RUNS_MAX
from coordinator.pgwire.flights import BindFlight
from coordinator.pgwire.messages import BindComplete, CommandComplete, NoData
from coordinator.session.bind_parameters import BatchDecoder, check_counts
from coordinator.session.client import Client
from coordinator.session.named_objects import PreparedStatements
from coordinator.session.portal import Portal, PreparedStatement
from coordinator.session.requests import Request
from coordinator.session.statement_counting import StatementCounting
from coordinator.session.statement_runner import StatementRunner
from coordinator.transaction.transaction import SessionTransaction
from coordinator.variables.variables import Variables
from sql.binder.resolve.type_names import latest_types
from sql.errors import SqlError
from sql.types.sql_type import Value

_WRITES: Final = (ast.InsertStmt, ast.UpdateStmt, ast.DeleteStmt)


class RepeatedRuns:
    """See the module."""

    def __init__(
        self,
        services: Services,
        client: Client,
        transaction: SessionTransaction,
        variables: Variables,
        runner: StatementRunner,
        statements: PreparedStatements,
        counting: StatementCounting,
    ) -> None:
        self._services = services
        self._client = client
        self._transaction = transaction
        self._variables = variables
        self._runner = runner
        self._statements = statements
        self._counting = counting
        self.singly = 0
        """How many runs of a batch that has failed are still to come, before the next Sync."""

    async def run(self, portal: Portal) -> bool:
        """Run a portal that was bound and not run, and the runs behind it; False: nothing has
        happened (R1).
        """
        if self.singly:
            self.singly -= 1
            return False
        prepared = portal.prepared
        if not isinstance(prepared.statement.node, _WRITES) or prepared.columns is not None:
            return False
        if not self._services.limits.short_writes or self._transaction.failed:
            return False
        logging = self._variables.logging
        if logging is not None and logging.is_each:
            return False  # each run has a record of its own (L2 of `statement_log.py`)
        began = perf_counter()
        runs, sets = self._following(prepared)
        if not runs:
            return False
        execution = self._runner.execution(portal.parameters)
        execution.runs = StatementRuns([portal.parameters, *sets])
        read = prepared.under(self._variables.binding_key)
        request = Request(read, prepared.declared, prepared.columns)
        tags = await self._runner.run_repeatedly(request, execution)
        if tags is None:
            self.singly = len(runs)
            return False
        self._transaction.grouped = True
        self._counting.count_batch(prepared.statement, execution, began, tags)
        portal.outcome, portal.finished = Done(tags[0]), True
        self._services.counters.completed(tags[0])
        self._client.send(CommandComplete(tags[0]))
        await self._answer(portal, list(zip(runs, sets, tags[1:], strict=False)))
        return True

    def _following(
        self, prepared: PreparedStatement
    ) -> tuple[Sequence[BindFlight], Sequence[tuple[Value, ...]]]:
        """The runs of the statement that come next, and their values (R2)."""
        catalog = self._services.coordination.newest_catalog
        types = latest_types(catalog, prepared.parameters)
        decoder = BatchDecoder(types, self._variables)
        runs: list[BindFlight] = []
        sets: list[tuple[Value, ...]] = []
        for run in self._client.runs(RUNS_MAX - 1):
            if self._statements.get(run.statement) is not prepared:
                break
            try:
                bind = run.bind()
                check_counts(bind, len(prepared.parameters))
                sets.append(decoder.decode(bind))
            except SqlError:
                break
            runs.append(run)
        return runs, sets

    async def _answer(
        self, portal: Portal, done: Sequence[tuple[BindFlight, tuple[Value, ...], str]]
    ) -> None:
        """The portal is then that of the last run, as if it had been bound anew."""
        for run, values, tag in done:
            self._client.drop(run)
            self._client.send(BindComplete())
            if run.described:
                self._client.send(NoData())
            self._services.counters.completed(tag)
            self._client.send(CommandComplete(tag))
            portal.parameters, portal.outcome = values, Done(tag)
        await self._client.relieve()
