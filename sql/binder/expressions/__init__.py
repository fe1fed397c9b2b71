"""Expressions: syntax nodes to typed expressions, with every name and conversion resolved.

    node ─▶ expression ─┬▶ operators, quantified, arrays, rows ─┬▶ calls ─▶ resolve: overloads,
                        ├▶ function_calls, windows, grouping ───┘            coercion
                        └▶ subqueries, sql_json, time_expressions

    `expression`                                 dispatch on the node's type; constants, CASE, casts
    `operators`, `quantified`, `subqueries`      operators, IN, ANY, ALL, EXISTS
    `evaluator_calls`, `function_calls`, `call_rewrites` functions: overload, conversions, result
    type `arrays`, `catalog_vectors` ARRAY[..], subscripts, int2vector `rows`, `whole_rows`,
    `json_rows` .. ROW(..) and table names as values `grouping`, `grouping_sets`, `ordered_sets`,
    `hypothetical_sets`, `windows` aggregates `set_returning`, `record_functions` sets in FROM and
    in target lists `sequence_calls`, `session_calls`, `row_calls`, `runtime_parameters` calls with
    side effects `sql_json`, `json_behaviors` SQL/JSON functions

Imports `stored`, `resolve` and `state`; modules call back into `expression` through the `Binding`.
Queries, DML and DDL import it.
"""
