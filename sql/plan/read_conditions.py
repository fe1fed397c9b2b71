"""Derive the rows that a plan's result depends on: for each scan, conditions that they all fulfil.

    Project ─ Filter(a.x = 5 and b.y > 1) ─ Join(a.id = b.id) ─┬─ Scan a     a: x = 5
                                                               └─ Scan b     b: y > 1

Conditions are pushed down from where they stand to the scans. A condition that arrives at a scan
and names only its columns is a condition of the scan. All others are left out, which makes the
result weaker and never wrong.

INVARIANTS
  D1  a row of a relation for which a condition of every scan of it is not true (false or NULL) can
      be added or removed without any change of the plan's result.
  D2  columns of a condition are ordinals of the relation: conditions do not depend on the plan's
      column ids, so that equal ones are equal.

Conditions pass through filters, both sides of an inner join, and HAVING on grouping columns. Of an
outer join, the row-preserving side takes conditions from above. The null-supplying side takes only
those of the join itself: above it a missing row is not nothing, but NULLs. LIMIT, windows, set
operations, DISTINCT and aggregates without keys stop conditions from above. Equalities pass values
on: `a.id = b.id and a.id = 5` gives `b.id = 5`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, assert_never

from sql.functions.table import FunctionKind
from sql.plan.conditions import flatten_conjuncts
from sql.plan.nodes import (
    Call,
    ColumnId,
    ColumnRef,
    Const,
    CteScan,
    DistinctOn,
    DistinctRows,
    Expr,
    Filter,
    GroupBy,
    Join,
    JoinKind,
    Limit,
    Param,
    Plan,
    Project,
    Recursive,
    RelationId,
    Scan,
    SetOp,
    SetScan,
    Sort,
    Values,
    Window,
    With,
    output_columns,
)
from sql.plan.system_columns import is_system_column
from sql.plan.traverse import (
    column_ids,
    has_more_parts,
    has_subquery,
    is_volatile_expression,
    plan_expressions,
    subqueries,
    substitute_columns,
)

PUSHED_CONDITIONS_MAX: Final = 64
"""Conditions carried at once; further ones are left out. Larger: slower for machine-made queries of
a thousand conditions, which gain nothing by it."""


PUSHED_PARTS_MAX: Final = 20
"""Parts of a condition on what a node computes. Larger: in a chain of views that compute, each
level makes all conditions from above longer."""


@dataclass(frozen=True, slots=True)
class ReadCondition:
    """One scan: rows matter for which all of these are true (D2). Empty: all rows."""

    all_of: tuple[Expr, ...] = ()


def read_conditions(plan: Plan) -> Mapping[RelationId, tuple[ReadCondition, ...] | None]:
    """The scans of each relation; None if one of them reads all rows."""
    finder = _Finder()
    finder.visit(plan, ())
    return finder.found


@dataclass(slots=True)
class _Finder:
    found: dict[RelationId, tuple[ReadCondition, ...] | None] = field(
        default_factory=dict[RelationId, tuple[ReadCondition, ...] | None]
    )

    def visit(self, plan: Plan, carried: Sequence[Expr]) -> None:
        """Go down; `carried`: over the plan's output columns, true for every row that matters."""
        for expr in plan_expressions(plan):
            for query in subqueries(expr):
                self.visit(query.plan, ())
        match plan:
            case Scan():
                self._scan(plan, carried)
            case Values() | CteScan() | SetScan():
                pass
            case With():
                self.visit(plan.definition, ())
                self.visit(plan.input, carried)
            case Recursive():
                self.visit(plan.base, ())
                self.visit(plan.step, ())
            case Filter():
                self.visit(plan.input, _closed([*carried, *flatten_conjuncts(plan.predicate)]))
            case Project():
                exprs = zip(plan.columns, plan.exprs, strict=True)
                self.visit(plan.input, _through(carried, {c.id: e for c, e in exprs}))
            case GroupBy():
                # With grouping sets a key above may be NULL where it is not below.
                made = [] if plan.sets else zip(plan.key_columns, plan.keys, strict=True)
                self.visit(plan.input, _through(carried, {c.id: e for c, e in made}))
            case Sort():
                self.visit(plan.input, carried)
            case DistinctRows() | DistinctOn() | Limit() | Window():
                self.visit(plan.input, ())
            case SetOp():
                self.visit(plan.left, ())
                self.visit(plan.right, ())
            case Join():
                self._join(plan, carried)
            case _:
                assert_never(plan)

    def _join(self, plan: Join, carried: Sequence[Expr]) -> None:
        asked = [] if plan.condition is None else flatten_conjuncts(plan.condition)
        left = {column.id for column in output_columns(plan.left)}
        right = {column.id for column in output_columns(plan.right)}
        inner = plan.kind in (JoinKind.INNER, JoinKind.CROSS)
        both = _closed([*carried, *asked])
        if inner:
            self.visit(plan.left, _over(both, left))
            self.visit(plan.right, _over(both, right))
            return
        # A row of the preserved side is in the result with or without a match. A row of the other
        # side matters only as a match of a row that is not dropped above.
        keeps_left = plan.kind is JoinKind.LEFT
        keeps_right = plan.kind is JoinKind.RIGHT
        self.visit(
            plan.left, self._side(carried, asked, left, right, kept=keeps_left, lost=keeps_right)
        )
        self.visit(
            plan.right, self._side(carried, asked, right, left, kept=keeps_right, lost=keeps_left)
        )

    def _side(
        self,
        carried: Sequence[Expr],
        asked: Sequence[Expr],
        here: set[ColumnId],
        there: set[ColumnId],
        *,
        kept: bool,
        lost: bool,
    ) -> list[Expr]:
        if kept:
            return _over(_closed(carried), here)
        if lost:
            return _over(_closed([*_over(carried, there), *asked]), here)
        return []

    def _scan(self, plan: Scan, carried: Sequence[Expr]) -> None:
        known = self.found.get(plan.relation, ())
        ordinals = {
            column.id: ColumnRef(ColumnId(ordinal), column.type)
            for column, ordinal in zip(plan.columns, plan.ordinals, strict=True)
            if not is_system_column(ordinal)
        }
        usable = _over(carried, ordinals.keys())
        if known is None or not usable:
            self.found[plan.relation] = None
            return
        condition = ReadCondition(
            tuple(dict.fromkeys(substitute_columns(e, ordinals) for e in usable))
        )
        if condition not in known:
            self.found[plan.relation] = (*known, condition)


