"""Evaluate a volatile call once, as PostgreSQL does, however often the plan repeats it.

    case random(1, 2) when 1 then 'a' when 2 then 'b' end
      ─▶  select case c9 when 1 .. when 2 .. end from (select .., random(1, 2) as c9 from ..)

The binder repeats the operand of CASE and of NULLIF for each comparison, and an engine's template
repeats its arguments. Each copy would have a value of its own, and a row would match no case.

INVARIANTS
  V1  copies that the binder has made of one call share its number (`Call.instance`); two calls in
      a statement's text have two numbers.
  V2  a call over columns that is evaluated for some rows only is evaluated under the conditions of
      these rows: it may fail for the others. Behind conditions with subqueries it stays where it
      is, if it stands there once.

Not here: ORDER BY, whose order is by chance anyway.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from sql.errors import not_supported
from sql.functions.table import COMPARISON_OPERATORS
from sql.plan.conditions import conjunction, guarded_operands
from sql.plan.nodes import (
    Call,
    Case,
    ColumnId,
    ColumnRef,
    Const,
    Expr,
    Filter,
    GroupBy,
    Join,
    JoinKind,
    Plan,
    PlanColumn,
    Project,
    SetScan,
    Subquery,
    Window,
    output_columns,
)
from sql.plan.projections import append_columns, project_columns
from sql.plan.traverse import (
    aggregate_parts,
    child_expressions,
    column_ids,
    conjuncts,
    has_subquery,
    is_volatile_plan,
    rewrite_aggregate,
    rewrite_children,
    rewrite_inputs,
    rewrite_node,
    rewrite_window_call,
    window_parts,
)
from sql.rewrite.plan_facts import PlanFacts

_Found: TypeAlias = tuple[Call, tuple[Expr, ...]]
"""A call, and the conditions that all hold where PostgreSQL makes it."""


def repeated_calls(expr: Expr) -> Sequence[Call]:
    """The calls of which an expression has several copies (V1)."""
    found = list(_numbered(expr))
    times = Counter(call.instance for call in found)
    once = {call.instance: call for call in found}
    return [call for number, call in once.items() if times[number] > 1]


def unconditional_repeated_calls(expr: Expr) -> Sequence[Call]:
    """Those of the repeated calls that are evaluated whenever the expression is."""
    made = {call.instance for call, under in _calls(expr) if not under}
    return [call for call in repeated_calls(expr) if call.instance in made]


def with_call_columns(expr: Expr, calls: Sequence[Call]) -> Expr:
    """The expression with a column in place of each of these calls; its id is the call's number."""
    return _replaced(expr, frozenset(call.instance for call in calls))


def evaluate_once(plan: Plan, facts: PlanFacts) -> Plan:
    """The plan, which evaluates volatile calls in a projection below the node that uses them."""
    return _plan(plan) if facts.is_volatile else plan


def _plan(plan: Plan) -> Plan:
    if not is_volatile_plan(plan):
        return plan
    below = rewrite_node(rewrite_inputs(plan, _plan), _within)
    match below:
        case Project():
            found = _hoisted(below.exprs)
            if not found:
                return below
            exprs = tuple([_of_columns(expr, found) for expr in below.exprs])
            return replace(below, input=_with_calls(below.input, found), exprs=exprs)
        case GroupBy():
            return _group(below)
        case Filter():
            return _filter(below)
        case Window():
            return _window(below)
        case Join() if below.condition is not None:
            return _join(below, below.condition)
        case SetScan():
            if any(repeated_calls(arg) for call in below.calls for arg in call.args):
                raise not_supported("a volatile function that is used several times, in FROM,")
            return below
        case _:
            return below


def _within(expr: Expr) -> Expr:
    """The plans of subqueries."""
    if isinstance(expr, Subquery):
        args = tuple(map(_within, expr.args))
        return replace(expr, args=args, plan=_plan(expr.plan))
    return rewrite_children(expr, _within)


def _group(plan: GroupBy) -> Plan:
    parts = [*plan.keys, *(part for call in plan.aggregates for part in aggregate_parts(call))]
    found = _unique(made for part in parts for made in _safe(part))
    if not found:
        return plan
    return replace(
        plan,
        input=_with_calls(plan.input, found),
        keys=tuple([_of_columns(key, found) for key in plan.keys]),
        aggregates=tuple(
            [
                rewrite_aggregate(call, lambda part: _of_columns(part, found))
                for call in plan.aggregates
            ]
        ),
    )


def _filter(plan: Filter) -> Plan:
    """Conditions that use such values stand behind the others."""
    parts = conjuncts(plan.predicate)
    # DuckDB takes conditions of equal texts for one.
    several = sum(1 for part in parts if any(_numbered(part))) > 1
    found = _unique(made for part in parts for made in _safe(part)) if several else _hoisted(parts)
    if not found:
        return plan
    moved = [any(_numbered(part)) for part in parts]
    rest = tuple([part for part, moves in zip(parts, moved, strict=True) if not moves])
    behind = tuple(
        [_of_columns(part, found) for part, moves in zip(parts, moved, strict=True) if moves]
    )
    below = Filter(plan.input, conjunction(rest)) if rest else plan.input
    return project_columns(
        Filter(_with_calls(below, found), conjunction(behind)), output_columns(plan)
    )


