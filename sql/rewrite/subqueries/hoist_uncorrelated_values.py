"""Turn uncorrelated scalar subqueries into columns, for functions that run in Spark's workers.

    select f(t.a, (select max(b) from u)) from t
      ─▶  select f(t.a, c) from t cross join (select (select max(b) from u) as c)

Spark merges equal subqueries of a statement, and cannot compare those that stand in a function of
its Python workers.

INVARIANTS
  V1  a node keeps its columns and their order; a volatile subquery stays where it is.

Not here: correlated subqueries, which Spark turns into joins.
"""

from collections.abc import Iterator
from dataclasses import replace

from sql.plan.nodes import (
    ColumnId,
    Expr,
    Filter,
    GroupBy,
    Join,
    JoinKind,
    Plan,
    PlanColumn,
    Project,
    SetScan,
    Subquery,
    output_columns,
)
from sql.plan.projections import ONE_ROW, column_reference, project_columns
from sql.plan.renumbering import free_columns
from sql.plan.traverse import (
    has_subquery,
    is_volatile_plan,
    rewrite_children,
    rewrite_inputs,
    rewrite_node,
    rewrite_queries,
)
from sql.rewrite.column_ids import IdRange, range_of_column_ids
from sql.rewrite.plan_facts import PlanFacts


def hoist_uncorrelated_values(plan: Plan, facts: PlanFacts) -> Plan:
    """The plan with such columns."""
    return (
        _plan(plan, range_of_column_ids(IdRange.HOIST_UNCORRELATED_VALUES))
        if facts.has_subquery
        else plan
    )


def _plan(plan: Plan, numbers: Iterator[int]) -> Plan:
    made = rewrite_queries(plan, lambda part: _plan(part, numbers))
    if not isinstance(made, Project | Filter | GroupBy | Join | SetScan):
        return made
    values: dict[PlanColumn, Expr] = {}

    def within(expr: Expr) -> Expr:
        if isinstance(expr, Subquery) and not _is_own(expr):
            return replace(expr, args=tuple(map(within, expr.args)))
        if isinstance(expr, Subquery):
            column = PlanColumn(ColumnId(next(numbers)), "value", expr.type)
            values[column] = expr
            return column_reference(column)
        return rewrite_children(expr, within) if has_subquery(expr) else expr

    told = rewrite_node(made, within)
    if not values:
        return made
    row = Project(ONE_ROW, tuple(values), tuple(values.values()))
    return project_columns(_beside(told, row), output_columns(made))


def _beside(plan: Plan, row: Plan) -> Plan:
    """The node over rows with the columns of this one, too."""
    match plan:
        case SetScan():
            return Join(JoinKind.CROSS, row, plan, None, lateral=True)
        case Join():
            return replace(plan, left=Join(JoinKind.CROSS, plan.left, row, None))
        case _:
            return rewrite_inputs(plan, lambda rows: Join(JoinKind.CROSS, rows, row, None))


def _is_own(expr: Subquery) -> bool:
    return not expr.args and not free_columns(expr.plan) and not is_volatile_plan(expr.plan)
