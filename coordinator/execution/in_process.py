"""Evaluate small plans in process with the reference engine, whole results at once.

INVARIANTS
  J1  work that may take long runs in a thread, and shares nothing with work on the event loop: by
      its plan and its parameters (`compute/plan_cost.py`), or by the values that functions read
      (`compute/computed_values.py`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

import pyarrow as pa

from compute.arrow import batch_schema
from compute.computed_values import ComputedValues, computed_values
from compute.executor import Run
from compute.identity_cache import REMEMBERED_NODES_MAX, IdentityCache
from compute.interruption import stoppable
from compute.plan_cost import has_large_parameters, is_large, may_run_long
from compute.reference.arrow import BatchMaker
from compute.reference.decoded_rows import DecodedRows
from compute.reference.executor import PreparedPlan, execute_plan
from compute.reference.expressions import Row
from compute.reference.support import (
    RowsAllowed,
    is_linear,
    refusal,
    refusal_of_functions,
    refusal_of_inputs,
    refusal_of_work,
    work_beyond_text,
)
from compute.simple_plans import only_scan
from coordinator.execution.context import Inputs
from sql.errors import not_supported
from sql.plan.constant_items import ConstantRows
from sql.plan.nodes import Const, Plan, PlanColumn, Scan, Values, output_columns
from sql.plan.traverse import has_more_nodes, plan_has_subquery
from sql.types.sql_type import SqlType, Value
from storage.threads import Threads

R = TypeVar("R")

_THREADS: Final = 2
"""For plans that may take long. More: they take more from everybody else. Fewer: they wait more."""


@dataclass(slots=True)
class _Known:
    """What is remembered of a plan.

    `prepared`: once it has run, if it is rows of constants and parameters, as in INSERT .. VALUES,
    or has one `scan` and nothing that belongs to one run, as DO UPDATE and RETURNING do.
    """

    plan: Plan
    refusal: str | None
    missing: str | None
    """The same if it touches few rows."""
    columns: Sequence[PlanColumn]
    schema: pa.Schema
    maker: BatchMaker
    work: int
    """See InProcess."""
    long: bool
    """Whether it may take long (J1)."""
    values: ComputedValues | None
    """What its functions read, if that may take long."""
    linear: bool
    scan: Scan | None
    prepared: PreparedPlan | None = None

    def may_take_long(self, run: Run) -> bool:
        """Whether a run of the plan is for a thread (J1)."""
        if self.long or has_large_parameters(run.parameters):
            return True
        values = self.values
        return values is not None and not values.are_few_in(run.parameters, run.inputs)

    def maker_for(self, schema: pa.Schema | None) -> BatchMaker:
        """What makes batches of its rows; None: its own schema. Remembered for the next run."""
        wanted = schema or self.schema
        if wanted is not self.maker.schema:
            self.maker = BatchMaker(_types(self.columns), wanted)
        return self.maker

    def rows(self, run: Run, decoded: DecodedRows) -> Sequence[Row]:
        """The rows of a run of the plan."""
        if self.prepared is None:
            constant = isinstance(self.plan, Values) and not plan_has_subquery(self.plan)
            if not constant and self.scan is None:
                return list(execute_plan(run.plan, run.inputs, run.parameters, decoded=decoded))
            self.prepared = PreparedPlan(self.plan)
        if self.scan is None:
            return self.prepared.rows(run.parameters)
        view = run.inputs[self.scan.relation]
        assert not view.files, "who runs a plan in process has refused files"
        return self.prepared.rows(run.parameters, decoded.rows(self.scan, view.inline))


class ReferenceInProcess:
    """Implements `execution.InProcess`. Remembers by identity which plans it can run, and how."""

    def __init__(self) -> None:
        self._known: IdentityCache[Plan, _Known] = IdentityCache()
        self._decoded = DecodedRows()
        self._threads = Threads(_THREADS, thread_name_prefix="long-plans")

    def refusal(
        self,
        plan: Plan,
        inputs: Inputs | None = None,
        allowed: RowsAllowed | None = None,
    ) -> str | None:
        """See InProcess."""
        known = self._knowledge(plan)
        refused = None
        if inputs is not None:
            refused = refusal_of_inputs(inputs, allowed, linear=known.linear)
        return refused or known.refusal

    def refusal_of_work(self, plan: Plan, inputs: Inputs, most: int) -> str | None:
        """See InProcess."""
        return refusal_of_work(plan, inputs, most) or self._knowledge(plan).missing

    def work(self, plan: Plan) -> int:
        """See InProcess."""
        return self._knowledge(plan).work

    def require(self, plan: Plan, what: str) -> None:
        """See InProcess."""
        if self._knowledge(plan).refusal is not None:
            raise not_supported(what)

    def _knowledge(self, plan: Plan) -> _Known:
        known = self._known.get(plan)
        if known is not None:
            return known
        columns = output_columns(plan)
        schema = batch_schema(columns)
        maker = BatchMaker(_types(columns), schema)
        if (rows := _constant_rows(plan)) is not None:
            # There may be many of them, and each look costs as much as they are.
            long = any(is_large(value) for row in rows for value in row)
            known = _Known(plan, None, None, columns, schema, maker, 0, long, None, True, None)
            return self._remembered(known)
        refused = refusal(plan)
        long = refused is None and may_run_long(plan)
        missing = None if refused is None else refusal_of_functions(plan)
        work = 0 if refused is not None else work_beyond_text(plan)
        linear, scan = is_linear(plan), only_scan(plan)
        values = None if missing is not None or long else computed_values(plan)
        return self._remembered(
            _Known(plan, refused, missing, columns, schema, maker, work, long, values, linear, scan)
        )

    def _remembered(self, known: _Known) -> _Known:
        if not has_more_nodes(known.plan, REMEMBERED_NODES_MAX):
            self._known.put(known.plan, known)
        return known

    async def value(self, plan: Plan) -> Value:
        """See InProcess."""
        (row,) = await self.rows(Run(plan, {}))
        return row[0]

    async def rows(self, run: Run) -> Sequence[Row]:
        """See InProcess."""
        known = self._known.get(run.plan) or self._knowledge(run.plan)
        if known.may_take_long(run):
            return await self.apart(partial(_rows_apart, run))
        return known.rows(run, self._decoded)

    async def answer(self, run: Run, schema: pa.Schema | None = None) -> pa.Table:
        """See InProcess."""
        # Nothing is remembered of large plans.
        known = self._known.get(run.plan)
        if known is not None and not known.may_take_long(run):
            return _table(known.maker_for(schema), known.rows(run, self._decoded))
        return await self.apart(partial(_apart, run, schema))

    async def apart(self, work: Callable[[], R]) -> R:
        """See InProcess."""
        return await stoppable(self._threads, work)


def _constant_rows(plan: Plan) -> Sequence[Row] | None:
    """The rows of VALUES of constants alone; None for any other plan."""
    if not isinstance(plan, Values):
        return None
    if isinstance(plan.rows, ConstantRows):
        return plan.rows.values
    rows: list[Row] = []
    for row in plan.rows:
        values = [expr.value for expr in row if isinstance(expr, Const)]
        if len(values) < len(row):
            return None
        rows.append(tuple(values))
    return rows


def _rows_apart(run: Run) -> Sequence[Row]:
    rows = _constant_rows(run.plan)
    return list(execute_plan(run.plan, run.inputs, run.parameters)) if rows is None else rows


def _apart(run: Run, schema: pa.Schema | None) -> pa.Table:
    rows = _rows_apart(run)
    columns = output_columns(run.plan)
    return _table(BatchMaker(_types(columns), schema or batch_schema(columns)), rows)


def _table(maker: BatchMaker, rows: Sequence[Row]) -> pa.Table:
    if not rows:
        return maker.schema.empty_table()
    return pa.Table.from_batches([maker.batch(rows)])


def _types(columns: Sequence[PlanColumn]) -> Sequence[SqlType]:
    return [column.type for column in columns]
