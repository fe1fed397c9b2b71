"""Expressions: syntax nodes to typed expressions, with every name and conversion resolved.

    node ─▶ expression ─┬▶ operators, quantified, arrays, rows ─┬▶ calls ─▶ resolve: overloads,
                        ├▶ function_calls, windows, grouping ───┘            coercion
                        └▶ subqueries, sql_json, time_expressions

    `expression`                                    dispatch on the node; constants, CASE, casts
    `operators`, `quantified`, `subqueries`         operators, IN, ANY, ALL, EXISTS
    `calls`, `function_calls`, `call_rewrites`      functions: overload, conversions, result type
    `system_calls`, `pattern_folding`               calls that the binder answers or folds
    `arrays`, `catalog_vectors`                     ARRAY[..], subscripts, int2vector
    `rows`, `whole_rows`                            ROW(..), and table names as values
    `json_rows`, `json_row_subqueries`              rows as JSON
    `grouping`, `grouping_sets`                     GROUP BY
    `ordered_sets`, `hypothetical_sets`             aggregates WITHIN GROUP
    `row_aggregates`, `sort_keys`                   aggregates of rows, ORDER BY in aggregates
    `windows`, `range_frames`                       window functions
    `set_returning`, `record_functions`             set-returning functions
    `sequence_calls`, `serial_sequences`, `session_calls`, `row_calls`, `runtime_parameters`
                                                    calls with side effects
    `sql_json`, `json_behaviors`                    SQL/JSON
    `time_expressions`                              the time of AS OF

Imports `stored`, `resolve` and `state`; modules call back into `expression` through the `Binding`.
Queries, DML and DDL import it.
"""
