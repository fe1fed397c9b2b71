"""Keep outer rows apart that differ only in the sign of a float zero, for subqueries that show it.

    (select u.f + t.x from t where t.id > u.id)       u.f is 0 in one row and -0 in another
      ─▶  (select case when c.zero then -0 else c.f end + t.x from t where t.id > c.id)
          over rows c of u, which have c.zero: whether f is -0

An engine runs a subquery once for all outer rows that compare equal, and 0 = -0.

INVARIANTS
  Z1  a float that is only compared stays as it is: both zeros compare alike. So do the keys by
      which engines join subqueries to the outer rows.
  Z2  a node keeps its columns and their order.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from sql.functions.table import COMPARISON_OPERATORS, function_by_id
from sql.plan.nodes import (
    Call,
    Case,
    ColumnId,
    ColumnRef,
    Const,
    Expr,
    Join,
    Plan,
    PlanColumn,
    Project,
    Subquery,
    output_columns,
)
from sql.plan.projections import project_columns
from sql.plan.renumbering import parts_with_columns
from sql.plan.traverse import (
    plan_expressions,
    rewrite_children,
    rewrite_inputs,
    rewrite_node,
    rewrite_plan,
    rewrite_queries,
    subqueries,
)
from sql.rewrite.column_ids import IdRange, range_of_column_ids
from sql.rewrite.plan_facts import FLOAT_NAMES, PlanFacts
from sql.types.sql_type import BOOL


def preserve_negative_zero(plan: Plan, facts: PlanFacts) -> Plan:
    """The plan whose outer rows have the signs of their zeros as columns."""
    return (
        _plan(plan, range_of_column_ids(IdRange.NEGATIVE_ZERO)) if facts.has_outer_float else plan
    )


def _plan(plan: Plan, numbers: Iterator[int]) -> Plan:
    made = rewrite_queries(plan, lambda part: _plan(part, numbers))
    within: list[Plan] = [
        query.plan for expr in plan_expressions(made) for query in subqueries(expr)
    ]
    if isinstance(made, Join) and made.lateral:
        within.append(made.right)
    seen = {ref.id: ref for part in within for ref in _seen(part) if ref.type.name in FLOAT_NAMES}
    if not seen:
        return made
    zeros: dict[ColumnId, Expr] = {}

    def below(part: Plan) -> Plan:
        refs = [seen[column.id] for column in output_columns(part) if column.id in seen]
        if not refs:
            return part
        signs = {ref.id: PlanColumn(ColumnId(next(numbers)), "zero", BOOL) for ref in refs}
        zeros.update({ref.id: _signed(ref, signs[ref.id]) for ref in refs})
        return _with_signs(part, refs, signs)

    if isinstance(made, Join) and made.lateral:
        # Its right side is within: what that makes itself is of no outer row.
        told: Plan = replace(made, left=below(made.left))
    else:
        told = rewrite_inputs(made, below)
    return _replaced(told, zeros, output_columns(made)) if zeros else made


def _seen(value: object) -> Iterator[ColumnRef]:
    """The columns whose sign may be seen: not those that are compared (Z1)."""
    if isinstance(value, ColumnRef):
        yield value
    elif isinstance(value, Call) and value.function.name in COMPARISON_OPERATORS:
        yield from _seen(tuple([arg for arg in value.args if not isinstance(arg, ColumnRef)]))
    else:
        for part in parts_with_columns(value):
            yield from _seen(part)


def _signed(ref: ColumnRef, sign: PlanColumn) -> Expr:
    zero = Const(-0.0, ref.type)
    return Case(((ColumnRef(sign.id, BOOL), zero),), ref, ref.type)


def _is_negative_zero(ref: ColumnRef) -> Call:
    return Call(function_by_id(f"is_negative_zero({ref.type.name})"), (ref,), BOOL)


def _with_signs(
    plan: Plan, told: Iterable[ColumnRef], signs: Mapping[ColumnId, PlanColumn]
) -> Project:
    shown = output_columns(plan)
    exprs = [ColumnRef(column.id, column.type) for column in shown]
    return Project(plan, (*shown, *signs.values()), (*exprs, *map(_is_negative_zero, told)))


def _signed_within(expr: Expr, zeros: Mapping[ColumnId, Expr]) -> Expr:
    """The expression with signs, but for what is compared (Z1)."""
    if isinstance(expr, ColumnRef):
        return zeros.get(expr.id, expr)
    compares = isinstance(expr, Call) and expr.function.name in COMPARISON_OPERATORS

    def within(part: Expr) -> Expr:
        is_key = compares and isinstance(part, ColumnRef)
        return part if is_key else _signed_within(part, zeros)

    return rewrite_children(expr, within)


def _replaced(plan: Plan, zeros: Mapping[ColumnId, Expr], shown: tuple[PlanColumn, ...]) -> Plan:
    def subquery(expr: Expr) -> Expr:
        if isinstance(expr, Subquery):
            made = rewrite_plan(expr.plan, lambda part: _signed_within(part, zeros))
            return replace(expr, args=tuple(map(subquery, expr.args)), plan=made)
        return rewrite_children(expr, subquery)

    made = rewrite_node(plan, subquery)
    if isinstance(made, Join) and made.lateral:
        right = rewrite_plan(made.right, lambda part: _signed_within(part, zeros))
        made = replace(made, right=right)
    return project_columns(made, shown)
