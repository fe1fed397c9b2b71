"""Copy a subquery's ORDER BY into its order-sensitive aggregates: lists, texts, sums of floats.

    (select string_agg(s, ',') from (select k, s from u order by v) z where z.k = t.k)
      ─▶  (select string_agg(s, ',' order by v) from (select k, s, v from u order by v) z where ..)

PostgreSQL runs the subquery for each outer row, over rows in their order. An engine turns it into a
join, which has no order.

INVARIANTS
  I1  only subqueries and lateral sides that refer to an outer row are changed: elsewhere the
      engines keep the order of a derived table.

Not here: aggregates with DISTINCT, whose order is that of their values; rows below joins, windows,
groups, DISTINCT and WITH queries.
"""

from dataclasses import replace
from typing import Final

from sql.plan.nodes import (
    Aggregate,
    Filter,
    GroupBy,
    Join,
    Limit,
    Plan,
    Project,
    Sort,
    SortKey,
    Subquery,
    output_columns,
)
from sql.plan.projections import column_references
from sql.plan.renumbering import free_columns
from sql.plan.traverse import (
    Rewrite,
    column_ids,
    has_subquery,
    is_volatile_anywhere,
    rewrite_inputs,
    rewrite_queries,
)
from sql.rewrite.plan_facts import PlanFacts

_GATHERING: Final = ("array_agg", "string_agg", "json_", "jsonb_", "any_value")
_SUMS: Final = ("sum", "avg", "var", "stddev", "corr", "covar_", "regr_")
_Ordered = tuple[Plan, tuple[SortKey, ...]]


def inherit_aggregate_order(plan: Plan, facts: PlanFacts) -> Plan:
    """The plan with ORDER BY in such aggregates (I1)."""
    return _plan(plan) if facts.has_outer_rows else plan


def _plan(plan: Plan) -> Plan:
    def subquery(expr: Subquery, within: Rewrite) -> Subquery:
        query = _plan(expr.plan)
        query = _gathered(query) if free_columns(query) else query
        return replace(expr, args=tuple(map(within, expr.args)), plan=query)

    made = rewrite_queries(plan, _plan, subquery)
    if isinstance(made, Join) and made.lateral:
        return replace(made, right=_gathered(made.right))
    return made


def _gathered(plan: Plan) -> Plan:
    made = rewrite_inputs(plan, _gathered)
    if not isinstance(made, GroupBy) or not any(map(_gathers, made.aggregates)):
        return made
    rows, order = ordered_rows(made.input)
    if not order:
        return made
    calls = [replace(call, order=order) if _gathers(call) else call for call in made.aggregates]
    return replace(made, input=rows, aggregates=tuple(calls))


def _gathers(call: Aggregate) -> bool:
    name = call.function.name
    found = name.startswith(_GATHERING) or (
        name.startswith(_SUMS) and call.args[0].type.name in ("float4", "float8")
    )
    return found and not call.order and not call.distinct


def ordered_rows(plan: Plan) -> _Ordered:
    """The rows with the columns that their sort keys need, and these keys; no keys if the rows have
    no order.
    """
    match plan:
        case Sort():
            exprs = [key.expr for key in plan.keys]
            moved = not any(has_subquery(expr) or is_volatile_anywhere(expr) for expr in exprs)
            return (plan, plan.keys if moved else ())
        case Filter() | Limit():
            rows, order = ordered_rows(plan.input)
            return (replace(plan, input=rows) if order else plan, order)
        case Project():
            return _ordered_project(plan)
        case _:
            return (plan, ())


def _ordered_project(plan: Project) -> _Ordered:
    rows, order = ordered_rows(plan.input)
    if not order:
        return (plan, ())
    needed = {id_ for key in order for id_ in column_ids(key.expr)}
    needed -= {column.id for column in plan.columns}
    more = tuple([column for column in output_columns(rows) if column.id in needed])
    return (Project(rows, (*plan.columns, *more), (*plan.exprs, *column_references(more))), order)
