"""Evaluate the default of lag() and lead() only for rows without such a neighbour.

    lag(v, n, 10/k) over w
      ─▶  case when n is null or t then l else 10/k end
            from (select .., lag(v, n) over w as l, lag(true, n) over w as t)

INVARIANTS
  D1  only a default that may fail is taken out of its call.
"""

from collections.abc import Iterator
from dataclasses import replace

from sql.functions.table import functions
from sql.plan.nodes import (
    BoolOp,
    Case,
    ColumnId,
    Const,
    Expr,
    IsTest,
    Logical,
    Plan,
    PlanColumn,
    Project,
    Test,
    Window,
    WindowCall,
    output_columns,
)
from sql.plan.projections import column_reference
from sql.plan.traverse import is_volatile_anywhere, rewrite_queries
from sql.rewrite.column_ids import IdRange, range_of_column_ids
from sql.rewrite.failure_analysis import has_failing_subquery
from sql.rewrite.guard_expressions import may_fail
from sql.rewrite.plan_facts import PlanFacts
from sql.types.sql_type import BOOL

_SHIFTS = ("lag", "lead")
_WITH_DEFAULT = 3


def guard_lag_lead_defaults(plan: Plan, facts: PlanFacts) -> Plan:
    """The plan, which evaluates such defaults above their windows (D1)."""
    return (
        _plan(plan, range_of_column_ids(IdRange.GUARD_LAG_LEAD_DEFAULTS))
        if facts.may_fail()
        else plan
    )


def _plan(plan: Plan, numbers: Iterator[int]) -> Plan:
    made = rewrite_queries(plan, lambda part: _plan(part, numbers))
    if not isinstance(made, Window) or not any(map(_fails, made.calls)):
        return made
    below = output_columns(made.input)
    columns, calls = list[PlanColumn](), list[WindowCall]()
    values: list[Expr] = [*map(column_reference, below)]
    for column, call in zip(made.columns, made.calls, strict=True):
        if not _fails(call):
            columns, calls = [*columns, column], [*calls, call]
            values.append(column_reference(column))
            continue
        shifted, there = _columns(column, numbers)
        columns, calls = [*columns, shifted, there], [*calls, *_without_default(call)]
        values.append(_value(call, shifted, there))
    rows = replace(made, columns=tuple(columns), calls=tuple(calls))
    return Project(rows, output_columns(made), tuple(values))


def _fails(call: WindowCall) -> bool:
    if call.function.name not in _SHIFTS or len(call.args) < _WITH_DEFAULT:
        return False
    _, offset, default = call.args
    volatile = is_volatile_anywhere(default) or is_volatile_anywhere(offset)
    return not volatile and (may_fail(default) or has_failing_subquery(default))


def _columns(column: PlanColumn, numbers: Iterator[int]) -> tuple[PlanColumn, PlanColumn]:
    shifted = replace(column, id=ColumnId(next(numbers)))
    return shifted, PlanColumn(ColumnId(next(numbers)), "there", BOOL)


def _without_default(call: WindowCall) -> tuple[WindowCall, WindowCall]:
    """The value in the row there, and true if there is one."""
    value, offset, _ = call.args
    named = functions(call.function.name)
    (shift,) = [row for row in named if len(row.args) == _WITH_DEFAULT - 1]
    shifted = replace(call, function=shift, args=(value, offset))
    return shifted, replace(shifted, args=(Const(True, BOOL), offset), type=BOOL)


def _value(call: WindowCall, shifted: PlanColumn, there: PlanColumn) -> Expr:
    _, offset, default = call.args
    found: Expr = IsTest(Test.IS_TRUE, column_reference(there), BOOL)
    if not isinstance(offset, Const) or offset.value is None:
        found = Logical(BoolOp.OR, (IsTest(Test.IS_NULL, offset, BOOL), found), BOOL)
    return Case(((found, column_reference(shifted)),), default, call.type)
