"""Write plans as Spark SQL.

    Plan ─▶ dialect.emit: passes, then sql.emit.plans ─▶ one statement for `spark.sql(text, args)`,
                                                         and relations that are computed before it

  the way in     `dialect`: `emit`, and this engine's syntax for `sql.emit`; `passes`: the rewriting
                 passes in the order in which they run
  expressions    `expressions` dispatches to `types`, `text`, `times`, `floats`, `decimals`,
                 `quotients`, `arrays`, `array_subqueries` and `single_row_subqueries`
  rows           `aggregates`, `windows`, `sets`
  Python         `worker_functions` and `worker_windows`: functions of Spark's Python workers,
                 which compute with the reference evaluator if Spark would differ from PostgreSQL

`compute.spark` runs the statements; only `compute` imports this package. It may not import
`sql.emit.duckdb`.
"""
