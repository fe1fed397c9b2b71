"""Plan the cheapest test of whether a plan has a row, or a join a matched pair.

    exists (select from (t left join u on ..) join v on t.k = v.k)
      ─▶  exists (select from t join v on t.k = v.k)

INVARIANTS
  E1  a null-supplying side is left out if nothing uses its columns: the other side has a row
      without it. So a chain of outer joins, each with a probe, does not grow with every probe.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final

from sql.plan.conditions import conjunction
from sql.plan.nodes import (
    ColumnId,
    Const,
    Expr,
    Join,
    JoinKind,
    Limit,
    Plan,
    Project,
    Sort,
    Window,
    output_columns,
)
from sql.plan.traverse import column_ids, plan_expressions
from sql.types.sql_type import INT8

_NOTHING: Final[frozenset[ColumnId]] = frozenset()


def existence_probe(plan: Plan) -> Plan:
    """A plan with one row of no columns if this plan has any row."""
    return Limit(Project(_with(plan, _NOTHING), (), ()), Const(1, INT8), None)


def pair_existence_probe(join: Join, before: Sequence[Expr]) -> Plan:
    """A plan with one row of no columns if both sides have rows for which these conditions hold."""
    if before:
        return existence_probe(replace(join, kind=JoinKind.INNER, condition=conjunction(before)))
    return existence_probe(
        Join(JoinKind.CROSS, existence_probe(join.left), existence_probe(join.right), None)
    )


def _with(plan: Plan, used: AbstractSet[ColumnId]) -> Plan:
    """Rows with these columns, of which there are some exactly if the plan has some (E1)."""
    match plan:
        case Project():
            kept = [column.id in used for column in plan.columns]
            columns = tuple([c for c, shown in zip(plan.columns, kept, strict=True) if shown])
            exprs = tuple([e for e, shown in zip(plan.exprs, kept, strict=True) if shown])
            below = _with(plan.input, _used_by(exprs))
            return Project(below, columns, exprs) if exprs else below
        case Sort():
            return _with(plan.input, used)
        case Window() if used.isdisjoint(column.id for column in plan.columns):
            return _with(plan.input, used)
        case Join() if not plan.lateral and plan.kind is not JoinKind.FULL:
            return _joined(plan, used)
        case _:
            return plan


def _joined(plan: Join, used: AbstractSet[ColumnId]) -> Plan:
    if plan.kind is JoinKind.LEFT and used.isdisjoint(_made(plan.right)):
        return _with(plan.left, used)
    if plan.kind is JoinKind.RIGHT and used.isdisjoint(_made(plan.left)):
        return _with(plan.right, used)
    used = used | _used_by(plan_expressions(plan))
    return replace(plan, left=_with(plan.left, used), right=_with(plan.right, used))


def _made(plan: Plan) -> AbstractSet[ColumnId]:
    return {column.id for column in output_columns(plan)}


def _used_by(exprs: Sequence[Expr]) -> AbstractSet[ColumnId]:
    return {used for expr in exprs for used in column_ids(expr)}
