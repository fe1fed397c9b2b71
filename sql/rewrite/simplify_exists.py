"""Simplify the query of EXISTS, which needs neither values nor order (simplify_EXISTS_query).

    exists (select distinct 1/v from t order by 2/v)  ─▶  exists (select null from t)

Only volatile expressions stay.
"""

from dataclasses import replace

from sql.plan.nodes import (
    Const,
    DistinctOn,
    DistinctRows,
    Expr,
    GroupBy,
    Limit,
    Plan,
    Project,
    Sort,
    Values,
)
from sql.plan.traverse import is_volatile_anywhere, is_volatile_plan


def simplify_exists(plan: Plan) -> Plan:
    """A plan that has a row exactly if this one has; its columns mean nothing."""
    match plan:
        case Sort() | DistinctRows() | DistinctOn():
            return simplify_exists(plan.input)
        case Limit() if _keeps_one(plan):
            return simplify_exists(plan.input)
        case GroupBy() if _is_distinct(plan):
            return Project(plan.input, plan.key_columns, tuple(map(_nothing, plan.keys)))
        case Project():
            return replace(plan, input=simplify_exists(plan.input), exprs=_nothings(plan.exprs))
        case Values() if len(plan.rows) == 1:
            return replace(plan, rows=(_nothings(plan.rows[0]),))
        case _:
            return plan


def _is_distinct(plan: GroupBy) -> bool:
    """Whether it has a row for each of its keys, and nothing else."""
    plain = plan.sets is None and not plan.aggregates and not plan.grouping_columns
    return plain and bool(plan.keys) and not is_volatile_plan(plan)


def _keeps_one(plan: Limit) -> bool:
    if plan.offset is not None or plan.limit is None:
        return plan.offset is None
    return isinstance(plan.limit, Const) and plan.limit.value != 0


def _nothings(exprs: tuple[Expr, ...]) -> tuple[Expr, ...]:
    return tuple(map(_nothing, exprs))


def _nothing(expr: Expr) -> Expr:
    return expr if is_volatile_anywhere(expr) else Const(None, expr.type)
