"""What PostgreSQL does not compute for a row must not fail for it.

PostgreSQL computes a row at a time, and only what is demanded. Engines compute whole columns, move
conditions to other places and run subqueries for all rows at once: `v <> 0 and 10/v > 1` may fail
there. So these passes say of what may fail (`guard_expressions.may_fail`) when it is not evaluated.
A plan goes through them in this order:

  when              what                                                     module
  it is planned     conditions are where and when PostgreSQL evaluates them  order_quals
  all of it, for    what derived tables compute for the query around them    pull_up_failing_outputs
  an engine         what ON of joins asks of pairs       (subqueries/join_condition_subqueries)
                    a subquery without outer references: run on demand       lazy_init_plans
                    defaults of lag() and lead()                             guard_lag_lead_defaults
                    calls with FILTER: its condition is a branch           guard_filtered_aggregates
                    the only row of a subquery by an aggregate (Spark)   scalar_subquery_aggregates
                    WHERE behind its other conditions (Spark)                guard_where_subqueries
                    expressions that rows are joined by are opaque (Spark)   opaque_join_keys
                    rows of a subquery that no outer row demands (Spark)     restrict_to_outer_keys
                    what guards a subquery has a subquery itself           hoist_subquery_conditions
                    what is computed for the outer row (Spark)             guard_by_outer_conditions
                    what is computed for rows that are demanded (DuckDB)     restrict_to_outer_rows
                    CASE, AND, OR with a subquery in a branch                guard_branch_subqueries
                    what a subquery makes of the row it finds                hoist_failing_outputs
  a SELECT is       conditions over lateral joins go below them         push_filters_below_lateral
  written           WHERE: the conditions before one guard it                guard_where_conditions
                    ON of outer joins, and behind keys (DuckDB)              guard_join_conditions
  an expression is  AND, OR and FILTER without a subquery              (rewrite/guard_expressions)
  written

A plan in which nothing may fail is not changed by any of them. Each module says by example what it
makes of a statement, and what it leaves to which other one. Emitters import this package.
"""
