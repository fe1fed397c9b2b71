"""Incremental maintenance: derive from a query how its answer changes with its inputs.

    plan of a view ─▶ maintenance_program ─▶ MaintenanceProgram: steps of plans over what changed
                                          └▶ NotIncremental: no program can do it, and why

A program is made of plans that any engine runs (`compute/maintenance.py`), each over relations that
are given or were made by an earlier step. Of each input there are four: its rows `before` and
`after`, and those that `came` and `went`. Changes are *weighted* rows: the columns used, and how
often the row is there more (+) or less (-). Rows that came as they went cancel out to the bit.

| node | rule |
| --- | --- |
| Scan | the rows that came and went, with the columns used |
| Filter, Project, UNION ALL, sets of own columns | applied to the changes |
| inner and cross join | changes of the left x right after, and left before x changes of the right |
| LEFT, RIGHT, LATERAL, subqueries | changes of the kept side; of the other one: affected keys |
| GROUP BY, DISTINCT, windows, UNION, INTERSECT, EXCEPT, FULL | affected keys |
| counts, sums, averages, extremes at the top | added to, or affected keys |
| others without keys, LIMIT, WITH RECURSIVE | full |

*Affected keys*: the node over its inputs' rows whose keys (group, partition, whole row, join key)
are among the changes. At the top of a query that shows the keys, the stored rows with these keys
are what was there before. Elsewhere it is the node over the inputs before.

*Added to*: at the top, counts, sums, averages and extremes of groups are changed by what came and
went, where that proves what they are (`added_groups.py`); the other groups are affected keys. A
view keeps hidden columns with what that needs and the query does not show (`hidden_state.py`).

*Full*: the node over all of its inputs, after and before. A whole query that is full is compared
with the stored rows.

INVARIANTS
  D1  stored rows that are the query over the inputs before, without the rows that go and with those
      that come, are the query over the inputs after. Where several answers are right, it is one.
  D2  a node whose answer is not determined (`plan/changes_of_plans.py`) is never computed over the
      inputs before: what was stored need not come out again.
  D3  a term of a step has no rows if all of its sources are empty, so that it need not be run.

Modules: `program` has the types; `derive` chooses the form of a program; `node_changes` has the
rules; `node_keys` says which nodes have keys; `added_groups` has sums, `hidden_state` the hidden
columns for them; `shown_nodes` tells what the top of a query shows; `affected_rows` restricts plans
to keys, and finds the keys of subqueries; `normalize` takes WITH queries apart; `narrowed_scans`
tells which rows of large relations a plan needs. `rewrite` and the binder may not be imported.
"""
