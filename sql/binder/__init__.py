"""The binder: a statement's syntax tree to a typed bound statement, by PostgreSQL's rules.

    Statement ─▶ bind ─▶ session, ddl, dml, queries ─▶ expressions ─▶ stored, resolve ─▶ bound

`bind.bind` is the entry point. It dispatches on the kind of syntax node and returns a
`ParameterizedStatement`, whose plan names columns by number and needs no catalog any more. The
packages, low to high:

    `state`         `Binding`, `Scope`, `FromItem`: the state of one call of `bind`
    `resolve`       names, types, overloads, conversions, collations
    `stored`        expressions and queries that the catalog stores as text: defaults, checks, views
    `expressions`   expressions: operators, calls, subqueries, windows, rows, JSON
    `queries`       SELECT: FROM, WITH, target list, ORDER BY, LIMIT
    `dml`           INSERT, UPDATE, DELETE, MERGE, COPY, TRUNCATE
    `ddl`           CREATE, ALTER, DROP, GRANT, COMMENT
    `session`       SET, BEGIN, DECLARE, LOCK and Meridian's own statements
    `bind`, `broken_definitions`   the entry point, and a check of a whole catalog

A module imports from its own layer or from lower ones; `state` breaks the recursion with callbacks.
The binder imports nothing of `sql.emit`, `sql.rewrite` or `sql.explain`: it knows no engine.
"""
