"""GROUP BY: make keys and aggregates columns, and rewrite the expressions above them (parse_agg.c).

Expressions are bound over the columns below the grouping. Afterwards `Grouping.rewrite` replaces
each expression that equals a key by the key's column, and refuses any other column of this level
(42803).

INVARIANTS
  K1  of grouping sets, a constant is a key only where GROUP BY has found it: as a whole target, or
      as a whole sort key of the query or of a window. A subquery that refers to no column of this
      level is a constant here, as in PostgreSQL's planner, which knows its value before.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from sql.binder.expressions.grouping_sets import grouping_columns, matching_key
from sql.binder.resolve.collations import set_column_collation
from sql.binder.state import Binding, Scope
from sql.errors import grouping_error, not_supported
from sql.functions.table import is_immutable
from sql.plan.nodes import (
    BoolOp,
    Call,
    ColumnId,
    ColumnRef,
    Expr,
    GroupBy,
    Logical,
    Plan,
    PlanColumn,
    Subquery,
    SubqueryKind,
    WindowCall,
)
from sql.plan.traverse import (
    child_expressions,
    column_ids,
    has_subquery,
    is_volatile_expression,
    rewrite_children,
    rewrite_plan,
    rewrite_set_call,
    rewrite_window_call,
)
from sql.types.comparability import check_equality
from sql.types.sql_type import BOOL


@dataclass(slots=True)
class Grouping:
    """The keys of one query level, and the rewrite of expressions above them."""

    binding: Binding
    scope: Scope
    keys: dict[Expr, PlanColumn]
    sets: tuple[tuple[Expr, ...], ...] | None

    def plan(self, below: Plan) -> Plan:
        """The grouping node: keys and aggregates as columns."""
        aggregates = self.scope.aggregates
        return GroupBy(
            below,
            tuple(self.keys.values()),
            tuple(self.keys),
            tuple(aggregates.values()),
            tuple(aggregates),
            self._numbered(),
            *grouping_columns(self.scope, list(self.keys)),
        )

    def _numbered(self) -> tuple[tuple[int, ...], ...] | None:
        """The sets as numbers of keys. A single one holds all keys: no sets are needed."""
        if self.sets is None or len(self.sets) == 1:
            assert self.sets is None or set(self.sets[0]) == set(self.keys), "keys are of sets"
            return None
        numbers = {key: number for number, key in enumerate(self.keys)}
        return tuple([tuple([numbers[key] for key in one]) for one in self.sets])

    def target(self, expr: Expr, *, is_key: bool) -> Expr:
        """A target or sort expression over keys and aggregates (K1)."""
        if self.sets is None or not self._is_constant(expr):
            return self.rewrite(expr)
        key = matching_key(expr, self.keys) if is_key else None
        return expr if key is None else ColumnRef(self.keys[key].id, expr.type)

    def window(self, call: WindowCall, found: Callable[[Expr], bool | None]) -> WindowCall:
        """A window over keys and aggregates. `found`: whether the target that an expression is,
        if it is one, is a key (K1).
        """

        def whole(expr: Expr) -> Expr:
            return self.target(expr, is_key=found(expr) is not False)

        made = rewrite_window_call(call, self.rewrite)
        order = [
            replace(key, expr=whole(old.expr))
            for key, old in zip(made.order, call.order, strict=True)
        ]
        return replace(made, partition=tuple(map(whole, call.partition)), order=tuple(order))

    def rewrite(self, expr: Expr) -> Expr:
        """An expression over keys and aggregates; 42803 for any other column of this level."""
        return self._rewrite(expr, inner=False)

    def _rewrite(self, expr: Expr, *, inner: bool) -> Expr:
        # In a subquery PostgreSQL takes no expression for a key, but columns.
        outside = not inner or isinstance(expr, ColumnRef) or expr in self.binding.beside
        key = self._key(expr) if outside else None
        if key is not None:
            return ColumnRef(key.id, expr.type)
        if isinstance(expr, ColumnRef):
            if expr.id in self.scope.ids:
                return self._dependent(expr) or self._refuse(expr, inner=inner)
            if expr.id in self.scope.grouped_sets:
                rewrite_set_call(self.scope.grouped_sets[expr.id], self.rewrite)
                raise not_supported("a set that is grouped by, and returned as well")
            return expr
        if isinstance(expr, Subquery):
            if outside and expr.kind is SubqueryKind.NOT_IN:
                key = self._key(replace(expr, kind=SubqueryKind.IN))
                if key is not None:
                    return Logical(BoolOp.NOT, (ColumnRef(key.id, BOOL),), BOOL)
            args = tuple([self._rewrite(arg, inner=inner) for arg in expr.args])
            plan = rewrite_plan(expr.plan, lambda part: self._rewrite(part, inner=True))
            return Subquery(expr.kind, plan, args, expr.type)
        return rewrite_children(expr, lambda part: self._rewrite(part, inner=inner))

    def _key(self, expr: Expr) -> PlanColumn | None:
        key = matching_key(expr, self.keys)
        if key is None or (self.sets is not None and self._is_constant(key)):
            return None
        return self.keys[key]

    def _is_constant(self, expr: Expr) -> bool:
        """Whether PostgreSQL knows the value before it looks for keys (K1)."""
        if not has_subquery(expr):
            return _is_constant(expr)
        return self.scope.ids.isdisjoint(column_ids(expr)) and not is_volatile_expression(expr)

    def _dependent(self, expr: ColumnRef) -> Expr | None:
        """A column of a table whose primary key is among the keys: it becomes one more key
        (check_functional_grouping).
        """
        primary = _primary_key(self.binding, self.scope, expr.id)
        sets = [tuple(self.keys)] if self.sets is None else self.sets
        if primary is None or not all(set(primary) <= set(one) for one in sets):
            return None
        self.keys.update(key_columns(self.binding, [expr]))
        if self.sets is not None:
            self.sets = tuple([(*one, expr) for one in self.sets])
        return ColumnRef(self.keys[expr].id, expr.type)

    def _refuse(self, expr: ColumnRef, *, inner: bool) -> NoReturn:
        name = _shown(self.scope, expr.id)
        place = self.binding.place(expr)
        if inner:
            raise grouping_error(f'subquery uses ungrouped column "{name}" from outer query', place)
        message = (
            f'column "{name}" must appear in the GROUP BY clause '
            "or be used in an aggregate function"
        )
        raise grouping_error(message, place)


def _is_constant(expr: Expr) -> bool:
    """Whether PostgreSQL knows the value before it looks for keys (substitute_grouped_columns,
    eval_const_expressions).
    """
    if isinstance(expr, ColumnRef):
        return False
    if isinstance(expr, Call) and not is_immutable(expr.function):
        return False
    return all(map(_is_constant, child_expressions(expr)))


def _primary_key(binding: Binding, scope: Scope, column: ColumnId) -> Sequence[Expr] | None:
    """The columns of the primary key of the table in FROM that a column is of."""
    for item in scope.items:
        refs = [expr for _, expr in item.columns]
        known = any(isinstance(expr, ColumnRef) and expr.id == column for expr in refs)
        if item.schema is None or not known:
            continue
        table = binding.tables.get((item.schema, item.relation or item.name or ""))
        keys = () if table is None else table.keys
        primary = next((key for key in keys if key.primary and not key.deferrable), None)
        if primary is not None:
            return [refs[number] for number in primary.columns]
    return None


def _shown(scope: Scope, column: ColumnId) -> str:
    for item in scope.items:
        if item.name is None:
            continue
        for name, expr in item.columns:
            if isinstance(expr, ColumnRef) and expr.id == column:
                return f"{item.name}.{name}"
    for item in scope.items:
        for name, expr in item.columns:
            if isinstance(expr, ColumnRef) and expr.id == column:
                return name
    # Whether a row is there (`outer_join_presence.py`).
    there = [item.name for item in scope.items if item.side and item.side.is_of(column)]
    return f"{there[0]}.*" if there else "?"


def key_columns(binding: Binding, keys: Sequence[Expr]) -> dict[Expr, PlanColumn]:
    """A column for each key; equal keys share one."""
    columns: dict[Expr, PlanColumn] = {}
    for key in keys:
        if key in columns:
            continue
        check_equality(key.type, binding.place(key))
        column = binding.new_column("key", key.type)
        if isinstance(key, ColumnRef):
            binding.follow(column.id, key.id)
        set_column_collation(binding, column, key)
        columns[key] = column
    return columns
