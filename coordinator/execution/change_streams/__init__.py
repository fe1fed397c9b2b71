"""SUBSCRIBE: the rows of a table or query at a timestamp, then every change, for as long as asked.

    ChangeStream (core) ─▶ changes of a few commits ─▶ the plan over rows that came, that went
                                                          └─▶ netted ─▶ meridian_ts, diff, row
                                                                          └─▶ socket, or COPY

- `subscribe`: begins a subscription, and ends it with its client's statement.
- `telling`: what comes after what, up to the end.
- `change_rows`: the rows of a snapshot and of changes, as clients see them.

INVARIANTS
  F1  timestamps never go back, and all changes of one come before any of a later one. A progress
      row with T comes behind all changes with ts < T, and before any with ts >= T.
  F2  the fold of a snapshot and of all changes up to a progress row T is the query AS OF T - 1,
      as a bag. So is the fold of what several subscriptions were told, each of which resumes where
      the one before has stopped.
  F3  the position that others may prune behind moves only when its changes are on their way to the
      client, who asks for the next batch of rows when the last one is in its socket.
  F4  nothing is kept for a client that does not read, but the places of a few commits and one batch
      of rows. A commit is streamed, whatever its size.
  F5  a subscription is outside of its transaction: it locks nothing, is validated against nothing,
      and the transaction holds no timestamp for it.

`session` gets it from `coordinator/execution/utility.py`. The package imports `run_plan`, the
change streams of `core` and `driver`, and `storage/changes.py`.
"""
