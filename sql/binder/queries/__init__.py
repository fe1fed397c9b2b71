"""Queries: SELECT, VALUES, set operations and WITH, from the syntax tree to a plan.

    FROM ─▶ WHERE ─▶ GROUP BY ─▶ HAVING ─▶ windows ─▶ target list ─▶ DISTINCT ─▶ ORDER BY ─▶ LIMIT
    from_clause     select, with expressions/           target_list    result, limits

The result is a `SelectResult`: a plan and its columns, of which some may still be untyped.

    `select`                          `bind_query`: one query, VALUES or set operation
    `from_clause`, `json_table`, `tablesample`    tables, joins, table functions
    `target_list`, `unreachable_sets` the target list, and how ORDER BY and GROUP BY refer to it
    `result`, `limits`                projection, DISTINCT, ORDER BY and LIMIT on top
    `ctes`, `search_cycle`            WITH, WITH RECURSIVE, SEARCH and CYCLE
    `row_locking`                     FOR UPDATE and FOR SHARE

Imports `expressions` and the packages below it. `dml`, `ddl` and `session` import it; expressions
reach it for subqueries through the callback `Binding.bind_query`.
"""
