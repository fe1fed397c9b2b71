"""Write UNION, INTERSECT and EXCEPT.

INVARIANTS
  O1  values that an engine compares otherwise than PostgreSQL (intervals, jsonb) are compared by
      their keys: the rows of both sides are numbered among their equals, and these numbers decide
      which rows an operation returns. Of equal rows those of the left side are shown.
"""

from collections.abc import Sequence
from typing import Final

from sql.emit.select import is_preserved_by_groups, scope_over
from sql.emit.state import Scope, Select
from sql.plan.nodes import ColumnId, ColumnRef, PlanColumn, SetOp, SetOpKind

_KEPT: Final = {
    (SetOpKind.UNION, False): "{0}.n = 1",
    (SetOpKind.INTERSECT, False): "{0}.s = 0 and {0}.n = 1 and {0}.m > 0",
    (SetOpKind.INTERSECT, True): "{0}.s = 0 and {0}.n <= {0}.m",
    (SetOpKind.EXCEPT, False): "{0}.s = 0 and {0}.n = 1 and {0}.m = 0",
    (SetOpKind.EXCEPT, True): "{0}.s = 0 and {0}.n > {0}.m",
}
"""Which row is kept: `s` is its side, `n` its number, `m` how many equals the right side has."""


def set_operation(plan: SetOp, left: str, right: str, scope: Scope) -> Select:
    """The operation on two queries whose columns have the names of the plan's columns."""
    if not plan.columns:
        raise scope.statement.dialect.unsupported("a set operation of no columns")
    kept = _KEPT.get((plan.kind, plan.all))
    dialect = scope.statement.dialect
    if kept is None or all(is_preserved_by_groups(column.type, dialect) for column in plan.columns):
        alias = scope.statement.alias()
        operator = f"{plan.kind.value}{' all' if plan.all else ''}"
        return Select(f"(({left}) {operator} ({right})) {alias}", _names(plan.columns, alias))
    return _by_keys(plan, (left, right), kept, scope)


def _by_keys(plan: SetOp, sides: tuple[str, str], kept: str, scope: Scope) -> Select:
    """See O1."""
    rows, alias, *aliases = (scope.statement.alias() for _ in range(4))
    texts = [
        f"select {one}.*, {side} as s from ({text}) {one}"
        for side, (one, text) in enumerate(zip(aliases, sides, strict=True))
    ]
    union = Select(f"({' union all '.join(texts)}) {rows}", _names(plan.columns, rows))
    inside = scope_over(union, scope)
    refs = [ColumnRef(column.id, column.type) for column in plan.columns]
    keys = ", ".join(inside.key(ref, "a set operation on") for ref in refs)
    # A UNION numbers the rows of both sides together, those of the left one first.
    numbered = keys if plan.kind is SetOpKind.UNION else f"{keys}, {rows}.s"
    numbers = (
        f"row_number() over (partition by {numbered} order by {rows}.s) as n,"
        f" sum({rows}.s) over (partition by {keys}) as m"
    )
    source = f"(select {rows}.*, {numbers} from {union.source}) {alias}"
    return Select(source, _names(plan.columns, alias), where=(kept.format(alias),))


def _names(columns: Sequence[PlanColumn], alias: str) -> dict[ColumnId, str]:
    return {column.id: f"{alias}.c{column.id}" for column in columns}
