"""Subqueries in the calls of windows are columns of the rows below.

    max(array(select ..)) over w  ─▶  max(c) over w  from (select .., array(select ..) as c from ..)

DuckDB writes some calls twice, max() of a list for one, and cannot do so with a subquery. Spark
has none in a window.

INVARIANTS
  W1  the columns of a node stay what they were, in their order.
"""

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Final

from sql.plan import (
    ColumnId,
    ColumnRef,
    Expr,
    Plan,
    PlanColumn,
    Project,
    Subquery,
    Window,
    output_columns,
)
from sql.traverse import (
    plan_has_subquery,
    rewritten_node,
    with_children,
    with_inputs,
    with_queries,
)

_FIRST: Final = 5 * 10**15
"""Of the numbers of columns that are made here, behind those of all others."""


def with_asked_windows(plan: Plan) -> Plan:
    """The plan with no subquery in a window's call."""
    return _plan(plan, count(_FIRST)) if plan_has_subquery(plan) else plan


def _plan(plan: Plan, numbers: Iterator[int]) -> Plan:
    made = with_queries(plan, lambda part: _plan(part, numbers))
    if not isinstance(made, Window):
        return made
    asked: dict[PlanColumn, Expr] = {}

    def within(expr: Expr) -> Expr:
        if not isinstance(expr, Subquery):
            return with_children(expr, within)
        column = PlanColumn(ColumnId(next(numbers)), "asked", expr.type)
        asked[column] = expr
        return ColumnRef(column.id, expr.type)

    told = rewritten_node(made, within)
    if not asked:
        return made
    below = _projected(made.input, asked)
    shown = output_columns(made)
    return Project(with_inputs(told, lambda _input: below), shown, tuple(map(_column, shown)))


def _projected(plan: Plan, more: Mapping[PlanColumn, Expr]) -> Project:
    """The rows with more columns."""
    shown = output_columns(plan)
    return Project(plan, (*shown, *more), (*map(_column, shown), *more.values()))


def _column(column: PlanColumn) -> ColumnRef:
    return ColumnRef(column.id, column.type)
