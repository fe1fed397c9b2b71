"""Walk and rewrite expressions and plans, each in one way.

    reading     walk(plan or expression)   every plan and expression, subqueries' too, in order:
                                           a node, its expressions, the plans below it
                nodes(expression)          expressions only, without the plans of subqueries
                plan_nodes(plan)           plans only, without those of subqueries
    rewriting   with_children, with_inputs, rewritten_node
                                           one node with its parts rewritten; itself if they stay

A question about a whole tree iterates over it; a pass that rewrites one calls itself for the parts.
Columns are no nodes: `renumbering.py` reads and rebuilds any value that has some.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from operator import attrgetter
from typing import Final, TypeAlias, assert_never, get_args

from sql.functions.table import Function
from sql.plan.constant_items import ConstantItems, ConstantRows
from sql.plan.constant_rows import ConstantWhens, size_of_node
from sql.plan.nodes import (
    Aggregate,
    AnyAll,
    BoolOp,
    Call,
    Case,
    Coalesce,
    ColumnId,
    ColumnRef,
    Const,
    CteScan,
    Distinct,
    DistinctOn,
    DistinctRows,
    Expr,
    Extreme,
    Filter,
    Frame,
    FrameBound,
    GroupBy,
    InList,
    InRows,
    IsTest,
    Join,
    Limit,
    Logical,
    Param,
    Plan,
    Project,
    Recursive,
    Scan,
    SetCall,
    SetOp,
    SetScan,
    Sort,
    SortKey,
    Subquery,
    Values,
    Window,
    WindowCall,
    With,
)

Rewrite: TypeAlias = Callable[[Expr], Expr]


def _case_parts(expr: Case) -> tuple[Expr, ...]:
    if isinstance(expr.whens, ConstantWhens):
        return (*expr.whens[0], expr.otherwise)
    return (*(part for when in expr.whens for part in when), expr.otherwise)


def _list_parts(expr: InList) -> tuple[Expr, ...]:
    items = expr.items
    return (expr.arg, items.first) if isinstance(items, ConstantItems) else (expr.arg, *items)


def _row_parts(expr: InRows) -> tuple[Expr, ...]:
    return (*expr.args, *[column[0] for column in expr.columns])


_NONE: Final = frozenset({Const, Param, ColumnRef})
_ARGS: Final = frozenset({Call, Logical, Coalesce, Extreme, AnyAll, Subquery})
_CHILDREN: Final[dict[type, Callable[..., tuple[Expr, ...]]]] = {
    **dict.fromkeys(_NONE, lambda _expr: ()),
    **dict.fromkeys(_ARGS, attrgetter("args")),
    IsTest: lambda expr: (expr.arg,),
    Distinct: attrgetter("left", "right"),
    Case: _case_parts,
    InList: _list_parts,
    InRows: _row_parts,
}
"""A table and no match: most of the time of planning is spent here."""
assert _CHILDREN.keys() == set(get_args(Expr)), "every expression has its parts"


def child_expressions(expr: Expr) -> tuple[Expr, ...]:
    """The direct parts of an expression; of a subquery only its arguments. Of a long list of
    constants the first one (M1 of `constant_items.py`).
    """
    return _CHILDREN[type(expr)](expr)


def conjuncts(condition: Expr) -> tuple[Expr, ...]:
    """The conjuncts of a condition: the arguments of the AND at its top, or itself."""
    if isinstance(condition, Logical) and condition.op is BoolOp.AND:
        return condition.args
    return (condition,)


def rewrite_children(expr: Expr, rewrite: Rewrite) -> Expr:
    """The expression with its direct parts rewritten; a subquery's plan too."""
    match expr:
        case Const() | Param() | ColumnRef():
            return expr
        case Call() | Logical() | Coalesce() | Extreme() | AnyAll():
            args = _rewritten_parts(expr.args, rewrite)
            return expr if args is expr.args else replace(expr, args=args)
        case Subquery():
            args = tuple([rewrite(arg) for arg in expr.args])
            return replace(expr, args=args, plan=rewrite_plan(expr.plan, rewrite))
        case IsTest():
            arg = rewrite(expr.arg)
            return expr if arg is expr.arg else replace(expr, arg=arg)
        case Distinct():
            return replace(expr, left=rewrite(expr.left), right=rewrite(expr.right))
        case Case():
            return _rewritten_case(expr, rewrite)
        case InList():
            return _rewritten_list(expr, rewrite)
        case InRows():
            args = _rewritten_parts(expr.args, rewrite)
            firsts = tuple([column[0] for column in expr.columns])
            if _rewritten_parts(firsts, rewrite) != firsts:
                columns = [_rewritten_parts(tuple(column), rewrite) for column in expr.columns]
                return replace(expr, args=args, columns=tuple(columns))
            return expr if args is expr.args else replace(expr, args=args)
        case _:
            assert_never(expr)


