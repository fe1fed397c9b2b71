"""The `reference` engine: an evaluator of plans in plain Python, with PostgreSQL's answers.

    plan ─▶ `plans`: iterators over rows ─┬─ `expressions`: closures over a row ─▶ `function_table`
                                          ├─ `groups`, `aggregates`, `windows`, `set_returning`
    Arrow ─▶ `arrow` ─▶ Python values ────┴─▶ rows ─▶ `arrow` ─▶ record batches

It answers small statements by itself, computes the constants of plans, and is the yardstick of the
other engines in tests. Spark and DuckDB call its functions as Arrow UDFs where they lack their own.

Modules, from the bottom up:
  `functions`, `function_table`                     PostgreSQL's functions, and the table of them
  `registry`, `decimals`                            who implements a function; exact arithmetic
  `support`                                         which plans the evaluator runs
  `arrow`, `cost`, `tagged_errors`                  values, work bounds, errors through an engine
  `expressions`, `aggregates`, `groups`             one row; lists of rows
  `range_frames`, `frames`, `windows`, `set_returning`
  `plans`, `executor`                               whole plans; the engine

All of `compute` above this layer imports it (`constant_folding`, `access`, `spark`, `duckdb`), and
so does `coordinator`. It imports `sql`, `storage` and the layers below, such as `compute.executor`.
"""
