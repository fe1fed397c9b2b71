"""Materialized views with `refresh = 'on commit'`: where their stored rows are exact, and who says.

    attach ──▶ exact: [a, ..) ── a commit changes an input ──▶ exact: [a, b) ── catch-up ──▶ [c, ..)
      AttachView                     LeaveView                                 AttachView

The exact intervals of a view are a part of the catalog's history: `Catalog.exact_views` at a
timestamp holds the views that are exact there. So whoever has a timestamp and its catalog knows
it, without asking; it is durable, recovered and compacted as DDL is.

INVARIANTS
  V1  exact: at every timestamp whose catalog calls a view exact, its stored rows are, as a bag, the
      rows of its query over its inputs at that timestamp.
  V2  one record: a commit that changes an input, or a definition that the query rests on, ends the
      interval in the same stash transaction. Here every such commit does: no view is maintained in
      the commit itself yet.
  V3  no harm: a view never makes a write fail or wait. Catch-up takes no lock on an input.
  V4  no lie: stored rows answer a query only at timestamps where the view is exact, and to
      transactions that have changed nothing. Otherwise its definition answers, at the same
      timestamp (`sql/binder/stored/view_reads.py`).
  V5  determined: the rows of a definition depend on its inputs only: on no time, no session.
  V6  one writer: only CREATE, REFRESH and catch-up write the rows of a view. They attach it in the
      same commit, whose validation proves that the inputs are as they were read (A1 of
      `validation.py`). So the attach is one step, and is refused at levels that do not validate.
  V7  falling behind is, for validation, a write of every row of the view. Who has read stored rows
      since loses (40001), also within one group. One that writes an input of a view that it has
      read commits: its own write comes after its read.

| crash | next start |
| --- | --- |
| before the commit that leaves a view behind is durable | rows and interval are as before |
| its outcome is unknown | the token tells: rows and the end of the interval, or neither |
| it is durable, and not handled yet | the record is in the catalog's history: the view is behind |
| catch-up, rows staged | orphans, vacuumed; it begins again |
| attach | rows and the new interval in one record, or the view is still behind |

Not here: computing rows and trying again (`coordinator/server/view_catch_up.py`).
"""
