"""Turn a join key that has a subquery into a column below the join, for Spark.

    a join b on a.id = b.id + (select max(v) from u)
      ─▶  a join (select .., b.id + (select max(v) from u) as key from b) b on a.id = key

Spark computes the keys of rows that it broadcasts before the subqueries in them, and fails.

INVARIANTS
  K1  only a side of an equality becomes a column: one with an uncorrelated subquery, nothing
      volatile, and columns that the rows below all have. The other side has columns of other rows,
      or of an outer row, which EXISTS and IN are joined to.
  K2  no column is computed below the null-supplying side of an outer join.
  K3  an expression that may fail otherwise than by overflow is computed no further below than where
      the other side's rows are not yet joined, and only where the plain conditions beside it hold:
      elsewhere no pair passes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sql.plan.conditions import conjunction
from sql.plan.nodes import (
    Call,
    ColumnId,
    ColumnRef,
    Distinct,
    Expr,
    Filter,
    Join,
    JoinKind,
    Plan,
    PlanColumn,
    output_columns,
)
from sql.plan.projections import append_columns, column_reference, project_columns
from sql.plan.renumbering import free_columns
from sql.plan.traverse import (
    column_ids,
    conjuncts,
    expression_nodes,
    has_subquery,
    is_volatile_anywhere,
    rewrite_queries,
    subqueries,
)
from sql.rewrite.column_ids import IdRange, range_of_column_ids
from sql.rewrite.guard_expressions import is_harmless, may_fail, null_unless
from sql.rewrite.plan_facts import PlanFacts

_LEFT_KEPT: Final = (JoinKind.INNER, JoinKind.CROSS, JoinKind.LEFT)
_RIGHT_KEPT: Final = (JoinKind.INNER, JoinKind.CROSS, JoinKind.RIGHT)


def hoist_join_key_subqueries(plan: Plan, facts: PlanFacts) -> Plan:
    """The plan with such columns (K1)."""
    return (
        _plan(plan, range_of_column_ids(IdRange.HOIST_JOIN_KEY_SUBQUERIES))
        if facts.has_subquery
        else plan
    )


def _plan(plan: Plan, numbers: Iterator[int]) -> Plan:
    made = rewrite_queries(plan, lambda part: _plan(part, numbers))
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
    return project_columns(told, output_columns(made)) if keys.found else made


@dataclass(slots=True)
class _Keys:
    """Makes columns of a node's inputs. `found`: whether there are any."""

    numbers: Iterator[int]
    inputs: list[Plan]
    found: bool = False

    def replaced(self, condition: Expr) -> Expr:
        """The condition over the new columns."""
        parts = conjuncts(condition)
        plain = [part for part in parts if is_harmless(part)]
        return conjunction([self._part(part, plain) for part in parts])

    def _part(self, part: Expr, plain: Sequence[Expr]) -> Expr:
        if not has_subquery(part):
            return part
        match part:
            case Call(function=function, args=(left, right, *zone)) if function.name == "=":
                sides = (self._side(left, right, plain), self._side(right, left, plain))
                return replace(part, args=(*sides, *zone))
            case Distinct(left=left, right=right, negated=True):
                left, right = self._side(left, right, plain), self._side(right, left, plain)
                return replace(part, left=left, right=right)
            case _:
                return part

    def _side(self, expr: Expr, other: Expr, plain: Sequence[Expr]) -> Expr:
        if not _becomes_column(expr) or not any(column_ids(other)):
            return expr
        for number, plan in enumerate(self.inputs):
            if not _has_all(plan, expr):
                continue
            column = PlanColumn(ColumnId(next(self.numbers)), "key", expr.type)
            made = _Key(column, expr, other, plain).beside(plan)
            if made is not None:
                self.inputs[number], self.found = made, True
                return column_reference(column)
        return expr


@dataclass(frozen=True, slots=True)
class _Key:
    """A side of an equality and its column, the other side, and the plain conditions beside it."""

    column: PlanColumn
    expr: Expr
    other: Expr
    plain: Sequence[Expr]

    def beside(self, plan: Plan) -> Plan | None:
        """The rows with the column, made as far below as may be (K2, K3); None if the other side
        is of the same rows (K1).
        """
        is_apart = _ids(plan).isdisjoint(column_ids(self.other))
        fails = may_fail(self.expr, by_overflow=False)
        below = None if fails and is_apart else self._below(plan)
        if below is not None or not is_apart:
            return below
        guards = [part for part in self.plain if _has_all(plan, part)] if fails else []
        value = null_unless(conjunction(guards), self.expr) if guards else self.expr
        return append_columns(plan, {self.column: value})

    def _below(self, plan: Plan) -> Plan | None:
        if isinstance(plan, Filter):
            below = self.beside(plan.input)
            return None if below is None else replace(plan, input=below)
        if not isinstance(plan, Join):
            return None
        if plan.kind in _LEFT_KEPT and _has_all(plan.left, self.expr):
            below = self.beside(plan.left)
            return None if below is None else replace(plan, left=below)
        if plan.kind in _RIGHT_KEPT and not plan.lateral and _has_all(plan.right, self.expr):
            below = self.beside(plan.right)
            return None if below is None else replace(plan, right=below)
        return None


def _becomes_column(expr: Expr) -> bool:
    if not has_subquery(expr) or is_volatile_anywhere(expr):
        return False
    return not any(free_columns(inner.plan) for inner in subqueries(expr))


def _has_all(plan: Plan, expr: Expr) -> bool:
    used = {part.id for part in expression_nodes(expr) if isinstance(part, ColumnRef)}
    return bool(used) and used <= _ids(plan)


def _ids(plan: Plan) -> set[ColumnId]:
    return {column.id for column in output_columns(plan)}
