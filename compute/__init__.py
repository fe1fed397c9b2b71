"""Engines: run a plan over pinned table views and stream Arrow batches back.

    Run(plan, views, parameters) ─▶ Executor.run ─┬─ `spark`      SQL on a JVM, inputs of any size
                                                  ├─ `duckdb`     SQL in this process (`local`)
                                                  └─ `reference`  Python, small inputs ─▶ batches

An engine knows no sessions and chooses no timestamps. The same plan over the same views gives the
same answer on every engine.

Modules, from the bottom layer up:
  `plan_nodes`                                   properties of a whole plan
  `identity_cache`, `interruption`               what is remembered of plans; queries that stop
  `executor`, `arrow`                            the contract of an engine, and its Arrow types
  `needed_columns`, `simple_plans`               facts about plans
  `row_images`, `row_versions`                   rows compared to the bit; their ctid and xmin
  `computed_values`, `plan_cost`                 what functions may be given on the event loop
  `scan`, `read_size`                            a table view as files and rows for an engine; sizes
  `reference`                                    the evaluator that all layers above build on
  `compared_rows`                                how many rows a plan compares
  `constant_folding`, `access`                   constants at planning time; rows by key, in process
  `maintenance`                                  programs of materialized views, on any engine
  `spark`, `duckdb`, `engine_sql`                the SQL engines, which do not import each other

`coordinator` may import this package, but not its parts without I/O (`coordinator.core`,
`coordinator.pgwire`). `sql` and `storage` may not; this package imports both.
"""
