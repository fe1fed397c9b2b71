"""SUBSCRIBE in the core: who follows which table, how far, and what each of them holds.

    session ─▶ BeginSubscription ─▶ a position and a hold ─▶ TakeStep ─▶ (position, upto] of a shard
       ▲                          ▲ └──────────────── MoveSubscription ◀─┘ when it was told
       └──── WakeSubscribers ◀── a commit is applied, time is closed, the table changes

- `steps`: what a subscriber asks for and gets, as values.
- `subscriptions`: who there is and where each stands. It has the invariants.
- `definitions`: the commit that ends a subscription, since it changes or drops the table.

A subscriber pulls. Nothing is kept for it but its position, and what is behind its position can be
made again from the shard (`storage/changes.py`) as often as it is asked for.

The package is part of the pure core: reading rows, netting them and sending them is done in
`coordinator/execution/change_streams/`.
"""
