"""What PostgreSQL does not compute for a row must not fail for it.

PostgreSQL computes a row at a time, and only what is asked for. Engines compute whole columns, take
conditions to other places and run subqueries for all rows at once: `v <> 0 and 10/v > 1` may fail
there. So what may fail (`guards.may_fail`) is told when not to be computed. A plan passes, in this
order:

  when              what                                                   who
  it is planned     conditions come where and when PostgreSQL asks them    condition_order
  all of it, for    what derived tables compute for the query around them  pulled_up
  an engine         what ON of joins asks of pairs (not in here)           joined_subqueries
                    a subquery that refers to no row: run if one asks      asked_subqueries
                    defaults of lag() and lead()                           asked_defaults
                    calls with FILTER: its condition is a branch           filtered_arguments
                    the only row of a subquery by an aggregate (Spark)     only_rows
                    what WHERE asks behind its other conditions (Spark)    guarded_conditions
                    what rows are joined by is hidden (Spark)              hidden_keys
                    rows of a subquery for which no row asks (Spark)       asked_keys
                    what guards a subquery has one itself                  condition_columns
                    what is computed for the row outside (Spark)           outer_guards
                    what is computed for rows that are asked for (DuckDB)  outer_rows
                    CASE, AND, OR with a subquery in a branch              guarded_subqueries
                    what a subquery makes of the row it finds              outside_values
  a SELECT is       conditions over lateral joins go below them            pushed_filters
  written           WHERE: the conditions before one guard it              guarded_filters
                    ON of outer joins, and behind keys (DuckDB)            guarded_joins
  an expression is  AND, OR and FILTER without a subquery                  guards
  written

A plan in which nothing may fail is not changed by any of them. Each module says by example what it
makes of a statement, and what it leaves to which other one.
"""
