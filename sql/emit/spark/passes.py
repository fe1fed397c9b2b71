"""List the passes that Spark's plans go through, in the order in which they run.

The order matters: a pass finds the plan as those before it leave it. The table in
`sql/rewrite/guards/__init__.py` says what guards what, and each module names the passes that it
leaves the rest to.
"""

from functools import partial
from typing import Final

from sql.rewrite.aggregate_order import with_inherited_order
from sql.rewrite.guards.guard_branch_subqueries import with_guarded_branches
from sql.rewrite.guards.guard_by_outer_conditions import guarded_by_outer
from sql.rewrite.guards.guard_filtered_aggregates import with_filtered_arguments
from sql.rewrite.guards.guard_lag_lead_defaults import with_asked_defaults
from sql.rewrite.guards.guard_where_subqueries import with_guarded_conditions
from sql.rewrite.guards.hoist_subquery_conditions import with_condition_columns
from sql.rewrite.guards.lazy_init_plans import run_if_asked
from sql.rewrite.guards.opaque_join_keys import with_hidden_keys
from sql.rewrite.guards.pull_up_failing_outputs import with_pulled_up
from sql.rewrite.guards.restrict_to_outer_keys import with_asked_keys
from sql.rewrite.guards.scalar_subquery_aggregates import with_only_rows
from sql.rewrite.negative_zero import with_outer_zeros
from sql.rewrite.passes import Pass
from sql.rewrite.subqueries.carry_outer_columns import with_carried_columns
from sql.rewrite.subqueries.count_bug import with_counted_rows
from sql.rewrite.subqueries.hoist_join_key_subqueries import with_key_columns
from sql.rewrite.subqueries.hoist_uncorrelated_values import with_own_values
from sql.rewrite.subqueries.hoist_window_subqueries import with_asked_windows
from sql.rewrite.subqueries.join_condition_subqueries import with_joined_subqueries
from sql.rewrite.subqueries.place_join_conditions import with_placed_conditions
from sql.rewrite.volatile_calls import called_once

SPARK_PASSES: Final[tuple[Pass, ...]] = (
    with_inherited_order,
    called_once,
    with_pulled_up,
    partial(with_joined_subqueries, only_failing=False),
    run_if_asked,
    with_asked_defaults,
    partial(with_filtered_arguments, by_overflow=False),
    with_only_rows,
    with_guarded_conditions,
    with_hidden_keys,
    with_asked_keys,
    partial(with_asked_windows, filters=True),
    partial(with_condition_columns, for_spark=True),
    guarded_by_outer,
    partial(with_guarded_branches, by_key=True),
    with_counted_rows,
    with_outer_zeros,
    with_placed_conditions,
    with_carried_columns,
    with_key_columns,
    # Those between may have written a volatile call twice.
    called_once,
)
"""Run for every plan."""

WORKER_PASSES: Final[tuple[Pass, ...]] = (with_own_values, called_once)
"""Run behind them if a function of Spark's Python workers would get an uncorrelated subquery."""
