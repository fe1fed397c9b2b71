"""Aggregates of a subquery that refers to the row outside have a row for every row outside, in
DuckDB, too.

    (select array_agg(m) from (select max(v) as m from u where u.k = t.k) q)
      ─▶  .. from (select case when true then c1 end as m from (select max(v) as c1 from u ..)) q

There is a row of `m` for each row of t, NULL where nothing is found. DuckDB joins the aggregates of
what it has found to the rows outside, and leaves those out for which there is nothing, if all that
is made of them above is NULL for NULL, and takes lists, windows, unions and joins for that as well.
CASE is not, and its optimizer takes it away after the joins are made.

INVARIANTS
  M1  a value that is made of the aggregates alone stays as it is: no row is as good as NULL.

Not here: Spark, which asks for such a row in other places (`one_row_subqueries.py`).
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Final

from sql.plan import (
    Case,
    ColumnId,
    ColumnRef,
    Const,
    GroupBy,
    Join,
    Plan,
    PlanColumn,
    Project,
    Subquery,
    SubqueryKind,
)
from sql.renumbering import free_columns
from sql.traverse import Rewrite, inputs, plan_has_subquery, with_queries
from sql.types import BOOL

_FIRST: Final = 3 * 10**15
"""Of the numbers of columns that are made here, behind those of all others."""


def with_made_rows(plan: Plan) -> Plan:
    """The plan with such aggregates in CASE."""
    return _plan(plan, count(_FIRST)) if plan_has_subquery(plan) or _has_lateral(plan) else plan


def _has_lateral(plan: Plan) -> bool:
    return (isinstance(plan, Join) and plan.lateral) or any(map(_has_lateral, inputs(plan)))


def _plan(plan: Plan, numbers: Iterator[int], *, is_value: bool = False) -> Plan:
    """`is_value`: of the plan of a value, and what only such values are made of (M1)."""

    def below(part: Plan) -> Plan:
        return _plan(part, numbers, is_value=is_value and isinstance(plan, Project))

    def subquery(expr: Subquery, within: Rewrite) -> Subquery:
        inner = _plan(expr.plan, numbers, is_value=expr.kind is SubqueryKind.SCALAR)
        return replace(expr, args=tuple(map(within, expr.args)), plan=inner)

    made = with_queries(plan, below, subquery)
    if is_value or not isinstance(made, GroupBy) or made.keys or made.sets is not None:
        return made
    return _in_case(made, numbers) if free_columns(made) else made


def _in_case(plan: GroupBy, numbers: Iterator[int]) -> Plan:
    found = tuple(
        [
            PlanColumn(ColumnId(next(numbers)), column.name, column.type)
            for column in plan.aggregate_columns
        ]
    )
    cases = [
        Case(
            ((Const(True, BOOL), ColumnRef(column.id, column.type)),),
            Const(None, column.type),
            column.type,
        )
        for column in found
    ]
    return Project(replace(plan, aggregate_columns=found), plan.aggregate_columns, tuple(cases))