def _rewritten_case(expr: Case, rewrite: Rewrite) -> Expr:
    whens = expr.whens
    packed: Sequence[tuple[Expr, Expr]] | None
    packed = whens.rewritten(rewrite) if isinstance(whens, ConstantWhens) else None
    if packed is None:
        packed = tuple([(rewrite(when), rewrite(then)) for when, then in whens])
    return replace(expr, whens=packed, otherwise=rewrite(expr.otherwise))


def _rewritten_list(expr: InList, rewrite: Rewrite) -> Expr:
    items, arg = expr.items, rewrite(expr.arg)
    if isinstance(items, ConstantItems) and rewrite(items.first) is items.first:
        return expr if arg is expr.arg else replace(expr, arg=arg)
    made = _rewritten_parts(tuple(items), rewrite)
    return expr if arg is expr.arg and made is items else replace(expr, arg=arg, items=made)


def _rewritten_parts(parts: tuple[Expr, ...], rewrite: Rewrite) -> tuple[Expr, ...]:
    """Rewritten, or the tuple itself if all stay what they are: most passes change little."""
    made = [rewrite(part) for part in parts]
    same = all(new is part for new, part in zip(made, parts, strict=True))
    return parts if same else tuple(made)


def substitute_columns(expr: Expr, by: Mapping[ColumnId, Expr]) -> Expr:
    """The expression with columns replaced, those inside its subqueries too."""
    if isinstance(expr, ColumnRef):
        return by.get(expr.id, expr)
    return rewrite_children(expr, lambda part: substitute_columns(part, by))


def plan_expressions(plan: Plan) -> tuple[Expr, ...]:
    """The expressions of one node, not of its inputs. Of many rows of constants the first one (M1
    of `constant_items.py`).
    """
    match plan:
        case Scan() | DistinctRows() | SetOp() | With() | CteScan() | Recursive():
            return ()
        case SetScan():
            return tuple([arg for call in plan.calls for arg in call.args])
        case Values():
            if isinstance(plan.rows, ConstantRows):
                return plan.rows.first
            return tuple([expr for row in plan.rows for expr in row])
        case Project():
            return plan.exprs
        case Filter():
            return (plan.predicate,)
        case Join():
            return () if plan.condition is None else (plan.condition,)
        case GroupBy():
            return (*plan.keys, *(part for agg in plan.aggregates for part in aggregate_parts(agg)))
        case Window():
            return tuple([part for call in plan.calls for part in window_parts(call)])
        case DistinctOn():
            return (*plan.keys, *(key.expr for key in plan.order))
        case Sort():
            return tuple([key.expr for key in plan.keys])
        case Limit():
            return tuple([expr for expr in (plan.limit, plan.offset) if expr is not None])
        case _:
            assert_never(plan)


def aggregate_parts(aggregate: Aggregate) -> Iterator[Expr]:
    """The expressions of an aggregate call."""
    yield from aggregate.args
    if aggregate.filter is not None:
        yield aggregate.filter
    for key in aggregate.order:
        yield key.expr


def window_parts(call: WindowCall) -> Iterator[Expr]:
    """The expressions of a window call."""
    yield from call.args
    if call.filter is not None:
        yield call.filter
    yield from call.partition
    for key in call.order:
        yield key.expr
    for bound in (call.frame.start, call.frame.end):
        if bound.offset is not None:
            yield bound.offset


def inputs(plan: Plan) -> tuple[Plan, ...]:
    """The plans below one node."""
    match plan:
        case Scan() | Values() | CteScan() | SetScan():
            return ()
        case Join() | SetOp():
            return (plan.left, plan.right)
        case With():
            return (plan.definition, plan.input)
        case Recursive():
            return (plan.base, plan.step)
        case _:
            return (plan.input,)


def rewrite_plan(plan: Plan, rewrite: Rewrite) -> Plan:
    """The plan with every expression rewritten, at every depth."""
    below = rewrite_inputs(plan, lambda part: rewrite_plan(part, rewrite))
    return rewrite_node(below, rewrite)


