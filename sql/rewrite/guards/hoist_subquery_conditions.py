"""Turn a condition that has a subquery into a column, by which later subqueries can be guarded.

    select case when exists (..) then (select 10/t.v) end from t
      ─▶  select case when c9 then (select 10/t.v) end from (select .., exists (..) as c9 from t)

INVARIANTS
  C1  only a condition that guards a subquery that may fail becomes a column. It is computed once,
      and for the rows that conditions around it leave.
  C2  a volatile condition stays where it is.
  C3  Spark would copy a column's subquery into the subqueries that it guards, when it pushes a
      condition below the column, and lose rows or fail. So on Spark the column is `kept()`, and
      plain conditions are evaluated below it. Spark takes no such column in a lateral side. A
      subquery that can only overflow needs none.

Not here: the guards themselves (`guard_branch_subqueries.py`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sql.functions.table import function_by_id
from sql.plan.conditions import conjunction, filter_plan, flatten_conjuncts, guarded_operands
from sql.plan.nodes import (
    BoolOp,
    Call,
    Case,
    ColumnId,
    ColumnRef,
    Const,
    Expr,
    Filter,
    GroupBy,
    Join,
    Logical,
    Plan,
    PlanColumn,
    Project,
    Subquery,
    output_columns,
)
from sql.plan.projections import append_columns, column_reference, project_columns
from sql.plan.traverse import (
    aggregate_parts,
    child_expressions,
    has_subquery,
    is_volatile_anywhere,
    plan_has_subquery,
    rewrite_aggregate,
    rewrite_children,
    rewrite_queries,
)
from sql.rewrite.column_ids import IdRange, range_of_column_ids
from sql.rewrite.failure_analysis import has_failing_subquery
from sql.rewrite.guard_expressions import is_harmless
from sql.rewrite.plan_facts import PlanFacts

_KEPT: Final = "kept(any)"
_Found = tuple[Expr, Sequence[Expr]]


def hoist_subquery_conditions(plan: Plan, facts: PlanFacts, *, for_spark: bool = False) -> Plan:
    """The plan with such columns (C1, C3)."""
    if not facts.has_subquery or not facts.may_fail(by_overflow=not for_spark):
        return plan
    return _Conditions(range_of_column_ids(IdRange.HOIST_SUBQUERY_CONDITIONS), for_spark).plan(plan)


@dataclass(frozen=True, slots=True)
class _Conditions:
    """How columns are numbered, and for which engine they are."""

    numbers: Iterator[int]
    for_spark: bool

    def plan(self, plan: Plan) -> Plan:
        """The plan with such columns at every level."""
        if not plan_has_subquery(plan):
            return plan
        if self.for_spark and isinstance(plan, Join) and plan.lateral:
            return replace(plan, left=self.plan(plan.left))
        below = rewrite_queries(plan, self.plan)
        match below:
            case Project():
                return self._project(below)
            case Filter():
                return self._filter(below)
            case GroupBy():
                return self._group(below)
            case _:
                return below

    def _project(self, plan: Project) -> Project:
        found = self._first(plan.exprs)
        if found is None:
            return plan
        below, column = self._with_column(plan.input, found)
        exprs = tuple(map(_Replacing(found[0], column), plan.exprs))
        return self._project(replace(plan, input=below, exprs=exprs))

    def _group(self, plan: GroupBy) -> GroupBy:
        found = self._first([part for call in plan.aggregates for part in aggregate_parts(call)])
        if found is None:
            return plan
        below, column = self._with_column(plan.input, found)
        replacing = _Replacing(found[0], column)
        calls = tuple([rewrite_aggregate(call, replacing) for call in plan.aggregates])
        return self._group(replace(plan, input=below, aggregates=calls))

    def _filter(self, plan: Filter) -> Plan:
        found = self._condition(plan.predicate, ())
        # What is ANDed in WHERE keeps the order that the engine gives it.
        anded = isinstance(plan.predicate, Logical) and plan.predicate.op is BoolOp.AND
        if found is None or (anded and found[0] in plan.predicate.args):  # type: ignore[union-attr]
            return plan
        rows, predicate = self._below(plan)
        below, column = self._with_column(rows, found)
        made = self._filter(Filter(below, _Replacing(found[0], column)(predicate)))
        return project_columns(made, output_columns(plan))

    def _below(self, plan: Filter) -> tuple[Plan, Expr]:
        """The rows that plain conditions leave, and the other ones (C3)."""
        if not self.for_spark:
            return plan.input, plan.predicate
        parts = flatten_conjuncts(plan.predicate)
        plain = [part for part in parts if is_harmless(part)]
        return filter_plan(plan.input, plain), conjunction([p for p in parts if p not in plain])

    def _with_column(self, plan: Plan, found: _Found) -> tuple[Project, ColumnRef]:
        condition, under = found
        if under:
            nothing = Const(None, condition.type)
            made: Expr = Case(((conjunction(under), condition),), nothing, condition.type)
        else:
            made = condition
        if self.for_spark:
            made = Call(function_by_id(_KEPT), (made,), condition.type)
        column = PlanColumn(ColumnId(next(self.numbers)), "condition", condition.type)
        return self._project(append_columns(plan, {column: made})), column_reference(column)

    def _first(self, exprs: Sequence[Expr], under: Sequence[Expr] = ()) -> _Found | None:
        return next((found for expr in exprs if (found := self._condition(expr, under))), None)

    def _condition(self, expr: Expr, under: Sequence[Expr]) -> _Found | None:
        """The first condition that should be a column, and those that it is computed under."""
        if not has_subquery(expr):
            return None
        steps = guarded_operands(expr)
        if not steps:
            return next(
                (found for p in child_expressions(expr) if (found := self._condition(p, under))),
                None,
            )
        for number, (part, before) in enumerate(steps):
            if not has_subquery(part):
                continue
            later = [part for part, _ in steps[number + 1 :]]
            guards = any(part is tested for _, tests in steps for tested in _tested(tests))
            if guards and any(map(self._fails, later)):
                return None if is_volatile_anywhere(part) else (part, (*under, *before))
            found = self._condition(part, (*under, *before))
            if found is not None:
                return found
        return None

    def _fails(self, expr: Expr) -> bool:
        return has_failing_subquery(expr, by_overflow=not self.for_spark)


def _tested(tests: Sequence[Expr]) -> Iterator[Expr]:
    for test in tests:
        yield test
        yield from child_expressions(test)


class _Replacing:
    """Replaces a condition where it stands first: elsewhere others may rule out that it is asked,
    and the column would be NULL there.
    """

    def __init__(self, condition: Expr, column: ColumnRef) -> None:
        self._condition: Expr | None = condition
        self._column = column

    def __call__(self, expr: Expr) -> Expr:
        if self._condition is not None and expr == self._condition:
            self._condition = None
            return self._column
        if isinstance(expr, Subquery):
            return replace(expr, args=tuple(map(self, expr.args)))
        return rewrite_children(expr, self)
