"""Recognise trivial plans: selecting, comparing and sorting columns, or mapping rows one by one.

INVARIANTS
  P1  a plain plan has the same answer on every engine, and costs next to nothing for each row.
"""

from typing import Final

from sql.functions.table import COMPARISON_OPERATORS, FunctionKind
from sql.plan.nodes import (
    Call,
    ColumnRef,
    Const,
    Distinct,
    Expr,
    Filter,
    InList,
    InRows,
    IsTest,
    Limit,
    Logical,
    Param,
    Plan,
    Project,
    Scan,
    Sort,
)
from sql.plan.traverse import child_expressions, inputs, plan_expressions, plan_has_subquery
from sql.plan.widening_casts import WIDENING_CASTS

_UNCHANGED: Final = WIDENING_CASTS | {"varchar::text"}
"""Casts that leave every value what it is."""


def is_trivial_plan(plan: Plan) -> bool:
    """Whether the plan only selects, compares and sorts columns of one scan (P1)."""
    if not isinstance(plan, Scan | Project | Filter | Sort | Limit):
        return False
    return all(map(_is_plain, plan_expressions(plan))) and all(map(is_trivial_plan, inputs(plan)))


def only_scan(plan: Plan) -> Scan | None:
    """The scan of a plan that filters, computes, sorts and cuts its rows, and does nothing else."""
    below = plan
    while isinstance(below, Project | Filter | Sort | Limit):
        below = below.input
    return below if isinstance(below, Scan) and not plan_has_subquery(plan) else None


def is_row_by_row(plan: Plan) -> bool:
    """Whether it has one scan, and each scanned row gives one row or none, independent of other
    rows.
    """
    below = plan
    while isinstance(below, Project | Filter):
        below = below.input
    return isinstance(below, Scan) and not plan_has_subquery(plan)


def _is_plain(expr: Expr) -> bool:
    match expr:
        case Call(function=function):
            if function.kind is FunctionKind.OPERATOR and function.name not in COMPARISON_OPERATORS:
                return False
            if function.kind is not FunctionKind.OPERATOR and function.id not in _UNCHANGED:
                return False
        case ColumnRef() | Const() | Param() | Logical() | IsTest() | Distinct():
            pass
        case InList() | InRows():
            pass
        case _:
            return False
    return all(map(_is_plain, child_expressions(expr)))
