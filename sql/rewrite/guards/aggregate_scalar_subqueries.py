"""Find the only row of a scalar subquery by an aggregate, where it may fail or no key joins it.

    (select v from u where u.k = t.k and 10/v > 1)
      ─▶  (select only_value(v) from u where u.k = t.k and 10/v > 1)

Spark joins the rows of a subquery to the outer rows, and computes them for all that they might be
joined to. An aggregate it computes for outer rows that demand it, and a guarded one is no cross
product.

    (select v from u where u.k < t.k)  ─▶  (select only_value(v) from u where u.k < t.k)

Without a key Spark plans a nested loop join of kind LeftSingle. If the outer rows are few and the
inner ones are many, it broadcasts the former (spark.sql.autoBroadcastJoinThreshold; in the small
session pool nothing is broadcast), and fails: it has no such join.

INVARIANTS
  L1  only a subquery is changed that is correlated and may have several rows. Either no key joins
      it, in one branch of a set operation at least, or it computes something that may fail
      otherwise than by overflow and is not computed outside of it.
  L2  `only_value` fails (21000) if its FILTER leaves several rows. Conditions on the outer row
      guard it there: Spark evaluates some conditions of WHERE after it has aggregated.
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import permutations

from sql.functions.table import function_by_id
from sql.plan.conditions import conjunction
from sql.plan.nodes import (
    Aggregate,
    Call,
    ColumnId,
    Expr,
    GroupBy,
    Plan,
    SetOp,
    Subquery,
    output_columns,
)
from sql.plan.projections import column_reference
from sql.plan.renumbering import free_columns
from sql.plan.traverse import Rewrite, column_ids, inputs, rewrite_queries
from sql.rewrite.column_ids import IdRange, range_of_column_ids
from sql.rewrite.failure_analysis import (
    ONLY_VALUE,
    is_only_value,
    may_have_several_rows,
    plan_may_fail,
)
from sql.rewrite.guards.hoist_failing_outputs import is_output_hoisted
from sql.rewrite.outer_and_subquery_conditions import node_conditions
from sql.rewrite.plan_facts import PlanFacts


def aggregate_scalar_subqueries(plan: Plan, facts: PlanFacts) -> Plan:
    """The plan with such aggregates (L1)."""
    if not facts.has_subquery or not facts.may_fail(by_overflow=False):
        return plan
    return _plan(plan, range_of_column_ids(IdRange.SCALAR_SUBQUERY_AGGREGATES))


def _plan(plan: Plan, numbers: Iterator[int]) -> Plan:
    def subquery(expr: Subquery, within: Rewrite) -> Subquery:
        made = replace(expr, args=tuple(map(within, expr.args)), plan=_plan(expr.plan, numbers))
        return replace(made, plan=_only_row(made.plan, numbers)) if _by_aggregate(made) else made

    return rewrite_queries(plan, lambda part: _plan(part, numbers), subquery)


def _by_aggregate(expr: Subquery) -> bool:
    outside = free_columns(expr.plan)
    if not may_have_several_rows(expr) or not outside:
        return False
    if not _has_key(expr.plan, outside):
        return True
    return plan_may_fail(expr.plan, by_overflow=False) and not is_output_hoisted(expr)


def _has_key(plan: Plan, outside: AbstractSet[ColumnId]) -> bool:
    """Whether a condition says what of a row inside is equal to what of the outer row."""
    if isinstance(plan, SetOp):
        return all(_has_key(side, outside) for side in inputs(plan))
    return any(_is_key(part, outside) for part in node_conditions(plan)) or any(
        _has_key(below, outside) for below in inputs(plan)
    )


def _is_key(part: Expr, outside: AbstractSet[ColumnId]) -> bool:
    if not isinstance(part, Call) or part.function.name != "=":
        return False
    sides = [set(column_ids(arg)) for arg in part.args[:2]]
    # A side of constants alone is no key.
    return all(sides) and any(
        outside >= one and outside.isdisjoint(two) for one, two in permutations(sides)
    )


def _only_row(plan: Plan, numbers: Iterator[int]) -> GroupBy:
    (column,) = output_columns(plan)
    call = Aggregate(
        function_by_id(ONLY_VALUE), (column_reference(column),), False, None, (), column.type
    )
    made = replace(column, id=ColumnId(next(numbers)))
    return GroupBy(plan, (), (), (made,), (call,))


def with_guarded_only_value(plan: Plan, condition: Expr) -> Plan:
    """The node, which does not fail for several rows where the condition is not true (L2)."""
    if not isinstance(plan, GroupBy):
        return plan
    return replace(plan, aggregates=tuple([_guarded(call, condition) for call in plan.aggregates]))


def _guarded(call: Aggregate, condition: Expr) -> Aggregate:
    if not is_only_value(call):
        return call
    before = () if call.filter is None else (call.filter,)
    return replace(call, filter=conjunction((*before, condition)))
