"""Evaluate a subquery in an aggregate or window call only for the rows that FILTER leaves.

    sum((select ..)) filter (where c)  ─▶  sum(case when c then (select ..) end) filter (where c)

INVARIANTS
  F1  only an argument that has a subquery and may fail is changed: nothing looks at its value for
      other rows. A volatile condition guards nothing: it would be evaluated twice.
  F2  a condition that has a subquery itself becomes a column, to which both places refer.

Not here: arguments without subqueries (`guard_expressions.py`); the guard of the subquery in the
branch (`guard_branch_subqueries.py`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

from sql.plan.nodes import (
    Aggregate,
    ColumnId,
    Expr,
    GroupBy,
    Plan,
    PlanColumn,
    Window,
    WindowCall,
    output_columns,
)
from sql.plan.projections import append_columns, column_reference, project_columns
from sql.plan.traverse import (
    has_subquery,
    is_volatile_anywhere,
    plan_has_subquery,
    rewrite_inputs,
    rewrite_queries,
)
from sql.rewrite.column_ids import IdRange, range_of_column_ids
from sql.rewrite.failure_analysis import has_failing_subquery
from sql.rewrite.guard_expressions import may_fail, null_unless
from sql.rewrite.plan_facts import PlanFacts

_Filtered = TypeVar("_Filtered", Aggregate, WindowCall)


def guard_filtered_aggregates(plan: Plan, facts: PlanFacts, *, by_overflow: bool = True) -> Plan:
    """The plan with such calls guarded (F1). `by_overflow`: also what can only overflow."""
    if not facts.has_subquery or not facts.may_fail(by_overflow=by_overflow):
        return plan
    return _plan(plan, range_of_column_ids(IdRange.GUARD_FILTERED_AGGREGATES), by_overflow)


def _plan(plan: Plan, numbers: Iterator[int], by_overflow: bool) -> Plan:
    if not plan_has_subquery(plan):
        return plan
    made = rewrite_queries(plan, lambda part: _plan(part, numbers, by_overflow))
    calls = _Calls(numbers, by_overflow)
    if isinstance(made, GroupBy):
        found = tuple([calls.aggregate(call) for call in made.aggregates])
        told: Plan = replace(made, aggregates=found)
    elif isinstance(made, Window):
        told = replace(made, calls=tuple([calls.guarded(call) for call in made.calls]))
    else:
        return made
    if not calls.conditions:
        return told
    below = rewrite_inputs(told, lambda rows: append_columns(rows, calls.conditions))
    return project_columns(below, output_columns(made))


@dataclass(frozen=True, slots=True)
class _Calls:
    """Guards the calls of a node. `conditions`: those that become columns (F2)."""

    numbers: Iterator[int]
    by_overflow: bool
    conditions: dict[PlanColumn, Expr] = field(default_factory=dict[PlanColumn, Expr])

    def aggregate(self, call: Aggregate) -> Aggregate:
        """The call with its arguments and the keys of its order guarded."""
        made = self.guarded(call, *[key.expr for key in call.order])
        if made is call or made.filter is None:
            return call
        condition = made.filter
        order = [replace(key, expr=self._asked(key.expr, condition)) for key in call.order]
        return replace(made, order=tuple(order))

    def guarded(self, call: _Filtered, *more: Expr) -> _Filtered:
        """The call with its arguments guarded, if one of them or of those may fail."""
        condition = call.filter
        if condition is None or is_volatile_anywhere(condition):
            return call
        if not any(map(self._fails, (*call.args, *more))):
            return call
        if has_subquery(condition):
            column = PlanColumn(ColumnId(next(self.numbers)), "left", condition.type)
            self.conditions[column] = condition
            condition = column_reference(column)
        args = tuple([self._asked(arg, condition) for arg in call.args])
        return replace(call, args=args, filter=condition)

    def _asked(self, expr: Expr, condition: Expr) -> Expr:
        return null_unless(condition, expr) if self._fails(expr) else expr

    def _fails(self, expr: Expr) -> bool:
        if not has_subquery(expr):
            return False
        by = self.by_overflow
        return may_fail(expr, by_overflow=by) or has_failing_subquery(expr, by_overflow=by)
