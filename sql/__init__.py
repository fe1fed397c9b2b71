"""From SQL text to engine SQL: parse, bind to a typed plan, rewrite for an engine, emit.

    text ─ parser ─▶ syntax tree ─ binder ─▶ bound statement with its plan ─┬─ rewrite, emit ─▶ SQL
                                     ▲                                      └─▶ `compute/reference`
                          catalog, function table

Pure: values in, values out. No sockets, clocks, Spark, Delta or Arrow; the standard library and
pglast only. The packages, each of which imports only those above it:

  `errors`, `regex`, `types`    SqlError and SQLSTATEs; patterns; types with their input and output
  `functions`, `plan`           the function table; logical plans and bound expressions
  `catalog`                     tables and other objects at one timestamp, an immutable value
  `parser`, `statements`        text to syntax tree; what the binder hands to a session
  `binder`, `rewrite`           syntax tree to bound statement; passes over plans before an engine
  `emit`, `explain`             engine SQL for Spark and DuckDB; EXPLAIN's tree
  `deparse`                     texts of definitions as PostgreSQL prints them
  `function_list`               prints `docs/reference/sql.md`

`data/` holds the function table and lists from a real PostgreSQL server. `compute` and
`coordinator` import this package. It imports neither of them, nor `storage`.
"""
