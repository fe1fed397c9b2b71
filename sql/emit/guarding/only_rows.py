"""The only row of a subquery is found by an aggregate, where something in it may fail.

    (select v from u where u.k = t.k and 10/v > 1)
      ─▶  (select only_value(v) from u where u.k = t.k and 10/v > 1)

Spark joins the rows of a subquery to the rows outside, and computes them for all that they might
be joined to. What aggregates it computes for rows that ask, and what guards that is no product.

INVARIANTS
  L1  only a subquery is changed that refers to rows outside, may have several rows, and computes
      what may fail otherwise than by overflow, but for what is computed outside of it.
  L2  `only_value` fails (21000) for several rows of those that its FILTER leaves. Conditions on the
      row outside guard it there: of those in WHERE, Spark asks some after it has aggregated.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from sql.conditions import all_of
from sql.emit.column_numbers import Pass, numbers_of
from sql.emit.guarding.outside_values import is_made_outside
from sql.emit.guarding.presumed_failures import has_several, plan_may_fail
from sql.functions import function_by_id
from sql.plan import Aggregate, ColumnId, Expr, GroupBy, Plan, Subquery, output_columns
from sql.projections import reference
from sql.renumbering import free_columns
from sql.traverse import Rewrite, plan_has_subquery, with_queries

_ONLY_VALUE: Final = "only_value(any)"


def with_only_rows(plan: Plan) -> Plan:
    """The plan with such aggregates (L1)."""
    return _plan(plan, numbers_of(Pass.ONLY_ROWS)) if plan_has_subquery(plan) else plan


def _plan(plan: Plan, numbers: Iterator[int]) -> Plan:
    def subquery(expr: Subquery, within: Rewrite) -> Subquery:
        made = replace(expr, args=tuple(map(within, expr.args)), plan=_plan(expr.plan, numbers))
        return replace(made, plan=_only_row(made.plan, numbers)) if _is_counted(made) else made

    return with_queries(plan, lambda part: _plan(part, numbers), subquery)


def _is_counted(expr: Subquery) -> bool:
    if not has_several(expr) or not free_columns(expr.plan):
        return False
    return plan_may_fail(expr.plan, by_overflow=False) and not is_made_outside(expr)


def _only_row(plan: Plan, numbers: Iterator[int]) -> GroupBy:
    (column,) = output_columns(plan)
    call = Aggregate(
        function_by_id(_ONLY_VALUE), (reference(column),), False, None, (), column.type
    )
    made = replace(column, id=ColumnId(next(numbers)))
    return GroupBy(plan, (), (), (made,), (call,))


def guarded_only_values(plan: Plan, condition: Expr) -> Plan:
    """The node, which does not fail for several rows where the condition is not true (L2)."""
    if not isinstance(plan, GroupBy):
        return plan
    return replace(plan, aggregates=tuple([_guarded(call, condition) for call in plan.aggregates]))


def _guarded(call: Aggregate, condition: Expr) -> Aggregate:
    if call.function.id != _ONLY_VALUE:
        return call
    before = () if call.filter is None else (call.filter,)
    return replace(call, filter=all_of((*before, condition)))
