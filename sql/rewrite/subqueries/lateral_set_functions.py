"""Flatten lateral joins of set-returning functions, which keeps the nested loop's row order.

    left lateral (sets lateral sets)      ─▶  (left lateral sets) lateral sets
    left lateral Project(sets, exprs)     ─▶  Project(left lateral sets, columns of left + exprs)
    left lateral sets ON c                ─▶  Filter(left lateral sets, c)
    left LEFT lateral sets ON true        ─▶  sets with a row of NULLs where they are empty

An engine unnests a list beside its row, and keeps PostgreSQL's order. It computes everything else
on the lateral side for the distinct outer rows, and joins that by a hash, in any order.

INVARIANTS
  F1  the rows are the same, and the values computed for them, too.
  F2  a value computed over a set is NULL in the row that LEFT adds.
"""

from collections.abc import Set
from dataclasses import replace

from sql.plan.nodes import (
    Call,
    Case,
    ColumnId,
    ColumnRef,
    Const,
    Expr,
    Filter,
    IsTest,
    Join,
    JoinKind,
    Plan,
    PlanColumn,
    Project,
    SetScan,
    Test,
    output_columns,
)
from sql.plan.projections import column_references
from sql.plan.renumbering import free_columns
from sql.types.sql_type import BOOL

_EVERY = (JoinKind.CROSS, JoinKind.INNER)


def flatten_lateral_sets(plan: Join) -> Plan:
    """The join, lateral only of a SetScan where that is possible; the plan itself if it stays."""
    if not plan.lateral:
        return plan
    if plan.kind in _EVERY and _are_sets(plan.right):
        return _of_every_row(plan)
    if is_unconditional_left_join(plan) and isinstance(plan.right, Project):
        return _made_up(plan.left, plan.right) or plan
    return plan


def is_unnested_beside_rows(plan: Join) -> bool:
    """Whether its sets are unnested beside their rows: sets of constants are computed once for all
    rows.
    """
    of_all = plan.condition is None and plan.kind in _EVERY
    return (
        plan.lateral
        and (of_all or is_unconditional_left_join(plan))
        and bool(free_columns(plan.right))
    )


def is_unconditional_left_join(plan: Join) -> bool:
    """Whether it NULL-extends every row of the left side that has no row on the right."""
    return plan.kind is JoinKind.LEFT and plan.condition in (None, Const(True, BOOL))


def _are_sets(plan: Plan) -> bool:
    match plan:
        case SetScan():
            return True
        case Project() | Filter():
            return _are_sets(plan.input)
        case Join():
            every = plan.kind in _EVERY or (plan.lateral and is_unconditional_left_join(plan))
            return every and _are_sets(plan.left) and _are_sets(plan.right)
        case _:
            return False


def _of_every_row(plan: Join) -> Plan:
    if isinstance(plan.right, SetScan) and plan.condition is None:
        return plan
    joined = _beside(plan.left, plan.right)
    return joined if plan.condition is None else Filter(joined, plan.condition)


def _beside(left: Plan, right: Plan) -> Plan:
    """The rows of `left`, each with those of the sets for it."""
    match right:
        case Project():
            below = _beside(left, right.input)
            kept = output_columns(left)
            return Project(below, (*kept, *right.columns), (*column_references(kept), *right.exprs))
        case Filter():
            return Filter(_beside(left, right.input), right.predicate)
        case Join() if right.kind in _EVERY:
            joined = _beside(_beside(left, right.left), right.right)
            return joined if right.condition is None else Filter(joined, right.condition)
        case Join():
            return replace(right, left=_beside(left, right.left))
        case _:
            return Join(JoinKind.CROSS, left, right, None, lateral=True)


def _made_up(left: Plan, right: Project) -> Plan | None:
    """A left join of expressions over one set (F2), if that can be."""
    layers: list[Project] = []
    below: Plan = right
    while isinstance(below, Project):
        layers.append(below)
        below = below.input
    if not isinstance(below, SetScan):
        return None
    number = below.ordinality
    absent = {column.id for column in output_columns(below)}
    kept = output_columns(left)
    plan: Plan = Join(JoinKind.LEFT, left, below, None, lateral=True)
    for layer in reversed(layers):
        if number is None and not all(_is_null(expr, absent) for expr in layer.exprs):
            return None
        absent.update([column.id for column in layer.columns])
        passed = kept if number is None or layer is right else (*kept, number)
        exprs = [_of_rows(expr, number, absent) for expr in layer.exprs]
        plan = Project(plan, (*passed, *layer.columns), (*column_references(passed), *exprs))
    return plan


def _of_rows(expr: Expr, number: PlanColumn | None, absent: Set[ColumnId]) -> Expr:
    """The expression, NULL in a row that is made up."""
    if number is None or _is_null(expr, absent):
        return expr
    made_up = IsTest(Test.IS_NULL, ColumnRef(number.id, number.type), BOOL)
    return Case(((made_up, Const(None, expr.type)),), expr, expr.type)


def _is_null(expr: Expr, absent: Set[ColumnId]) -> bool:
    """Whether it is NULL where these columns are, by its form."""
    if isinstance(expr, Call):
        return expr.function.strict and any(_is_null(arg, absent) for arg in expr.args)
    return isinstance(expr, ColumnRef) and expr.id in absent
