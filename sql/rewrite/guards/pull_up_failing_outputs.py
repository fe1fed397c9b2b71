"""Compute failing columns of derived tables where the query uses them (pull_up_subqueries).

    select case when v <> 0 then q end from (select v, 10/v as q from t) s
      ─▶  select case when v <> 0 then 10/v end from (select v from t) s
    select q from (select id, (select ..) as q from t) s where id > 2
      ─▶  select q from (select id, (select ..) as q from t where id > 2) s

PostgreSQL has no derived tables left when it computes anything.

INVARIANTS
  U1  a column is pulled up if it may fail otherwise than by overflow, is not volatile, and is used
      in a branch, in a subquery, or in a condition for a subquery. Then every use in that node has
      its expression. Any use in the right side of a lateral join counts as well.
  U2  columns come up through a join from sides that the join does not NULL-extend.
  U3  conditions go below a projection that may fail if they are over columns that it passes on,
      cannot fail, and have no subqueries.
  U4  a column is not pulled up if it is used often, or has a very large expression: one that
      refers to itself twice at each of many levels would grow exponentially.
  U5  a pulled-up column is not computed below any more, unless something else there uses it:
      DuckDB would run a subquery that nobody uses.

Not here: columns below groups, sets, LIMIT and a derived table's own windows, which PostgreSQL does
not pull up.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, Literal, TypeAlias, overload

from sql.plan.conditions import filter_plan, flatten_conjuncts, guarded_operands
from sql.plan.nodes import (
    ColumnId,
    ColumnRef,
    Expr,
    Filter,
    GroupBy,
    Join,
    Plan,
    Project,
    Subquery,
    Window,
    output_columns,
)
from sql.plan.projections import column_references, is_column_selection, project_columns
from sql.plan.renumbering import column_refs, expression_columns, free_columns
from sql.plan.traverse import (
    aggregate_parts,
    child_expressions,
    column_ids,
    has_more_parts,
    has_subquery,
    is_volatile_anywhere,
    plan_column_ids,
    plan_expressions,
    rewrite_node,
    rewrite_plan,
    rewrite_queries,
    subqueries,
    substitute_columns,
    window_parts,
)
from sql.rewrite.failure_analysis import has_failing_subquery
from sql.rewrite.guard_expressions import is_harmless, may_fail
from sql.rewrite.guards.push_filters_below_lateral import NEVER_NULL_LEFT, NEVER_NULL_RIGHT
from sql.rewrite.plan_facts import PlanFacts

_USES_MAX: Final = 4
_PARTS_MAX: Final = 100
_SUBQUERIES_MAX: Final = 2
"""Uses of a column, and what makes it. More: statements grow; fewer: what is asked for in as many
branches, or is as long, fails where PostgreSQL answers."""
_Made: TypeAlias = Mapping[ColumnId, Expr]


def pull_up_failing_outputs(plan: Plan, facts: PlanFacts) -> Plan:
    """The plan with such columns computed where they are used (U1), and conditions below (U3)."""
    return _plan(plan, _FailingColumns()) if facts.may_fail(by_overflow=False) else plan


def _plan(plan: Plan, columns: "_FailingColumns") -> Plan:
    made = rewrite_queries(plan, lambda below: _plan(below, columns))
    if isinstance(made, Join) and made.lateral:
        return _pulled_aside(made, columns)
    if not isinstance(made, Project | Filter | GroupBy | Window):
        return made
    failing = columns.of(made.input)
    asked = {id_ for id_ in _asked(made, failing) if id_ in failing} if failing else set()
    uses = (id_ for expr in plan_expressions(made) for id_ in column_ids(expr))
    if asked and _is_short(uses, {id_: failing[id_] for id_ in asked}):
        # Its plain conditions stay, too: on Spark they guard the subqueries that come up.
        made = _sunk(made, staying=True) if isinstance(made, Filter) else made
        return _pulled(made, {id_: failing[id_] for id_ in asked})
    return _sunk(made) if isinstance(made, Filter) else made


def _is_short(uses: Iterable[ColumnId], made: _Made) -> bool:
    """Whether what uses these columns does not grow too long (U4)."""
    count = Counter(uses)
    return all(
        count[id_] <= _USES_MAX
        and not _is_long(expr)
        and sum(1 for _ in subqueries(expr)) <= _SUBQUERIES_MAX
        for id_, expr in made.items()
    )


def _is_long(expr: Expr) -> bool:
    """Whether it has many parts, or many columns when those of its subqueries count, too (U4)."""
    if has_more_parts(expr, _PARTS_MAX):
        return True
    columns = islice(column_refs(expr), _PARTS_MAX + 1)
    return has_subquery(expr) and sum(1 for _ in columns) > _PARTS_MAX


# --- conditions that go below (U3) -------------------------------------------------------------


@overload
def _sunk(plan: Filter) -> Plan: ...
@overload
def _sunk(plan: Filter, *, staying: Literal[True]) -> Filter: ...
def _sunk(plan: Filter, *, staying: bool = False) -> Plan:
    below = plan.input
    if not isinstance(below, Project) or not any(map(_fails, below.exprs)):
        return plan
    if any(map(is_volatile_anywhere, below.exprs)):
        return plan
    rows = {column.id for column in output_columns(below.input)}
    both = zip(below.columns, below.exprs, strict=True)
    passed: _Made = {c.id: e for c, e in both if isinstance(e, ColumnRef) and e.id in rows}
    parts = flatten_conjuncts(plan.predicate)
    sunk = [part for part in parts if _is_sinking(part, passed, below)]
    if not sunk:
        return plan
    left = filter_plan(below.input, [substitute_columns(part, passed) for part in sunk])
    made = _with_sunk(replace(below, input=left))
    if staying:
        return replace(plan, input=made)
    return filter_plan(made, [part for part in parts if part not in sunk])


def _with_sunk(plan: Project) -> Project:
    """The projection with conditions right below it as far down as they go."""
    return replace(plan, input=_sunk(plan.input)) if isinstance(plan.input, Filter) else plan


def _is_sinking(part: Expr, passed: _Made, below: Project) -> bool:
    own = {column.id for column in below.columns}
    return is_harmless(part) and own.intersection(column_ids(part)) <= set(passed)


# --- columns that come up (U1) -----------------------------------------------------------------


class _FailingColumns:
    """What makes columns of rows that may fail. Kept for each plan: queries within each other ask
    for all those below, at every level.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Plan, _Made]] = {}

    def of(self, plan: Plan) -> _Made:
        """The columns of these rows that may fail, and what makes them of the rows below."""
        known = self._known.get(id(plan))
        if known is None:
            known = self._known[id(plan)] = plan, dict(self._of(plan))
        return known[1]

    def _of(self, plan: Plan) -> Iterator[tuple[ColumnId, Expr]]:
        match plan:
            case Project():
                # A derived table with windows PostgreSQL does not take apart.
                is_apart = isinstance(plan.input, Window) and not is_column_selection(plan)
                below = {} if is_apart else self.of(plan.input)
                for column, expr in zip(plan.columns, plan.exprs, strict=True):
                    whole = substitute_columns(expr, below) if below else expr
                    if _is_long(whole):
                        whole = expr
                    if _fails(whole) and not is_volatile_anywhere(whole):
                        yield column.id, whole
            case Filter() | Window():
                yield from self.of(plan.input).items()
            case Join():
                if plan.kind in NEVER_NULL_LEFT:
                    yield from self.of(plan.left).items()
                if plan.kind in NEVER_NULL_RIGHT and not plan.lateral:
                    yield from self.of(plan.right).items()
            case _:
                return


