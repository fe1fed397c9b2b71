"""A subquery is computed only for rows that ask for it: DuckDB computes it for all.

    case when v <> 0 then (select 10/t.v) end
      ─▶  case when v <> 0 then (select case when v <> 0 then 10/t.v end where v <> 0) end

INVARIANTS
  S1  within a subquery of a branch, what may fail stands in a CASE of the branch's condition, and
      no row is left for the others: what it answers for them is never looked at.
  S2  a subquery that refers to no row becomes one that does. That is done only where it is asked
      for few different rows, by truth values, or reads no table: else DuckDB would run it for each.
      It is never done to one that is volatile, which has one answer for all rows.
  S3  a condition that is volatile, or has subqueries itself, guards nothing.

Not here: FILTER, and operands without subqueries (`guards.py`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sql.emit.guards import may_fail
from sql.plan import (
    BoolOp,
    Call,
    Case,
    Coalesce,
    ColumnRef,
    Const,
    Expr,
    Filter,
    GroupBy,
    IsTest,
    Limit,
    Logical,
    Plan,
    Project,
    Recursive,
    Sort,
    Subquery,
    SubqueryKind,
    Test,
    With,
)
from sql.renumbering import free_columns, has_subquery
from sql.traverse import (
    children,
    inputs,
    is_volatile_expression,
    is_volatile_plan,
    plan_expressions,
    rewritten_node,
    scans,
    with_children,
    with_inputs,
)
from sql.types import BOOL


def guarded(expr: Expr) -> Expr:
    """CASE, COALESCE, AND and OR with subqueries that fail only where they are asked (S1)."""
    match expr:
        case Case():
            return _case(expr)
        case Coalesce():
            args = _behind(expr.args, Test.IS_NULL)
            return replace(expr, args=args)
        case Logical() if expr.op is not BoolOp.NOT:
            test = Test.IS_NOT_FALSE if expr.op is BoolOp.AND else Test.IS_NOT_TRUE
            return replace(expr, args=_behind(expr.args, test))
        case _:
            return expr


def _case(expr: Case) -> Case:
    if not any(map(has_subquery, children(expr))):
        return expr
    before: list[Expr] = []
    whens: list[tuple[Expr, Expr]] = []
    for when, then in expr.whens:
        whens.append((_under(when, before), _under(then, [*before, when])))
        before.append(IsTest(Test.IS_NOT_TRUE, when, BOOL))
    return replace(expr, whens=tuple(whens), otherwise=_under(expr.otherwise, before))


def _behind(args: Sequence[Expr], test: Test) -> tuple[Expr, ...]:
    """Operands of which each is asked only if those before it pass the test."""
    found: list[Expr] = []
    before: list[Expr] = []
    for arg in args:
        found.append(_under(arg, before))
        before.append(IsTest(test, arg, BOOL))
    return tuple(found)


def _under(expr: Expr, conditions: Sequence[Expr]) -> Expr:
    """The expression with its subqueries guarded by conditions that all hold (S3)."""
    if not conditions or not has_subquery(expr):
        return expr
    if any(is_volatile_expression(part) or has_subquery(part) for part in conditions):
        return expr
    condition = conditions[0]
    if len(conditions) > 1:
        condition = Logical(BoolOp.AND, tuple(conditions), BOOL)
    return _with_guard(expr, condition)


def _with_guard(expr: Expr, condition: Expr) -> Expr:
    if not isinstance(expr, Subquery):
        return with_children(expr, lambda part: _with_guard(part, condition))
    args = tuple([_with_guard(arg, condition) for arg in expr.args])
    several = expr.kind is SubqueryKind.SCALAR and not _is_one_row(expr.plan)
    if not (several or _plan_may_fail(expr.plan)) or not _asks_few(expr.plan, condition):
        return replace(expr, args=args)
    plan = _guarded_plan(expr.plan, condition)
    return replace(expr, args=args, plan=Filter(plan, condition) if several else plan)


def _is_one_row(plan: Plan) -> bool:
    """Whether the plan has one row at most, by its form."""
    if isinstance(plan, Project | Sort | Filter):
        return _is_one_row(plan.input)
    if isinstance(plan, Limit):
        return isinstance(plan.limit, Const) and plan.limit.value in (0, 1)
    return isinstance(plan, GroupBy) and not plan.keys and plan.sets is None


def _plan_may_fail(plan: Plan) -> bool:
    if any(map(may_fail, plan_expressions(plan))) or any(map(_plan_may_fail, inputs(plan))):
        return True
    return any(_plan_may_fail(inner.plan) for inner in _subqueries(plan_expressions(plan)))


def _subqueries(exprs: Sequence[Expr]) -> Iterator[Subquery]:
    for expr in exprs:
        if isinstance(expr, Subquery):
            yield expr
        yield from _subqueries(children(expr))


def _asks_few(plan: Plan, condition: Expr) -> bool:
    """S2."""
    if is_volatile_plan(plan):
        return False
    if free_columns(plan) or not any(scans(plan)):
        return True
    return all(column.type == BOOL for column in _columns(condition))


def _columns(expr: Expr) -> Iterator[ColumnRef]:
    if isinstance(expr, ColumnRef):
        yield expr
    for child in children(expr):
        yield from _columns(child)


def _guarded_plan(plan: Plan, condition: Expr) -> Plan:
    """What may fail, in a CASE of the condition. A WITH query may not refer to the row."""

    def wrapped(expr: Expr) -> Expr:
        if isinstance(expr, Subquery):
            args = tuple(map(wrapped, expr.args))
            return replace(expr, args=args, plan=_guarded_plan(expr.plan, condition))
        if not may_fail(expr) and not has_subquery(expr):
            return expr
        if isinstance(expr, Call) and may_fail(replace(expr, args=())):
            return Case(((condition, expr),), Const(None, expr.type), expr.type)
        return with_children(expr, wrapped)

    if isinstance(plan, With):
        return replace(plan, input=_guarded_plan(plan.input, condition))
    if isinstance(plan, Recursive):
        return plan
    below = with_inputs(plan, lambda part: _guarded_plan(part, condition))
    return below if isinstance(below, Limit) else rewritten_node(below, wrapped)
