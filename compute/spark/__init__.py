"""The `spark` engine: Spark on a JVM of its own, for inputs of any size.

    Run ─▶ `executor` ─▶ `session_pool`, by the size of the inputs: one session and its threads
             ├─ `relations`         table views ─▶ temporary views (`deleted_rows`)
             ├─ `functions`         Python workers (`worker_daemon`, `python_functions`)
             ├─ `recursion_rounds`  shared queries and recursions, computed before the statement
             └─ `results`           collected Arrow batches, or Parquet files if there are many rows

Modules, from the bottom up:
  `gateway`, `jvm`, `class_archive`, `supervisor`    the JVM: connect, launch, keep running
  `errors`, `session`                                Spark's errors and settings
  `deleted_rows`, `relations`, `functions`           inputs and functions of a statement
  `results`, `recursion_rounds`, `session_pool`      answers; iterations; the pools
  `executor`                                         the engine
  `python_functions`, `worker_daemon`                run in Spark's Python workers

`coordinator` chooses this engine and imports `executor` and `session`.
`compute.duckdb` and `compute.engine_sql` must not import it; it imports `compute.reference` and the
layers below.
"""
