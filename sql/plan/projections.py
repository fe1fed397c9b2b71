"""Columns of rows as expressions, the same rows with fewer or more columns, and a row of none."""

from collections.abc import Iterable, Mapping
from typing import Final

from sql.plan.nodes import ColumnRef, Expr, Plan, PlanColumn, Project, Values, output_columns

ONE_ROW: Final = Values((), ((),))
"""A row without columns: what SELECT without FROM is of."""


def reference(column: PlanColumn) -> ColumnRef:
    """A column of the rows below, as an expression."""
    return ColumnRef(column.id, column.type)


def references_to(columns: Iterable[PlanColumn]) -> tuple[ColumnRef, ...]:
    """The same of several."""
    return tuple(map(reference, columns))


def only(plan: Plan, columns: tuple[PlanColumn, ...]) -> Plan:
    """The rows with these columns of theirs; the plan itself if it has no others."""
    if output_columns(plan) == columns:
        return plan
    return Project(plan, columns, references_to(columns))


def is_selection(plan: Project) -> bool:
    """Whether it shows some of the columns of its rows, as they are (`only()`)."""
    return plan.exprs == references_to(plan.columns)


def beside(plan: Plan, more: Mapping[PlanColumn, Expr]) -> Project:
    """The rows with more columns behind theirs, made of what they have."""
    passed = output_columns(plan)
    return Project(plan, (*passed, *more), (*references_to(passed), *more.values()))
