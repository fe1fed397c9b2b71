"""Find the columns that a plan's nodes and its result read, from the top down.

INVARIANTS
  N1  columns that only an unread column depends on are not read either. All columns are read of
      rows that are compared as a whole, or computed once for several readers (WITH).
"""

from collections.abc import Iterable

from sql.plan.nodes import (
    ColumnId,
    DistinctRows,
    Expr,
    GroupBy,
    Plan,
    Project,
    Recursive,
    SetOp,
    Window,
    With,
    output_columns,
)
from sql.plan.traverse import aggregate_parts, column_ids, inputs, plan_expressions, window_parts


def needed_columns(plan: Plan, *, nothing: bool = False) -> frozenset[ColumnId]:
    """The columns that are read in the whole plan, including its own output (N1). `nothing`: nobody
    reads the output.
    """
    needed: set[ColumnId] = set()
    if not nothing:
        needed.update(column.id for column in output_columns(plan))
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        for expr in _read(node, needed):
            needed.update(column_ids(expr))
        below = inputs(node)
        if isinstance(node, SetOp | DistinctRows | Recursive):
            needed.update(column.id for part in below for column in output_columns(part))
        if isinstance(node, With):
            needed.update(column.id for column in output_columns(node.definition))
        waiting += below
    return frozenset(needed)


def _read(node: Plan, needed: set[ColumnId]) -> Iterable[Expr]:
    """The expressions of a node that are computed because somebody reads them."""
    match node:
        case Project():
            pairs = zip(node.columns, node.exprs, strict=True)
            yield from (expr for column, expr in pairs if column.id in needed)
        case GroupBy():
            yield from node.keys
            for column, call in zip(node.aggregate_columns, node.aggregates, strict=True):
                if column.id in needed:
                    yield from aggregate_parts(call)
        case Window():
            for column, one in zip(node.columns, node.calls, strict=True):
                if column.id in needed:
                    yield from window_parts(one)
        case _:
            yield from plan_expressions(node)