def _fails(expr: Expr) -> bool:
    return may_fail(expr, by_overflow=False) or has_failing_subquery(expr, by_overflow=False)


def _asked(plan: Project | Filter | GroupBy | Window, made: _Made) -> Iterator[ColumnId]:
    """The columns that somebody asks for in a branch."""
    if isinstance(plan, GroupBy):
        for call in plan.aggregates:
            if call.filter is not None:
                yield from (id_ for part in aggregate_parts(call) for id_ in column_ids(part))
    if isinstance(plan, Window):
        for one in plan.calls:
            if one.filter is not None:
                yield from (id_ for part in window_parts(one) for id_ in column_ids(part))
    if isinstance(plan, Filter) and len(flatten_conjuncts(plan.predicate)) > 1:
        yield from (id_ for id_ in column_ids(plan.predicate) if _is_of_subquery(made, id_))
    for expr in plan_expressions(plan):
        yield from _in_branches(expr)


def _is_of_subquery(made: _Made, id_: ColumnId) -> bool:
    """Whether a subquery makes the column."""
    return id_ in made and has_subquery(made[id_])


def _in_branches(expr: Expr) -> Iterator[ColumnId]:
    if isinstance(expr, Subquery):
        yield from expression_columns(expr)
        return
    steps = guarded_operands(expr)
    for part, before in steps:
        yield from column_ids(part) if before else _in_branches(part)
    if not steps:
        for part in child_expressions(expr):
            yield from _in_branches(part)


