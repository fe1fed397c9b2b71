"""Add a column that tells a real row from a null-extended one of an outer join, on demand.

    t LEFT JOIN q ON ..        row_to_json(q) demands it
      ─▶  t LEFT JOIN (the columns of q, true AS there) ON ..

The join is bound before any expression demands the column, and other queries should not pay for it.
The binder of the query level therefore adds the demanded columns to the plan at the end.

INVARIANTS
  T1  every demanded column is added before the level's plan is returned.
"""

from collections.abc import Sequence

from sql.binder.state import NullSupplyingSide
from sql.plan.nodes import ColumnRef, Const, Plan, PlanColumn, Project, output_columns
from sql.plan.traverse import rewrite_inputs
from sql.types.sql_type import BOOL


def with_presence_columns(plan: Plan, sides: Sequence[NullSupplyingSide]) -> Plan:
    """The plan of a level with the presence columns that its outer joins need (T1)."""
    asked = {id(side.plan): side.there for side in sides if side.there is not None}
    if not asked:
        return plan
    told = _told(plan, asked)
    assert not asked, "T1: the sides are parts of the level's plan"
    return told


def _told(plan: Plan, asked: dict[int, PlanColumn]) -> Plan:
    there = asked.pop(id(plan), None)
    if asked:
        plan = rewrite_inputs(plan, lambda below: _told(below, asked))
    if there is None:
        return plan
    passed = output_columns(plan)
    shown = tuple([ColumnRef(column.id, column.type) for column in passed])
    return Project(plan, (*passed, there), (*shown, Const(True, BOOL)))
