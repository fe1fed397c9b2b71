"""Materialized views with `refresh = 'on commit'`: where they are exact, and what keeps them so.

    attach ──▶ exact: [a, ..) ─┬─ an input changes, with the view's delta ─▶ exact still
      AttachView               └─ it cannot be followed ─▶ exact: [a, b) ─ catch-up ─▶ [c, ..)
                                     LeaveView                           AttachView

    queue ─▶ gather ─┬─ members that write no input of a maintained view ─▶ group, as ever
                     └─ others ─▶ unit of a lane ─ MaintainViews ─▶ ViewsMaintained ─▶ group

The exact intervals of a view are a part of the catalog's history: `Catalog.exact_views` at a
timestamp holds the views that are exact there. So whoever has a timestamp and its catalog knows
it, without asking; it is durable, recovered and compacted as DDL is.

A *lane* is a set of exact views with programs, connected by the inputs that they share
(`lane_map.py`). A *unit* is a batch of members that write inputs of one lane (`lanes.py`, N1 to
N4). They leave the queue together and are validated when they are taken. While their views are
maintained, groups of other tables go on. Then they join a group, whole, where they are validated
again (`lane_gathering.py`, N5 to N8). The group has its timestamp from its launch.

INVARIANTS
  V1  exact: at every timestamp whose catalog calls a view exact, its stored rows are, as a bag, the
      rows of its query over its inputs at that timestamp.
  V2  one record: a commit that changes an input, or a definition that the query rests on, has the
      view's delta in the same stash transaction, or ends the interval there.
  V3  no harm: a view never makes a write fail. It delays only commits that write its inputs: by the
      unit before them and their own, each of which waits `view_budget_us` for its deltas at most.
      Catch-up takes no lock on an input (C2 of `coordinator/server/view_catch_up.py`), and CREATE
      and REFRESH no lease (A2 of `coordinator/session/statement_runner.py`).
  V4  no lie: stored rows answer a query only at timestamps where the view is exact, and to
      transactions that have changed nothing. Otherwise its definition answers, at the same
      timestamp (`sql/binder/stored/view_reads.py`).
  V5  determined: the rows of a definition depend on its inputs only: on no time, no session.
  V6  one writer: only CREATE, REFRESH, catch-up and lanes write the rows of a view. The first three
      attach it in the same commit, whose validation proves that the inputs are as they were read
      (A1 of `validation.py`). So the attach is one step, and is refused at levels that do not
      validate. Where inputs never rest, catch-up writes rows of an earlier time, and a unit
      attaches the view with all that has changed since (N9 of `lane_gathering.py`). Who writes an
      input behind an attach of the same gather waits for the next one.
  V7  falling behind is, for validation, a write of every row of the view. Who has read stored rows
      since loses (40001), also within one group. The rows of a delta are an entry of their shard,
      for members behind it too. One that writes an input of a view that it has read commits: its
      own write comes after its read.
  V8  lanes, locks and leases never stand still together: locks are asked before the lane, and who
      waits for a lane waits for no lock. A unit holds what it changes until it has landed or is
      refused. Who needs several lanes waits for all at once. DDL waits for idle lanes.
  V9  who has read a view of its lane is the first of its unit.
  V10 writes by key are evaluated when their unit is taken; the launch evaluates nothing anew. A
      unit whose group is passed over comes back whole, with its deltas.
  V11 a unit that loses a validation is maintained once more. The second time its views are left
      behind. It never holds the queue of other tables.
  V12 the budget is a timer of the core. What comes late is dropped by its attempt, and its worker
      counts as busy until then. Programs are no records: after a start views are exact, and are
      maintained as soon as catch-up has derived their programs.
  V13 the Delta log of a view says since when it is behind (`behind_marks.py`): in the versions at
      whose cut it is behind, and in no others.

| crash | next start |
| --- | --- |
| while a lane maintains | nothing was durable: rows, views and interval are as before |
| before the commit that leaves a view behind is durable | rows and interval are as before |
| its outcome is unknown | the token tells: rows with delta or end of the interval, or none |
| it is durable, and not handled yet | rows and delta are in the tail, or the view is behind |
| catch-up, rows staged | orphans, vacuumed; it begins again |
| attach | rows and the new interval in one record, or the view is still behind |

Many rows leave a view behind at once: staged files, or more than `view_delta_rows_max`. So do DDL,
an error of the query, and a program that is missing.

`exactness` says which views a change leaves behind, and `left_views` of which time the rows of such
a view are. `behind_marks` tells foreign readers. `attaching` says whether a unit may attach one.
`deltas` has what lanes and maintenance exchange, `lane_steps` the steps between.

Not here: programs (`sql/incremental/`), running them (`coordinator/execution/views/maintain.py`),
computing rows anew (`coordinator/server/view_catch_up.py`).
"""
