"""Push conditions below lateral joins, to the side that they are about, as PostgreSQL does.

    Filter(left lateral right, l and r)  ─▶  Filter(Filter(left, l) lateral right, r)

An engine computes a lateral side for the distinct rows that it refers to, or together with others.
It does not see that WHERE drops some of these rows, for which an expression may fail.

INVARIANTS
  W1  a condition moves below a join to a side that the join does not NULL-extend. To another side
      it is copied if it is never true of NULLs, and stays above as well. A volatile one stays.
"""

from collections.abc import Sequence
from dataclasses import replace

from sql.plan.conditions import filter_plan
from sql.plan.nodes import (
    Call,
    ColumnRef,
    Expr,
    Filter,
    InList,
    IsTest,
    Join,
    JoinKind,
    Plan,
    Test,
    output_columns,
)
from sql.plan.traverse import column_ids, conjuncts, is_volatile_expression

NEVER_NULL_LEFT = (JoinKind.CROSS, JoinKind.INNER, JoinKind.LEFT)
NEVER_NULL_RIGHT = (JoinKind.CROSS, JoinKind.INNER, JoinKind.RIGHT)
_NOT_OF_NULL = (Test.IS_NOT_NULL, Test.IS_TRUE, Test.IS_FALSE)


def push_filter_below_lateral(plan: Filter) -> Plan:
    """The filter with its conditions below lateral joins, where they may go there (W1)."""
    if not _has_lateral(plan.input):
        return plan
    moving = [part for part in conjuncts(plan.predicate) if not is_volatile_expression(part)]
    below, moved = _with(plan.input, moving)
    left = [part for part in conjuncts(plan.predicate) if part not in moved]
    return filter_plan(below, left)


def _has_lateral(plan: Plan) -> bool:
    return isinstance(plan, Join) and (
        plan.lateral or _has_lateral(plan.left) or _has_lateral(plan.right)
    )


def _with(plan: Plan, parts: Sequence[Expr]) -> tuple[Plan, Sequence[Expr]]:
    """The join with those of the conditions that go below it, and which of them are done there."""
    if not isinstance(plan, Join) or not parts or not _has_lateral(plan):
        return plan, ()
    left, right, done = plan.left, plan.right, list[Expr]()
    if plan.lateral or _has_lateral(left):
        kept = plan.kind in NEVER_NULL_LEFT
        left, below = _side(left, parts, whole=plan.lateral, kept=kept)
        done += below if kept else ()
    if _has_lateral(right):
        kept = plan.kind in NEVER_NULL_RIGHT
        right, below = _side(right, parts, whole=False, kept=kept)
        done += below if kept else ()
    return replace(plan, left=left, right=right), done


def _side(
    plan: Plan, parts: Sequence[Expr], *, whole: bool, kept: bool
) -> tuple[Plan, Sequence[Expr]]:
    """A side with the conditions over its rows. `whole`: all of them, not only those below the
    lateral joins in it; `kept`: no row of it is made up.
    """
    made = {column.id for column in output_columns(plan)}
    own = [part for part in parts if made.issuperset(used := set(column_ids(part))) and used]
    own = [part for part in own if kept or is_never_true_of_nulls(part)]
    below, done = _with(plan, own)
    if not whole:
        return below, done
    rest = [part for part in own if part not in done]
    return filter_plan(below, rest), own


def is_never_true_of_nulls(part: Expr) -> bool:
    """Whether the condition is not true when all its columns are NULL, as far as its form shows."""
    if isinstance(part, IsTest):
        return part.test in _NOT_OF_NULL and _is_strict(part.arg)
    return _is_strict(part)


def _is_strict(expr: Expr) -> bool:
    """Whether it is NULL when all its columns are."""
    if isinstance(expr, InList):
        return _is_strict(expr.arg)
    if isinstance(expr, Call):
        return expr.function.strict and any(map(_is_strict, expr.args))
    return isinstance(expr, ColumnRef)
