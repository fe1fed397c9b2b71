"""Statements about the session itself, and Meridian's extension statements.

None of them reads or writes rows of a table, so most modules only check options and translate nodes
into the classes of `sql.statements.session`.

    `settings`              BEGIN, COMMIT, SAVEPOINT, SET, RESET, SHOW, DISCARD
    `cursors`               DECLARE CURSOR
    `execute_arguments`     the arguments of EXECUTE
    `explain_options`       the options of EXPLAIN
    `lock_tables`           LOCK TABLE
    `meridian_statements`   timelines, read holds, OPTIMIZE and VACUUM

Only `sql.binder.bind` imports this package, and the coordinator's session for DECLARE. It may
import every other package of the binder.
"""
