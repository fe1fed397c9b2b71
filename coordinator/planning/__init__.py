"""Parse, bind and plan statements once for all sessions.

    text ─▶ `sql.parser` ─▶ Statement ─▶ `sql.binder` ─▶ `planner` ─▶ `plan_cache`
                                           ParameterizedStatement

`plan_cache` stores parsed and bound statements under everything that their meaning depends on.
`stored_plans` does the same for checks, defaults and domain rules; `lru_cache` is the bounded
mapping below both.
`planner` folds constants and orders conditions once, after a statement is bound. The engines in
`compute` emit their SQL later.

The package imports only `sql` and `compute`. `execution`, `session` and `server` may import it; it
knows nothing of sessions and transactions.
"""
