"""SUBSCRIBE: the rows of a query at a timestamp, then every change, for as long as a client wants.

    ChangeStream (core) ─┬─ linear: the plan over rows that came, that went with each commit ─┐
                         └─ others: the plan at the end of the step, and the answer before ───┤
                                   socket, or COPY ◀─ RowForm: diff, envelope, order ◀─ net ──┘

- `subscribe`: begins a subscription, and ends it with its client's statement.
- `telling`: what comes after what, up to the end.
- `change_rows`: the rows of a query that is made of rows one by one.
- `compared_rows`: those of any other query. `sql/plan/changes_of_plans` tells which is which.
- `netting`: rows that came as they went.
- `row_forms`, `envelopes`: what clients see of the rows of one timestamp.

INVARIANTS
  F1  timestamps never go back, and all changes of one come before any of a later one. A progress
      row with T comes behind all changes with ts < T, and before any with ts >= T.
  F2  the fold of a snapshot and of all changes up to a progress row T is the query AS OF T - 1,
      as a bag; where several answers are right, it is one of them. So is the fold of what several
      subscriptions were told, each of which resumes where the one before has stopped.
  F3  the position that others may prune behind moves only when its changes are on their way to the
      client, who asks for the next batch of rows when the last one is in its socket.
  F4  nothing is kept for a client that does not read, but the places of a few commits and one batch
      of rows. A commit is streamed, whatever its size. Of a compared query the last answer is
      kept, and rows in an envelope or in order are kept while they are told; both are limited.
  F5  a subscription is outside of its transaction: it locks nothing, is validated against nothing,
      and the transaction holds no timestamp for it.

`session` gets it from `coordinator/execution/utility.py`. The package imports `run_plan`, the
change streams of `core` and `driver`, and `storage/changes.py`.
"""
