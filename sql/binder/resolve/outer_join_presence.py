"""Whether the row of an outer join's side is there, or was made up of NULLs, as a column.

    t LEFT JOIN q ON ..        row_to_json(q) asks
      ─▶  t LEFT JOIN (the columns of q, true AS there) ON ..

The join is bound before anybody asks, and nobody else is to pay for the column: who binds the
level puts it into the plan at its end.

INVARIANTS
  T1  what was asked for is put in before the level's plan is handed on.
"""

from collections.abc import Sequence

from sql.binder.state import Side
from sql.plan.nodes import ColumnRef, Const, Plan, PlanColumn, Project, output_columns
from sql.plan.traverse import with_inputs
from sql.types.sql_type import BOOL


def with_presence(plan: Plan, sides: Sequence[Side]) -> Plan:
    """The plan of a level with the columns that were asked of its outer joins (T1)."""
    asked = {id(side.plan): side.there for side in sides if side.there is not None}
    if not asked:
        return plan
    told = _told(plan, asked)
    assert not asked, "T1: the sides are parts of the level's plan"
    return told


def _told(plan: Plan, asked: dict[int, PlanColumn]) -> Plan:
    there = asked.pop(id(plan), None)
    if asked:
        plan = with_inputs(plan, lambda below: _told(below, asked))
    if there is None:
        return plan
    passed = output_columns(plan)
    shown = tuple([ColumnRef(column.id, column.type) for column in passed])
    return Project(plan, (*passed, there), (*shown, Const(True, BOOL)))
