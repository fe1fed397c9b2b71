"""Run the statements of one session: snapshot, bind, execute; alone or inside a transaction.

    alone:  begin ─▶ [lease] ─▶ snapshot ─▶ bind ─▶ execute ─▶ commit ─▶ outcome
              ▲                                         conflict │
              └──────────────── start again ◀────────────────────┘
    inside:                    snapshot ─▶ bind ─▶ execute ─▶ outcome; the commit comes later

INVARIANTS
  A1  only a statement that is its whole transaction starts again by itself, and only while the
      client has seen nothing of it. Each attempt reads, binds and computes everything anew.
  A2  from the second attempt the statement holds the lease of every table it reads or writes, taken
      before its snapshot, so that it ends whoever writes or alters them. One that stores rows of a
      view that follows its inputs holds at most that of the view, which it attaches no more.
  A3  a statement is bound with the catalog of the timestamp that it reads at.
  A4  a statement that has waited for a lock begins again; its client has seen nothing of it. Alone
      it waits without a lease, and a conflict with those who were woken with it is no attempt.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from coordinator.core.messages.identities import ConnectionId
from coordinator.core.messages.replies import RefusedReason
from coordinator.core.transactions import VALIDATING
from coordinator.driver.coordination import LockBlocks, RequestRefused
from coordinator.execution.advisory_locks import give_back_left
from coordinator.execution.context import Done, Execution, Outcome
from coordinator.execution.dml.deferred_constraints import check_deferred, execute_set_constraints
from coordinator.execution.dml.repeated_writes import NotRepeatable, execute_repeatedly
from coordinator.execution.lock_table import take_table_locks
from coordinator.execution.modify import execute_compound, execute_modify
from coordinator.execution.name_dependencies import names_to_rest_on
from coordinator.execution.query import execute_query
from coordinator.execution.sequence_calls import evaluate_runtime_parameters
from coordinator.execution.settings import (
    execute_control,
    execute_notification,
    execute_set,
    execute_show,
)
from coordinator.execution.short_writes.run import run_short_write, run_short_write_in_block
from coordinator.execution.views.attach import note_computed
from coordinator.large_work import are_large_values, is_large_statement
from coordinator.session.as_of import as_of_timestamp, tables_of_other_timelines
from coordinator.session.requests import (
    Identity,
    Request,
    can_end_failed_block,
    check_not_concurrently,
    executed_statement,
    may_be_short_in_block,
    may_be_short_write,
    needs_catalog,
)
from coordinator.session.result_columns import check_promised_columns, keeps_promise
from coordinator.session.retries import (
    UNPROVED,
    StatementNotices,
    contended_tables,
    has_awaited_load,
    stores_followed_view,
)
from coordinator.session.statement_binder import StatementBinder
from coordinator.session.statement_past import StatementPast
from coordinator.session.statement_recency import StatementRecency
from coordinator.session.temporary_tables import (
    discard_temporary,
    drop_at_session_end,
    on_commit_drops,
)
from coordinator.session_errors import failed_transaction
from coordinator.transaction.transaction import StatementRestart
from sql.catalog.catalog import Catalog, Table
from sql.parser.meridian_nodes import ExplainTimestampNode
from sql.parser.parse import Statement
from sql.statements.bound import (
    BoundQuery,
    BoundStatement,
    CopyIn,
    CreateSchema,
    CreateTableAs,
    Definition,
    EmptyStatement,
    Modify,
    ModifyingWith,
    ParameterizedStatement,
    RefreshMaterializedView,
    Truncate,
)
from sql.statements.session import (
    Discard,
    Listen,
    Notify,
    ResetVariable,
    SetConstraints,
    SetVariable,
    ShowVariable,
    TransactionControl,
    Unlisten,
)
from sql.statements.timelines import AdvanceTimeline
from sql.types.sql_type import SqlType, Value
from storage.types import Timestamp

if TYPE_CHECKING:
    from coordinator.execution.copy import CopyStream

_NO_CATALOG: Final = Catalog()

_Writing: TypeAlias = (
    Modify | ModifyingWith | CreateTableAs | RefreshMaterializedView | Truncate | AdvanceTimeline
    | Definition
)  # fmt: skip


class StatementRunner:
    """See the module."""

    def __init__(self, execution: Execution, identity: Identity, copy: "CopyStream") -> None:
        self._template = execution
        self._services = execution.services
        self._transaction = execution.transaction
        self._variables = execution.variables
        self._identity = identity
        self._copy = copy
        self.binder = StatementBinder(execution, identity)
        self.arguments = self.binder.arguments
        self._past = StatementPast(execution, self.binder)
        self._recency = StatementRecency(execution, self.binder)
        self._notices = StatementNotices(execution.notice)
        self._transaction.settle = self._settle
        self._large: ParameterizedStatement | None = None

    # --- binding --------------------------------------------------------------------------------

    async def describe(
        self, statement: Statement, declared: tuple[SqlType | None, ...]
    ) -> ParameterizedStatement:
        """Bind for Parse; chooses no timestamp for the transaction."""
        if not needs_catalog(statement):
            empty = statement.node is None  # but may have been declared types of the client's own
            catalog = self._services.coordination.newest_catalog if empty else _NO_CATALOG
            prepared = await self.binder.bound(statement, catalog, declared, fixed=False)
            if self._transaction.failed and not empty and not can_end_failed_block(prepared.bound):
                raise failed_transaction()
            return prepared
        if self._transaction.failed:
            raise failed_transaction()
        await self._past.settle(statement, declared)
        snapshot = await self._transaction.present()
        if statement.as_of is not None and not isinstance(statement.node, ExplainTimestampNode):
            snapshot = await self._past.snapshot_if_known(
                statement, declared, self.execution(()), snapshot
            )
        return await self.binder.bound(statement, snapshot.catalog, declared, fixed=False)

    def check_allowed(self, statement: Statement, *, parameters: int = 0) -> None:
        """Raises 25P02 in a failed block, except for statements that may end it."""
        if not self._transaction.failed:
            return
        if statement.node is None or needs_catalog(statement) or parameters:
            raise failed_transaction()
        if not can_end_failed_block(self.binder.bind(statement, _NO_CATALOG, ()).bound):
            raise failed_transaction()

    def discarded(self, statement: Statement) -> Discard:
        """The bound DISCARD, DEALLOCATE or CLOSE."""
        bound = self.binder.bind(statement, _NO_CATALOG, ()).bound
        assert isinstance(bound, Discard), "asked for statements that discard only"
        return bound

    def take_large(self) -> ParameterizedStatement | None:
        """The last large statement that has run: it is freed elsewhere."""
        found, self._large = self._large, None
        return found

    # --- running --------------------------------------------------------------------------------

    async def run(self, request: Request, execution: Execution, *, alone: bool) -> Outcome:
        """Run one statement; `alone`: it is its whole transaction, commit included (A1)."""
        if not needs_catalog(request.statement):
            return await self._session_statement(request, execution, alone=alone)
        if self._transaction.failed:
            raise failed_transaction()
        execution.alone = alone
        self._notices.begin()
        if alone:
            return await self._run_alone(request, execution)
        check_not_concurrently(request.statement)
        outcome = await self._run_inside(request, execution)
        self._transaction.statements += 1
        return outcome

    async def insert_rows(
        self, request: Request, execution: Execution, *, alone: bool
    ) -> str | None:
        """Run an INSERT whose rows are `execution.runs`; None: nothing has happened, and its text
        says what is wrong (B2 of `repeated_writes.py`).
        """
        if not alone:
            tags = await self.run_repeatedly(request, execution)
            return None if tags is None else tags[0]
        execution.alone = True
        self._notices.begin()
        try:
            outcome = await self._run_alone(request, execution)
        except NotRepeatable:
            self._transaction.restart()
            return None
        assert isinstance(outcome, Done), "what is repeated gives no rows"
        return outcome.tag

    async def run_repeatedly(self, request: Request, execution: Execution) -> Sequence[str] | None:
        """Run one statement of a block for `execution.runs` at once: a tag for each of the first of
        them. None: nothing has happened, and they are to run one after the other (B2 of
        `repeated_writes.py`).
        """
        if self._transaction.failed:
            return None
        execution.alone = False
        self._notices.begin()
        try:
            outcome = await self._run_inside(request, execution)
        except NotRepeatable:
            self._begin_again()
            return None
        assert isinstance(outcome, Done), "what is repeated gives no rows"
        tags = (outcome.tag, *outcome.others)
        self._transaction.statements += len(tags)
        return tags

    async def _run_inside(self, request: Request, execution: Execution) -> Outcome:
        """A statement of a block. Nobody has seen anything of one that waited for a lock: it begins
        again, at the newest timestamp that its transaction may read at (A4).
        """
        again = False
        while True:
            try:
                short = await self._inside(request, execution, again)
                if short is not None:
                    return short
                outcome, _ = await self._attempt(request, execution, alone=False, again=again)
            except StatementRestart:
                self._begin_again()
                again = True
            else:
                self._transaction.keep_statement()
                await give_back_left(execution)
                return outcome

    def _begin_again(self) -> None:
        self._transaction.undo_statement()
        self._notices.begin_again()

    async def _session_statement(
        self, request: Request, execution: Execution, *, alone: bool
    ) -> Outcome:
        prepared = await self.binder.bound(request.statement, _NO_CATALOG, request.declared)
        execution.planned = prepared, _NO_CATALOG
        if self._transaction.failed and not can_end_failed_block(prepared.bound):
            raise failed_transaction()
        if request.statement.as_of is not None:
            return await self._begin_as_of(request, execution, prepared.bound)
        outcome = await self._execute(prepared, execution, None, alone=False)
        if alone and isinstance(prepared.bound, Listen | Unlisten | Notify):
            await self._transaction.commit()
        return outcome

    async def _begin_as_of(
        self, request: Request, execution: Execution, bound: BoundStatement
    ) -> Done:
        assert isinstance(bound, TransactionControl), "of these only BEGIN has a time"
        ts = await as_of_timestamp(
            request.statement,
            execution,
            lambda statement: self.binder.bind(statement, _NO_CATALOG, request.declared),
        )
        return await execute_control(execution, bound, (ts, request.statement.as_of_at_least))

    async def _write_shortly(self, request: Request, execution: Execution) -> Outcome | None:
        """The short way of a write that has been bound before, if it can be taken."""
        if execution.runs is not None or not may_be_short_write(request.statement):
            return None
        catalog = self._services.coordination.newest_catalog
        known = self._bound_before(request, execution, catalog)
        return None if known is None else await run_short_write(execution, known)

    async def _inside(self, request: Request, execution: Execution, again: bool) -> Outcome | None:
        """The same in a block, at its snapshot; SELECT FOR UPDATE of a row, too."""
        own = self._transaction
        if execution.runs is not None or not may_be_short_in_block(request.statement, own):
            return None
        own.begin_statement(again=again)
        known = self._bound_before(request, execution, (await own.snapshot()).catalog)
        return None if known is None else await run_short_write_in_block(execution, known)

    def _bound_before(
        self, request: Request, execution: Execution, catalog: Catalog
    ) -> ParameterizedStatement | None:
        """The statement as it was bound under this catalog, if that promises what it did."""
        if self.binder.under(request, catalog) is not request:
            return None
        setting = self.binder.setting(catalog, fixed=True)
        known = self._services.plans.known(request.statement, request.declared, setting=setting)
        if known is None or not keeps_promise(request.expected, known.bound):
            return None
        execution.planned = known, catalog
        return known

    async def _run_alone(self, request: Request, execution: Execution) -> Outcome:
        leased: tuple[Table, ...] | None = None
        attempts, again, waited = 1, False, False
        try:
            if (written := await self._write_shortly(request, execution)) is not None:
                return written
        except LockBlocks as blocks:
            waited = True
            await self._transaction.wait_for(blocks)
        while True:
            if leased is not None:
                await self._recency.await_before_lease(request, execution)
                await self._transaction.lease(leased)
            try:
                outcome, bound = await self._attempt(request, execution, alone=True, again=again)
                self._transaction.keep_statement()
                if isinstance(executed_statement(bound), _Writing):
                    await self._transaction.commit(single=True)
                    note_computed(execution)
                await give_back_left(execution)
                return outcome
            except StatementRestart:
                self._begin_again()
                leased, again = None, True
            except LockBlocks as blocks:
                leased, again, waited = None, True, True  # who waits holds no lease
                self._notices.begin_again()
                await self._transaction.wait_for(blocks)
            except RequestRefused as refused:
                if await has_awaited_load(self._services.coordination, self._transaction, refused):
                    continue
                again = refused.reason in (RefusedReason.CONFLICT, RefusedReason.STALE)
                if not again or (attempts == self._services.limits.attempts_max and not waited):
                    raise
                self._transaction.heed_interrupt()
                attempts, waited = attempts + (not waited), False
                self._services.counters.retries += 1
                self._notices.begin_again()
                leased, unproved = await self._contended(request)
                self._transaction.restart()
                if unproved and self._transaction.isolation in VALIDATING:
                    self._transaction.fix_modes()
                    execution.variables.set("transaction_isolation", UNPROVED, local=True)

    async def _contended(self, request: Request) -> tuple[tuple[Table, ...], bool]:
        """The tables of the statement as it is bound now, and whether it proves nothing (A2)."""
        snapshot = await self._transaction.present()
        request = self.binder.under(request, snapshot.catalog)
        prepared = await self.binder.bound(request.statement, snapshot.catalog, request.declared)
        bound = executed_statement(prepared.bound)
        return contended_tables(bound, snapshot.catalog), stores_followed_view(bound)

    async def _attempt(
        self, request: Request, execution: Execution, *, alone: bool, again: bool = False
    ) -> tuple[Outcome, BoundStatement]:
        self._transaction.begin_statement(again=again)
        if isinstance(request.statement.node, ExplainTimestampNode):
            return await self._past.explain(request, execution)
        await self._past.settle(request.statement, request.declared)
        await self._recency.await_upstreams(request, execution)
        snapshot = await self._transaction.snapshot()
        if not alone:
            self._transaction.begin_reads()
        if request.shapes is not None and request.shapes.catalog is not snapshot.catalog:
            raise NotRepeatable
        request = self.binder.under(request, snapshot.catalog, execution)
        as_of: Timestamp | None = None
        if request.statement.as_of is not None:
            snapshot = await self._past.snapshot(request, execution, snapshot)
            as_of = snapshot.ts
        prepared = await self.binder.bound(
            request.statement, snapshot.catalog, request.declared, ts=snapshot.ts
        )
        execution.is_large = is_large_statement(request.statement) or are_large_values(
            execution.parameters
        )
        self._large = prepared if execution.is_large else None
        if execution.runs is not None and request.shapes is not None:
            execution.runs.statements = [
                await self.binder.bound(statement, snapshot.catalog, types, ts=snapshot.ts)
                for statement, types in request.shapes.statements
            ]
        if execution.runs is not None:
            # An attempt before has come further.
            execution.parameters = execution.runs.sets[0]
        elsewhere = tables_of_other_timelines(prepared) if as_of is None else ()
        if elsewhere:
            # meridian_now() is of the timeline that the statement reads in.
            ts = await self._transaction.timestamp(elsewhere)
            prepared = await self.binder.bound(
                request.statement, snapshot.catalog, request.declared, ts=ts
            )
        check_promised_columns(request.expected, prepared.bound, self._variables)
        self._recency.check(request.statement, prepared, snapshot)
        execution.planned = prepared, snapshot.catalog
        execution.engines.clear()
        execution.bind_context = partial(self.binder.context, snapshot.catalog, ts=snapshot.ts)
        if prepared.supplied or prepared.filled or execution.filled:
            await evaluate_runtime_parameters(execution, prepared)
        if as_of is None and not (alone and isinstance(prepared.bound, BoundQuery)):
            # A lone query commits nothing.
            writes = isinstance(executed_statement(prepared.bound), _Writing | CopyIn)
            execution.rest_on(names_to_rest_on(execution, prepared, writes=writes))
        has_elements = isinstance(prepared.bound, CreateSchema) and bool(prepared.bound.elements)
        if has_elements:
            self._transaction.mark_statement()
        outcome = await self._execute(prepared, execution, as_of, alone=alone)
        if isinstance(prepared.bound, CreateSchema) and has_elements:
            await self._make_elements(request.statement, prepared.bound)
        if prepared.tells_timestamp:
            self._transaction.pin_snapshot()
        return outcome, prepared.bound

    async def _make_elements(self, statement: Statement, made: CreateSchema) -> None:
        """What CREATE SCHEMA makes in its schema, where names are looked for first."""
        self.binder.path_first = (made.name,)
        try:
            for place, node in enumerate(made.elements):
                # A text of its own, for the plan cache.
                element = replace(statement, text=f"{statement.text}\n-- {place}", node=node)
                await self._attempt(Request(element), self.execution(()), alone=False, again=True)
        finally:
            self.binder.path_first = ()

    async def _execute(
        self,
        prepared: ParameterizedStatement,
        execution: Execution,
        as_of: Timestamp | None,
        *,
        alone: bool,
    ) -> Outcome:
        if not alone:
            await take_table_locks(execution, prepared.planned)
        elif isinstance(prepared.planned, CopyIn | Truncate):
            # Rows that are copied come but once, and who truncates an empty table writes nothing:
            # they cannot wait when they commit.
            self._transaction.begin_reads()
            await take_table_locks(execution, prepared.planned)
        match prepared.planned:
            case BoundQuery() as query:
                return await execute_query(execution, query, as_of=as_of, tag=prepared.tag)
            case Modify() if execution.runs is not None:
                return await execute_repeatedly(execution, prepared, execution.runs)
            case Modify() as modify:
                return await execute_modify(execution, modify, prepared.tag)
            case ModifyingWith() as compound:
                return await execute_compound(execution, compound, prepared.tag)
            case TransactionControl() as control:
                return await execute_control(execution, control)
            case SetConstraints() as constraints:
                return await execute_set_constraints(execution, constraints)
            case SetVariable() | ResetVariable() as setting:
                return await execute_set(execution, setting)
            case ShowVariable() as show:
                return execute_show(execution, show)
            case Listen() | Unlisten() | Notify() as notification:
                return execute_notification(execution, notification, prepared.tag)
            case Discard() | EmptyStatement():
                return Done(prepared.tag)
            case utility:
                # A server starts without them, and imports them when it has started.
                from coordinator.execution.utility import execute_utility

                return await execute_utility(
                    execution, utility, prepared.tag, self._copy, as_of=as_of, alone=alone
                )

    async def _settle(self) -> None:
        execution = self.execution(())
        snapshot = await self._transaction.snapshot()
        execution.bind_context = partial(self.binder.context, snapshot.catalog, ts=snapshot.ts)
        await check_deferred(execution, self._transaction.deferral.waiting)
        if changes := on_commit_drops(snapshot.catalog, self._identity.temporary):
            self._services.coordination.change_catalog(self._transaction.id, changes)

    async def drop_temporary(self) -> None:
        """Drop the session's temporary relations: as part of its block, or at once."""
        coordination, own = self._services.coordination, self._identity.temporary
        if self._transaction.in_block:
            await discard_temporary(self._transaction, coordination, own)
        else:
            await drop_at_session_end(coordination, ConnectionId(self._identity.pid), own)

    def execution(self, parameters: tuple[Value, ...]) -> Execution:
        """An execution with these parameter values."""
        own = self._template
        say = self._notices.say
        return Execution(own.services, own.transaction, own.variables, say, parameters)
