"""Sessions: the commands of the PostgreSQL protocol, one at a time, for one client.

    message ─▶ session ─▶ commands ─▶ statement_runner ─▶ statement_binder ─▶ plan cache, binder
                             │               └▶ `execution` ─▶ Done, Rows
                             └▶ portals, prepared statements, cursors ─▶ result_encoder ─▶ client

- The loop, errors and interrupts: `session`; its connection: `client`. The commands: `commands`,
  `requests`.
- Names of a session: `prepared_statements`, `portal`, `portals`, `cursors`.
- Running: `statement_runner`, `statement_binder`, `bind_parameters`, `as_of`.
- Short ways: `short_answers`, `short_blocks`, `short_commits`; of strings: `own_statements`.
- Results: `result_columns`, `result_encoder`.
- `temporary_tables` drops a session's temporary relations; `activity` says what it runs.

Only `server` imports the package; it imports `execution` and the layers below.
"""
