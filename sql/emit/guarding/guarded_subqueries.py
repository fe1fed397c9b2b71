"""A subquery is computed only for rows that ask for it: DuckDB computes it for all.

    case when v <> 0 then (select 10/t.v) end
      ─▶  case when v <> 0 then (select case when v <> 0 then 10/t.v end where v <> 0) end

INVARIANTS
  S1  within a subquery of a branch, what may fail stands in a CASE of the branch's condition, and
      no row is left for the others: what it answers for them is never looked at.
  S2  a subquery that refers to no row does not become one that does: DuckDB would run it for each
      (`asked_subqueries.py`). One that is volatile has one answer for all rows.
  S3  a condition that is volatile, or has subqueries itself, guards nothing; most that have become
      columns first (`condition_columns.py`).
  S4  Spark joins by what a subquery compares with the row, and looks at all pairs of rows if one
      that does not aggregate is guarded: there, only those that do are, for more than overflows,
      and, once a text is written of it, without what is nested in them: that would come to refer to
      a query further out.

Not here: FILTER, and operands without subqueries (`guards.py`); values that are not computed in
their subquery at all (`outside_values.py`).
"""

from collections.abc import Sequence
from dataclasses import replace

from sql.conditions import all_of, asked_behind
from sql.emit.guarding.guards import guarded_value, itself_may_fail, may_fail
from sql.emit.guarding.outside_values import made_outside, of_outer_row
from sql.plan import (
    Call,
    Const,
    Expr,
    Filter,
    GroupBy,
    Limit,
    Plan,
    Project,
    Recursive,
    Sort,
    Subquery,
    SubqueryKind,
    Values,
    With,
)
from sql.renumbering import free_columns
from sql.traverse import (
    has_subquery,
    inputs,
    is_volatile_expression,
    is_volatile_plan,
    plan_expressions,
    rewritten_node,
    subqueries,
    with_children,
    with_inputs,
)


def guarded(expr: Expr, *, by_key: bool = False) -> Expr:
    """CASE, COALESCE, AND and OR with subqueries that fail only where they are asked (S1).
    `by_key`: S4.
    """
    if isinstance(expr, Subquery):
        return made_outside(expr) if by_key else of_outer_row(expr)
    found = asked_behind(expr)
    if not found or not any(has_subquery(part) for part, _ in found):
        return expr
    rest = iter(found)
    return with_children(expr, lambda _: under(*next(rest), by_key=by_key, nested=not by_key))


def may_fail_for_others(expr: Expr) -> bool:
    """Whether there is a subquery in it that may fail for rows that do not ask for it."""
    return any(
        any(map(may_fail, inner.args)) or may_fail_anywhere(inner) for inner in subqueries(expr)
    )


def may_fail_anywhere(expr: Subquery, *, by_overflow: bool = True) -> bool:
    """Whether running it may end in an error, as far as this can be told."""
    return has_several(expr) or plan_may_fail(expr.plan, by_overflow=by_overflow)


def plan_may_fail(plan: Plan, *, by_overflow: bool = True) -> bool:
    """Whether something that the plan computes may fail."""
    exprs = plan_expressions(plan)
    plans = [*inputs(plan), *(inner.plan for expr in exprs for inner in subqueries(expr))]
    return any(may_fail(expr, by_overflow=by_overflow) for expr in exprs) or any(
        plan_may_fail(part, by_overflow=by_overflow) for part in plans
    )


def guarded_subquery(expr: Subquery, condition: Expr, *, nested: bool = True) -> Subquery:
    """The subquery, which fails nowhere where the condition is not true (S1). `nested`: nor do
    subqueries within it.
    """
    plan = _guarded_plan(expr.plan, condition, nested=nested)
    return replace(expr, plan=Filter(plan, condition) if has_several(expr) else plan)


def _guarded_recursion(plan: Recursive, condition: Expr) -> Recursive:
    """Without rows to begin with no step is run. It does not come to refer to a row (S2)."""
    alone = isinstance(condition, Subquery) and not free_columns(condition.plan)
    if not alone:
        return plan
    return replace(plan, base=Filter(_guarded_plan(plan.base, condition, nested=True), condition))


def under(expr: Expr, conditions: Sequence[Expr], *, by_key: bool, nested: bool) -> Expr:
    """The expression with its subqueries guarded by conditions that all hold (S3)."""
    if not conditions or not has_subquery(expr):
        return expr
    if any(is_volatile_expression(part) or has_subquery(part) for part in conditions):
        return expr
    return _with_guard(expr, all_of(conditions), by_key=by_key, nested=nested)


def _with_guard(expr: Expr, condition: Expr, *, by_key: bool, nested: bool) -> Expr:
    if not isinstance(expr, Subquery):
        return with_children(
            expr, lambda part: _with_guard(part, condition, by_key=by_key, nested=nested)
        )
    # An engine computes what is looked for in a set for all rows.
    args = tuple(
        [
            guarded_value(_with_guard(arg, condition, by_key=by_key, nested=nested), condition)
            for arg in expr.args
        ]
    )
    several = has_several(expr)
    if by_key and (several or not free_columns(expr.plan)):
        return replace(expr, args=args)
    if by_key and not plan_may_fail(expr.plan, by_overflow=False):
        return replace(expr, args=args)
    if not may_fail_anywhere(expr) or not free_columns(expr.plan) or is_volatile_plan(expr.plan):
        return replace(expr, args=args)
    return replace(guarded_subquery(expr, condition, nested=nested), args=args)


def has_several(expr: Subquery) -> bool:
    """Whether it is a value and may have more than one row (21000)."""
    return expr.kind is SubqueryKind.SCALAR and not _is_one_row(expr.plan)


def _is_one_row(plan: Plan) -> bool:
    """Whether the plan has one row at most, by its form."""
    if isinstance(plan, Project | Sort | Filter):
        return _is_one_row(plan.input)
    if isinstance(plan, Limit):
        return isinstance(plan.limit, Const) and plan.limit.value in (0, 1)
    if isinstance(plan, Values):
        return len(plan.rows) < 2
    return isinstance(plan, GroupBy) and not plan.keys and plan.sets is None


def _guarded_plan(plan: Plan, condition: Expr, *, nested: bool) -> Plan:
    """What may fail, in a CASE of the condition. A WITH query may not refer to the row."""

    def wrapped(expr: Expr) -> Expr:
        if isinstance(expr, Subquery):
            if not nested:
                return expr
            args = tuple(map(wrapped, expr.args))
            return replace(guarded_subquery(expr, condition), args=args)
        if not may_fail(expr) and not has_subquery(expr):
            return expr
        if isinstance(expr, Call) and itself_may_fail(expr):
            return guarded_value(expr, condition)
        return with_children(expr, wrapped)

    if isinstance(plan, With):
        return replace(plan, input=_guarded_plan(plan.input, condition, nested=nested))
    if isinstance(plan, Recursive):
        return _guarded_recursion(plan, condition)
    below = with_inputs(plan, lambda part: _guarded_plan(part, condition, nested=nested))
    return below if isinstance(below, Limit) else rewritten_node(below, wrapped)
