"""Move subqueries out of ON, where Spark takes none and DuckDB runs them for too many rows.

    t left join u on t.k = u.k and u.w in (select ..)
      ─▶  t left join (select .. from u where u.w in (select ..)) on t.k = u.k
    t left join u on t.k = u.k and u.w > (select max(v) from s where s.id = t.id)
      ─▶  (select .., (select max(v) ..) as c from t) left join u on t.k = u.k and u.w > c

The row-preserving side is the left one of LEFT, the right one of RIGHT, both of FULL; the other one
is null-supplying.

INVARIANTS
  O1  a join keeps its columns and their order.
  O2  conditions over the null-supplying side alone are evaluated for its rows, as PostgreSQL does:
      for all of them if the row-preserving side has a row.
  O3  a subquery over one side becomes a column of that side. One that may fail, and one over both
      sides, is computed for the pairs that all other conditions leave
      (`outer_join_by_row_number.py`). FULL has no such pairs, and is refused.
  O4  a subquery over neither side stays where it is: Spark runs it once. If it may fail, it runs
      only if there is a pair that demands it. Join keys (`=` of both sides) PostgreSQL computes for
      all rows, so that they may fail for any.
  O5  a volatile condition does not move: Spark refuses it.
  O6  DuckDB takes all of them, but runs them for all rows. For DuckDB only a subquery that may fail
      moves, and stays where it cannot.
  O7  those of an inner join move to WHERE, with all other conditions, which guard them there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sql.plan.conditions import conjunction, filter_plan, flatten_conjuncts, guarded_operands
from sql.plan.nodes import (
    Call,
    ColumnId,
    Const,
    CteScan,
    Expr,
    InList,
    Join,
    JoinKind,
    Plan,
    PlanColumn,
    Project,
    Subquery,
    SubqueryKind,
    output_columns,
)
from sql.plan.projections import append_columns, column_reference, project_columns
from sql.plan.renumbering import free_columns
from sql.plan.traverse import (
    child_expressions,
    column_ids,
    has_subquery,
    inputs,
    is_volatile_anywhere,
    is_volatile_plan,
    plan_expressions,
    rewrite_children,
    rewrite_queries,
    scans,
    subqueries,
)
from sql.rewrite.column_ids import IdRange, range_of_column_ids
from sql.rewrite.failure_analysis import subquery_may_fail
from sql.rewrite.guard_expressions import may_fail
from sql.rewrite.guards.guard_branch_subqueries import guarded_subquery
from sql.rewrite.guards.hoist_failing_outputs import depends_on_row_choice
from sql.rewrite.plan_facts import PlanFacts
from sql.rewrite.subqueries.existence_probes import existence_probe, pair_existence_probe
from sql.rewrite.subqueries.outer_join_by_row_number import (
    left_join_by_row_number,
    renumbered_query,
)
from sql.types.sql_type import BOOL

_SCANS_MAX: Final = 12
"""Of what is read several times: more, and a chain of such joins grows to its power; fewer: they
are refused."""
_OUTER: Final = (JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL)
_IN: Final = (SubqueryKind.IN, SubqueryKind.NOT_IN)


def move_join_condition_subqueries(plan: Plan, facts: PlanFacts, *, only_failing: bool) -> Plan:
    """The plan with such subqueries outside of ON. `only_failing`: as DuckDB needs it (O6)."""
    if not facts.has_subquery:
        return plan
    return _plan(
        plan, range_of_column_ids(IdRange.JOIN_CONDITION_SUBQUERIES), only_failing=only_failing
    )


def is_uncorrelated_value(expr: Subquery) -> bool:
    """Whether it is an uncorrelated subquery that is a value (O4)."""
    return expr.kind not in _IN and not free_columns(expr.plan)


def _plan(plan: Plan, numbers: Iterator[int], *, only_failing: bool) -> Plan:
    made = rewrite_queries(plan, lambda part: _plan(part, numbers, only_failing=only_failing))
    if not isinstance(made, Join) or made.condition is None or not has_subquery(made.condition):
        return made
    if made.kind not in (JoinKind.INNER, *_OUTER) or is_volatile_anywhere(made.condition):
        return made
    if only_failing and not any(_fails(inner) for inner in subqueries(made.condition)):
        return made
    if made.kind is JoinKind.INNER:
        rows = replace(made, kind=JoinKind.CROSS, condition=None)
        return filter_plan(rows, flatten_conjuncts(made.condition))
    if made.lateral:
        return made
    below, parts = _at_padded_side(made, flatten_conjuncts(made.condition), numbers)
    return _over_pairs(below, parts, numbers, same=_is_same_each_time(plan)) or made


# --- conditions over the padded side (O2) ------------------------------------------------------


def _at_padded_side(
    join: Join, parts: Sequence[Expr], numbers: Iterator[int]
) -> tuple[Join, Sequence[Expr]]:
    """The join with conditions over its padded side below it, and the others."""
    if join.kind is JoinKind.FULL:
        return join, parts
    kept, padded = _sides(join)
    own = [part for part in parts if _is_of(part, padded) and not _is_of(part, kept)]
    if not any(map(has_subquery, own)):
        return join, parts
    rows = padded
    if any(map(_fails, own)) and not is_volatile_plan(kept):
        some = renumbered_query(existence_probe(kept), numbers)
        rows = Join(JoinKind.CROSS, padded, some, None)
    moved = {*map(id, own)}
    rest = [part for part in parts if id(part) not in moved]
    return _with_sides(join, kept, filter_plan(rows, own)), rest


def _sides(join: Join) -> tuple[Plan, Plan]:
    """The kept side and the padded one; of FULL, the left and the right one."""
    return (join.right, join.left) if join.kind is JoinKind.RIGHT else (join.left, join.right)


def _with_sides(join: Join, kept: Plan, padded: Plan) -> Join:
    if join.kind is JoinKind.RIGHT:
        return replace(join, left=padded, right=kept)
    return replace(join, left=kept, right=padded)


def _is_of(expr: Expr, plan: Plan) -> bool:
    """Whether it refers to rows of the plan."""
    return not {column.id for column in output_columns(plan)}.isdisjoint(column_ids(expr))


def _fails(expr: Expr) -> bool:
    """Whether it may fail but by overflow, in a subquery or beside it."""
    return may_fail(expr, by_overflow=False) or any(
        subquery_may_fail(inner, by_overflow=False) for inner in subqueries(expr)
    )


# --- conditions over pairs (O3, O4) ------------------------------------------------------------


def _over_pairs(
    join: Join, parts: Sequence[Expr], numbers: Iterator[int], *, same: bool
) -> Plan | None:
    """The join on these conditions; None if Spark does not take it. `same`: its sides are the same
    rows whenever they are read, as far as they do not call what is volatile.
    """
    paired = not (is_volatile_plan(join.left) or is_volatile_plan(join.right))
    asked = _run_if_paired(join, parts, numbers) if paired else parts
    columns = _Columns(join, numbers, paired)
    late = [part for part in asked if not columns.takes(part)]
    done = {*map(id, late)}
    plain = [columns.moved(_as_existence(part)) for part in asked if id(part) not in done]
    kept, padded = _sides(columns.joined())
    if not late:
        condition = conjunction(plain) if plain else Const(True, BOOL)
        made: Plan = replace(_with_sides(join, kept, padded), condition=condition)
    else:
        fails = any(map(_fails, late))
        if join.kind is JoinKind.FULL or (fails and not (same and _is_read_twice(kept, padded))):
            return None
        made = left_join_by_row_number(kept, padded, plain, late, numbers, fails=fails)
    return project_columns(made, output_columns(join))


def _is_read_twice(*sides: Plan) -> bool:
    """Whether the sides are not volatile, and not too many plans."""
    if any(map(is_volatile_plan, sides)):
        return False
    return sum(1 for side in sides for _ in scans(side)) <= _SCANS_MAX


def _is_same_each_time(plan: Plan) -> bool:
    """Whether it has the same rows whenever it is read. What a WITH query has is not known here:
    Spark computes it anew for each of its readers.
    """
    if depends_on_row_choice(plan) or isinstance(plan, CteScan):
        return False
    asked = [inner.plan for expr in plan_expressions(plan) for inner in subqueries(expr)]
    return all(map(_is_same_each_time, (*inputs(plan), *asked)))


def _run_if_paired(join: Join, parts: Sequence[Expr], numbers: Iterator[int]) -> Sequence[Expr]:
    """The conditions with their subqueries over no row guarded (O4)."""
    keys = {id(part) for part in parts if _is_key(part, join)}
    before = [part for part in parts if id(part) in keys and not has_subquery(part)]
    made: list[Expr] = []
    for part in parts:
        made.append(_guarded(part, join, () if id(part) in keys else before, numbers))
        if id(part) not in keys and not has_subquery(part):
            before.append(part)
    return made


def _is_key(part: Expr, join: Join) -> bool:
    """Whether PostgreSQL finds the pairs by it: then its sides are computed of all rows."""
    if not isinstance(part, Call) or part.function.name != "=":
        return False
    sides = [[_is_of(arg, side) for side in (join.left, join.right)] for arg in part.args[:2]]
    return sorted(sides) == [[False, True], [True, False]]


def _guarded(expr: Expr, join: Join, before: Sequence[Expr], numbers: Iterator[int]) -> Expr:
    """The expression with subqueries over no row run only if a pair asks for them."""
    if not has_subquery(expr):
        return expr
    found = guarded_operands(expr)
    if found:
        steps = iter(
            [
                _guarded(part, join, [*before, *_without_subqueries(under)], numbers)
                for part, under in found
            ]
        )
        return rewrite_children(expr, lambda _: next(steps))
    if not isinstance(expr, Subquery):
        return rewrite_children(expr, lambda part: _guarded(part, join, before, numbers))
    args = tuple([_guarded(arg, join, before, numbers) for arg in expr.args])
    made = replace(expr, args=args)
    if free_columns(expr.plan) or not subquery_may_fail(expr, by_overflow=False):
        return made
    row = renumbered_query(pair_existence_probe(join, before), numbers)
    return guarded_subquery(made, Subquery(SubqueryKind.EXISTS, row, (), BOOL))


def _without_subqueries(parts: Sequence[Expr]) -> Sequence[Expr]:
    return [part for part in parts if not has_subquery(part)]


def _outermost(expr: Expr) -> Iterator[Subquery]:
    """The subqueries in an expression, not those in their arguments."""
    if isinstance(expr, Subquery):
        yield expr
        return
    for part in child_expressions(expr):
        yield from _outermost(part)


def _as_existence(part: Expr) -> Expr:
    """IN that has to be true asks for a row: of that Spark makes a join by what is equal."""
    if not isinstance(part, Subquery) or part.kind is not SubqueryKind.IN:
        return part
    found = [
        InList(arg, (column_reference(column),), negated=False, type=BOOL)
        for arg, column in zip(part.args, output_columns(part.plan), strict=True)
    ]
    query = Project(filter_plan(part.plan, found), (), ())
    return Subquery(SubqueryKind.EXISTS, query, (), BOOL)


@dataclass(slots=True)
class _Columns:
    """The sides of a join, with subqueries as columns."""

    join: Join
    numbers: Iterator[int]
    paired: bool
    """Whether subqueries over no row are run only if there is a pair."""
    left: dict[PlanColumn, Expr] = field(default_factory=dict[PlanColumn, Expr])
    right: dict[PlanColumn, Expr] = field(default_factory=dict[PlanColumn, Expr])

    def takes(self, part: Expr) -> bool:
        """Whether subqueries of a condition all stay or become columns."""
        key = _is_key(part, self.join)
        return all(self._takes(inner, key=key) for inner in _outermost(part))

    def _takes(self, expr: Subquery, *, key: bool) -> bool:
        if is_uncorrelated_value(expr):
            return True
        if _is_of(expr, self.join.left) and _is_of(expr, self.join.right):
            return False
        guarded = self.paired and not free_columns(expr.plan)
        fails = any(map(_fails, expr.args)) if guarded else _fails(expr)
        return key or not fails

    def moved(self, expr: Expr) -> Expr:
        """The expression with subqueries as columns of their sides."""
        if not isinstance(expr, Subquery):
            return rewrite_children(expr, self.moved) if has_subquery(expr) else expr
        if is_uncorrelated_value(expr):
            return expr
        column = PlanColumn(ColumnId(next(self.numbers)), "asked", expr.type)
        side = self.left if _is_of(expr, self.join.left) else self.right
        side[column] = expr
        return column_reference(column)

    def joined(self) -> Join:
        """The join with these columns."""
        left, right = _extended(self.join.left, self.left), _extended(self.join.right, self.right)
        return replace(self.join, left=left, right=right)


def _extended(plan: Plan, more: dict[PlanColumn, Expr]) -> Plan:
    return append_columns(plan, more) if more else plan
