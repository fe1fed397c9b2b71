"""Short writes: statements that change rows by unique keys, evaluated when their group is gathered.

    queue ─▶ WriteByKey.evaluate(rows as they are now) ─▶ changes ─▶ a lock in the way? ─▶ applied
                 ▲     shard ◀─ members ahead in the group ◀────────────────────────────────┘
                 └ cannot say: STALE, and the statement goes the general way

A statement that is its whole transaction and changes rows by key needs no snapshot and no read set:
it is evaluated at its place in the order of commits, against what is there at this place. So it
conflicts with nobody, and a row that many change becomes a chain within a group. How rows are
computed is opaque here, as RowEncoder is for inserts.

INVARIANTS
  E1  a member is evaluated after all members ahead of it, and sees what they have made of its rows:
      short writes by this module's rows, and none beside a transaction that has written to the same
      table, for which it waits until the next group. Nothing passes it there but those that were
      ahead of it, so it does not starve.
  E2  a transaction behind short writes is validated against what they have come to by then
      (`tell_ahead`), row by row, with all columns of the rows that went. Versions between two
      members of one group are seen by nobody.
  E3  what was computed belongs to one gather, rows of RETURNING included: they travel with the
      reply of what was launched. A group that is passed over (G4) is evaluated anew.
  E4  only what is in memory is looked at, and what is computed costs no more than the rows are
      long (`compute/access/bounded_plans.py`). A gather stops at GATHER_WORK_MAX.
  E5  who cannot be evaluated, for whatever reason, has had no effect: the general way says what is
      wrong.
  E6  rows that others hold are not changed (K2 of `locking`): who meets one waits as any other.
  E7  SKIP LOCKED passes over rows that others hold, and over rows that members ahead have changed,
      who hold them until the group has landed. Rows that these have made are seen by nobody yet.

- `by_key`: what an evaluator is and sees. `gathered`: the rows of one gather.
- `in_block`: a statement of a block, in one step. `free_rows`: what SKIP LOCKED takes there.

Not here: the queue and its order (`group_commit.py`), evaluators
(`coordinator/execution/short_writes/`).
"""
