"""Describe plans and expressions in the words of EXPLAIN.

    Plan ─▶ plan_tree.explained ─▶ ExplainedNode: title, details, subplans, inputs ─▶ text or JSON

`plan_tree` is the only module. It names columns as the plan does, writes operators in parentheses,
and shows the subqueries of a node as its SubPlans.

`coordinator.execution` shows statements by it, and `compute` writes single expressions. The binder
may not import it. It imports `sql.statements` and `sql.plan`, and runs nothing.
"""
