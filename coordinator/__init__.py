"""The server process: connections, sessions, statement execution, and the coordination of commits.

    socket ─bytes─▶ pgwire ─messages─▶ session ─statements─▶ execution ─plans─▶ compute (engines)
                                                                │ reads, writes, commit
                                      stash, Delta ◀─effects─ driver ◀─▶ core (timestamps, commits)

From the entry point down, each layer imports only layers after it:

- `main` (command line), `server` (listening, start-up, recovery), `config` (settings);
- `session` (protocol commands), `execution` (one statement), `transaction` (its transaction) beside
  `pgcatalog` (rows of system catalogs), `variables` beside `planning` (plan cache);
- `driver` (the event loop), `core` (the pure state machine) beside `session_errors`;
- `pgwire` (the wire protocol), and `failures`, `streams`, `exit_line` at the bottom.

`core` and `pgwire` do no I/O. No other package imports `coordinator`; it imports `compute`, `sql`
and `storage`.
"""
