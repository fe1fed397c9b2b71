"""Engines: run a plan over pinned table views and stream Arrow batches back.

    Run(plan, views, parameters) ─▶ Executor.run ─┬─ `spark`      SQL on a JVM, inputs of any size
                                                  ├─ `duckdb`     SQL in this process (`local`)
                                                  └─ `reference`  Python, small inputs ─▶ batches

An engine knows no sessions and chooses no timestamps. The same plan over the same views gives the
same answer on every engine.

Modules, from the bottom layer up:
  `plan_nodes`                                   properties of a whole plan
  `executor`, `arrow`                            the contract of an engine, and its Arrow types
  `needed_columns`, `simple_plans`               facts about plans
  `scan`, `read_size`                            a table view as files and rows for an engine; sizes
  `reference`                                    the evaluator that all layers above build on
  `constant_folding`, `access`                   constants at planning time; rows by key, in process
  `spark`, `duckdb`, `engine_sql`                the SQL engines, which do not import each other

`coordinator` may import this package, but not its parts without I/O (`coordinator.core`,
`coordinator.pgwire`). `sql` and `storage` may not; this package imports both.
"""
