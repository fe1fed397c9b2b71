"""State that a view keeps beside what it shows, so that its groups are added to.

    Project ─ GroupBy (avg) ─▶ Project, .. ─ GroupBy (avg, sum, count, rows): hidden columns last

The top node with groups gets the counts and sums that `added_groups.py` needs, and its keys and
values are passed on where the query does not show them. The plan gives the same rows as before, in
the same columns, with the hidden ones behind these.

INVARIANTS
  K1  a view keeps state only if its program then adds to all of its groups' values.
  K2  the same query has the same state: whoever binds it anew finds the columns that are stored.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from sql.incremental.added_groups import NewColumn, missing_parts
from sql.incremental.affected_rows import reading_subqueries
from sql.incremental.shown_nodes import rows_above, shown_places, undetermined_below
from sql.plan.changes_of_plans import has_exact_equality
from sql.plan.nodes import (
    Filter,
    GroupBy,
    Plan,
    PlanColumn,
    Project,
    Sort,
    With,
    output_columns,
)
from sql.plan.projections import column_reference, column_references

STATE_PREFIX: Final = "_m_"


@dataclass(frozen=True, slots=True)
class StatefulPlan:
    """A query with its hidden columns, which are the last ones of the plan."""

    plan: Plan
    state: tuple[PlanColumn, ...]


def with_state(plan: Plan, new_column: NewColumn) -> StatefulPlan | None:
    """The query with the state that lets its groups be added to; None: none is needed, or it would
    not help (K1).
    """
    node = _top_groups(plan)
    if node is None or reading_subqueries(node) or undetermined_below(node) is not None:
        return None
    missing = missing_parts(node)
    if missing is None:
        return None
    made = tuple([new_column(call.function.name, call.type) for call in missing])
    kept = replace(
        node,
        aggregate_columns=(*node.aggregate_columns, *made),
        aggregates=(*node.aggregates, *missing),
    )
    unshown = _unshown(plan, node)
    if not all(has_exact_equality(column.type) for column in unshown):
        return None
    hidden = _Hidden(new_column, node, kept, (*unshown, *made))
    if not hidden.columns:
        return None
    extended = hidden.beside(plan)
    width = len(output_columns(plan))
    assert output_columns(extended)[:width] == output_columns(plan), "K1: the same columns"
    return StatefulPlan(extended, output_columns(extended)[width:])


def _top_groups(plan: Plan) -> GroupBy | None:
    """The node with groups that the rows of a plan are made of one by one."""
    _, node = rows_above(_without_with(plan))
    return node if isinstance(node, GroupBy) else None


def _without_with(plan: Plan) -> Plan:
    match plan:
        case With():
            return _without_with(plan.input)
        case Project() | Filter() | Sort():
            return replace(plan, input=_without_with(plan.input))
        case _:
            return plan


def _unshown(plan: Plan, node: GroupBy) -> list[PlanColumn]:
    """The columns of the node that are not columns of the plan."""
    above, _ = rows_above(_without_with(plan))
    places = shown_places(above, node)
    return [c for c in output_columns(node) if column_reference(c) not in places]


@dataclass(frozen=True, slots=True)
class _Hidden:
    """Passes columns of a node on to the top."""

    new_column: NewColumn
    node: GroupBy
    kept: GroupBy
    columns: Sequence[PlanColumn]
    """Those of `kept` that are to be seen at the top."""

    def beside(self, plan: Plan) -> Plan:
        """The plan with these columns last, called by their places."""
        extended, columns = self._passed(plan)
        names = [f"{STATE_PREFIX}{at}" for at in range(len(columns))]
        named = [self.new_column(n, c.type) for n, c in zip(names, columns, strict=True)]
        shown = output_columns(plan)
        refs = column_references((*shown, *columns))
        return Project(extended, (*shown, *named), refs)

    def _passed(self, plan: Plan) -> tuple[Plan, Sequence[PlanColumn]]:
        if plan is self.node:
            return self.kept, self.columns
        match plan:
            case With() | Filter() | Sort():
                below, columns = self._passed(plan.input)
                return replace(plan, input=below), columns
            case Project():
                below, columns = self._passed(plan.input)
                made = tuple([self.new_column(c.name, c.type) for c in columns])
                exprs = (*plan.exprs, *column_references(columns))
                return replace(plan, input=below, columns=(*plan.columns, *made), exprs=exprs), made
            case _:
                raise AssertionError("the node lies below nodes that are computed row by row")
