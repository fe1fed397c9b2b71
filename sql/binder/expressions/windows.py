"""Window functions: calls with OVER, named windows, frames (transformWindowFuncCall).

Definitions follow transformWindowDefinitions.

    f(args) FILTER (..) OVER (PARTITION BY .. ORDER BY .. frame) ─▶ WindowCall, a column

A window belongs to the level that contains it. Its parts are bound over the rows below, and
rewritten over the groups if the level groups (`grouping.py`).
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

from pglast import ast

from sql.binder.expressions.calls import (
    TYPES_BY_NAME,
    converted_arguments,
    numeric_call,
    polymorphic_call,
)
from sql.binder.expressions.range_frames import range_frame_in_seconds
from sql.binder.expressions.row_aggregates import aggregate_lookup_name, bind_aggregate_argument
from sql.binder.expressions.sort_keys import expression_sort_key
from sql.binder.resolve import postgresql_functions as postgresql
from sql.binder.resolve.coercion import (
    ASSIGNMENT,
    IMPLICIT,
    bind_settled,
    can_coerce,
    coerce,
    to_boolean,
    zone_arguments,
)
from sql.binder.resolve.collations import set_computed_collation
from sql.binder.resolve.expression_domain import domain_of_call, type_of_domain
from sql.binder.resolve.function_choice import find_function, returns_set
from sql.binder.resolve.overloads import OverloadChoice
from sql.binder.resolve.styled_arguments import styled_arguments
from sql.binder.state import Binding, Scope, WindowDefinition
from sql.binder.stored.domain_checks import checked_value
from sql.catalog.objects import Domain
from sql.errors import SqlError, datatype_mismatch, grouping_error, not_supported
from sql.functions.table import Function, FunctionKind, functions
from sql.parser.syntax import Node, is_a, node_position, offset_to_position, string_values
from sql.plan.nodes import (
    BoundKind,
    Exclusion,
    Expr,
    Frame,
    FrameBound,
    FrameMode,
    SortKey,
    WindowCall,
)
from sql.plan.traverse import column_ids
from sql.types.comparability import check_equality
from sql.types.sql_type import INT8, SqlType, format_type

_T = TypeVar("_T")
WINDOW_CLAUSES: Final = frozenset({"SELECT", "ORDER BY", "DISTINCT ON"})
_CLAUSE_NAMES: Final = {
    "JOIN/ON": "JOIN conditions",
    "DEFAULT": "DEFAULT expressions",
    "FROM": "functions in FROM",
}
_INTEGERS: Final = ("int2", "int4", "int8")
_IN_RANGE: Final[Mapping[str, Sequence[str]]] = {
    "int2": _INTEGERS,
    "int4": _INTEGERS,
    "int8": ("int8",),
    "float4": ("float8",),
    "float8": ("float8",),
    "numeric": ("numeric",),
    **dict.fromkeys(
        ("date", "timestamp", "timestamptz", "interval", "time", "timetz"), ("interval",)
    ),
}
"""What may be added to a key of RANGE (pg_amproc's in_range functions)."""

_FRAME_DEFAULT: Final = 0x422
_MODES: Final = ((0x2, FrameMode.RANGE), (0x4, FrameMode.ROWS), (0x8, FrameMode.GROUPS))
_STARTS: Final = (
    (0x20, BoundKind.UNBOUNDED_PRECEDING),
    (0x80, BoundKind.UNBOUNDED_FOLLOWING),
    (0x200, BoundKind.CURRENT_ROW),
    (0x800, BoundKind.PRECEDING),
    (0x2000, BoundKind.FOLLOWING),
)
_ENDS: Final = tuple([(bit << 1, kind) for bit, kind in _STARTS])
_EXCLUSIONS: Final = (
    (0x8000, Exclusion.CURRENT_ROW),
    (0x10000, Exclusion.GROUP),
    (0x20000, Exclusion.TIES),
)


def window_call(binding: Binding, scope: Scope, node: Node) -> Expr:
    """A FuncCall with OVER: registered with its query level as a column."""
    name = node.funcname[-1].sval
    _check_place(scope, node)
    _check_forms(node, name)
    exprs, filter_ = _parts(binding, scope, node)
    choice = _choice(binding, node, name, exprs)
    args = converted_arguments(binding, choice, exprs, node.args or ())
    args = styled_arguments(binding, choice.function, args, choice.result)
    domain = domain_of_call(binding, choice.function, exprs)
    if domain is not None:
        args = _of_domain(binding, domain, choice.function, exprs, args, node.args)
    (args, type_), exact = polymorphic_call(binding, choice, args), True
    if choice.function.numeric is not None and choice.result == "numeric":
        args, type_, exact = numeric_call(binding, choice.function, args, choice.result)
    if domain is not None:
        type_ = type_of_domain(binding, domain)
    args = (*args, *zone_arguments(binding, choice.function))
    found = _definition(binding, scope, node.over)
    call = WindowCall(
        choice.function, args, filter_, found.partition, found.order, found.frame, type_
    )
    column = scope.windows.get(call)
    if column is None:
        column = scope.windows[call] = binding.new_column(name, type_)
        set_computed_collation(binding, column, exprs)
        if domain is not None:
            binding.domains[column.id] = domain
        if not exact:
            binding.inexact.add(column.id)
    return binding.reference(column, node.location)


def _of_domain(
    binding: Binding,
    domain: Domain,
    function: Function,
    exprs: Sequence[Expr],
    args: Sequence[Expr],
    nodes: Sequence[Node],
) -> tuple[Expr, ...]:
    """The arguments of a call that yields a domain: literals without a type are values of it, where
    the function takes what it yields.
    """
    type_ = type_of_domain(binding, domain)
    made: list[Expr] = []
    for expr, arg, node, declared in zip(exprs, args, nodes, function.args, strict=True):
        if expr.type.name == "unknown" and declared == function.result:
            value = coerce(binding, expr, node, type_, ASSIGNMENT)
            assert value is not None, "a literal becomes whatever it is asked to be"
            made.append(checked_value(binding, value, domain))
        else:
            made.append(arg)
    return tuple(made)


def named_windows(binding: Binding, scope: Scope, nodes: Sequence[Node]) -> None:
    """Bind the WINDOW clause into the scope."""
    for node in nodes:
        if node.name in scope.named_windows:
            message = f'window "{node.name}" is already defined'
            raise SqlError("42P20", message, offset_to_position(node.location))
        scope.named_windows[node.name] = _written(binding, scope, node)


# --- checks ------------------------------------------------------------------------------------


def _check_place(scope: Scope, node: Node) -> None:
    place = offset_to_position(node.location)
    clause = scope.clause
    if scope.window_part is not None:
        nested = scope.window_part == "arguments"
        message = (
            "window function calls cannot be nested"
            if nested
            else "window functions are not allowed in window definitions"
        )
        raise SqlError("42P20", message, place)
    if scope.in_aggregate and clause != "FILTER":
        raise grouping_error("aggregate function calls cannot contain window function calls", place)
    if clause not in WINDOW_CLAUSES:
        shown = _CLAUSE_NAMES.get(clause, clause)
        raise SqlError("42P20", f"window functions are not allowed in {shown}", place)


def _check_forms(node: Node, name: str) -> None:
    rows = functions(name)
    kind = rows[0].kind if rows else None
    place = offset_to_position(node.location)
    plain = kind in (FunctionKind.FUNCTION, FunctionKind.OPERATOR) or returns_set(name)
    if plain or (kind is None and postgresql.is_plain_function(name)):
        message = f"OVER specified, but {name} is not a window function nor an aggregate function"
        raise SqlError("42809", message, place)
    if node.agg_within_group:
        raise not_supported("WITHIN GROUP", place)
    if node.agg_distinct:
        raise SqlError("0A000", "DISTINCT is not implemented for window functions", place)
    if node.agg_order:
        message = "aggregate ORDER BY is not implemented for window functions"
        raise SqlError("0A000", message, place)
    if node.agg_filter is not None and kind is FunctionKind.WINDOW:
        message = "FILTER is not implemented for non-aggregate window functions"
        raise SqlError("0A000", message, place)


def _choice(binding: Binding, node: Node, name: str, exprs: Sequence[Expr]) -> OverloadChoice:
    place = node.location
    if not exprs and not node.agg_star and name == "count":
        message = "count(*) must be used to call a parameterless aggregate function"
        raise SqlError("42809", message, offset_to_position(place))
    shown = ".".join(string_values(node.funcname))
    choice = find_function(aggregate_lookup_name(binding, node, exprs), exprs, shown, place)
    wanted = choice.function.args
    elements = [expr for expr, want in zip(exprs, wanted, strict=True) if want == "anyelement"]
    if elements and all(expr.type.name == "unknown" for expr in elements):
        message = "could not determine polymorphic type because input has type unknown"
        raise datatype_mismatch(message)
    return choice


# --- parts -------------------------------------------------------------------------------------


@contextmanager
def _inside(scope: Scope, part: str, clause: str | None = None) -> Generator[None, None, None]:
    """While a part of a window is bound: further windows are refused."""
    saved = scope.window_part, scope.clause
    scope.window_part, scope.clause = part, clause or scope.clause
    try:
        yield
    finally:
        scope.window_part, scope.clause = saved


def _parts(binding: Binding, scope: Scope, node: Node) -> tuple[list[Expr], Expr | None]:
    with _inside(scope, "arguments"):
        exprs = [bind_aggregate_argument(binding, scope, node, arg) for arg in node.args or ()]
    condition = node.agg_filter
    if condition is None:
        return exprs, None
    clause, scope.clause = scope.clause, "FILTER"
    try:
        bound = binding.expression(scope, condition)
        return exprs, to_boolean(binding, bound, condition, "FILTER")
    finally:
        scope.clause = clause


def _definition(binding: Binding, scope: Scope, over: Node) -> WindowDefinition:
    if over.name is None:
        return _written(binding, scope, over)
    return _named(scope, over.name, over)


def _named(scope: Scope, name: str, node: Node) -> WindowDefinition:
    found = scope.named_windows.get(name)
    if found is None:
        raise SqlError(
            "42704", f'window "{name}" does not exist', offset_to_position(node.location)
        )
    return found


def _flat(items: Sequence[Node]) -> list[Node]:
    """What PARTITION BY names: `(a, b)` is two keys, as in GROUP BY."""
    found: list[Node] = []
    for item in items:
        row = is_a(item, ast.RowExpr) and item.row_format.name == "COERCE_IMPLICIT_CAST"
        found += _flat(item.args or ()) if row else [item]
    return found


def _written(binding: Binding, scope: Scope, node: Node) -> WindowDefinition:
    """A definition, with what it takes over from the window that it names."""
    base = None if node.refname is None else _named(scope, node.refname, node)
    with _inside(scope, "definition"):
        order = tuple(
            [expression_sort_key(binding, scope, item) for item in node.orderClause or ()]
        )
        items = _flat(node.partitionClause or ())
        partition = tuple([bind_settled(binding, scope, item) for item in items])
    for key, item in zip(partition, items, strict=True):
        check_equality(key.type, node_position(item))
    options = node.frameOptions
    if base is not None:
        _check_copy(base, node, partition=bool(partition), order=bool(order))
        partition, order = base.partition, order or base.order
    mode = _chosen(options, _MODES, FrameMode.RANGE)
    start, end = _chosen(options, _STARTS, None), _chosen(options, _ENDS, None)
    assert start is not None, "a frame begins somewhere"
    assert end is not None, "a frame ends somewhere"
    _check_mode(node, mode, order, offsets=bool(node.startOffset or node.endOffset))
    frame = Frame(
        mode,
        FrameBound(start, _offset(binding, scope, node.startOffset, mode, order)),
        FrameBound(end, _offset(binding, scope, node.endOffset, mode, order)),
        _chosen(options, _EXCLUSIONS, Exclusion.NO_OTHERS),
    )
    order, frame = range_frame_in_seconds(binding, order, frame)
    return WindowDefinition(partition, order, frame, framed=options != _FRAME_DEFAULT)


def _chosen(options: int, bits: Sequence[tuple[int, _T]], otherwise: _T) -> _T:
    return next((meaning for bit, meaning in bits if options & bit), otherwise)


def _check_copy(base: WindowDefinition, node: Node, *, partition: bool, order: bool) -> None:
    name, place = node.refname, offset_to_position(node.location)
    if partition:
        message = f'cannot override PARTITION BY clause of window "{name}"'
        raise SqlError("42P20", message, place)
    if order and base.order:
        message = f'cannot override ORDER BY clause of window "{name}"'
        raise SqlError("42P20", message, place)
    if base.framed:
        plain = node.name is None and not order and node.frameOptions == _FRAME_DEFAULT
        hint = "Omit the parentheses in this OVER clause." if plain else None
        message = f'cannot copy window "{name}" because it has a frame clause'
        raise SqlError("42P20", message, place, hint=hint)


def _check_mode(node: Node, mode: FrameMode, order: Sequence[SortKey], *, offsets: bool) -> None:
    if mode is FrameMode.RANGE and offsets and len(order) != 1:
        message = "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column"
        raise SqlError("42P20", message, offset_to_position(node.location))
    if mode is FrameMode.GROUPS and not order:
        raise SqlError(
            "42P20", "GROUPS mode requires an ORDER BY clause", offset_to_position(node.location)
        )


def _offset(
    binding: Binding,
    scope: Scope,
    node: Node | None,
    mode: FrameMode,
    order: Sequence[SortKey],
) -> Expr | None:
    """The offset of a bound: an int8, or of a type that may be added to the sort key."""
    if node is None:
        return None
    clause = mode.value.upper()
    with _inside(scope, "definition", f"window {clause}"):
        expr = binding.expression(scope, node)
    target = INT8
    if mode is FrameMode.RANGE:
        target = _added_type(order[0].expr.type, expr.type, node)
    done = coerce(binding, expr, node, target, ASSIGNMENT)
    if done is None:
        shown = f"{format_type(target)}, not type {format_type(expr.type.bare())}"
        raise datatype_mismatch(f"argument of {clause} must be type {shown}", node_position(node))
    if not scope.ids.isdisjoint(column_ids(done)):
        message = f"argument of {clause} must not contain variables"
        raise SqlError("42P10", message, node_position(node))
    return done


def _added_type(key: SqlType, offset: SqlType, node: Node) -> SqlType:
    """The type that an offset of RANGE has (transformFrameOffset)."""
    start = "RANGE with offset PRECEDING/FOLLOWING"
    taken = _IN_RANGE.get(key.name)
    column = f"column type {format_type(key.bare())}"
    if taken is None:
        raise SqlError("0A000", f"{start} is not supported for {column}", node_position(node))
    fitting = [name for name in taken if can_coerce(offset.name, name, IMPLICIT)]
    preferred = key.name if offset.name == "unknown" else offset.name
    types = f"{column} and offset type {format_type(offset.bare())}"
    if not fitting:
        hint = "Cast the offset value to an appropriate type."
        message = f"{start} is not supported for {types}"
        raise SqlError("0A000", message, node_position(node), hint=hint)
    if preferred in fitting:
        return TYPES_BY_NAME[preferred]
    if len(fitting) > 1:
        hint = "Cast the offset value to the exact intended type."
        message = f"{start} has multiple interpretations for {types}"
        raise SqlError("0A000", message, node_position(node), hint=hint)
    return TYPES_BY_NAME[fitting[0]]
