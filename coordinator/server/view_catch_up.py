"""Catch-up: bring materialized views that are behind up to date, and attach them.

    an exact interval has ended ─▶ due? ─▶ rows at T ─▶ commit: validated, attached
                                    ▲         ▲            │ lost: an input is written to
                                    │         │            ▼
                                    │         │      rows at T ─▶ commit, behind still
                                    │         │            ▼
                                    │         └─ again ── a unit of the lane adds what came since,
                                    └ in vain: later ─┘   and attaches the view

INVARIANTS
  C1  one view is computed at a time, by a transaction like any other: its commit attaches the view
      only if the inputs are as they were at T (V6 of `coordinator/core/views`).
  C2  it takes no lock on an input. A view that has lost its commit, since an input was written to,
      is computed and written without a proof that nothing has changed. Then a unit of its lane
      adds the rest and attaches it (N9 of `lane_gathering.py`). If the rest is too much for the
      budget of a unit, the view is written once more, by what has changed since: that is less each
      time. After `ROUNDS_MAX` rounds its inputs change faster than it can be followed.
  C3  a view that is left behind again soon, or that was not attached, waits twice as long as
      before, up to `LONGEST_PAUSE_S`. REFRESH does not wait.
  C4  an error of the query is kept for people to see, and is an end of nothing: writes go on, reads
      answer by the definition, and the view is tried again.
  C5  a view over views is computed from the tables below them. Stored rows of a view below are no
      input: they are not those of its query at all times, so their changes mean nothing.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Final

from compute.executor import EngineUnavailable
from coordinator.core.locking.modes import LockMode, LockWait, TableTag
from coordinator.core.messages.replies import Snapshot
from coordinator.core.views.deltas import ComputedRows
from coordinator.driver.coordination import LockBlocks, RequestRefused
from coordinator.driver.server_changes import SERVER
from coordinator.execution.context import Execution, Services
from coordinator.execution.name_dependencies import names_to_rest_on
from coordinator.execution.views.attempts import ViewAttempts
from coordinator.failures import engine_failure
from coordinator.pgwire.messages import Severity
from coordinator.session.requests import Identity
from coordinator.session.statement_binder import StatementBinder
from coordinator.transaction.transaction import SessionTransaction, StatementRestart
from coordinator.variables.variables import Variables
from sql.binder.stored.view_reads import follows_inputs
from sql.errors import SqlError
from sql.incremental.program import MaintenanceProgram
from sql.parser.parse import parse
from sql.statements.bound import RefreshMaterializedView
from sql.types.sql_type import quoted_name

log = logging.getLogger("meridian.views")

_DATABASE: Final = "meridian"
"""The name of the database that computes views; no definition may depend on it."""

_SETTINGS: Final = {"view_reads": "definition"}
"""Of the views below, the queries are read (C5)."""

_UNPROVED: Final = {"default_transaction_isolation": "repeatable read"}

FIRST_PAUSE_S: Final = 0.05
"""From the moment a view falls behind to the first try. Smaller: more is computed that the next
write makes useless."""
LONGEST_PAUSE_S: Final = 60.0
"""The longest pause. Larger: a view stays behind longer than its inputs make it."""
ROUNDS_MAX: Final = 5
"""How often the rest is made smaller before a unit has to do it in its budget. Larger: more is
computed for views that cannot be followed. Smaller: large views over busy inputs stay behind."""
CALM_S: Final = 5.0
"""A view that stays exact so long has calm inputs: its pauses begin small again."""


class _InputsChangeFaster(Exception):
    """C2: the rest was too much for a unit, however often it was made smaller."""

    def __init__(self, why: str) -> None:
        super().__init__(f"its inputs change faster than it can be followed: {why}")


class ViewCatchUp:
    """See the module. One task runs `run`."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._log = services.catch_up
        self._woken = asyncio.Event()
        self._stopped = False

    def wake(self) -> None:
        """Definitions or exact intervals have changed."""
        self._woken.set()

    def stop(self) -> None:
        """No view is tried any more."""
        self._stopped = True
        self._woken.set()

    async def run(self) -> None:
        """Until `stop`."""
        while not self._stopped:
            self._woken.clear()
            pause = await self._work()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._woken.wait()

    async def _work(self) -> float | None:
        """Try what is due; seconds until something is, None: nothing will be by itself."""
        loop = asyncio.get_running_loop()
        for oid in self._behind(loop.time()):
            known = self._log.views[oid]
            if self._stopped or known.due is None or known.due > loop.time():
                continue
            known.tried += 1
            known.last_error, known.has_failed = await self._try(oid, self._bring_up)
            if known.last_error is not None:
                why, pause = known.last_error, known.pause
                log.info("view %s stays behind for %.3g s at least: %s", oid, pause, why)
                self._log.told()
            # An exact view is found so by the next look, which the commit wakes.
            known.due = loop.time() + known.pause
            known.pause = min(2 * known.pause, LONGEST_PAUSE_S)
        for oid in self._without_program():
            known = self._log.views[oid]
            known.last_error, known.has_failed = await self._try(oid, self._put_program)
            self._log.told()
        waiting = [v.due for v in self._log.views.values() if v.due is not None]
        return max(0.0, min(waiting) - loop.time()) if waiting else None

    def _behind(self, now: float) -> list[int]:
        """The views that are behind, each with the time of its next try (C3)."""
        catalog = self._services.coordination.newest_catalog
        views = self._log.views
        known = {t.oid for t in catalog.named_tables.materialized.values() if follows_inputs(t)}
        for oid in [*views]:
            if oid not in known:
                del views[oid]
        for oid in known:
            view = views.setdefault(oid, ViewAttempts(FIRST_PAUSE_S))
            if oid in catalog.exact_views:
                if view.due is not None or not view.attached_at:
                    view.due, view.attached_at = None, now
                    view.attached += 1
                    view.last_error, view.has_failed, view.behind_since = None, False, None
                    self._log.told()
            elif view.due is None:
                if now - view.attached_at > CALM_S:
                    view.pause = FIRST_PAUSE_S
                view.due = now + view.pause
                view.behind_since = now
        return [oid for oid in known if oid not in catalog.exact_views]

    def _without_program(self) -> list[int]:
        """The exact views of which the core may not know how to maintain them, as after a start, or
        whose programs have never run.
        """
        exact = self._services.coordination.newest_catalog.exact_views
        known = self._log.upkeep
        return [
            oid
            for oid in self._log.views
            if oid in exact
            and not (
                oid in known
                and known[oid].computed_at == exact[oid].computed_at
                and (known[oid].is_warm or known[oid].strategy is None)
            )
        ]

    async def _try(
        self, oid: int, work: Callable[[int], Awaitable[None]]
    ) -> tuple[str | None, bool]:
        """Work on one view; why it came to nothing, and whether it has failed (C4)."""
        try:
            await work(oid)
        except (LockBlocks, StatementRestart):
            return "the view is locked", False
        except _InputsChangeFaster as error:
            return str(error), False
        except RequestRefused as refused:
            return f"{refused.sqlstate}: {refused}", not refused.sqlstate.startswith("40")
        except SqlError as error:
            return f"{error.sqlstate}: {error}", not error.sqlstate.startswith("40")
        except EngineUnavailable as error:
            told = engine_failure(error)
            return f"{told.sqlstate}: {told}", True
        except Exception as error:
            # A task boundary: the next try, and all other views, go on.
            log.exception("catch-up of a materialized view has failed")
            return f"XX000: {type(error).__name__}", True
        return None, False

    async def _bring_up(self, oid: int) -> None:
        """Compute and attach one view (C1, C2)."""
        upkeep = self._log.upkeep_of(oid)
        async with self._refreshing(oid, exact=False) as (execution, bound):
            if bound is None:
                return
            await self._compute(execution, bound)
            try:
                await execution.transaction.commit()
            except RequestRefused as refused:
                followed = isinstance(upkeep.program, MaintenanceProgram)
                if refused.sqlstate != "40001" or not followed:
                    raise
            else:
                return
        why = ""
        for _ in range(ROUNDS_MAX):
            try:
                await self._follow(oid)
            except RequestRefused as refused:
                if refused.sqlstate != "40001":
                    raise
                why = str(refused)
            else:
                return
        because = "" if upkeep.because is None else f": {upkeep.because}"
        raise _InputsChangeFaster(why + because)

    async def _compute(self, execution: Execution, bound: RefreshMaterializedView) -> None:
        """Write the rows of a view, in a transaction that nobody else's change of them passes."""
        # A server starts without it.
        from coordinator.execution.create_table_as import execute_refresh

        tag = TableTag(bound.table.oid)
        free = await execution.transaction.lock(tag, LockMode.ROW_EXCLUSIVE, wait=LockWait.NO)
        if not free.granted:
            raise StatementRestart
        await execute_refresh(execution, bound, _TAG)

    async def _follow(self, oid: int) -> None:
        """Write the rows as of some timestamp, which is held until the attach (C2). Raises
        RequestRefused: a unit could not do the rest in time, or the rows have changed.
        """
        from coordinator.execution.views.attach import exact_view, put_program

        coordination, upkeep = self._services.coordination, self._log.upkeep_of(oid)
        hold = coordination.begin(SERVER, read_only=True)
        try:
            async with self._refreshing(oid, exact=False, proves=False) as (execution, bound):
                if bound is None or bound.source is None:
                    return
                transaction, table = execution.transaction, bound.table
                await self._compute(execution, bound)
                ts = await transaction.timestamp([table])
                await coordination.snapshot(hold, as_of=ts)
                await self._warm(execution, bound)
                exact = exact_view(execution.catalog(), table, ts)
                await transaction.commit()
            rows = ComputedRows(exact, max(ts, transaction.commit_ts or ts))
            upkeep.computed = rows
            put_program(self._services, table, exact, bound.source)
            await coordination.followed_views.attach(oid, rows)
        finally:
            coordination.abort(hold)

    async def _put_program(self, oid: int) -> None:
        """Derive how commits maintain an exact view, as its attach has done before a restart."""
        from coordinator.execution.views.attach import put_program

        async with self._refreshing(oid, exact=True) as (execution, bound):
            if bound is None or bound.source is None:
                return
            exact = execution.catalog().exact_views[oid]
            # A commit that comes during the first run is better late than without a program.
            put_program(self._services, bound.table, exact, bound.source)
            await self._warm(execution, bound)

    async def _warm(self, execution: Execution, bound: RefreshMaterializedView) -> None:
        """Run the program of a view once, so that no commit waits for the first run."""
        from coordinator.execution.views.rehearsal import rehearse_view

        if bound.source is not None:
            await rehearse_view(execution, bound.table, bound.tables, bound.source)

    @asynccontextmanager
    async def _refreshing(
        self, oid: int, *, exact: bool, proves: bool = True
    ) -> AsyncGenerator[tuple[Execution, RefreshMaterializedView | None]]:
        """REFRESH of a view that is, or is not, exact, in a transaction that is dropped at the end;
        None: the view is otherwise by now. `proves`: its commit proves that no input has changed.
        """
        services = self._services
        settings = _SETTINGS if proves else _SETTINGS | _UNPROVED
        variables = Variables(user="meridian", defaults=settings)
        transaction = SessionTransaction(services.coordination, services.clock, SERVER, variables)
        transaction.settle = _nothing_deferred
        execution = Execution(services, transaction, variables, _unheard)
        binder = StatementBinder(execution, Identity(_DATABASE, 0))
        try:
            transaction.begin_statement()
            snapshot = await transaction.snapshot()
            is_exact = oid in snapshot.catalog.exact_views
            bound = None
            if is_exact is exact:
                bound = await self._bound(binder, execution, snapshot, oid)
            yield execution, bound
        finally:
            if transaction.is_open:
                transaction.restart()

    async def _bound(
        self, binder: StatementBinder, execution: Execution, snapshot: Snapshot, oid: int
    ) -> RefreshMaterializedView | None:
        """REFRESH of the view, without a comparison; None: it is gone."""
        catalog = snapshot.catalog
        table = catalog.by_oid(oid)
        if table is None or not follows_inputs(table):
            return None
        (statement,) = parse(f"{_TAG} {quoted_name(table.schema)}.{quoted_name(table.name)}")
        prepared = await binder.bound(statement, catalog, (), ts=snapshot.ts)
        if prepared.fails is not None:
            raise prepared.fails
        execution.planned = prepared, catalog
        execution.bind_context = partial(binder.context, catalog, ts=snapshot.ts)
        execution.rest_on(names_to_rest_on(execution, prepared, writes=True))
        bound = prepared.bound
        assert isinstance(bound, RefreshMaterializedView), "C1: it is a REFRESH"
        return replace(bound, difference=None)


_TAG: Final = "REFRESH MATERIALIZED VIEW"


async def _nothing_deferred() -> None:
    """REFRESH writes to no table with constraints that wait."""


def _unheard(_error: SqlError, _severity: Severity) -> None:
    """Nobody listens."""