def _pulled_aside(plan: Join, columns: _FailingColumns) -> Plan:
    """A lateral join whose right side, which may have no rows, asks for what the left one makes."""
    failing = columns.of(plan.left)
    made = {id_: failing[id_] for id_ in plan_column_ids(plan.right) if id_ in failing}
    if not made or not _is_short(plan_column_ids(plan.right), made):
        return plan
    needed = {id_ for expr in made.values() for id_ in expression_columns(expr)}
    left = _Showing(needed).of(plan.left, set(made), set(made))
    right = rewrite_plan(plan.right, lambda expr: substitute_columns(expr, made))
    return project_columns(replace(plan, left=left, right=right), output_columns(plan))


def _pulled(plan: Project | Filter | GroupBy | Window, made: _Made) -> Plan:
    needed = {id_ for expr in made.values() for id_ in expression_columns(expr)}
    told = rewrite_node(plan, lambda expr: substitute_columns(expr, made))
    assert isinstance(told, Project | Filter | GroupBy | Window), "a node stays what it is"
    passes_on = isinstance(plan, Filter | Window)
    used = set(made) if passes_on else set[ColumnId]()
    rows = _Showing(needed).of(plan.input, set(made), used)
    return project_columns(replace(told, input=rows), output_columns(plan))


@dataclass(frozen=True, slots=True)
class _Showing:
    """Rows with the columns `needed`, without those that nobody but the one above asked for."""

    needed: AbstractSet[ColumnId]

    def of(self, plan: Plan, made: AbstractSet[ColumnId], used: AbstractSet[ColumnId]) -> Plan:
        """`made`: the columns that come up; `used`: those that something else asks for."""
        used = used | {id_ for expr in plan_expressions(plan) for id_ in column_ids(expr)}
        match plan:
            case Filter() | Window():
                return replace(plan, input=self.of(plan.input, made, used))
            case Join() if plan.lateral:
                used = used | free_columns(plan.right)
                return replace(plan, left=self.of(plan.left, made, used))
            case Join():
                left, right = (self.of(side, made, used) for side in (plan.left, plan.right))
                return replace(plan, left=left, right=right)
            case Project() if not made.isdisjoint(column.id for column in plan.columns):
                return self._of_project(plan, made, used)
            case _:
                return plan

    def _of_project(
        self, plan: Project, made: AbstractSet[ColumnId], used: AbstractSet[ColumnId]
    ) -> Plan:
        both = list(zip(plan.columns, plan.exprs, strict=True))
        gone = made - used - self.needed
        kept = [(column, expr) for column, expr in both if column.id not in gone]
        passed = {id_ for column, expr in both if column.id in made for id_ in column_ids(expr)}
        used_below = {id_ for _, expr in kept for id_ in column_ids(expr)}
        below = self.of(plan.input, passed, used_below)
        own = {column.id for column, _ in kept}
        more = [column for column in output_columns(below) if column.id in self.needed - own]
        shown = [*kept, *zip(more, column_references(more), strict=True)]
        columns = tuple([column for column, _ in shown])
        return Project(below, columns, tuple([expr for _, expr in shown]))
