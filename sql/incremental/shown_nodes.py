"""The nodes at the top of a plan that are computed row by row, and what is shown of those below."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from sql.plan.changes_of_plans import undetermined_part
from sql.plan.nodes import ColumnId, Expr, Filter, Plan, Project, Sort, output_columns
from sql.plan.projections import column_references
from sql.plan.traverse import has_subquery, inputs, plan_expressions, substitute_columns

RowNode: TypeAlias = Project | Filter | Sort


def rows_above(plan: Plan) -> tuple[list[RowNode], Plan]:
    """The nodes at the top that are computed row by row, and the one below them."""
    above: list[RowNode] = []
    while isinstance(plan, Project | Filter | Sort):
        if any(map(has_subquery, plan_expressions(plan))):
            break
        above.append(plan)
        plan = plan.input
    return above, plan


def shown_places(above: Sequence[RowNode], node: Plan) -> dict[Expr, int]:
    """Where what is shown stands in the plan, as expressions over the node's columns."""
    shown: Sequence[Expr] = ()
    made: Mapping[ColumnId, Expr] | None = None
    for one in reversed(above):
        if isinstance(one, Project):
            below = made or {}
            shown = [substitute_columns(expr, below) for expr in one.exprs]
            made = {c.id: e for c, e in zip(one.columns, shown, strict=True)}
    if made is None:
        shown = column_references(output_columns(node))
    found: dict[Expr, int] = {}
    for at, expr in enumerate(shown):
        found.setdefault(expr, at)
    return found


def undetermined_below(node: Plan) -> str | None:
    """What of a node's inputs has several right answers."""
    return next((found for below in inputs(node) if (found := undetermined_part(below))), None)
