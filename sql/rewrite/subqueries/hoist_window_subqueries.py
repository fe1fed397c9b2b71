"""Turn subqueries in window calls, and in min() and max() of arrays, into columns below.

    max(array(select ..)) over w  ─▶  max(c) over w  from (select .., array(select ..) as c from ..)

DuckDB writes some calls twice, max() of a list for one, and cannot do so with a subquery. Spark
takes no subquery in a window, nor in FILTER within a correlated subquery.

INVARIANTS
  W1  a node keeps its columns and their order.
  W2  an argument that may fail for rows that FILTER leaves out is in a branch before it becomes a
      column (`sql/rewrite/guards/guard_filtered_aggregates.py`).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from sql.plan.nodes import (
    Aggregate,
    ColumnId,
    ColumnRef,
    Expr,
    GroupBy,
    Plan,
    PlanColumn,
    Window,
    output_columns,
)
from sql.plan.projections import append_columns, column_reference, project_columns
from sql.plan.traverse import (
    has_subquery,
    rewrite_inputs,
    rewrite_node,
    rewrite_queries,
)
from sql.rewrite.column_ids import IdRange, range_of_column_ids
from sql.rewrite.plan_facts import PlanFacts


def hoist_window_subqueries(plan: Plan, facts: PlanFacts, *, filters: bool = False) -> Plan:
    """The plan without subqueries in such calls; `filters`: nor in FILTER of an aggregate."""
    if not facts.has_subquery:
        return plan
    return _plan(plan, range_of_column_ids(IdRange.HOIST_WINDOW_SUBQUERIES), filters=filters)


def _plan(plan: Plan, numbers: Iterator[int], *, filters: bool) -> Plan:
    made = rewrite_queries(plan, lambda part: _plan(part, numbers, filters=filters))
    asked: dict[PlanColumn, Expr] = {}

    def column(expr: Expr) -> ColumnRef:
        found = PlanColumn(ColumnId(next(numbers)), "asked", expr.type)
        asked[found] = expr
        return column_reference(found)

    told = made
    if isinstance(made, Window):
        told = rewrite_node(made, lambda part: column(part) if has_subquery(part) else part)
    elif isinstance(made, GroupBy):
        calls = [_of_columns(call, column) for call in made.aggregates]
        if filters:
            calls = [_filtered(call, column) for call in calls]
        told = replace(made, aggregates=tuple(calls))
    if not asked:
        return made
    below = _projected(told, asked)
    return project_columns(below, output_columns(made))


def _of_columns(call: Aggregate, column: Callable[[Expr], ColumnRef]) -> Aggregate:
    is_array = call.function.name in ("min", "max") and call.type.element is not None
    if not is_array or not has_subquery(call.args[0]):
        return call
    return replace(call, args=(column(call.args[0]),))


def _filtered(call: Aggregate, column: Callable[[Expr], ColumnRef]) -> Aggregate:
    if call.filter is None or not has_subquery(call.filter):
        return call
    return replace(call, filter=column(call.filter))


def _projected(plan: Plan, more: Mapping[PlanColumn, Expr]) -> Plan:
    """The node over rows with more columns."""
    return rewrite_inputs(plan, lambda rows: append_columns(rows, more))
