"""Restrict plans to affected keys, and find the keys by which subqueries depend on outer rows.

    restrict(plan, keys)     Join(plan, keys), as deep in the plan as the keys' columns are there
    correlation(subquery)    ... Filter(inner, outer.a = inner.b): rows with a are affected by b

INVARIANTS
  R1  a restricted plan has the rows of the plan whose keys are among those of the relation, each
      as often: keys are there once, and equal as GROUP BY has it, NULLs too.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from sql.plan.conditions import conjunction, equality_sides, flatten_conjuncts
from sql.plan.nodes import (
    Call,
    ColumnId,
    Distinct,
    DistinctRows,
    Expr,
    Filter,
    GroupBy,
    Join,
    JoinKind,
    Plan,
    Project,
    Scan,
    SetOp,
    SetOpKind,
    Sort,
    Subquery,
    SubqueryKind,
    output_columns,
)
from sql.plan.projections import column_references, project_columns
from sql.plan.renumbering import expression_columns, free_columns
from sql.plan.traverse import (
    has_subquery,
    inputs,
    plan_expressions,
    scans,
    subqueries,
    substitute_columns,
)
from sql.types.sql_type import BOOL

ScanKeys: TypeAlias = Callable[[], Scan]
"""Makes a scan of the keys, with column ids of its own."""


def restrict_to_keys(plan: Plan, exprs: Sequence[Expr], keys: ScanKeys) -> Plan:
    """The rows of the plan for which the expressions are one of the keys (R1)."""
    ids = {id_ for expr in exprs for id_ in expression_columns(expr)}
    match plan:
        case Project() if not any(map(has_subquery, plan.exprs)):
            made = {c.id: e for c, e in zip(plan.columns, plan.exprs, strict=True)}
            below = [substitute_columns(expr, made) for expr in exprs]
            return replace(plan, input=restrict_to_keys(plan.input, below, keys))
        case Filter() | Sort() | DistinctRows():
            return replace(plan, input=restrict_to_keys(plan.input, exprs, keys))
        case GroupBy(sets=None) if ids and ids <= {c.id for c in plan.key_columns}:
            made = {c.id: e for c, e in zip(plan.key_columns, plan.keys, strict=True)}
            below = [substitute_columns(expr, made) for expr in exprs]
            return replace(plan, input=restrict_to_keys(plan.input, below, keys))
        case SetOp(kind=SetOpKind.UNION, all=True):
            sides = [
                restrict_to_keys(side, _of_side(plan, side, exprs), keys)
                for side in (plan.left, plan.right)
            ]
            return replace(plan, left=sides[0], right=sides[1])
        case Join() if ids and not plan.lateral:
            return _restricted_join(plan, exprs, ids, keys)
        case _:
            return joined_with_equal_keys(plan, exprs, keys)


def _of_side(plan: SetOp, side: Plan, exprs: Sequence[Expr]) -> list[Expr]:
    refs = column_references(output_columns(side))
    made: dict[ColumnId, Expr] = {c.id: r for c, r in zip(plan.columns, refs, strict=True)}
    return [substitute_columns(expr, made) for expr in exprs]


def _restricted_join(plan: Join, exprs: Sequence[Expr], ids: set[ColumnId], keys: ScanKeys) -> Plan:
    inner = plan.kind in (JoinKind.INNER, JoinKind.CROSS)
    if (inner or plan.kind is JoinKind.LEFT) and ids <= _ids_of(plan.left):
        return replace(plan, left=restrict_to_keys(plan.left, exprs, keys))
    if (inner or plan.kind is JoinKind.RIGHT) and ids <= _ids_of(plan.right):
        return replace(plan, right=restrict_to_keys(plan.right, exprs, keys))
    return joined_with_equal_keys(plan, exprs, keys)


def _ids_of(plan: Plan) -> set[ColumnId]:
    return {column.id for column in output_columns(plan)}


def joined_with_equal_keys(plan: Plan, exprs: Sequence[Expr], keys: ScanKeys) -> Plan:
    """The same, here and not deeper."""
    scan = keys()
    pairs = zip(exprs, column_references(scan.columns), strict=True)
    on = conjunction([Distinct(expr, key, True, BOOL) for expr, key in pairs])
    return project_columns(Join(JoinKind.INNER, plan, scan, on), output_columns(plan))


# --- how a subquery depends on outer rows ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Correlation:
    """Outer rows depend on rows of `inner` only if all equalities are true of both."""

    inner: Plan
    equalities: "tuple[_Equality, ...]"

    @property
    def keys(self) -> tuple[Expr, ...]:
        """What of a row of `inner` decides which outer rows depend on it."""
        return tuple([one.inner for one in self.equalities])

    def affected(self, outer: Plan, keys: ScanKeys) -> Plan:
        """The outer rows that depend on one of the keys, and perhaps more with NULLs."""
        if all(one.inner.type == one.outer.type for one in self.equalities):
            return restrict_to_keys(outer, [one.outer for one in self.equalities], keys)
        # Several keys may be equal to one value of another type.
        scan = keys()
        refs = column_references(scan.columns)
        pairs = zip(self.equalities, refs, strict=True)
        on = conjunction([one.with_inner(ref) for one, ref in pairs])
        return Filter(outer, Subquery(SubqueryKind.EXISTS, Filter(scan, on), (), BOOL))


@dataclass(frozen=True, slots=True)
class _Equality:
    whole: Expr
    inner: Expr
    outer: Expr
    at: int
    """Which side of it is `inner`."""

    def with_inner(self, key: Expr) -> Expr:
        """The equality of something else with the outer side."""
        at = self.at
        if isinstance(self.whole, Call):
            args = self.whole.args
            return replace(self.whole, args=(*args[:at], key, *args[at + 1 :]))
        assert isinstance(self.whole, Distinct), "an equality is one of these"
        return replace(self.whole, left=key) if at == 0 else replace(self.whole, right=key)


def find_correlation(plan: Plan) -> Correlation | None:
    """By which equalities a correlated plan depends on outer rows; None: by none that all of its
    rows must fulfil.
    """
    if not free_columns(plan):
        return None
    node = plan
    while not isinstance(node, Filter):
        below = inputs(node)
        if len(below) != 1:
            return None
        (node,) = below
    conjuncts: list[Expr] = []
    while isinstance(node, Filter):
        conjuncts += flatten_conjuncts(node.predicate)
        node = node.input
    if free_columns(node) or len([*scans(node)]) != len([*scans(plan)]):
        return None
    own = _ids_of(node)
    return _correlation(node, conjuncts, own)


def join_correlation(join: Join, inner: Plan) -> Correlation | None:
    """The same of the side of a join that rows of the other one need not have."""
    conjuncts = [] if join.condition is None else flatten_conjuncts(join.condition)
    return _correlation(inner, conjuncts, _ids_of(inner))


def _correlation(inner: Plan, conjuncts: Sequence[Expr], own: set[ColumnId]) -> Correlation | None:
    found = [one for part in conjuncts if (one := _equality(part, own)) is not None]
    return Correlation(inner, tuple(found)) if found else None


def _equality(part: Expr, own: set[ColumnId]) -> _Equality | None:
    """An equality of an inner and an outer side."""
    sides = equality_sides(part)
    if len(sides) != 2 or has_subquery(part):
        return None
    for at in (0, 1):
        inner, outer = expression_columns(sides[at]), expression_columns(sides[1 - at])
        if inner and inner <= own and outer and not outer & own:
            return _Equality(part, sides[at], sides[1 - at], at)
    return None


def join_keys(join: Join) -> tuple[list[Expr], list[Expr]] | None:
    """The expressions of either side that must be equal; None: none of one type are."""
    left, right = _ids_of(join.left), _ids_of(join.right)
    keys: tuple[list[Expr], list[Expr]] = ([], [])
    for part in () if join.condition is None else flatten_conjuncts(join.condition):
        sides = equality_sides(part)
        if len(sides) != 2 or sides[0].type != sides[1].type or has_subquery(part):
            continue
        first, second = (expression_columns(side) for side in sides)
        if first and second and first <= right and second <= left:
            sides, first, second = (sides[1], sides[0]), second, first
        if first and second and first <= left and second <= right:
            keys[0].append(sides[0])
            keys[1].append(sides[1])
    return keys if keys[0] else None


def reading_subqueries(plan: Plan) -> list[Plan]:
    """The plans of subqueries in the node's own expressions that read inputs."""
    found = [inner.plan for expr in plan_expressions(plan) for inner in subqueries(expr)]
    return [inner for inner in found if any(scans(inner))]
