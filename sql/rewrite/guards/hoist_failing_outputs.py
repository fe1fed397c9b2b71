"""Compute a scalar subquery's failing output outside, from the columns of the row that it finds.

    (select t.w/t.v from t where t.id = u.id)
      ─▶  (select t.w from t where t.id = u.id) / (select t.v from t where t.id = u.id)

INVARIANTS
  V1  an output over the outer row alone is computed for that row only, where the subquery has a
      row: engines compute it also for outer rows that compare equal to that one.
  V2  Spark computes a subquery's output for all rows that it might find, so an output that may
      fail is computed outside, of its columns: a subquery reads each of them. Under LIMIT and its
      kin these might come from two rows.
  V3  a value that is not NULL for NULLs is computed only where there is a row.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from sql.plan.nodes import (
    Call,
    Case,
    ColumnId,
    ColumnRef,
    Const,
    DistinctOn,
    Expr,
    Filter,
    GroupBy,
    Limit,
    Plan,
    PlanColumn,
    Project,
    Subquery,
    SubqueryKind,
    Window,
    output_columns,
)
from sql.plan.renumbering import free_columns
from sql.plan.traverse import (
    column_ids,
    expression_nodes,
    has_subquery,
    inputs,
    is_volatile_anywhere,
    scans,
    substitute_columns,
)
from sql.rewrite.guard_expressions import may_fail
from sql.types.sql_type import BOOL

_COLUMNS_MAX: Final = 4
"""A join each."""
_UNORDERED: Final = frozenset({"count", "sum", "avg", "min", "max", "bool_and", "bool_or"})
"""Aggregates that are the same in whatever order they see rows."""


def is_output_hoisted(expr: Subquery) -> bool:
    """Whether the value of the subquery is computed outside of it on Spark."""
    return hoist_failing_output(expr) is not expr


def hoist_outer_row_output(expr: Subquery) -> Expr:
    """The value of a subquery; an output over the outer row alone is computed outside (V1)."""
    plan = expr.plan
    if expr.kind is not SubqueryKind.SCALAR or not isinstance(plan, Project):
        return expr
    (value,) = plan.exprs
    used = set(column_ids(value))
    if not used or not used.isdisjoint(column.id for column in output_columns(plan.input)):
        return expr
    if not may_fail(value) or is_volatile_anywhere(value) or not any(scans(plan.input)):
        return expr
    return _where_found(plan, value)


def hoist_failing_output(expr: Subquery) -> Expr:
    """The value of a subquery; an output that may fail is computed outside, for Spark (V2)."""
    if expr.kind is not SubqueryKind.SCALAR or not isinstance(expr.plan, Project):
        return expr
    plan = _flat(expr.plan)
    (value,) = plan.exprs
    own = {column.id for column in output_columns(plan.input)}
    used = {column.id: column for column in _columns(value) if column.id in own}
    if not used or not free_columns(plan.input):
        return hoist_outer_row_output(expr)
    if len(used) > _COLUMNS_MAX or (len(used) > 1 and depends_on_row_choice(plan.input)):
        return expr
    if not may_fail(value, by_overflow=False) or is_volatile_anywhere(value) or has_subquery(value):
        return expr
    made = substitute_columns(value, {id_: _asked(plan, column) for id_, column in used.items()})
    if _has_row(plan.input) or all(_is_strict(value, column) for column in used.values()):
        return made
    return _where_found(plan, made)


def _where_found(plan: Project, value: Expr) -> Expr:
    found = replace(plan, exprs=(Const(True, BOOL),), columns=(_named(plan.columns[0]),))
    asked = Subquery(SubqueryKind.SCALAR, found, (), BOOL)
    return Case(((asked, value),), Const(None, value.type), value.type)


def _named(column: PlanColumn) -> PlanColumn:
    return replace(column, name="found", type=BOOL)


def _asked(plan: Project, column: ColumnRef) -> Subquery:
    shown = replace(plan.columns[0], type=column.type)
    found = replace(plan, exprs=(column,), columns=(shown,))
    return Subquery(SubqueryKind.SCALAR, found, (), column.type)


def _flat(plan: Project) -> Project:
    """The projection of a selection of a projection as one projection."""
    below = plan.input
    condition = below.predicate if isinstance(below, Filter) else None
    inner = below.input if isinstance(below, Filter) else below
    if not isinstance(inner, Project):
        return plan
    made: Mapping[ColumnId, Expr] = {
        column.id: expr for column, expr in zip(inner.columns, inner.exprs, strict=True)
    }
    if any(has_subquery(expr) or is_volatile_anywhere(expr) for expr in made.values()):
        return plan
    value = substitute_columns(plan.exprs[0], made)
    if condition is None:
        return _flat(replace(plan, input=inner.input, exprs=(value,)))
    asked = substitute_columns(condition, made)
    if has_subquery(condition) or may_fail(asked, by_overflow=False):
        return plan
    return _flat(replace(plan, input=Filter(inner.input, asked), exprs=(value,)))


def depends_on_row_choice(plan: Plan) -> bool:
    """Whether it may pick one of several rows that look alike to it, or depends on their order."""
    if isinstance(plan, Limit | DistinctOn | Window):
        return True
    if isinstance(plan, GroupBy) and not _UNORDERED.issuperset(
        call.function.name for call in plan.aggregates
    ):
        return True
    return any(map(depends_on_row_choice, inputs(plan)))


def _has_row(plan: Plan) -> bool:
    return isinstance(plan, GroupBy) and not plan.keys and plan.sets is None


def _is_strict(expr: Expr, column: ColumnRef) -> bool:
    """Whether it is NULL where the column is, and fails only where it is not."""
    if not isinstance(expr, Call):
        return expr == column
    if not expr.function.strict:
        return False
    others = [arg for arg in expr.args if not _is_strict(arg, column)]
    return len(others) < len(expr.args) and not any(map(_fails_alone, others))


def _fails_alone(expr: Expr) -> bool:
    return may_fail(expr, by_overflow=False)


def _columns(expr: Expr) -> Iterator[ColumnRef]:
    return (node for node in expression_nodes(expr) if isinstance(node, ColumnRef))
