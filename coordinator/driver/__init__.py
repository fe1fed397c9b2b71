"""The driver: feeds messages to the pure core in one event loop and runs the effects it returns.

    session ─▶ Timelines ─▶ Driver ─message─▶ core.step ─effect─▶ stash, Delta
                               ▲                                       │
                               └────────────── completion ─────────────┘

- `coordination`: the interface that sessions use.
- `timelines`, `timeline_parts`, `advance_timeline`, `dropped_timelines`: one driver for each
  timeline behind that interface.
- `driver`: the loop itself; `leadership`: whether another coordinator has taken over.
- `gather_delay`: turns of the loop that a group of commits waits for.
- `commit_effects`, `maintenance_effects`, `damage_check`: work on stash and files.
- `sequences`: values of sequences, outside of transactions. `notifications`: wakes who listens.

The core decides, the driver acts. The package knows no SQL: of `sql` it imports the catalog's
records and errors, besides `core`, `failures`, `streams` and `storage`. `transaction`, `pgcatalog`
and the layers above them import it.
"""
