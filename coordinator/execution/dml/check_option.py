"""Enforce WITH CHECK OPTION on the rows that a statement writes through views.

INVARIANTS
  O1  no statement writes a row through a view with the option if the view does not show it: 44000.
  O2  as in PostgreSQL the check follows the table's own constraints; the error names the first row,
      and of its views the innermost.
"""

import pyarrow as pa

from coordinator.execution.context import Execution
from coordinator.execution.dml.statement_work import StatementEffects
from coordinator.execution.dml.transient_relations import (
    run_over_transient,
    transient_table,
    transient_view,
)
from coordinator.execution.row_text import failing_row
from sql.binder.stored.column_expressions import NEW_ROWS
from sql.errors import SqlError
from sql.plan.nodes import RelationId
from sql.statements.bound import Modify


class ViewCheckOptions:
    """The views that one part of a statement writes through."""

    def __init__(self, execution: Execution, modify: Modify, work: StatementEffects) -> None:
        self._execution = execution
        self._table = modify.table
        self._checks = modify.view_checks
        self._work = work

    async def check(self, batch: pa.RecordBatch) -> None:
        """Raises 44000 for the first row that a view does not show (O1, O2)."""
        checks = self._checks
        if checks is None or not batch.num_rows:
            return
        inputs = self._work.inputs(checks.tables)
        places = pa.array(range(batch.num_rows), pa.int64())
        new = RelationId(NEW_ROWS)
        inputs[new] = transient_view(new, transient_table([*batch.columns, places]))
        broken: list[tuple[int, int]] = []
        async for verdicts in run_over_transient(self._execution, checks.plan, inputs):
            rows: list[int] = verdicts.column(0).to_numpy().tolist()
            for number, column in enumerate(verdicts.columns[1:]):
                answers = zip(rows, column.to_pylist(), strict=True)
                broken += [(row, number) for row, allowed in answers if allowed is not True]
        if broken:
            row, number = min(broken)
            variables = self._execution.variables
            shown = failing_row(variables, self._table.columns, batch.slice(row, 1))
            message = f'new row violates check option for view "{checks.views[number]}"'
            raise SqlError("44000", message, detail=f"Failing row contains ({shown}).")
