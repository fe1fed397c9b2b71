"""Write a logical plan as the SQL statement of an engine: Spark or DuckDB.

    Plan ─▶ passes of the engine (sql.rewrite) ─▶ Select ─▶ EmittedQuery: text, arguments, functions

The modules of this package write what both engines share. An engine's own syntax comes from its
`Dialect`, a table of functions, so that neither side imports the other.

  the way in       `spark/dialect` and `duckdb/dialect` have `emit`; `emitted_query` is its answer
  whole plans      `plans`, one SELECT under construction in `select`, `state` of the statement
  plan nodes       `ctes`, `recursion_rounds`, `group_by`, `windows`, `running_windows`, `limits`,
                   `set_operations`, `rename_outer_columns`
  expressions      `templates` of the function table, `repeated_arguments`, `in_subqueries`,
                   `enums`, `patterns`, `regex_calls`, `series`, `time_templates`, `zones`,
                   `quotient_levels`, `text_growth`, `null_counts`, `error_tag`

`compute` runs the statements, and imports this package. The binder may not import it; `spark` and
`duckdb` may not import each other.
"""
