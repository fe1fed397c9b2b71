"""Plans that short writes run row by row: what becomes of a row, and what RETURNING shows of it."""

from collections.abc import Sequence
from typing import Final, cast

import pyarrow as pa

from compute.access.bounded_plans import is_bounded
from compute.access.point_reads import scan_of
from compute.arrow import batch_schema
from compute.computed_values import LINEAR_BYTES_MAX, computed_values
from compute.reference.arrow import BatchMaker
from compute.reference.executor import PreparedPlan
from compute.reference.expressions import Row
from coordinator.core.short_writes.by_key import CannotEvaluate, RowValues
from coordinator.execution.dml.modify_part import NEW
from coordinator.execution.short_read import SHORT_TYPES
from sql.errors import SqlError
from sql.plan.nodes import Plan, output_columns
from sql.plan.system_columns import scans_versions
from sql.plan.traverse import is_volatile_plan
from sql.statements.bound import Modify, OutputColumn
from sql.types.sql_type import Value
from storage.types import OWN

_NO_IDENTITY: Final[tuple[Value, ...]] = ()


class RowPlan:
    """A bounded plan over one scan, run row by row (`compute/access/bounded_plans.py`), of rows
    whose computed values are short.
    """

    def __init__(self, plan: Plan) -> None:
        scan = scan_of(plan)
        self._plan = PreparedPlan(plan)
        self._values = computed_values(plan, LINEAR_BYTES_MAX)
        self._ordinals = scan.ordinals
        self._identity = _NO_IDENTITY if scan.identity is None else (str(OWN), 0)

    def row(self, parameters: Sequence[Value], values: RowValues) -> Row | None:
        """What becomes of a row; None if the plan leaves it out. Raises CannotEvaluate."""
        given = [cast("Value", values[ordinal]) for ordinal in self._ordinals]
        computed = self._values
        if computed is not None and not computed.are_few_in_rows(parameters, [given]):
            raise CannotEvaluate
        try:
            rows = self._plan.rows(parameters, [(*given, *self._identity)])
        except (SqlError, ArithmeticError, ValueError) as error:
            raise CannotEvaluate from error
        return rows[0] if rows else None


class ShownRows:
    """The columns of rows that a short statement shows."""

    def __init__(self, columns: tuple[OutputColumn, ...], plan: Plan) -> None:
        self.columns = columns
        shown = output_columns(plan)
        self._maker = BatchMaker([column.type for column in shown], batch_schema(shown))

    def table(self, rows: Sequence[RowValues]) -> pa.Table:
        """Rows that are shown, as an engine would answer them."""
        batch = self._maker.batch(cast("Sequence[Row]", rows))
        return pa.Table.from_batches([batch])


class ReturningPlan(ShownRows):
    """RETURNING over the rows of the statement's table: as they are now, or were when deleted."""

    def __init__(self, modify: Modify, plan: Plan) -> None:
        super().__init__(modify.columns, plan)
        self._plan = RowPlan(plan)

    def row(self, parameters: Sequence[Value], values: RowValues) -> RowValues:
        """What is shown of a row. Raises CannotEvaluate."""
        shown = self._plan.row(parameters, values)
        assert shown is not None, "RETURNING leaves out no row"
        return shown


def compile_row_plan(plan: Plan) -> RowPlan | None:
    """A plan that may run at the gather; None if it may not."""
    if not is_bounded(plan) or is_volatile_plan(plan):
        return None
    return RowPlan(plan)


def compile_returning(modify: Modify) -> ReturningPlan | None:
    """The statement's RETURNING; None if it needs the general way."""
    plan = modify.returning
    assert plan is not None, "the caller has looked"
    if modify.returning_old or modify.returning_tables or modify.xmins or modify.extras:
        return None
    if any(column.type.name not in SHORT_TYPES for column in modify.columns):
        return None
    if not is_bounded(plan) or is_volatile_plan(plan):
        return None
    scan = scan_of(plan)
    if scan.relation != NEW or scan.identity is not None or scans_versions(scan):
        return None
    return ReturningPlan(modify, plan)