def rewrite_inputs(plan: Plan, rewrite: Callable[[Plan], Plan]) -> Plan:
    """The node with the plans below it rewritten."""
    match plan:
        case Scan() | Values() | CteScan() | SetScan():
            return plan
        case Join() | SetOp():
            left, right = rewrite(plan.left), rewrite(plan.right)
            same = left is plan.left and right is plan.right
            return plan if same else replace(plan, left=left, right=right)
        case With():
            return replace(plan, definition=rewrite(plan.definition), input=rewrite(plan.input))
        case Recursive():
            return replace(plan, base=rewrite(plan.base), step=rewrite(plan.step))
        case _:
            made = rewrite(plan.input)
            return plan if made is plan.input else replace(plan, input=made)


def rewrite_node(plan: Plan, rewrite: Rewrite) -> Plan:
    """The plan with the expressions of its first node rewritten."""
    match plan:
        case Scan() | CteScan() | With() | Recursive() | SetOp() | DistinctRows():
            return plan
        case SetScan():
            return replace(
                plan, calls=tuple([rewrite_set_call(call, rewrite) for call in plan.calls])
            )
        case Values():
            if isinstance(plan.rows, ConstantRows):
                first = plan.rows.first
                if _rewritten_parts(first, rewrite) is first:
                    return plan
            return replace(plan, rows=tuple([tuple(map(rewrite, row)) for row in plan.rows]))
        case Join():
            if plan.condition is None:
                return plan
            condition = rewrite(plan.condition)
            return plan if condition is plan.condition else replace(plan, condition=condition)
        case Project():
            exprs = _rewritten_parts(plan.exprs, rewrite)
            return plan if exprs is plan.exprs else replace(plan, exprs=exprs)
        case Filter():
            predicate = rewrite(plan.predicate)
            return plan if predicate is plan.predicate else replace(plan, predicate=predicate)
        case GroupBy():
            keys = tuple(map(rewrite, plan.keys))
            aggregates = tuple([rewrite_aggregate(agg, rewrite) for agg in plan.aggregates])
            return replace(plan, keys=keys, aggregates=aggregates)
        case Window():
            return replace(plan, calls=tuple([rewrite_window_call(c, rewrite) for c in plan.calls]))
        case Sort():
            return replace(plan, keys=_rewritten_keys(plan.keys, rewrite))
        case DistinctOn():
            keys, order = tuple(map(rewrite, plan.keys)), _rewritten_keys(plan.order, rewrite)
            return replace(plan, keys=keys, order=order)
        case Limit():
            limit, offset = (
                None if part is None else rewrite(part) for part in (plan.limit, plan.offset)
            )
            return replace(plan, limit=limit, offset=offset)


def rewrite_queries(
    plan: Plan,
    rewrite: Callable[[Plan], Plan],
    instead: Callable[[Subquery, Rewrite], Expr | None] = lambda _expr, _within: None,
) -> Plan:
    """The plan with its inputs, and the queries in its own expressions, rewritten. `instead` may
    return a replacement for a subquery that is rewritten in another way.
    """

    def within(expr: Expr) -> Expr:
        if isinstance(expr, Subquery):
            other = instead(expr, within)
            if other is not None:
                return other
            return replace(expr, args=tuple(map(within, expr.args)), plan=rewrite(expr.plan))
        return rewrite_children(expr, within) if has_subquery(expr) else expr

    made = rewrite_inputs(plan, rewrite)
    # Most nodes have none: they stay the same objects.
    return rewrite_node(made, within) if any(map(has_subquery, plan_expressions(made))) else made


def rewrite_aggregate(aggregate: Aggregate, rewrite: Rewrite) -> Aggregate:
    """The aggregate with its arguments, filter and order rewritten."""
    return replace(
        aggregate,
        args=tuple(map(rewrite, aggregate.args)),
        filter=None if aggregate.filter is None else rewrite(aggregate.filter),
        order=_rewritten_keys(aggregate.order, rewrite),
    )


def rewrite_set_call(call: SetCall, rewrite: Rewrite) -> SetCall:
    """The call with its arguments rewritten."""
    return replace(call, args=tuple(map(rewrite, call.args)))


def rewrite_window_call(call: WindowCall, rewrite: Rewrite) -> WindowCall:
    """The call with every expression of it rewritten."""
    return replace(
        call,
        args=tuple(map(rewrite, call.args)),
        filter=None if call.filter is None else rewrite(call.filter),
        partition=tuple(map(rewrite, call.partition)),
        order=_rewritten_keys(call.order, rewrite),
        frame=_rewritten_frame(call.frame, rewrite),
    )


