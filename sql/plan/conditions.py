"""Combine and split conditions, and find those under which PostgreSQL evaluates an operand."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import overload

from sql.plan.constant_rows import ConstantWhens
from sql.plan.nodes import (
    BoolOp,
    Call,
    Case,
    Coalesce,
    ColumnRef,
    Distinct,
    Expr,
    Filter,
    IsTest,
    Logical,
    Plan,
    Test,
)
from sql.types.sql_type import BOOL


def connect_conditions(op: BoolOp, parts: Sequence[Expr]) -> Expr:
    """The parts connected by AND or OR; a single one stays alone."""
    return parts[0] if len(parts) == 1 else Logical(op, tuple(parts), BOOL)


def conjunction(conditions: Sequence[Expr]) -> Expr:
    """The conjunction of at least one condition."""
    return connect_conditions(BoolOp.AND, conditions)


def flatten_conjuncts(condition: Expr) -> list[Expr]:
    """The conjuncts of a condition, also those of nested ANDs."""
    if isinstance(condition, Logical) and condition.op is BoolOp.AND:
        return [part for arg in condition.args for part in flatten_conjuncts(arg)]
    return [condition]


def equality_sides(condition: Expr) -> tuple[Expr, ...]:
    """The two sides of `=` or IS NOT DISTINCT FROM; empty for other conditions.

    A call has a third argument, the session's zone, where a date meets a timestamptz.
    """
    if isinstance(condition, Call) and condition.function.name == "=":
        return condition.args[:2]
    if isinstance(condition, Distinct) and condition.negated:
        return (condition.left, condition.right)
    return ()


def compared_columns(condition: Expr) -> tuple[ColumnRef, ColumnRef] | None:
    """The two columns that a condition says are equal, and says nothing else."""
    match equality_sides(condition):
        case (ColumnRef() as first, ColumnRef() as second):
            return first, second
        case _:
            return None


def filter_plan(plan: Plan, conditions: Sequence[Expr]) -> Plan:
    """The rows of a plan that fulfil all conditions; the plan itself if there are none."""
    return Filter(plan, conjunction(conditions)) if conditions else plan


def guarded_operands(expr: Expr) -> Sequence[tuple[Expr, Sequence[Expr]]]:
    """The operands of a CASE, COALESCE, AND or OR in order, each with the conditions that all hold
    when PostgreSQL evaluates it. Empty for other expressions. The operands are those that
    `rewrite_children` asks for; of a long one the conditions share their memory.
    """
    match expr:
        case Case():
            return list(_branches(expr))
        case Coalesce():
            return list(_operands(expr.args, Test.IS_NULL))
        case Logical() if expr.op is not BoolOp.NOT:
            test = Test.IS_NOT_FALSE if expr.op is BoolOp.AND else Test.IS_NOT_TRUE
            return list(_operands(expr.args, test))
        case _:
            return ()


def _branches(expr: Case) -> Iterator[tuple[Expr, Sequence[Expr]]]:
    tests = [IsTest(Test.IS_NOT_TRUE, when, BOOL) for when, _ in expr.whens]
    asked = expr.whens[:1] if isinstance(expr.whens, ConstantWhens) else expr.whens
    for at, (when, then) in enumerate(asked):
        yield when, _FirstOf(tests, at)
        yield then, _FirstOf(tests, at, when)
    yield expr.otherwise, _FirstOf(tests, len(tests))


def _operands(args: Sequence[Expr], test: Test) -> Iterator[tuple[Expr, Sequence[Expr]]]:
    tests = [IsTest(test, arg, BOOL) for arg in args]
    for at, arg in enumerate(args):
        yield arg, _FirstOf(tests, at)


class _FirstOf(Sequence[Expr]):
    """The first of some conditions, and one more: copied for each operand, they took the square."""

    def __init__(self, conditions: Sequence[Expr], count: int, more: Expr | None = None) -> None:
        self._conditions, self._count, self._more = conditions, count, more

    def __len__(self) -> int:
        return self._count + (self._more is not None)

    @overload
    def __getitem__(self, at: int) -> Expr: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Expr]: ...
    def __getitem__(self, at: int | slice) -> Expr | Sequence[Expr]:
        return tuple(self)[at]

    def __iter__(self) -> Iterator[Expr]:
        yield from islice(self._conditions, self._count)
        if self._more is not None:
            yield self._more
