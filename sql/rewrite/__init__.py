"""Rewrite bound plans so that an engine gives PostgreSQL's answer, and fails only where it fails.

    bound plan ─▶ simplified and ordered ─▶ passes of one engine ─▶ sql.emit ─▶ SQL text
                  (when it is planned)      (when it is emitted)

A pass takes a plan and its facts, and returns a plan with the same columns that means the same to
PostgreSQL. Each engine lists its passes in a tuple, in the order in which they run.

  running       `passes` runs such a tuple over a plan, with the facts that `plan_facts` finds once;
                `column_ids` has ids for the columns that passes add
  analyses      `failure_analysis`, `guard_expressions`, `outer_and_subquery_conditions` and
                `trivial_scalar_subqueries` tell what a plan or an expression does
  passes        `volatile_calls`, `aggregate_order` and `negative_zero` run for both engines,
                `simplify_exists` when constants are folded
  `guards/`     passes that keep an engine from failing for rows that PostgreSQL never computes
  `subqueries/` passes that turn subqueries and join conditions into forms that engines take

`sql.emit`, `compute` and `coordinator.planning` import this package; the binder may not. It knows
plans and expressions, but no statements, catalogs or parameters.
"""
