"""Materialized views that follow their inputs: what CREATE, REFRESH and catch-up share.

    query at T ─▶ rows ─▶ attach ─▶ commit, which is validated ─▶ exact
                                       └─ lost ─▶ attempts: when it is tried again

- `attach` says in the transaction that the rows it has written are those of the query. The core
  commits that only if it is still so (V6 of `coordinator/core/views`).
- `refresh_by_changes` computes only what has changed since, where that costs less.
- `maintain` computes what a commit changes. `rehearsal` does so once before a commit waits.
- `attempts` holds what catch-up has tried, `shown` makes rows for people of it.
- `program_notes` says how a view would be maintained.

Not here: the loop of catch-up (`coordinator/server/view_catch_up.py`), and choosing how a view is
read (`sql/binder/stored/view_reads.py`).
"""
