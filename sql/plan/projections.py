"""Build projections: column references, rows with fewer or more columns, and the empty row."""

from collections.abc import Iterable, Mapping
from typing import Final

from sql.plan.nodes import ColumnRef, Expr, Plan, PlanColumn, Project, Values, output_columns

ONE_ROW: Final = Values((), ((),))
"""One row without columns: the input of a SELECT without FROM."""


def column_reference(column: PlanColumn) -> ColumnRef:
    """A reference to a column of the input."""
    return ColumnRef(column.id, column.type)


def column_references(columns: Iterable[PlanColumn]) -> tuple[ColumnRef, ...]:
    """References to several columns of the input."""
    return tuple(map(column_reference, columns))


def project_columns(plan: Plan, columns: tuple[PlanColumn, ...]) -> Plan:
    """The plan with only these of its columns; the plan itself if it has no others."""
    if output_columns(plan) == columns:
        return plan
    return Project(plan, columns, column_references(columns))


def is_column_selection(plan: Project) -> bool:
    """Whether a projection only passes on columns of its input (`project_columns()`)."""
    return plan.exprs == column_references(plan.columns)


def append_columns(plan: Plan, more: Mapping[PlanColumn, Expr]) -> Project:
    """The plan with more columns, computed from its own, appended to them."""
    passed = output_columns(plan)
    return Project(plan, (*passed, *more), (*column_references(passed), *more.values()))
