"""Run an uncorrelated subquery only if some row demands it, as PostgreSQL runs InitPlans.

    select case when v > 100 then (select 10/w from u) end from t
      ─▶  select case when v > 100 then (select case when g then 10/w end from u where g) end
            from t;  g: exists (select from t where v > 100)

Engines run it in any case.

INVARIANTS
  A1  a subquery is changed only if it may fail: its guard reads the rows of the query around it
      once more. Neither these rows nor the conditions may be volatile.
  A2  the guard evaluates one expression for these rows, which keeps the order of the conditions.
  A3  conditions of WHERE guard others of the same relation: of several, PostgreSQL evaluates each
      where it can. It evaluates a condition without columns first, in any case, and correlated
      scalar subqueries, as the most costly, behind all conditions without subqueries. A guard over
      several relations reads them as they are joined: else it would read all pairs of rows.
  A4  conditions with more than a few subqueries guard nothing: the guard of every later subquery
      would have a copy of each.
  A5  a subquery without conditions is guarded by whether there are any rows, if the first of them
      comes at little cost: not rows of a set operation, a WITH query or other subqueries.

Not here: correlated subqueries (`guard_branch_subqueries.py`), and WITH queries, which are run in
any case.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Final

from sql.plan.conditions import filter_plan, guarded_operands
from sql.plan.nodes import (
    Aggregate,
    Case,
    ColumnId,
    Const,
    Expr,
    Filter,
    GroupBy,
    Join,
    JoinKind,
    Limit,
    Logical,
    Plan,
    Project,
    Scan,
    SetScan,
    Sort,
    Subquery,
    SubqueryKind,
    Window,
    output_columns,
)
from sql.plan.renumbering import free_columns, with_fresh_ids
from sql.plan.traverse import (
    Rewrite,
    aggregate_parts,
    column_ids,
    conjuncts,
    has_subquery,
    is_volatile_anywhere,
    is_volatile_plan,
    plan_expressions,
    plan_has_subquery,
    rewrite_aggregate,
    rewrite_children,
    rewrite_queries,
    subqueries,
)
from sql.rewrite.column_ids import IdRange, range_of_column_ids
from sql.rewrite.failure_analysis import subquery_may_fail
from sql.rewrite.guard_expressions import is_harmless
from sql.rewrite.guards.guard_branch_subqueries import guarded_subquery
from sql.rewrite.plan_facts import PlanFacts
from sql.rewrite.trivial_scalar_subqueries import (
    trivial_subquery_value,
    with_trivial_subquery_value,
)
from sql.types.sql_type import BOOL, INT8

_SUBQUERIES_MAX: Final = 2
"""See A4. More: statements grow to the power of their branches; fewer: `coalesce` of three
subqueries fails where PostgreSQL answers."""

_BOTH: Final = (JoinKind.CROSS, JoinKind.INNER)
"""Joins of which a row has one of either side."""


def lazy_init_plans(plan: Plan, facts: PlanFacts) -> Plan:
    """The plan, whose uncorrelated subqueries run only on demand (A1)."""
    return _plan(plan, range_of_column_ids(IdRange.LAZY_INIT_PLANS)) if facts.has_subquery else plan


def _plan(plan: Plan, numbers: Iterator[int]) -> Plan:
    if not plan_has_subquery(plan):
        return plan
    below = rewrite_queries(plan, lambda part: _plan(part, numbers), _of_one_value)
    match below:
        case Project():
            rows = _Rows(below.input, numbers)
            return replace(below, exprs=tuple([rows.guarded(expr, ()) for expr in below.exprs]))
        case Filter():
            return replace(below, predicate=_predicate(below, _Rows(below.input, numbers)))
        case GroupBy():
            rows = _Rows(below.input, numbers)
            return replace(below, aggregates=tuple([_call(c, rows) for c in below.aggregates]))
        case _:
            return below


def _of_one_value(expr: Subquery, within: Rewrite) -> Expr | None:
    alone = trivial_subquery_value(expr)
    return None if alone is None else with_trivial_subquery_value(expr, within(alone))


def _predicate(plan: Filter, rows: "_Rows") -> Expr:
    predicate = plan.predicate
    parts = conjuncts(predicate)
    if len(parts) == 1 or not isinstance(predicate, Logical):
        return rows.guarded(predicate, ())
    columns = _columns(plan.input)
    if _is_joined(plan.input):
        return replace(predicate, args=_over_several(plan.input, parts, columns, rows))
    if not isinstance(plan.input, Scan):
        return rows.guarded(predicate, ())
    cheap = tuple([part for part in parts if any(column_ids(part)) and not has_subquery(part)])
    before: tuple[Expr, ...] = ()
    made: list[Expr] = []
    for part in parts:
        own = not columns.isdisjoint(column_ids(part))
        made.append(_behind(cheap, rows.guarded(part, before if own else ())))
        before = (*before, part) if own else before
    return replace(predicate, args=tuple(made))


def _columns(plan: Plan) -> AbstractSet[ColumnId]:
    return {column.id for column in output_columns(plan)}


def _is_joined(plan: Plan) -> bool:
    while isinstance(plan, Filter | Project):
        plan = plan.input
    return isinstance(plan, Join)


def _over_several(
    plan: Plan, parts: Sequence[Expr], columns: AbstractSet[ColumnId], rows: "_Rows"
) -> tuple[Expr, ...]:
    """The conditions of WHERE over the rows of several relations (A3)."""
    rowless = [columns.isdisjoint(column_ids(part)) for part in parts]
    first = tuple([part for part, alone in zip(parts, rowless, strict=True) if alone])
    plain = [
        part for part, alone in zip(parts, rowless, strict=True) if not alone and is_harmless(part)
    ]
    made: list[Expr] = []
    for number, part in enumerate(parts):
        if rowless[number]:
            made.append(rows.guarded(part, first[: sum(rowless[:number])]))
        else:
            behind = bool(guarded_operands(part))
            asked = filter_plan(plan, plain) if behind else _where_it_is_asked(plan, part, plain)
            made.append(replace(rows, input=asked).guarded(part, first))
    return tuple(made)


def _where_it_is_asked(plan: Plan, part: Expr, plain: Sequence[Expr]) -> Plan:
    """The rows with those conditions that speak of nothing but the relation of this one."""
    used = _columns(plan) & set(column_ids(part))
    if isinstance(plan, Join) and plan.kind in _BOTH and not plan.lateral:
        if used <= _columns(plan.left):
            return replace(plan, left=_where_it_is_asked(plan.left, part, plain))
        if used <= _columns(plan.right):
            return replace(plan, right=_where_it_is_asked(plan.right, part, plain))
        return filter_plan(plan, plain)
    own = _columns(plan)
    return filter_plan(plan, [other for other in plain if own >= set(column_ids(other))])


def _behind(cheap: Sequence[Expr], part: Expr) -> Expr:
    """A condition with subqueries that refer to the row, behind those without (A3)."""
    if not cheap or any(map(is_volatile_anywhere, (*cheap, part))):
        return part
    values = [inner for inner in subqueries(part) if inner.kind is SubqueryKind.SCALAR]
    if not any(free_columns(inner.plan) and subquery_may_fail(inner) for inner in values):
        return part
    return Case(((_all_of(cheap), part),), Const(False, BOOL), BOOL)


def _call(call: Aggregate, rows: "_Rows") -> Aggregate:
    if not any(map(has_subquery, aggregate_parts(call))):
        return call
    before = () if call.filter is None else (call.filter,)
    made = rewrite_aggregate(call, lambda part: rows.guarded(part, before))
    return made if call.filter is None else replace(made, filter=rows.guarded(call.filter, ()))


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows that expressions are computed for."""

    input: Plan
    numbers: Iterator[int]

    def guarded(self, expr: Expr, before: tuple[Expr, ...]) -> Expr:
        """The expression with its subqueries run only if conditions hold for some row. `before`:
        those that it is computed under itself.
        """
        if not has_subquery(expr):
            return expr
        if isinstance(expr, Subquery):
            alone = trivial_subquery_value(expr)
            if alone is not None:
                return with_trivial_subquery_value(expr, self.guarded(alone, before))
            args = tuple([self.guarded(arg, before) for arg in expr.args])
            return self._asked(replace(expr, args=args), before)
        found = guarded_operands(expr)
        if not found:
            return rewrite_children(expr, lambda part: self.guarded(part, before))
        steps = iter([self.guarded(part, (*before, *conditions)) for part, conditions in found])
        return rewrite_children(expr, lambda _: next(steps))

    def _asked(self, expr: Subquery, conditions: Sequence[Expr]) -> Subquery:
        if free_columns(expr.plan) or is_volatile_plan(expr.plan):
            return expr
        if not subquery_may_fail(expr, by_overflow=bool(conditions)):
            return expr
        asking = self._any() if not conditions else self._those_with(conditions)
        if asking is None:
            return expr
        row = Limit(Project(asking, (), ()), Const(1, INT8), None)
        plan, _ = with_fresh_ids(row, lambda: ColumnId(next(self.numbers)))
        return guarded_subquery(expr, Subquery(SubqueryKind.EXISTS, plan, (), BOOL))

    def _any(self) -> Plan | None:
        """Rows that are there exactly if these are, None if they are not asked for (A5)."""
        plan = _first_rows(self.input)
        while isinstance(plan, Sort | Window) or (isinstance(plan, GroupBy) and plan.keys):
            if isinstance(plan, GroupBy) and plan.sets is not None:
                return None
            plan = plan.input
        return plan if _is_cheap(plan) and not is_volatile_plan(plan) else None

    def _those_with(self, conditions: Sequence[Expr]) -> Plan | None:
        """The rows for which these hold, None if they are not asked for (A1, A4)."""
        if is_volatile_plan(self.input) or any(map(is_volatile_anywhere, conditions)):
            return None
        if sum(1 for part in conditions for _ in subqueries(part)) > _SUBQUERIES_MAX:
            return None
        # Its own subqueries are asked in their order, too.
        return Filter(self.input, self.guarded(_all_of(conditions), ()))


def _first_rows(plan: Plan) -> Plan:
    """Side by side, one row of each side tells whether there are any. Sets are made in memory, and
    stand beside what they are made of: they stay whole.
    """
    if not isinstance(plan, Join) or plan.kind is not JoinKind.CROSS or plan.lateral:
        return plan
    one = Const(1, INT8)
    sides = [
        side if isinstance(side, SetScan) else Limit(side, one, None)
        for side in (_first_rows(plan.left), _first_rows(plan.right))
    ]
    return replace(plan, left=sides[0], right=sides[1])


def _is_cheap(plan: Plan) -> bool:
    """Whether the first row of a plan comes at little cost (A5)."""
    match plan:
        case Limit():
            return _is_cheap(plan.input)
        case Project() | Filter():
            return not any(map(has_subquery, plan_expressions(plan))) and _is_cheap(plan.input)
        case Join():
            return _is_cheap(plan.left) and _is_cheap(plan.right)
        case _:
            return isinstance(plan, Scan | SetScan)


def _all_of(conditions: Sequence[Expr]) -> Expr:
    """Whether all hold, asked in their order (A2)."""
    *before, found = conditions
    for condition in reversed(before):
        found = Case(((condition, found),), Const(False, BOOL), BOOL)
    return found