def _over(exprs: Iterable[Expr], columns: Iterable[ColumnId]) -> list[Expr]:
    """Those that depend on these columns and on nothing else."""
    known = set(columns)
    return [expr for expr in exprs if _is_pure(expr) and known.issuperset(column_ids(expr))]


def _is_pure(expr: Expr) -> bool:
    """Whether an expression has no subquery, and always the same value."""
    return not has_subquery(expr) and not is_volatile_expression(expr)


def _through(carried: Sequence[Expr], made: Mapping[ColumnId, Expr]) -> list[Expr]:
    """Conditions on what a node makes, as conditions on what it makes it of; without long ones."""
    found: list[Expr] = []
    for expr in _over(carried, made.keys()):
        below = substitute_columns(expr, made)
        grows = not all(isinstance(made[id_], ColumnRef) for id_ in column_ids(expr))
        if not grows or not has_more_parts(below, PUSHED_PARTS_MAX):
            found.append(below)
    return found


def _closed(exprs: Sequence[Expr]) -> list[Expr]:
    """With the constants that equalities pass on; at most CARRIED_MAX."""
    exprs = exprs[:PUSHED_CONDITIONS_MAX]
    pairs: list[tuple[ColumnRef, ColumnRef]] = []
    fixed: list[tuple[Call, ColumnRef]] = []
    for expr in exprs:
        if not isinstance(expr, Call) or not is_equality(expr):
            continue
        left, right = expr.args
        if isinstance(left, ColumnRef) and isinstance(right, ColumnRef):
            if left.type.name != right.type.name:
                continue
            pairs.append((left, right))
        elif isinstance(left, ColumnRef) and isinstance(right, Const | Param):
            fixed.append((expr, left))
        elif isinstance(right, ColumnRef) and isinstance(left, Const | Param):
            fixed.append((expr, right))
    found = list(exprs)
    if not pairs:
        return found
    for call, column in fixed:
        equal = {column.id}
        grown = True
        while grown and len(found) < PUSHED_CONDITIONS_MAX:
            grown = False
            for left, right in pairs:
                if left.type.name != column.type.name or (left.id in equal) is (right.id in equal):
                    continue
                other = right if left.id in equal else left
                equal.add(other.id)
                found.append(_with_column(call, column, other))
                grown = True
    return found


def _with_column(call: Call, column: ColumnRef, other: ColumnRef) -> Call:
    """The call with another column of the same type in the place of one."""
    args = tuple([other if arg == column else arg for arg in call.args])
    return Call(call.function, args, call.type)


def is_equality(expr: Call) -> bool:
    """Whether a call is `a = b`."""
    function = expr.function
    return function.kind is FunctionKind.OPERATOR and function.name == "=" and len(expr.args) == 2
