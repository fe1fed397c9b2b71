"""Emit plans as Spark SQL: the entry point, Spark's passes and its dialect.

INVARIANTS
  Q4  a relation is a temporary view, and all strings are arguments of `spark.sql(text, args=..)`.

Not here: running it, and translating Spark's failures (`compute/spark/executor.py`).
"""

from collections.abc import Mapping, Sequence
from typing import Final

from sql.emit.emitted_query import EmittedQuery
from sql.emit.plans import emit_plan
from sql.emit.recursion_rounds import emit_in_rounds
from sql.emit.spark.aggregates import aggregate, order_by
from sql.emit.spark.arrays import key
from sql.emit.spark.expressions import expression
from sql.emit.spark.outside import OwnSubquery
from sql.emit.spark.sets import set_scan, sets_beside
from sql.emit.spark.types import HINT, array, error, literal
from sql.emit.spark.windows import windows
from sql.emit.state import Dialect
from sql.plan.nodes import Plan, RelationId
from sql.plan.traverse import conjuncts
from sql.rewrite.aggregate_order import with_inherited_order
from sql.rewrite.guards.guard_branch_subqueries import with_guarded_branches
from sql.rewrite.guards.guard_by_outer_conditions import guarded_by_outer
from sql.rewrite.guards.guard_filtered_aggregates import with_filtered_arguments
from sql.rewrite.guards.guard_lag_lead_defaults import with_asked_defaults
from sql.rewrite.guards.guard_where_conditions import guarded_parts
from sql.rewrite.guards.guard_where_subqueries import with_guarded_conditions
from sql.rewrite.guards.hoist_subquery_conditions import with_condition_columns
from sql.rewrite.guards.lazy_init_plans import run_if_asked
from sql.rewrite.guards.opaque_join_keys import with_hidden_keys
from sql.rewrite.guards.pull_up_failing_outputs import with_pulled_up
from sql.rewrite.guards.restrict_to_outer_keys import with_asked_keys
from sql.rewrite.guards.scalar_subquery_aggregates import with_only_rows
from sql.rewrite.negative_zero import with_outer_zeros
from sql.rewrite.subqueries.carry_outer_columns import with_carried_columns
from sql.rewrite.subqueries.count_bug import with_counted_rows
from sql.rewrite.subqueries.hoist_join_key_subqueries import with_key_columns
from sql.rewrite.subqueries.hoist_uncorrelated_values import with_own_values
from sql.rewrite.subqueries.hoist_window_subqueries import with_asked_windows
from sql.rewrite.subqueries.join_condition_subqueries import with_joined_subqueries
from sql.rewrite.subqueries.place_join_conditions import with_placed_conditions
from sql.rewrite.volatile_calls import called_once
from sql.types.sql_type import Value


def emit(
    plan: Plan,
    relations: Mapping[RelationId, str],
    parameters: Sequence[Value] = (),
    *,
    prefix: str = "made",
) -> EmittedQuery:
    """The plan as one statement, and the relations computed before it. `relations`: the view's name
    for each input; `parameters`: $1 first; `prefix`: the first part of the names of these
    relations.

    Parameters are part of the text, so a statement may be cached by (plan, relations, parameters)
    only.
    """
    return emit_in_rounds(plan, relations, parameters, _emit, _SPARK.unsupported, prefix=prefix)


def _emit(
    plan: Plan, relations: Mapping[RelationId, str], parameters: Sequence[Value]
) -> EmittedQuery:
    """One statement, of a plan whose recursions Spark does."""
    plan = with_pulled_up(called_once(with_inherited_order(plan)))
    plan = run_if_asked(with_joined_subqueries(plan, only_failing=False))
    plan = with_filtered_arguments(with_asked_defaults(plan), by_overflow=False)
    plan = with_hidden_keys(with_guarded_conditions(with_only_rows(plan)))
    plan = with_asked_keys(plan)
    plan = with_condition_columns(with_asked_windows(plan, filters=True), for_spark=True)
    plan = with_guarded_branches(guarded_by_outer(plan), by_key=True)
    plan = with_placed_conditions(with_outer_zeros(with_counted_rows(plan)))
    plan = with_key_columns(with_carried_columns(plan))
    try:
        return emit_plan(plan, relations, parameters, _SPARK)
    except OwnSubquery:
        return emit_plan(with_own_values(plan), relations, parameters, _SPARK)


def _values(rows: Sequence[str], alias: str, columns: Sequence[str]) -> str:
    return f"values {', '.join(rows)} as {alias}({', '.join(columns)})"


_SPARK: Final = Dialect(
    engine="spark",
    quote="`",
    key=key,
    literal=literal,
    array=array,
    string=lambda name: f"cast(:{name} as string)",
    argument=lambda _value, _type, _reference: None,
    expression=expression,
    aggregate=aggregate,
    windows=windows,
    order_by=order_by,
    on=lambda _join, condition: conjuncts(condition),
    where=guarded_parts,
    values=_values,
    error=error,
    set_scan=set_scan,
    sets_beside=sets_beside,
    empty_sets=False,
    materialized="",
    any_recursion=False,
    deep_correlation=False,
    changed_by_groups=frozenset({"float4", "float8"}),  # to 0 from -0
    hint=HINT,
)
