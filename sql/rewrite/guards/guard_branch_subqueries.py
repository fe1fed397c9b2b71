"""Guard a subquery in a branch of CASE, AND or OR by the branch's condition.

    case when v <> 0 then (select 10/t.v) end
      ─▶  case when v <> 0 then (select case when v <> 0 then 10/t.v end where v <> 0) end

DuckDB computes the subquery for all rows, not only for those that demand it.

INVARIANTS
  S1  within a subquery of a branch, each expression that may fail stands in a CASE of the branch's
      condition, and no row is left for the others: nothing looks at the answer for them.
  S2  an uncorrelated subquery does not become correlated: it would be run for each row
      (`lazy_init_plans.py`). A volatile one has one answer for all rows.
  S3  a condition that is volatile, or has subqueries itself, guards nothing; most of those with
      subqueries have become columns first (`hoist_subquery_conditions.py`). Nor does a condition
      of very many parts guard.
  S4  Spark joins a subquery by the columns that it compares with the row. If it does not aggregate
      and its outputs are guarded, Spark looks at all pairs of rows. So for Spark such a subquery
      has no row for other rows, and nothing in it may fail: its value is computed outside, or by
      an aggregate (`aggregate_scalar_subqueries.py`). Overflows are not guarded.

Not here: FILTER, and operands without subqueries (`guard_filtered_aggregates.py`,
`guard_expressions.py`); values that are not computed in their subquery at all
(`hoist_failing_outputs.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from sql.plan.conditions import conjunction, flatten_conjuncts, guarded_operands
from sql.plan.nodes import (
    BoolOp,
    Call,
    Expr,
    Filter,
    Limit,
    Logical,
    Plan,
    Project,
    Recursive,
    Subquery,
    With,
)
from sql.plan.renumbering import free_columns
from sql.plan.traverse import (
    has_more_parts,
    has_subquery,
    is_volatile_expression,
    is_volatile_plan,
    rewrite_children,
    rewrite_inputs,
    rewrite_node,
)
from sql.rewrite.failure_analysis import may_have_several_rows, subquery_may_fail
from sql.rewrite.guard_expressions import call_may_fail, guarded_value, may_fail
from sql.rewrite.guards.aggregate_scalar_subqueries import with_guarded_only_value
from sql.rewrite.guards.hoist_failing_outputs import hoist_failing_output, hoist_outer_row_output
from sql.rewrite.plan_facts import PlanFacts

_PARTS_MAX: Final = 100
"""Of a condition. More: guards that guard the conditions of others within them grow without bound;
fewer: long lists of conditions guard nothing."""


def guard_branch_subqueries(plan: Plan, facts: PlanFacts, *, by_key: bool) -> Plan:
    """The plan with the subqueries in its branches guarded (S1). `by_key`: S4."""
    guarded = facts.has_subquery and facts.may_fail()
    return _Branches(by_key).plan(plan) if guarded else plan


@dataclass(frozen=True, slots=True)
class _Branches:
    """For which engine branches are guarded."""

    by_key: bool

    def plan(self, plan: Plan) -> Plan:
        """The plan with branches guarded at every level."""
        below = rewrite_inputs(plan, self.plan)
        # What is ANDed in WHERE guards in `guard_where_subqueries.py`; DuckDB makes joins of it.
        return rewrite_node(below, self._condition if isinstance(below, Filter) else self._within)

    def _condition(self, expr: Expr) -> Expr:
        if isinstance(expr, Logical) and expr.op is BoolOp.AND:
            return rewrite_children(expr, self._condition)
        return self._within(expr)

    def _within(self, expr: Expr) -> Expr:
        if not has_subquery(expr):
            return expr
        if not isinstance(expr, Subquery):
            return rewrite_children(self._guarded(expr), self._within)
        made = hoist_failing_output(expr) if self.by_key else hoist_outer_row_output(expr)
        if made is not expr:
            return self._within(made)
        args = tuple(map(self._within, expr.args))
        return replace(expr, args=args, plan=self.plan(expr.plan))

    def _guarded(self, expr: Expr) -> Expr:
        found = guarded_operands(expr)
        if not any(has_subquery(part) for part, _ in found):
            return expr
        rest = iter(found)
        return rewrite_children(
            expr, lambda _: guarded_by_conditions(*next(rest), by_key=self.by_key)
        )


def guarded_subquery(expr: Subquery, condition: Expr, *, by_key: bool = False) -> Subquery:
    """The subquery, which never fails where the condition is not true (S1). `by_key`: S4."""
    if by_key and may_have_several_rows(expr):
        return replace(expr, plan=_where(expr.plan, condition))
    plan = _guarded_plan(expr.plan, condition, by_key=by_key)
    return replace(expr, plan=Filter(plan, condition) if may_have_several_rows(expr) else plan)


def _guarded_recursion(plan: Recursive, condition: Expr) -> Recursive:
    """Without rows to begin with no step is run. It does not come to refer to a row (S2)."""
    alone = isinstance(condition, Subquery) and not free_columns(condition.plan)
    if not alone:
        return plan
    base = _guarded_plan(plan.base, condition, by_key=False)
    return replace(plan, base=Filter(base, condition))


def guarded_by_conditions(expr: Expr, conditions: Sequence[Expr], *, by_key: bool) -> Expr:
    """The expression with its subqueries guarded by conditions that all hold (S3)."""
    if not conditions or not has_subquery(expr):
        return expr
    if any(is_volatile_expression(part) or has_subquery(part) for part in conditions):
        return expr
    if any(has_more_parts(part, _PARTS_MAX) for part in conditions):
        return expr
    return _with_guard(expr, conjunction(conditions), by_key=by_key)


def _with_guard(expr: Expr, condition: Expr, *, by_key: bool) -> Expr:
    if not isinstance(expr, Subquery):
        return rewrite_children(expr, lambda part: _with_guard(part, condition, by_key=by_key))
    # An engine computes what is looked for in a set for all rows.
    args = tuple(
        [guarded_value(_with_guard(arg, condition, by_key=by_key), condition) for arg in expr.args]
    )
    asked = replace(expr, args=args)
    if not free_columns(expr.plan) or is_volatile_plan(expr.plan):
        return asked
    if not subquery_may_fail(expr, by_overflow=not by_key):
        return asked
    return guarded_subquery(asked, condition, by_key=by_key)


def _where(plan: Plan, condition: Expr) -> Plan:
    """The rows of a plan where the condition on the outer row holds: below what selects, which
    may be computed outside.
    """
    if isinstance(plan, Project):
        return replace(plan, input=_where(plan.input, condition))
    if isinstance(plan, Filter):
        return Filter(plan.input, conjunction((*flatten_conjuncts(plan.predicate), condition)))
    return Filter(plan, condition)


def _guarded_plan(plan: Plan, condition: Expr, *, by_key: bool) -> Plan:
    """What may fail, in a CASE of the condition. A WITH query may not refer to the row."""

    def wrapped(expr: Expr) -> Expr:
        if isinstance(expr, Subquery):
            if by_key:
                return _with_guard(expr, condition, by_key=True)
            args = tuple(map(wrapped, expr.args))
            return replace(guarded_subquery(expr, condition), args=args)
        if not may_fail(expr) and not has_subquery(expr):
            return expr
        if isinstance(expr, Call) and call_may_fail(expr):
            return guarded_value(expr, condition)
        return rewrite_children(expr, wrapped)

    if isinstance(plan, With):
        return replace(plan, input=_guarded_plan(plan.input, condition, by_key=by_key))
    if isinstance(plan, Recursive):
        return _guarded_recursion(plan, condition)
    below = rewrite_inputs(plan, lambda part: _guarded_plan(part, condition, by_key=by_key))
    if isinstance(below, Limit):
        return below
    return with_guarded_only_value(rewrite_node(below, wrapped), condition)
