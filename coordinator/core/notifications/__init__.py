"""LISTEN, NOTIFY and UNLISTEN in the core: what a commit carries, and the queue that it enters.

    session ─▶ CommitTransaction(changes) ─▶ group, durable and applied ─▶ queue ─▶ WakeListeners
    session ─▶ TakeNotifications ─▶ queue ─▶ TakenNotifications

- `changes`: what transactions do and what sessions hear, as values.
- `queue`: who listens to what, and what each session has not heard yet; one for all timelines of
  the process. It has the invariants.

A notification has its place in the order of the commits (`core/group_commit.py` G6). Nothing here
is durable: who listens ends with the process.

The package is part of the pure core; its design follows PostgreSQL's `async.c`.
"""
