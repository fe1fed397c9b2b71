"""Whether the evaluator can run a plan in process, and why not: the one place that decides.

    every function, aggregate, window function and set has an implementation ─┐
    the plan touches few rows (`cost.py`) ────────────────────────────────────┼─▶ in process
    its inputs are in memory, and no more rows than the caller allows ────────┘

A caller that has bounded the rows of its inputs by itself asks about the plan alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from compute.reference.aggregates import aggregate_fold
from compute.reference.cost import row_work_bound, values_row_count
from compute.reference.function_table import implementations
from compute.reference.set_returning import SETS
from compute.reference.windows import WINDOWS, as_aggregate
from sql.plan.nodes import (
    AnyAll,
    Call,
    Expr,
    GroupBy,
    Join,
    Plan,
    RelationId,
    Scan,
    SetScan,
    Subquery,
    Window,
)
from sql.plan.system_columns import scans_versions
from sql.plan.traverse import walk
from storage.batch import ShardView

WORK_MAX: Final = 200_000
"""Rows that a plan may touch on the loop. More: a longer stall for everybody. Fewer: more constant
queries wait for the engine."""

_WORK_PER_WRITTEN_ROW: Final = 16
"""Rows that may be touched for each row of VALUES that the statement writes out: fewer than it took
to read and bind it. An engine would be given all of them as text, and reads it slower still."""


@dataclass(frozen=True, slots=True)
class RowsAllowed:
    """The rows of all inputs together that a plan may read. `linear`: the same for a plan without
    joins and subqueries, whose work grows no faster than they do; never less.
    """

    rows: int
    linear: int = 0


def refusal(plan: Plan) -> str | None:
    """Why the evaluator cannot run the plan in process, whatever its inputs are; None if it can."""
    missing = refusal_of_functions(plan)
    if missing is not None:
        return missing
    touched = row_work_bound(plan)
    if touched > max(WORK_MAX, _WORK_PER_WRITTEN_ROW * values_row_count(plan)):
        return f"the plan may touch {touched} rows"
    return None


def work_beyond_text(plan: Plan) -> int:
    """The rows that a plan may touch, but for those that its text is long for; 0 or more."""
    return max(0, row_work_bound(plan) - _WORK_PER_WRITTEN_ROW * values_row_count(plan))


def refusal_of_functions(plan: Plan) -> str | None:
    """The same, if the plan touches few rows."""
    missing = _missing(plan)
    return None if missing is None else f"the evaluator has no {missing}"


def refusal_of_work(plan: Plan, views: Mapping[RelationId, ShardView], most: int) -> str | None:
    """Why the plan cannot run in process if it may touch so many rows of these inputs; None if it
    can, if its functions are there.
    """
    if any(view.files for view in views.values()):
        return "an input has files"
    sizes = {relation: view.inline_rows for relation, view in views.items()}
    touched = row_work_bound(plan, sizes)
    return f"the plan may touch {touched} rows" if touched > most else None


def is_linear(plan: Plan) -> bool:
    """Whether the work of a plan grows no faster than its inputs."""
    return not any(isinstance(node, Join | Subquery) for node in walk(plan))


def refusal_of_inputs(
    views: Mapping[RelationId, ShardView], allowed: RowsAllowed | None, *, linear: bool
) -> str | None:
    """Why a plan cannot run in process over these inputs; None if it can. `allowed`: None allows
    no input at all. `linear`: see `is_linear`.
    """
    if not views:
        return None
    if allowed is None:
        return "the plan has inputs"
    if any(view.files for view in views.values()):
        return "an input has files"
    rows = sum([view.inline_rows for view in views.values()])
    if rows <= allowed.rows:
        return None
    if linear and rows <= allowed.linear:
        return None
    return f"the inputs have {rows} rows"


def _missing(plan: Plan) -> str | None:
    """The first function of the plan that has no implementation."""
    return next(filter(None, map(_missing_of_node, walk(plan))), None)


def _missing_of_node(node: Plan | Expr) -> str | None:
    match node:
        case Call() | AnyAll():
            function = node.function
            return (
                None if function.id in implementations() else f"{function.kind.value} {function.id}"
            )
        case Scan():
            return "ctid or xmin" if scans_versions(node) else None
        case GroupBy():
            missing = [call.function.id for call in node.aggregates if aggregate_fold(call) is None]
            return f"aggregate {missing[0]}" if missing else None
        case SetScan():
            missing = [c.function.id for c in node.calls if c.function.id not in SETS.makers()]
            return f"set-returning function {missing[0]}" if missing else None
        case Window():
            for call in node.calls:
                known = call.function.id in WINDOWS.makers()
                if not known and aggregate_fold(as_aggregate(call)) is None:
                    return f"window of {call.function.id}"
            return None
        case _:
            return None
