"""Evaluate small plans in process with the reference engine, whole results at once.

INVARIANTS
  J1  work that may take long runs in a thread, and shares nothing with work on the event loop.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from compute.arrow import batch_schema
from compute.executor import Run
from compute.reference.arrow import BatchMaker
from compute.reference.executor import PreparedPlan, execute_plan, rows_in_memory
from compute.reference.expressions import Row
from compute.reference.support import (
    RowsAllowed,
    refusal,
    refusal_of_functions,
    refusal_of_inputs,
    refusal_of_work,
)
from compute.simple_plans import is_row_by_row
from coordinator.execution.context import Inputs
from coordinator.execution.plan_cost import has_large_parameters, may_run_long
from sql.errors import not_supported
from sql.plan.nodes import Filter, Plan, PlanColumn, Project, Scan, Values, output_columns
from sql.plan.traverse import has_more_nodes, plan_has_subquery
from sql.types.sql_type import SqlType, Value
from storage.threads import Threads

_REMEMBERED_MAX: Final = 2_000

_REMEMBERED_NODES_MAX: Final = 1_000
"""A longer plan is an INSERT of many rows, which is seldom run twice: remembering it would keep
all of its literals alive, and looking at it again costs less than running it."""

_THREADS: Final = 2
"""For plans that may take long. More: they take more from everybody else. Fewer: they wait more."""


@dataclass(slots=True)
class _Known:
    """What is remembered of a plan, which is kept so that its identity is not given to another.

    `prepared`: once it has run, if it is rows of constants and parameters, as in INSERT .. VALUES,
    or makes rows of rows one by one, as DO UPDATE and RETURNING do.
    """

    plan: Plan
    refusal: str | None
    missing: str | None
    """The same if it touches few rows."""
    columns: Sequence[PlanColumn]
    schema: pa.Schema
    maker: BatchMaker
    long: bool
    """Whether it may take long (J1)."""
    prepared: PreparedPlan | None = None

    def maker_for(self, schema: pa.Schema | None) -> BatchMaker:
        """What makes batches of its rows; None: its own schema. Remembered for the next run."""
        wanted = schema or self.schema
        if wanted is not self.maker.schema:
            self.maker = BatchMaker(_types(self.columns), wanted)
        return self.maker

    def rows(self, run: Run) -> Sequence[Row]:
        """The rows of a run of the plan."""
        scan = _scan_of(self.plan)
        if self.prepared is None:
            constant = isinstance(self.plan, Values) and not plan_has_subquery(self.plan)
            if not constant and (scan is None or not is_row_by_row(self.plan)):
                return list(execute_plan(run.plan, run.inputs, run.parameters))
            self.prepared = PreparedPlan(self.plan)
        if scan is None:
            return self.prepared.rows(run.parameters)
        rows = rows_in_memory(scan, run.inputs[scan.relation])
        return self.prepared.rows(run.parameters, rows)


class ReferenceInProcess:
    """Implements `execution.InProcess`. Remembers by identity which plans it can run, and how."""

    def __init__(self) -> None:
        self._known: dict[int, _Known] = {}
        self._threads = Threads(_THREADS, thread_name_prefix="long-plans")

    def refusal(
        self,
        plan: Plan,
        inputs: Inputs | None = None,
        allowed: RowsAllowed | None = None,
    ) -> str | None:
        """See InProcess."""
        refused = None if inputs is None else refusal_of_inputs(plan, inputs, allowed)
        return refused or self._refusal(plan)

    def refusal_of_work(self, plan: Plan, inputs: Inputs, most: int) -> str | None:
        """See InProcess."""
        refused = refusal_of_work(plan, inputs, most)
        if refused is not None:
            return refused
        self._refusal(plan)
        known = self._known.get(id(plan))
        if known is None or known.plan is not plan:
            return refusal_of_functions(plan)
        return known.missing

    def require(self, plan: Plan, what: str) -> None:
        """See InProcess."""
        if self._refusal(plan) is not None:
            raise not_supported(what)

    def _refusal(self, plan: Plan) -> str | None:
        known = self._known.get(id(plan))
        if known is not None and known.plan is plan:
            return known.refusal
        refused = refusal(plan)
        if has_more_nodes(plan, _REMEMBERED_NODES_MAX):
            return refused
        if len(self._known) >= _REMEMBERED_MAX:
            self._known.clear()
        columns = output_columns(plan)
        schema = batch_schema(columns)
        maker = BatchMaker(_types(columns), schema)
        long = refused is None and may_run_long(plan)
        missing = None if refused is None else refusal_of_functions(plan)
        self._known[id(plan)] = _Known(plan, refused, missing, columns, schema, maker, long)
        return refused

    def value(self, plan: Plan) -> Value:
        """See InProcess."""
        (row,) = execute_plan(plan, {}, ())
        return row[0]

    def evaluate(self, run: Run, schema: pa.Schema | None = None) -> pa.Table:
        """See InProcess."""
        known = self._known.get(id(run.plan))
        if known is None or known.plan is not run.plan:
            return _apart(run, schema)
        rows = known.rows(run)
        maker = known.maker_for(schema)
        return _table(maker, rows)

    async def answer(self, run: Run, schema: pa.Schema | None = None) -> pa.Table:
        """See InProcess."""
        known = self._known.get(id(run.plan))
        long = known is not None and known.plan is run.plan and known.long
        if not long and not has_large_parameters(run):
            return self.evaluate(run, schema)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, _apart, run, schema)


def _apart(run: Run, schema: pa.Schema | None) -> pa.Table:
    rows = list(execute_plan(run.plan, run.inputs, run.parameters))
    columns = output_columns(run.plan)
    return _table(BatchMaker(_types(columns), schema or batch_schema(columns)), rows)


def _table(maker: BatchMaker, rows: Sequence[Row]) -> pa.Table:
    if not rows:
        return maker.schema.empty_table()
    return pa.Table.from_batches([maker.batch(rows)])


def _types(columns: Sequence[PlanColumn]) -> Sequence[SqlType]:
    return [column.type for column in columns]


def _scan_of(plan: Plan) -> Scan | None:
    while isinstance(plan, Project | Filter):
        plan = plan.input
    return plan if isinstance(plan, Scan) else None
