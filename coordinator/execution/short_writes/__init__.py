"""Short writes: INSERT, UPDATE, DELETE and ON CONFLICT by unique keys, alone and in blocks.

    cached plan ─▶ compile: fits? ─▶ Statement ─▶ values ─▶ WriteByKey ─▶ Coordination.change_by_key
                                                              └ evaluated when its group is gathered

- `compile`: which statements fit, and what they are compiled to, once for all sessions.
- `statements`: what they do to the rows of their keys, as evaluators (`core/short_writes/`).
- `locking_reads`: which SELECT FOR UPDATE fits in a block; `skip_locked`: statements that take the
  first free rows of a queue.
- `row_plans`: what becomes of a row, and what RETURNING shows of it; `given_values`: values of
  sequences and of the clock; `plain_values`: which rows need no Arrow at once.
- `run`: one of them as a transaction of its own, or as a statement of a block.

INVARIANTS
  I1  the path is taken only for a statement that has been bound before and still means the same.
  I2  every feature of a statement or a table is either handled here, or rules this path out:
      `tests/session/keys/test_short_writes.py` knows all fields.
  I3  nothing of a statement has happened when it leaves this way; the general way starts over, and
      says what is wrong. No error is told here.
"""