def _rewritten_frame(frame: Frame, rewrite: Rewrite) -> Frame:
    def bound(one: FrameBound) -> FrameBound:
        return one if one.offset is None else replace(one, offset=rewrite(one.offset))

    return replace(frame, start=bound(frame.start), end=bound(frame.end))


def _rewritten_keys(keys: tuple[SortKey, ...], rewrite: Rewrite) -> tuple[SortKey, ...]:
    return tuple([replace(key, expr=rewrite(key.expr)) for key in keys])


# --- reading whole trees -----------------------------------------------------------------------


def _query_and_arguments(expr: Subquery) -> tuple[Plan | Expr, ...]:
    return (*expr.args, expr.plan)


def _expressions_and_inputs(plan: Plan) -> tuple[Plan | Expr, ...]:
    return (*plan_expressions(plan), *inputs(plan))


_PARTS: Final[dict[type, Callable[..., tuple[Plan | Expr, ...]]]] = {
    **_CHILDREN,
    **dict.fromkeys(get_args(Plan), _expressions_and_inputs),
    Subquery: _query_and_arguments,
}


def walk(root: Plan | Expr) -> Iterator[Plan | Expr]:
    """Every plan and expression in it, at every depth, itself first."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        parts = _PARTS[type(node)](node)
        if parts:
            waiting.extend(parts[::-1])


def expression_nodes(expr: Expr) -> Iterator[Expr]:
    """The expression and everything in it, without looking into subqueries."""
    waiting = [expr]
    while waiting:
        node = waiting.pop()
        yield node
        parts = _CHILDREN[type(node)](node)
        if parts:
            waiting.extend(parts[::-1])


def plan_nodes(plan: Plan) -> Iterator[Plan]:
    """The plan and those below it, without looking into subqueries."""
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(inputs(node)[::-1])


def has_more_parts(expr: Expr, limit: int) -> bool:
    """Whether an expression has more parts than that, at every depth but within subqueries."""
    return _are_more(expression_nodes(expr), limit)


def _are_more(nodes: Iterable[Plan | Expr], limit: int) -> bool:
    return any(count > limit for count in accumulate(map(size_of_node, nodes)))


def subqueries(expr: Expr) -> Iterator[Subquery]:
    """The subqueries in an expression, not those inside them."""
    return (node for node in expression_nodes(expr) if isinstance(node, Subquery))


def has_subquery(expr: Expr) -> bool:
    """Whether a subquery stands anywhere in it."""
    return any(isinstance(node, Subquery) for node in expression_nodes(expr))


def plan_has_subquery(plan: Plan) -> bool:
    """Whether one stands in an expression of the plan."""
    return any(has_subquery(expr) for node in plan_nodes(plan) for expr in plan_expressions(node))


def column_ids(expr: Expr) -> Iterator[ColumnId]:
    """Every column that an expression uses, those inside its subqueries too."""
    return (node.id for node in walk(expr) if isinstance(node, ColumnRef))


def plan_column_ids(plan: Plan) -> Iterator[ColumnId]:
    """Every column that expressions of a plan use, at every depth."""
    return (node.id for node in walk(plan) if isinstance(node, ColumnRef))


def scans(plan: Plan) -> Iterator[Scan]:
    """Every scan of a plan, also in subqueries of its expressions."""
    return (node for node in walk(plan) if isinstance(node, Scan))


def functions(root: Plan | Expr) -> Iterator[Function]:
    """Every function that something in it calls, at every depth."""
    for node in walk(root):
        match node:
            case Call() | AnyAll():
                yield node.function
            case InRows():
                yield from node.functions
            case GroupBy():
                yield from (call.function for call in node.aggregates)
            case Window() | SetScan():
                yield from (call.function for call in node.calls)
            case _:
                pass


def has_more_nodes(root: Plan | Expr, limit: int) -> bool:
    """Whether it has more plans and expressions than that."""
    return _are_more(walk(root), limit)


def is_volatile_expression(expr: Expr) -> bool:
    """Whether it may answer differently the next time, without looking into subqueries."""
    return any(map(_is_volatile_call, expression_nodes(expr)))


def is_volatile_anywhere(expr: Expr) -> bool:
    """The same, with its subqueries."""
    return any(map(_is_volatile_call, walk(expr)))


def is_volatile_plan(plan: Plan) -> bool:
    """Whether it may answer differently the next time, anywhere in it."""
    return any(map(_is_volatile_call, walk(plan)))


def _is_volatile_call(node: Plan | Expr) -> bool:
    return isinstance(node, Call) and node.function.volatility == "volatile"
