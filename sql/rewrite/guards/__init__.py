"""Passes that keep an engine from failing for a row that PostgreSQL never computes.

PostgreSQL computes a row at a time, and only what that row demands. Engines compute whole columns,
move conditions to other places and run subqueries for all rows at once: `v <> 0 and 10/v > 1` may
fail there. These passes guard each expression that may fail (`guard_expressions.may_fail`) with the
conditions under which PostgreSQL evaluates it. A plan goes through them in this order:

  when              what                                                     module
  it is planned     conditions are where and when PostgreSQL evaluates them  order_quals
  all of it, for    what derived tables compute for the query around them    pull_up_failing_outputs
  an engine         what ON of joins evaluates for pairs (subqueries/join_condition_subqueries)
                    uncorrelated subqueries run on demand                    lazy_init_plans
                    defaults of lag() and lead()                             guard_lag_lead_defaults
                    calls with FILTER: its condition is a branch           guard_filtered_aggregates
                    the only row of a subquery by an aggregate (Spark)   scalar_subquery_aggregates
                    WHERE behind its other conditions (Spark)                guard_where_subqueries
                    expressions that rows are joined by are opaque (Spark)   opaque_join_keys
                    rows of a subquery that no outer row demands (Spark)     restrict_to_outer_keys
                    conditions with subqueries, before they guard others   hoist_subquery_conditions
                    what is computed for the outer row (Spark)             guard_by_outer_conditions
                    what is computed for rows that are demanded (DuckDB)     restrict_to_outer_rows
                    CASE, AND, OR with a subquery in a branch                guard_branch_subqueries
                    what a subquery computes of the row it finds             hoist_failing_outputs
  a SELECT is       conditions over lateral joins go below them         push_filters_below_lateral
  written           WHERE: the conditions before one guard it                guard_where_conditions
                    ON of outer joins, and behind keys (DuckDB)              guard_join_conditions
  an expression is  AND, OR and FILTER without a subquery              (rewrite/guard_expressions)
  written

A plan in which nothing may fail is not changed by any of them. Each module shows by example how it
rewrites a statement, and names the modules that it leaves the rest to. `correlated_failures` finds
the subqueries for two of them. Emitters import this package, and the planner imports `order_quals`.
"""
