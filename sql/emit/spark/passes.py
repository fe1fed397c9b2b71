"""List the passes that Spark's plans go through, in the order in which they run.

The order matters: a pass finds the plan as those before it leave it. The table in
`sql/rewrite/guards/__init__.py` says what guards what, and each module names the passes that it
leaves the rest to.
"""

from functools import partial
from typing import Final

from sql.rewrite.aggregate_order import inherit_aggregate_order
from sql.rewrite.guards.aggregate_scalar_subqueries import aggregate_scalar_subqueries
from sql.rewrite.guards.guard_branch_subqueries import guard_branch_subqueries
from sql.rewrite.guards.guard_by_outer_conditions import guard_by_outer_conditions
from sql.rewrite.guards.guard_filtered_aggregates import guard_filtered_aggregates
from sql.rewrite.guards.guard_lag_lead_defaults import guard_lag_lead_defaults
from sql.rewrite.guards.guard_where_subqueries import guard_where_subqueries
from sql.rewrite.guards.hide_join_keys import hide_join_keys
from sql.rewrite.guards.hoist_subquery_conditions import hoist_subquery_conditions
from sql.rewrite.guards.lazy_init_plans import lazy_init_plans
from sql.rewrite.guards.pull_up_failing_outputs import pull_up_failing_outputs
from sql.rewrite.guards.restrict_to_outer_keys import restrict_to_outer_keys
from sql.rewrite.negative_zero import preserve_negative_zero
from sql.rewrite.passes import Pass
from sql.rewrite.subqueries.carry_outer_columns import carry_outer_columns
from sql.rewrite.subqueries.count_bug import fix_count_bug_by_count
from sql.rewrite.subqueries.hoist_join_key_subqueries import hoist_join_key_subqueries
from sql.rewrite.subqueries.hoist_uncorrelated_values import hoist_uncorrelated_values
from sql.rewrite.subqueries.hoist_window_subqueries import hoist_window_subqueries
from sql.rewrite.subqueries.move_join_condition_subqueries import move_join_condition_subqueries
from sql.rewrite.subqueries.place_join_conditions import place_join_conditions
from sql.rewrite.volatile_calls import evaluate_once

SPARK_PASSES: Final[tuple[Pass, ...]] = (
    inherit_aggregate_order,
    evaluate_once,
    pull_up_failing_outputs,
    partial(move_join_condition_subqueries, only_failing=False),
    lazy_init_plans,
    guard_lag_lead_defaults,
    partial(guard_filtered_aggregates, by_overflow=False),
    aggregate_scalar_subqueries,
    guard_where_subqueries,
    hide_join_keys,
    restrict_to_outer_keys,
    partial(hoist_window_subqueries, filters=True),
    partial(hoist_subquery_conditions, for_spark=True),
    guard_by_outer_conditions,
    partial(guard_branch_subqueries, by_key=True),
    fix_count_bug_by_count,
    preserve_negative_zero,
    place_join_conditions,
    carry_outer_columns,
    hoist_join_key_subqueries,
    # Those between may have written a volatile call twice.
    evaluate_once,
)
"""Run for every plan."""

WORKER_PASSES: Final[tuple[Pass, ...]] = (hoist_uncorrelated_values, evaluate_once)
"""Run behind them if a function of Spark's Python workers would get an uncorrelated subquery."""
