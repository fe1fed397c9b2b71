"""List the passes that DuckDB's plans go through, in the order in which they run.

The order matters: a pass finds the plan as those before it leave it. The table in
`sql/rewrite/guards/__init__.py` says what guards what, and each module names the passes that it
leaves the rest to.
"""

from functools import partial
from typing import Final

from sql.rewrite.aggregate_order import inherit_aggregate_order
from sql.rewrite.guards.guard_branch_subqueries import guard_branch_subqueries
from sql.rewrite.guards.guard_filtered_aggregates import guard_filtered_aggregates
from sql.rewrite.guards.guard_lag_lead_defaults import guard_lag_lead_defaults
from sql.rewrite.guards.hoist_subquery_conditions import hoist_subquery_conditions
from sql.rewrite.guards.lazy_init_plans import lazy_init_plans
from sql.rewrite.guards.pull_up_failing_outputs import pull_up_failing_outputs
from sql.rewrite.guards.restrict_to_outer_rows import restrict_to_outer_rows
from sql.rewrite.negative_zero import preserve_negative_zero
from sql.rewrite.passes import Pass
from sql.rewrite.subqueries.count_bug import fix_count_bug_by_case
from sql.rewrite.subqueries.hoist_window_subqueries import hoist_window_subqueries
from sql.rewrite.subqueries.move_join_condition_subqueries import move_join_condition_subqueries
from sql.rewrite.volatile_calls import evaluate_once

DUCKDB_PASSES: Final[tuple[Pass, ...]] = (
    inherit_aggregate_order,
    evaluate_once,
    pull_up_failing_outputs,
    partial(move_join_condition_subqueries, only_failing=True),
    lazy_init_plans,
    guard_lag_lead_defaults,
    guard_filtered_aggregates,
    hoist_window_subqueries,
    hoist_subquery_conditions,
    restrict_to_outer_rows,
    fix_count_bug_by_case,
    preserve_negative_zero,
    partial(guard_branch_subqueries, by_key=False),
    # Those between may have written a volatile call twice.
    evaluate_once,
)
"""Run for every plan."""
