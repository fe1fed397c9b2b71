"""Passes that keep an engine from failing for a row that PostgreSQL never computes.

PostgreSQL computes a row at a time, and only what that row demands. Engines compute whole columns,
move conditions to other places and run subqueries for all rows at once: `v <> 0 and 10/v > 1` may
fail there. These passes guard each expression that may fail (`guard_expressions.may_fail`) with the
conditions under which PostgreSQL evaluates it. A plan meets them in this order:

  when        engine  module                         effect
  planning    all     order_quals                    conditions in PostgreSQL's order and place
  emission    both    pull_up_failing_outputs        columns of derived tables move to their uses
  of a plan   both    move_join_condition_subqueries*  subqueries in ON run for matched pairs only
  (the tuple  both    lazy_init_plans                uncorrelated subqueries run on demand
  of passes)  both    guard_lag_lead_defaults        defaults of lag() and lead() leave their call
              both    guard_filtered_aggregates      arguments move into a branch of their FILTER
              Spark   aggregate_scalar_subqueries    an aggregate finds a subquery's only row
              Spark   guard_where_subqueries         WHERE guards the subqueries in it
              Spark   hide_join_keys                 no failing condition is inferred by a join key
              Spark   restrict_to_outer_keys         subqueries read keys that outer rows have
              both    hoist_subquery_conditions      conditions with subqueries become columns
              Spark   guard_by_outer_conditions      a subquery's own conditions guard its outputs
              DuckDB  restrict_to_outer_rows         subqueries stay joined to their outer rows
              both    guard_branch_subqueries        CASE, AND, OR guard subqueries in branches;
                      (with hoist_failing_outputs)   outputs that may fail are computed outside
  of a        both    push_filters_below_lateral     conditions go below lateral joins
  SELECT      both    guard_where_conditions         conditions of WHERE guard those behind them
              DuckDB  guard_join_conditions          so do conditions of ON, and join keys
  of an       both    guard_expressions*             AND, OR, COALESCE and FILTER without subqueries
  expression

(* stands in `sql/rewrite/subqueries` or `sql/rewrite`.) `sql/emit/spark/passes.py` and
`sql/emit/duckdb/passes.py` have the tuples; `correlated_failures` finds subqueries for two passes.
Nearly all are skipped if `plan_facts` finds nothing in a plan that may fail. Each module shows by
example how it rewrites a statement, and names the modules that it leaves the rest to. Emitters
import this package, and the planner imports `order_quals`.
"""
