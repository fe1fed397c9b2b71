"""List the passes that DuckDB's plans go through, in the order in which they run.

The order matters: a pass finds the plan as those before it leave it. The table in
`sql/rewrite/guards/__init__.py` says what guards what, and each module names the passes that it
leaves the rest to.
"""

from functools import partial
from typing import Final

from sql.rewrite.aggregate_order import with_inherited_order
from sql.rewrite.guards.guard_branch_subqueries import with_guarded_branches
from sql.rewrite.guards.guard_filtered_aggregates import with_filtered_arguments
from sql.rewrite.guards.guard_lag_lead_defaults import with_asked_defaults
from sql.rewrite.guards.hoist_subquery_conditions import with_condition_columns
from sql.rewrite.guards.lazy_init_plans import run_if_asked
from sql.rewrite.guards.pull_up_failing_outputs import with_pulled_up
from sql.rewrite.guards.restrict_to_outer_rows import with_rows_outside
from sql.rewrite.negative_zero import with_outer_zeros
from sql.rewrite.passes import Pass
from sql.rewrite.subqueries.count_bug import with_rows_in_case
from sql.rewrite.subqueries.hoist_window_subqueries import with_asked_windows
from sql.rewrite.subqueries.join_condition_subqueries import with_joined_subqueries
from sql.rewrite.volatile_calls import called_once

DUCKDB_PASSES: Final[tuple[Pass, ...]] = (
    with_inherited_order,
    called_once,
    with_pulled_up,
    partial(with_joined_subqueries, only_failing=True),
    run_if_asked,
    with_asked_defaults,
    with_filtered_arguments,
    with_asked_windows,
    with_condition_columns,
    with_rows_outside,
    with_rows_in_case,
    with_outer_zeros,
    partial(with_guarded_branches, by_key=False),
    # Those between may have written a volatile call twice.
    called_once,
)
"""Run for every plan."""
