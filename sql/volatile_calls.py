"""A volatile function is called once where PostgreSQL calls it once, however often it is used.

    case random(1, 2) when 1 then 'a' when 2 then 'b' end
      ─▶  select case c9 when 1 .. when 2 .. end from (select .., random(1, 2) as c9 from ..)

The binder writes the subject of CASE and of NULLIF once for each use, and an engine's template its
arguments: each would be a value of its own, and a row neither of the cases.

INVARIANTS
  V1  what the binder has written several times has one number (`Call.instance`); two calls of a
      statement's text have two.
  V2  a call whose arguments are computed for some rows only stays where it is: it may fail for the
      others.

Not here: ORDER BY, whose order is by chance anyway.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from sql.errors import not_supported
from sql.plan import (
    BoolOp,
    Call,
    Case,
    Coalesce,
    ColumnRef,
    Expr,
    Filter,
    GroupBy,
    Join,
    JoinKind,
    Logical,
    Plan,
    PlanColumn,
    Project,
    SetScan,
    Subquery,
    Window,
    output_columns,
)
from sql.traverse import (
    aggregate_parts,
    children,
    column_ids,
    conjuncts,
    is_volatile_plan,
    rewritten_aggregate,
    rewritten_node,
    rewritten_window,
    window_parts,
    with_children,
    with_inputs,
)
from sql.types import BOOL

_COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">="})


def repeated_calls(expr: Expr) -> Sequence[Call]:
    """The calls that stand in an expression several times and are one (V1)."""
    found = list(_numbered(expr))
    times = Counter(call.instance for call in found)
    once = {call.instance: call for call in found}
    return [call for number, call in once.items() if times[number] > 1]


def with_columns(expr: Expr, calls: Sequence[Call]) -> Expr:
    """The expression with columns, called as the calls are numbered, for these calls."""
    return _replaced(expr, frozenset(call.instance for call in calls))


def called_once(plan: Plan) -> Plan:
    """The plan with a projection below what uses the value of a volatile call."""
    if not is_volatile_plan(plan):
        return plan
    below = rewritten_node(with_inputs(plan, called_once), _within)
    match below:
        case Project():
            calls = _hoisted(below.exprs)
            if not calls:
                return below
            exprs = tuple([with_columns(expr, calls) for expr in below.exprs])
            return replace(below, input=_with_calls(below.input, calls), exprs=exprs)
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
        return replace(expr, args=args, plan=called_once(expr.plan))
    return with_children(expr, _within)


def _group(plan: GroupBy) -> Plan:
    parts = [*plan.keys, *(part for call in plan.aggregates for part in aggregate_parts(call))]
    calls = [call for part in parts for call in _unique(_safe(part))]
    if not calls:
        return plan
    return replace(
        plan,
        input=_with_calls(plan.input, calls),
        keys=tuple([with_columns(key, calls) for key in plan.keys]),
        aggregates=tuple(
            [
                rewritten_aggregate(call, lambda part: with_columns(part, calls))
                for call in plan.aggregates
            ]
        ),
    )


def _filter(plan: Filter) -> Plan:
    """Conditions that use such values stand behind the others."""
    parts = conjuncts(plan.predicate)
    # DuckDB takes conditions of equal texts for one.
    several = sum(1 for part in parts if any(_numbered(part))) > 1
    calls = _unique(call for part in parts for call in _safe(part)) if several else _hoisted(parts)
    if not calls:
        return plan
    moved = [any(_numbered(part)) for part in parts]
    rest = tuple([part for part, moves in zip(parts, moved, strict=True) if not moves])
    behind = tuple(
        [with_columns(part, calls) for part, moves in zip(parts, moved, strict=True) if moves]
    )
    below = Filter(plan.input, _and(rest)) if rest else plan.input
    return _only(Filter(_with_calls(below, calls), _and(behind)), output_columns(plan))


def _window(plan: Window) -> Plan:
    calls = _hoisted([part for call in plan.calls for part in window_parts(call)])
    if not calls:
        return plan
    made = tuple([rewritten_window(c, lambda part: with_columns(part, calls)) for c in plan.calls])
    windows = replace(plan, input=_with_calls(plan.input, calls), calls=made)
    return _only(windows, output_columns(plan))


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
    below = replace(plan, kind=kind, condition=_and(rest) if rest else None)
    return _filter(Filter(below, _and(moved)))


def _only(plan: Plan, columns: tuple[PlanColumn, ...]) -> Project:
    """The rows without the columns of calls."""
    return Project(plan, columns, tuple([ColumnRef(column.id, column.type) for column in columns]))


def _and(parts: tuple[Expr, ...]) -> Expr:
    return parts[0] if len(parts) == 1 else Logical(BoolOp.AND, parts, BOOL)


def _with_calls(plan: Plan, calls: Sequence[Call]) -> Project:
    """The rows with a column for each call."""
    passed = output_columns(plan)
    made = tuple([PlanColumn(call.instance, call.function.name, call.type) for call in calls])
    shown = tuple([ColumnRef(column.id, column.type) for column in passed])
    return Project(plan, (*passed, *made), (*shown, *calls))


def _hoisted(exprs: Sequence[Expr]) -> Sequence[Call]:
    """The calls whose values are used in more than one comparison."""
    times = Counter(call.instance for expr in exprs for call in _numbered(expr))

    def used(expr: Expr) -> bool:
        return not _is_plain(expr) or any(times[call.instance] > 1 for call in _numbered(expr))

    return _unique(call for expr in exprs if used(expr) for call in _safe(expr))


def _unique(calls: Iterable[Call]) -> Sequence[Call]:
    return list({call.instance: call for call in calls}.values())


def _is_plain(expr: Expr) -> bool:
    """Whether an engine writes it once as it stands."""
    if isinstance(expr, Call) and expr.function.name in _COMPARISONS:
        sides = [side for side in expr.args if any(_numbered(side))]
        return len(sides) == 1 and _is_bare(sides[0])
    return _is_bare(expr)


def _is_bare(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.instance != 0


def _safe(expr: Expr, *, always: bool = True) -> Iterator[Call]:
    """The calls that may be made for every row (V2). `always`: the expression is computed."""
    if isinstance(expr, Call) and expr.instance:
        if always or next(column_ids(expr), None) is None:
            yield expr
        return
    branches = isinstance(expr, Case | Coalesce | Logical)
    for part in children(expr):
        yield from _safe(part, always=always and not branches)


def _numbered(expr: Expr) -> Iterator[Call]:
    if isinstance(expr, Call) and expr.instance:
        yield expr
        return
    for part in children(expr):
        yield from _numbered(part)


def _replaced(expr: Expr, numbers: frozenset[int]) -> Expr:
    if isinstance(expr, Call) and expr.instance in numbers:
        return ColumnRef(expr.instance, expr.type)
    if isinstance(expr, Subquery):
        return replace(expr, args=tuple([_replaced(arg, numbers) for arg in expr.args]))
    return with_children(expr, lambda part: _replaced(part, numbers))
