"""The reference executor as sessions use it: whole answers at once, for small plans."""

from itertools import islice
from typing import Final

import pyarrow as pa

from compute.arrow import arrow_type
from compute.executor import Run
from compute.plan_nodes import nodes
from compute.reference import can_run, execute
from compute.reference_arrow import to_batch
from compute.reference_work import work
from sql.plan import Plan, output_columns

_REMEMBERED_MAX: Final = 2_000

_REMEMBERED_NODES_MAX: Final = 2_000
"""A longer plan is an INSERT of many rows, which is seldom run twice: remembering it would keep
all of its literals alive, and looking at it again costs less than running it."""

WORK_MAX: Final = 200_000
"""Rows that a plan may touch on the loop. More: a longer stall for everybody. Fewer: more constant
queries wait for the engine."""


class ReferenceInProcess:
    """Implements `execution.InProcess`. Remembers by identity which plans it can run."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Plan, bool]] = {}

    def can_run(self, plan: Plan) -> bool:
        """See InProcess."""
        known = self._known.get(id(plan))
        if known is not None and known[0] is plan:
            return known[1]
        answer = can_run(plan) and work(plan) <= WORK_MAX
        if _is_long(plan):
            return answer
        if len(self._known) >= _REMEMBERED_MAX:
            self._known.clear()
        # The plan is kept, so that its identity is not given to another one.
        self._known[id(plan)] = (plan, answer)
        return answer

    def evaluate(self, run: Run) -> pa.Table:
        """See InProcess."""
        rows = list(execute(run.plan, run.inputs, run.parameters))
        columns = output_columns(run.plan)
        if not rows:
            schema = pa.schema([pa.field(item.name, arrow_type(item.type)) for item in columns])
            return schema.empty_table()
        return pa.Table.from_batches([to_batch(rows, columns)])


def _is_long(plan: Plan) -> bool:
    return next(islice(nodes(plan), _REMEMBERED_NODES_MAX, None), None) is not None
