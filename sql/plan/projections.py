"""Build projections: column references, rows with fewer or more columns, and the empty row."""

from collections.abc import Iterable, Mapping
from typing import Final

from sql.plan.nodes import ColumnRef, Expr, Plan, PlanColumn, Project, Values, output_columns

ONE_ROW: Final = Values((), ((),))
"""One row without columns: the input of a SELECT without FROM."""


def reference(column: PlanColumn) -> ColumnRef:
    """A reference to a column of the input."""
    return ColumnRef(column.id, column.type)


def references_to(columns: Iterable[PlanColumn]) -> tuple[ColumnRef, ...]:
    """References to several columns of the input."""
    return tuple(map(reference, columns))


def only(plan: Plan, columns: tuple[PlanColumn, ...]) -> Plan:
    """The plan with only these of its columns; the plan itself if it has no others."""
    if output_columns(plan) == columns:
        return plan
    return Project(plan, columns, references_to(columns))


def is_selection(plan: Project) -> bool:
    """Whether a projection only passes on columns of its input (`only()`)."""
    return plan.exprs == references_to(plan.columns)


def beside(plan: Plan, more: Mapping[PlanColumn, Expr]) -> Project:
    """The plan with more columns, computed from its own, appended to them."""
    passed = output_columns(plan)
    return Project(plan, (*passed, *more), (*references_to(passed), *more.values()))
