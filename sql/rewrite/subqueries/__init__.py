"""Passes that turn subqueries and join conditions into forms that engines take.

    plan with subqueries anywhere ─▶ the same rows, by subqueries where an engine takes them

Spark takes no subquery in many places (ON, windows, join keys, two queries below the outer row).
DuckDB takes almost all of them, but runs some for rows that never demand them. Spark's emitter runs
all of these passes, DuckDB's three of them (`sql/emit/duckdb/passes.py`).

  ON of joins      `move_join_condition_subqueries`, with `outer_join_by_row_number` and
                   `existence_probes`; `place_join_conditions`, `hoist_join_key_subqueries`
  into columns     `hoist_window_subqueries`, `hoist_uncorrelated_values`, `carry_outer_columns`
  lateral joins    `lateral_set_functions`, which the emitter calls for each join
  aggregates       `count_bug`: a correlated aggregate has a row for every outer row

Only `sql.emit` imports this package. It shares `guards`' tests of which subqueries may fail.
"""
