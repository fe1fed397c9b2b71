"""Carry outer columns through the rows of each query, so that no subquery refers further out.

    t: (select count(*) from u where exists (select from v where v.t = t.id and v.u = u.id))
      ─▶  (select count(*) from (select u.*, t.id as c from u) u
           where exists (select from v where v.t = u.c and v.u = u.id))

Spark takes no subquery that refers to more than the query it stands in; in a SELECT of its own it
takes columns of the outer row. Three other places carry columns as well. Spark moves the operand of
IN, which may be NULL, to the join that it makes of the query around it. It does the same with ON of
a full join, and with a condition in LATERAL that has a subquery and columns of the outer row
(`outer_and_subquery_conditions.py`).

INVARIANTS
  C1  a node keeps its columns and their order.
  C2  at every level a subquery refers to the rows next to it only. Nothing carries columns for
      VALUES of several rows and arguments of set-returning functions; `emit/plans.py` refuses
      those.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final, TypeAlias

from sql.plan.nodes import (
    ColumnId,
    ColumnRef,
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
    Values,
    Window,
    output_columns,
)
from sql.plan.projections import ONE_ROW, append_columns, column_reference, project_columns
from sql.plan.renumbering import column_refs, expression_columns, free_columns
from sql.plan.traverse import (
    column_ids,
    has_subquery,
    inputs,
    plan_expressions,
    rewrite_children,
    rewrite_inputs,
    rewrite_node,
    rewrite_plan,
    subqueries,
    substitute_columns,
)
from sql.rewrite.column_ids import IdRange, range_of_column_ids
from sql.rewrite.outer_and_subquery_conditions import (
    is_outer_and_subquery_condition,
    node_conditions,
)
from sql.rewrite.plan_facts import PlanFacts
from sql.rewrite.subqueries.lateral_set_functions import is_unnested_beside_rows

_Columns: TypeAlias = Mapping[ColumnId, PlanColumn]
_NOTHING: Final[AbstractSet[ColumnId]] = frozenset()


def carry_outer_columns(plan: Plan, facts: PlanFacts) -> Plan:
    """The plan, whose subqueries refer to the rows next to them only (C2)."""
    if not facts.has_outer_rows:
        return plan
    return _plan(plan, _NOTHING, range_of_column_ids(IdRange.CARRY_OUTER_COLUMNS))


def _plan(plan: Plan, outside: AbstractSet[ColumnId], numbers: Iterator[int]) -> Plan:
    """`outside`: the columns that the side of a LATERAL that the plan is part of refers to."""

    def query(expr: Expr) -> Expr:
        if isinstance(expr, Subquery):
            args = tuple(map(query, expr.args))
            return replace(expr, args=args, plan=_plan(expr.plan, _NOTHING, numbers))
        return rewrite_children(expr, query) if has_subquery(expr) else expr

    made = rewrite_node(_carrying(plan, outside, numbers), query)
    if isinstance(made, Join) and made.lateral:
        left = _plan(made.left, outside, numbers)
        return replace(made, left=left, right=_plan(made.right, free_columns(made.right), numbers))
    return rewrite_inputs(made, lambda part: _plan(part, outside, numbers))


def _carrying(plan: Plan, outside: AbstractSet[ColumnId], numbers: Iterator[int]) -> Plan:
    """The node over rows that carry what its subqueries need."""
    if isinstance(plan, Values) and len(plan.rows) == 1 and plan.columns:
        plan = Project(ONE_ROW, plan.columns, plan.rows[0]) if _needed(plan) else plan
    if not isinstance(plan, Project | Filter | Join | GroupBy | Window):
        return plan
    mixed = [
        part
        for part in node_conditions(plan)
        if is_outer_and_subquery_condition(part, outside) or _is_of_full(plan)
    ]
    needed = _needed(plan) | _needed_by(mixed, plan, outside)
    if not needed:
        return plan
    types = {ref.id: ref.type for ref in column_refs(plan) if ref.id in needed}
    made = {
        id_: PlanColumn(ColumnId(next(numbers)), "carried", type_) for id_, type_ in types.items()
    }
    return project_columns(_over_carried(_told(plan, made, mixed), made), output_columns(plan))


def _needed(plan: Plan) -> set[ColumnId]:
    """What subqueries refer to further out."""
    asked = [part for expr in plan_expressions(plan) for part in subqueries(expr)]
    used = {id_ for part in asked for id_ in free_columns(part.plan)}
    used |= {id_ for part in asked for arg in part.args for id_ in expression_columns(arg)}
    used |= {
        id_
        for part in node_conditions(plan)
        if _is_of_full(plan)
        for id_ in expression_columns(part)
    }
    needed = used - _made_below(*inputs(plan))
    if isinstance(plan, Join) and plan.lateral and not _is_set_beside(plan):
        needed |= free_columns(plan.right) - _made_below(plan.left)
    return needed


def _is_set_beside(plan: Join) -> bool:
    """Whether its set is unnested in the SELECT of the rows that it is of."""
    return isinstance(plan.right, SetScan) and is_unnested_beside_rows(plan)


def _is_of_full(plan: Plan) -> bool:
    """Whether it is a join of which Spark takes conditions on the outer row to the join that it
    makes of the subquery: rows without a partner would be lost.
    """
    return isinstance(plan, Join) and plan.kind is JoinKind.FULL


def _needed_by(
    mixed: Sequence[Expr], plan: Plan, outside: AbstractSet[ColumnId]
) -> AbstractSet[ColumnId]:
    used = {id_ for part in mixed for id_ in column_ids(part)}
    return (used & outside) - _made_below(*inputs(plan))


def _made_below(*plans: Plan) -> set[ColumnId]:
    return {column.id for plan in plans for column in output_columns(plan)}


def _told(plan: Plan, made: _Columns, mixed: Sequence[Expr]) -> Plan:
    """The node with its subqueries and mixed conditions over the carried columns. Elsewhere it goes
    on to refer to the outer row: Spark joins by what a condition says of that.
    """
    by: dict[ColumnId, Expr] = {id_: column_reference(column) for id_, column in made.items()}

    def within(expr: Expr) -> Expr:
        if expr in mixed or isinstance(expr, Subquery):
            return substitute_columns(expr, by)
        return rewrite_children(expr, within) if mixed or has_subquery(expr) else expr

    told = rewrite_node(plan, within)
    if isinstance(told, Join) and told.lateral:
        right = rewrite_plan(told.right, lambda expr: substitute_columns(expr, by))
        return replace(told, right=right)
    return told


def _over_carried(plan: Plan, made: _Columns) -> Plan:
    outside = {column: ColumnRef(id_, column.type) for id_, column in made.items()}

    def below(rows: Plan) -> Project:
        return append_columns(rows, outside)

    if isinstance(plan, Join):
        return replace(plan, left=below(plan.left))
    return rewrite_inputs(plan, below)
