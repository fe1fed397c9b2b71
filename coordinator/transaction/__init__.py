"""The transaction of a session, as the client sees it: blocks, savepoints, deferred constraints.

    BEGIN, statement, COMMIT ─▶ SessionTransaction ─▶ Coordination (`driver/coordination.py`)

It maps PostgreSQL's transactions (implicit ones, failed blocks, SAVEPOINT, modes) to those of the
coordinator. `transaction` is the state machine; it uses `savepoints`, `deferral` (pending checks of
deferred constraints), `notifications` (LISTEN and NOTIFY until the commit), `statement_waits`,
`new_tables` (for COPY .. (FREEZE)). `begun_commits`: those that no task waits for.

The package imports `variables`, `driver` and layers below. `execution`, `session` and `server`
import it; `pgcatalog` beside it does not.
"""
