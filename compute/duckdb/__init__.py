"""The `local` engine: DuckDB inside this process, for inputs that fit one machine.

    Run ─▶ `executor`: a thread, a connection of an `instance`
             ├─ `relations`   table views ─▶ scans of Parquet files, Arrow streams, tables
             ├─ `statements`  plan ─▶ emitted SQL ─▶ parsed statement (cached)
             ├─ `functions`   functions of the reference evaluator as Arrow UDFs
             └─ answer ─▶ `rows` (few) or an Arrow stream (many); `errors`: exceptions ─▶ SQLSTATEs

Modules, from the bottom up: `database`, `errors`; `functions`, `relations`, `statements`;
`instance`, `rows`; `executor`. `support` stands alone: it decides without DuckDB whether the engine
can run a plan.

`coordinator` chooses this engine and imports `executor`, `database` and `support`. `compute.spark`
and `compute.engine_sql` must not import it; it imports `compute.reference` and the layers below.
"""
