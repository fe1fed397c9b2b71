"""Access paths without an engine: find, read and check rows of a table by key, in this process.

    plan, parameters ─▶ `point_reads` ─▶ `key_index` ─▶ positions (source, row) ─▶ rows ─▶ answer
    new rows ─▶ `key_predicates` ─▶ `key_index`: duplicates now ─▶ predicates: duplicates at commit

Modules:
  `bloom_filters`, `sorted_keys`, `row_group_cache`   caches over data files
  `warm_columns`                                      cells of rows that these have
  `file_bounds`                                       which files may hold a key
  `row_keys`, `key_predicates`, `foreign_key_probe`   keys of rows, and predicates over keys
  `computed_keys`                                     keys that are partial, or of expressions
  `row_predicates`                                    predicates over any read condition
  `key_index`                                         from keys to rows, through the caches
  `scanned_rows`, `located_rows`, `point_reads`       reading these rows, and plans over them
  `narrowed_plans`                                    plans over rows that small relations join
  `equal_rows`                                        rows of tables without a key
  `bounded_plans`, `rows_in_memory`, `rows_in_order`  for short writes, which read no file

The predicates implement the core's `ReadPredicate`: validation tests them against the writes of
other transactions. `coordinator` imports this package to check constraints, to validate reads and
to answer queries by key. No other package of `compute` imports it.
"""
