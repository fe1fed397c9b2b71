"""Data modification: INSERT, UPDATE, DELETE, MERGE, COPY and TRUNCATE to bound statements.

    INSERT, UPDATE, DELETE, MERGE ─▶ Modify: source plan ─▶ rows to write ─▶ ON CONFLICT, RETURNING
                                          (by an engine)              (in process, over `new`)

A `Modify` never says how rows are stored. Its source plan yields new values and row identities; the
plans over `new` check and return the rows that were written.

    `insert`, `update_delete`, `merge`                 one statement each
    `target_relation`, `updatable_views`, `check_option`   the target: a table, or views over one
    `assignment`, `overriding`, `clustering`           values of columns, and the order of rows
    `on_conflict`, `returning`                         clauses that act on rows being written
    `modifying_ctes`                                   WITH queries that modify data
    `copy`, `truncate`                                 COPY and TRUNCATE

Imports `queries`, `expressions`, `stored` and `resolve`; `ddl`, `session` and `bind` may import it.
"""
