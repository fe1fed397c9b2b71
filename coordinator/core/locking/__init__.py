"""Locks that make sessions wait; validation (`core/validation.py`) alone keeps answers right.

    session ─▶ AcquireLock ─▶ lock_table: granted │ waits in line │ refused ─▶ LockAnswered, Refused
                  transaction, session ends ─▶ release ─▶ the line is served in the same step

- `modes`: modes, their conflicts, and the tags of what is locked.
- `lock_table`: who holds what and who waits, for one timeline; `wait_graph`: who waits for whom,
  over all timelines of the process, and the search for deadlocks.
- `requests`: the messages of sessions and their replies. A transaction that has waited moves to a
  newer timestamp if nothing that it has read has changed (`core/refresh.py`).

Locks need no disk and no replication: they die with the leader, as its sessions do. Readers take
none. If all row and table locks were dropped, no answer at the serializable levels would be wrong.

INVARIANTS
  K1  two sessions never hold conflicting modes of one tag; the group in flight counts as a holder.
  K2  no commit changes a row, or writes to a table, that another session holds against it. (A row
      that was replaced and flushed to a file before its key was locked is known by its old name
      until the statement has begun again.)
  K3  a request that waits is granted, refused, timed out or cancelled: every release serves its
      lines in the same step.
  K4  no circle of waiters outlives the step that would close it.
  K5  first come, first served by ticket; exceptions are sessions that hold the tag already, FOR KEY
      SHARE beside its holders, and waiters that move ahead to dissolve a circle.
  K6  at the serializable levels no answer is wrong if all row and table locks are lost at any
      moment; below, who has lost one that he was promised cannot commit.

The package is part of the pure core; its design follows PostgreSQL's lmgr (README and
`deadlock.c`).
"""
