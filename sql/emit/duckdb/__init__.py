"""Write plans as DuckDB SQL, for the local engine.

    Plan ─▶ dialect.emit: passes, then sql.emit.plans ─▶ a statement with arguments `$a1`, `$q1` ..

  the way in     `dialect`: `emit`, and this engine's syntax for `sql.emit`; `passes`: the rewriting
                 passes in the order in which they run
  expressions    `expressions` dispatches to `types`, `text`, `times`, `floats`, `numbers`,
                 `quotients`, `arrays`
  rows           `aggregates`, `windows`, `sets`
  Python         `evaluator_calls`: functions that the reference evaluator computes, row by row

`compute.duckdb` runs the statements; only `compute` imports this package. It may not import
`sql.emit.spark`.
"""
