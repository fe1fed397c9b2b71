"""What rows are joined by has no subquery on Spark: it is a column of the rows below the join.

    a join b on a.id = b.id + (select max(v) from u)
      ─▶  a join (select .., b.id + (select max(v) from u) as key from b) b on a.id = key

Spark computes the keys of rows that it broadcasts before the subqueries in them, and fails.

INVARIANTS
  K1  only a side of an equality becomes a column, if the rows below have all of its columns; the
      other side is of other rows, or of a row outside, which EXISTS and IN are joined to.
  K2  no column is made below the side of an outer join that is padded with NULLs.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from sql.conditions import all_of
from sql.emit.column_numbers import Pass, numbers_of
from sql.plan import (
    Call,
    ColumnId,
    ColumnRef,
    Expr,
    Filter,
    Join,
    JoinKind,
    Plan,
    PlanColumn,
    output_columns,
)
from sql.projections import beside, only, reference
from sql.renumbering import free_columns
from sql.traverse import (
    column_ids,
    conjuncts,
    has_subquery,
    is_volatile_anywhere,
    nodes,
    plan_has_subquery,
    subqueries,
    with_queries,
)

_LEFT_KEPT: Final = (JoinKind.INNER, JoinKind.CROSS, JoinKind.LEFT)
_RIGHT_KEPT: Final = (JoinKind.INNER, JoinKind.CROSS, JoinKind.RIGHT)


def with_key_columns(plan: Plan) -> Plan:
    """The plan with such columns (K1)."""
    return _plan(plan, numbers_of(Pass.KEY_COLUMNS)) if plan_has_subquery(plan) else plan


def _plan(plan: Plan, numbers: Iterator[int]) -> Plan:
    made = with_queries(plan, lambda part: _plan(part, numbers))
    match made:
        case Filter() if has_subquery(made.predicate):
            keys = _Keys(numbers, [made.input])
            predicate = keys.replaced(made.predicate)
            told: Plan = Filter(keys.inputs[0], predicate)
        case Join(condition=condition) if condition is not None and has_subquery(condition):
            keys = _Keys(numbers, [made.left] if made.lateral else [made.left, made.right])
            condition = keys.replaced(condition)
            told = replace(made, condition=condition, left=keys.inputs[0])
            if not made.lateral:
                told = replace(told, right=keys.inputs[1])
        case _:
            return made
    return only(told, output_columns(made)) if keys.found else made


@dataclass(slots=True)
class _Keys:
    """Makes columns of a node's inputs. `found`: whether there are any."""

    numbers: Iterator[int]
    inputs: list[Plan]
    found: bool = False

    def replaced(self, condition: Expr) -> Expr:
        """The condition over the new columns."""
        return all_of([self._part(part) for part in conjuncts(condition)])

    def _part(self, part: Expr) -> Expr:
        if not isinstance(part, Call) or part.function.name != "=" or not has_subquery(part):
            return part
        left, right, *zone = part.args
        return replace(part, args=(self._side(left, right), self._side(right, left), *zone))

    def _side(self, expr: Expr, other: Expr) -> Expr:
        if not _is_key(expr):
            return expr
        for number, plan in enumerate(self.inputs):
            if not _has_all(plan, expr):
                continue
            column = PlanColumn(ColumnId(next(self.numbers)), "key", expr.type)
            made = _with_column(plan, column, expr, other)
            if made is not None:
                self.inputs[number], self.found = made, True
                return reference(column)
        return expr


def _is_key(expr: Expr) -> bool:
    if not has_subquery(expr) or is_volatile_anywhere(expr):
        return False
    return not any(free_columns(inner.plan) for inner in subqueries(expr))


def _has_all(plan: Plan, expr: Expr) -> bool:
    used = {part.id for part in nodes(expr) if isinstance(part, ColumnRef)}
    return bool(used) and used <= _ids(plan)


def _ids(plan: Plan) -> set[ColumnId]:
    return {column.id for column in output_columns(plan)}


def _with_column(plan: Plan, column: PlanColumn, expr: Expr, other: Expr) -> Plan | None:
    """The rows with the column, made as far below as may be (K2); None if the other side of the
    equality is of the same rows (K1).
    """
    if isinstance(plan, Filter):
        below = _with_column(plan.input, column, expr, other)
        return None if below is None else replace(plan, input=below)
    if isinstance(plan, Join):
        if plan.kind in _LEFT_KEPT and _has_all(plan.left, expr):
            below = _with_column(plan.left, column, expr, other)
            return None if below is None else replace(plan, left=below)
        if plan.kind in _RIGHT_KEPT and not plan.lateral and _has_all(plan.right, expr):
            below = _with_column(plan.right, column, expr, other)
            return None if below is None else replace(plan, right=below)
    if not _ids(plan).isdisjoint(column_ids(other)):
        return None
    return beside(plan, {column: expr})
