"""Guard what a correlated subquery computes by its own conditions on the outer row.

    (select sum(u.v/t.v) from u where u.id = t.id and t.v <> 0)
      ─▶  (select sum(case when u.id = t.id and t.v <> 0 then u.v/t.v end) from u where ..)

An engine moves conditions on the outer row to the join that it makes of the subquery, above
everything else in it, and computes the rest for all outer rows.

INVARIANTS
  R1  a condition guards expressions over the rows that it has left, while its columns are there:
      through joins that add no NULL-extended rows, and keys of groups.
  R2  an expression without outer references is guarded only where something is equal to a column
      of the outer row: else the guard would turn the subquery into a join of all pairs.
  R3  an expression that can only overflow stays as it is, and so does a value that is computed
      outside of its subquery.

Not here: the branch around the subquery (`guard_branch_subqueries.py`).
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import TypeAlias

from sql.plan.conditions import conjunction, equality_sides
from sql.plan.nodes import (
    ColumnId,
    ColumnRef,
    DistinctOn,
    DistinctRows,
    Expr,
    Filter,
    GroupBy,
    Join,
    Limit,
    Plan,
    PlanColumn,
    Project,
    SetScan,
    Sort,
    Subquery,
    Window,
    output_columns,
)
from sql.plan.traverse import (
    Rewrite,
    column_ids,
    conjuncts,
    has_subquery,
    inputs,
    is_volatile_anywhere,
    rewrite_children,
    rewrite_inputs,
    rewrite_node,
    substitute_columns,
)
from sql.rewrite.guard_expressions import guarded_value, may_fail
from sql.rewrite.guards.aggregate_scalar_subqueries import with_guarded_only_value
from sql.rewrite.guards.hoist_failing_outputs import is_output_hoisted
from sql.rewrite.guards.push_filters_below_lateral import NEVER_NULL_LEFT, NEVER_NULL_RIGHT
from sql.rewrite.plan_facts import PlanFacts

_Conditions: TypeAlias = tuple[Expr, ...]


def guard_by_outer_conditions(plan: Plan, facts: PlanFacts) -> Plan:
    """The plan, whose subqueries guard what they compute by their conditions on outer rows."""
    guarded = facts.has_outer_rows and facts.may_fail(by_overflow=False)
    return _plan(plan, ())[0] if guarded else plan


def _plan(plan: Plan, given: _Conditions) -> tuple[Plan, _Conditions]:
    """The plan, and the conditions on outer rows that are true of its rows (R1). `given`: of the
    rows that it is beside.
    """
    if isinstance(plan, Join):
        return _join(plan, given)
    known = given

    def below(part: Plan) -> Plan:
        nonlocal known
        made, found = _plan(part, given)
        known = found
        return made

    made = rewrite_inputs(plan, below)
    if isinstance(made, Filter):
        return _filter(made, known)
    own = [column for part in inputs(made) for column in output_columns(part)]
    if isinstance(made, Project | GroupBy | Window | Sort | SetScan):
        made = rewrite_node(made, _guards(known, own))
        made = with_guarded_only_value(made, conjunction(known)) if known else made
    else:
        made = rewrite_node(made, _queries)
    return made, tuple(_kept(made, known))


def _join(plan: Join, given: _Conditions) -> tuple[Join, _Conditions]:
    left, of_left = _plan(plan.left, given)
    right, of_right = _plan(plan.right, of_left if plan.lateral else given)
    kept_left = of_left if plan.kind in NEVER_NULL_LEFT else ()
    known = kept_left + (of_right if plan.kind in NEVER_NULL_RIGHT else ())
    condition = None if plan.condition is None else _queries(plan.condition)
    if plan.lateral and condition is not None:
        right = _unguarded(right, plan.right, set(column_ids(condition)))
    return replace(plan, left=left, right=right, condition=condition), known


def _unguarded(made: Plan, plan: Plan, asked: AbstractSet[ColumnId]) -> Plan:
    """A lateral side with what ON asks of as it was: PostgreSQL takes a plain one apart and asks
    the rows of its tables, so that it fails for any of them.
    """
    if not isinstance(made, Project) or not isinstance(plan, Project):
        return made
    both = zip(made.columns, made.exprs, plan.exprs, strict=True)
    exprs = [plain if column.id in asked else guarded for column, guarded, plain in both]
    return replace(made, exprs=tuple(exprs))


def _filter(plan: Filter, known: _Conditions) -> tuple[Filter, _Conditions]:
    own = output_columns(plan.input)
    made: list[Expr] = []
    for part in conjuncts(plan.predicate):
        made.append(_guards(known, own)(part))
        if _refers_outside(part, own) and not (has_subquery(part) or is_volatile_anywhere(part)):
            known = (*known, part)
    return Filter(plan.input, conjunction(made)), known


def _kept(plan: Plan, known: _Conditions) -> Iterable[Expr]:
    """The conditions that can be asked of the plan's rows, too (R1)."""
    match plan:
        case Sort() | Limit() | DistinctRows() | DistinctOn() | Window():
            return known
        case Project():
            made = {
                expr.id: ColumnRef(column.id, column.type)
                for column, expr in zip(plan.columns, plan.exprs, strict=True)
                if isinstance(expr, ColumnRef)
            }
            return _of(known, output_columns(plan.input), made)
        case GroupBy() if plan.keys and plan.sets is None:
            made = {
                key.id: ColumnRef(column.id, column.type)
                for column, key in zip(plan.key_columns, plan.keys, strict=True)
                if isinstance(key, ColumnRef)
            }
            return _of(known, output_columns(plan.input), made)
        case _:
            return ()


def _of(
    known: _Conditions, columns: Sequence[PlanColumn], made: dict[ColumnId, ColumnRef]
) -> Iterable[Expr]:
    gone = {column.id for column in columns} - set(made)
    return [substitute_columns(part, made) for part in known if gone.isdisjoint(column_ids(part))]


def _guards(known: _Conditions, own: Sequence[PlanColumn]) -> Rewrite:
    """Guards what refers to outer rows, and other values by key (R2)."""
    by_key = any(_is_key(part, own) for part in known)

    def guarded(expr: Expr) -> Expr:
        expr = _queries(expr)
        if not known or not may_fail(expr, by_overflow=False):
            return expr
        if has_subquery(expr) or is_volatile_anywhere(expr):
            return expr
        joined = by_key or _refers_outside(expr, own)
        return guarded_value(expr, conjunction(known)) if joined else expr

    return guarded


def _is_key(part: Expr, own: Sequence[PlanColumn]) -> bool:
    """Whether it says that something is equal to something of a outer row."""
    sides = equality_sides(part)
    return any(
        _refers_to(side, own) and not _refers_outside(side, own) and not _refers_to(other, own)
        for side, other in zip(sides, reversed(sides), strict=True)
    )


def _refers_to(expr: Expr, own: Sequence[PlanColumn]) -> bool:
    return not {column.id for column in own}.isdisjoint(column_ids(expr))


def _queries(expr: Expr) -> Expr:
    """The expression with its subqueries guarded within."""
    if isinstance(expr, Subquery):
        args, plan = tuple(map(_queries, expr.args)), expr.plan
        if isinstance(plan, Project) and is_output_hoisted(expr):
            plan = replace(plan, input=_plan(plan.input, ())[0])
        else:
            plan = _plan(plan, ())[0]
        return replace(expr, args=args, plan=plan)
    return rewrite_children(expr, _queries) if has_subquery(expr) else expr


def _refers_outside(expr: Expr, own: Sequence[PlanColumn]) -> bool:
    return not {column.id for column in own}.issuperset(column_ids(expr))
