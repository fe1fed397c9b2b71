"""A bound query on its way to whoever uses it; its literals may still wait for a type."""

from dataclasses import dataclass, field, replace

from sql.binding import Binding
from sql.coerce import implicit
from sql.plan import (
    ColumnRef,
    CteId,
    DistinctOn,
    DistinctRows,
    Expr,
    Filter,
    Limit,
    Plan,
    PlanColumn,
    Project,
    Sort,
    With,
)
from sql.syntax import Node
from sql.types import TEXT, SqlType


@dataclass(slots=True)
class SelectResult:
    """A bound query: its plan, columns, the node behind each column, and columns still unknown."""

    plan: Plan
    columns: tuple[PlanColumn, ...]
    nodes: list[Node]
    unknown: dict[int, Expr] = field(default_factory=dict[int, Expr])
    returns: bool = True
    """Whether there are rows to read: not of a data-modifying WITH query without RETURNING."""
    shared: CteId | None = None
    """The rows that a use of this WITH query scans; None: a use is its plan."""

    unexpanded: tuple[PlanColumn, ...] = ()
    """Further columns of what is scanned, which a star does not show."""

    volatile_uses: int = 0
    """How often it was read, if it is volatile and not shared."""


def settle(binding: Binding, result: SelectResult) -> None:
    """Make what is still unknown text (resolveTargetListUnknowns)."""
    for index in tuple(result.unknown):
        retype(binding, result, index, TEXT)


def retype(binding: Binding, result: SelectResult, index: int, target: SqlType) -> None:
    """Give an unknown column a type, down where its literal stands."""
    expr = implicit(binding, result.unknown.pop(index), result.nodes[index], target)
    column = result.columns[index]
    made = replace(column, type=expr.type)
    result.plan = _redefined(result.plan, column, expr)
    result.columns = (*result.columns[:index], made, *result.columns[index + 1 :])


def _redefined(plan: Plan, column: PlanColumn, expr: Expr) -> Plan:
    """The plan with the literal behind an output column replaced."""
    match plan:
        case Project():
            index = next(i for i, made in enumerate(plan.columns) if made.id == column.id)
            made = replace(plan.columns[index], type=expr.type)
            columns = (*plan.columns[:index], made, *plan.columns[index + 1 :])
            below, own = plan.input, plan.exprs[index]
            if isinstance(own, ColumnRef):
                below = _redefined(below, PlanColumn(own.id, made.name, own.type), expr)
                expr = ColumnRef(own.id, expr.type)
            exprs = (*plan.exprs[:index], expr, *plan.exprs[index + 1 :])
            return Project(below, columns, exprs)
        case Sort() | Limit() | DistinctRows() | DistinctOn() | Filter() | With():
            return replace(plan, input=_redefined(plan.input, column, expr))
        case _:
            raise AssertionError("an unknown column comes from a projection")