def _window(plan: Window) -> Plan:
    found = _hoisted([part for call in plan.calls for part in window_parts(call)])
    if not found:
        return plan
    made = tuple(
        [rewrite_window_call(c, lambda part: _of_columns(part, found)) for c in plan.calls]
    )
    windows = replace(plan, input=_with_calls(plan.input, found), calls=made)
    return project_columns(windows, output_columns(plan))


def _join(plan: Join, condition: Expr) -> Plan:
    """Conditions with volatile calls stand behind an inner join."""
    parts = conjuncts(condition)
    moved = tuple([part for part in parts if any(_numbered(part))])
    if not moved:
        return plan
    if plan.kind is not JoinKind.INNER:
        if _hoisted(moved):
            raise not_supported("a volatile function in such a condition of an outer join")
        return plan
    rest = tuple([part for part in parts if not any(_numbered(part))])
    kind = JoinKind.INNER if rest else JoinKind.CROSS
    below = replace(plan, kind=kind, condition=conjunction(rest) if rest else None)
    return _filter(Filter(below, conjunction(moved)))


def _of_columns(expr: Expr, found: Sequence[_Found]) -> Expr:
    return with_call_columns(expr, [call for call, _ in found])


def _with_calls(plan: Plan, found: Sequence[_Found]) -> Plan:
    """The rows with a column for each call."""
    made: list[tuple[PlanColumn, Expr]] = []
    for number, (call, under) in enumerate(found):
        expr: Expr = call
        if under:
            # Conditions may be of the values of calls before it.
            guard = _of_columns(conjunction(under), found[:number])
            if not {column.id for column, _ in made}.isdisjoint(column_ids(guard)):
                plan, made = _with_columns(plan, made), []
            expr = Case(((guard, call),), Const(None, call.type), call.type)
        made.append((PlanColumn(call.instance, call.function.name, call.type), expr))
    return _with_columns(plan, made)


def _with_columns(plan: Plan, made: Sequence[tuple[PlanColumn, Expr]]) -> Project:
    return append_columns(plan, dict(made))


def _hoisted(exprs: Sequence[Expr]) -> Sequence[_Found]:
    """The calls whose values are used in more than one comparison."""
    times = Counter(call.instance for expr in exprs for call in _numbered(expr))

    def used(expr: Expr) -> bool:
        return not _is_plain(expr) or any(times[call.instance] > 1 for call in _numbered(expr))

    return _unique(found for expr in exprs if used(expr) for found in _safe(expr))


def _unique(found: Iterable[_Found]) -> Sequence[_Found]:
    """The first of each call: those behind it are made under its conditions, too."""
    first: dict[ColumnId, _Found] = {}
    for call, under in found:
        first.setdefault(call.instance, (call, under))
    return list(first.values())


def _is_plain(expr: Expr) -> bool:
    """Whether an engine writes it once as it stands."""
    if isinstance(expr, Call) and expr.function.name in COMPARISON_OPERATORS:
        sides = [side for side in expr.args if any(_numbered(side))]
        return len(sides) == 1 and _is_bare(sides[0])
    if isinstance(expr, Case) and len(expr.whens) == 1:
        # As it stands in a column of V2.
        when, then = expr.whens[0]
        return _is_bare(then) and not any(_numbered(when)) and not any(_numbered(expr.otherwise))
    return _is_bare(expr)


def _is_bare(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.instance != 0


def _safe(expr: Expr) -> Iterator[_Found]:
    """The calls that may be made in a column, and the conditions under which they are (V2)."""
    for call, under in _calls(expr):
        if next(column_ids(call), None) is None:
            yield call, ()
        elif not any(map(has_subquery, under)):
            yield call, under
        elif any(call.instance == repeated.instance for repeated in repeated_calls(expr)):
            raise not_supported(
                "a volatile function that is used several times, behind a subquery,"
            )


def _calls(expr: Expr, under: tuple[Expr, ...] = ()) -> Iterator[_Found]:
    if isinstance(expr, Call) and expr.instance:
        yield expr, under
        return
    parts = guarded_operands(expr) or [(part, ()) for part in child_expressions(expr)]
    for part, conditions in parts:
        yield from _calls(part, (*under, *conditions))


def _numbered(expr: Expr) -> Iterator[Call]:
    if isinstance(expr, Call) and expr.instance:
        yield expr
        return
    for part in child_expressions(expr):
        yield from _numbered(part)


def _replaced(expr: Expr, numbers: frozenset[int]) -> Expr:
    if isinstance(expr, Call) and expr.instance in numbers:
        return ColumnRef(expr.instance, expr.type)
    if isinstance(expr, Subquery):
        return replace(expr, args=tuple([_replaced(arg, numbers) for arg in expr.args]))
    return rewrite_children(expr, lambda part: _replaced(part, numbers))
