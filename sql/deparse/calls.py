"""Analyze calls of functions, aggregates and window functions (parse_func.c, parse_agg.c)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pglast import ast
from pglast.enums import CoercionForm, SortByDir, SortByNulls

from sql.catalog.extensions import extension_of_function
from sql.deparse.coercion import UnknownShape, add_coercion, converted, settled
from sql.deparse.nodes import (
    AggregateCall,
    FuncExpr,
    Listed,
    SortItem,
    TypedExpr,
    WindowClause,
)
from sql.deparse.overloads import CalledFunction, called_function
from sql.deparse.state import Analysis, Level
from sql.deparse.types import BOOL_TYPE, INT8_TYPE, Type
from sql.parser.syntax import Node, is_a, string_values
from sql.parser.type_names import is_builtin_type

FRAME_NONDEFAULT: Final = 0x1
_FRAME_ROWS: Final = 0x4
_FRAME_GROUPS: Final = 0x8
_SYNTAX: Final = frozenset(
    [
        "timezone", "overlaps", "extract", "position", "substring", "overlay", "btrim", "ltrim",
        "rtrim", "normalize", "is_normalized",
    ]
)  # fmt: skip
"""Functions that the standard writes with keywords."""
_MOMENTS: Final = frozenset({"date", "time", "timetz", "timestamp", "timestamptz", "interval"})


def analyze_call(analysis: Analysis, level: Level, node: Node) -> TypedExpr:
    """A FuncCall."""
    *qualifier, name = string_values(node.funcname)
    if any(is_a(arg, ast.NamedArgExpr) for arg in node.args or ()):
        raise UnknownShape("named arguments")
    args = [analysis.expression(level, arg) for arg in node.args or ()]
    if node.agg_within_group:
        return _within_group(analysis, level, node, name, args)
    if len(args) == 1 and is_builtin_type(name) and args[0].type.name in ("unknown", name):
        # A type's name as a function is a cast (func_get_detail).
        return add_coercion(args[0], Type(name), analysis.zone, explicit=True)
    types = tuple([arg.type.name for arg in args])
    found = called_function(name, types, variadic=bool(node.func_variadic))
    done = _arguments(analysis, found, args)
    result = _result(found)
    variadic = bool(node.func_variadic) or found.repeats is not None
    if found.kind == "f" and node.over is None:
        # What pglast has no printer for is stored under the name that the grammar gives it.
        sql_syntax = node.funcformat == CoercionForm.COERCE_SQL_SYNTAX or (
            bool(qualifier) and name in _SYNTAX
        )
        return FuncExpr(
            name,
            done,
            result,
            sql_syntax,
            variadic,
            returns_set=found.returns_set,
            extension=extension_of_function(name, qualifier),
        )
    order = tuple([sort_item(analysis, level, item) for item in node.agg_order or ()])
    return AggregateCall(
        name,
        done,
        result,
        bool(node.agg_star),
        bool(node.agg_distinct),
        order,
        where=_filter(analysis, level, node),
        over=None if node.over is None else _over(analysis, level, node.over),
        variadic=variadic,
    )


def _result(found: CalledFunction) -> Type:
    if found.result == "record" and len(found.outputs) == 1:
        return Type(found.outputs[0][1])
    return Type(found.result)


def _arguments(
    analysis: Analysis, found: CalledFunction, args: Sequence[TypedExpr]
) -> tuple[TypedExpr, ...]:
    done = [
        converted(arg, arg.type if wanted == arg.type.name and _any(arg) else Type(wanted),
                  analysis.zone)
        for arg, wanted in zip(args, found.args, strict=True)
    ]  # fmt: skip
    if found.repeats is None:
        return tuple(done)
    items = tuple(done[found.repeats :])
    array = Listed("ARRAY", items, Type(f"_{found.args[-1]}"))
    return (*done[: found.repeats], array)


def _any(arg: TypedExpr) -> bool:
    return not arg.type.domain


def _filter(analysis: Analysis, level: Level, node: Node) -> TypedExpr | None:
    if node.agg_filter is None:
        return None
    return converted(analysis.expression(level, node.agg_filter), BOOL_TYPE, analysis.zone)


def _within_group(
    analysis: Analysis, level: Level, node: Node, name: str, direct: Sequence[TypedExpr]
) -> TypedExpr:
    keys = [analysis.expression(level, item.node) for item in node.agg_order]
    types = tuple([arg.type.name for arg in (*direct, *keys)])
    found = called_function(name, types, variadic=False)
    if found.args[-1:] == ("any",):
        raise UnknownShape("a hypothetical set")
    done = _arguments(analysis, found, [*direct, *keys])
    order = [
        replace(sort_item(analysis, level, item), expr=key)
        for item, key in zip(node.agg_order, done[len(direct) :], strict=True)
    ]
    return AggregateCall(
        name,
        done[: len(direct)],
        _result(found),
        order=tuple(order),
        within=True,
        where=_filter(analysis, level, node),
    )


# --- sorting and windows -----------------------------------------------------------------------


def sort_item(
    analysis: Analysis, level: Level, node: Node, expr: TypedExpr | None = None
) -> SortItem:
    """A SortBy; `expr`: what it sorts by, if that is known already."""
    if node.sortby_dir == SortByDir.SORTBY_USING:
        raise UnknownShape("ORDER BY .. USING")
    if expr is None:
        expr = settled(analysis.expression(level, node.node), analysis.zone)
    descending = node.sortby_dir == SortByDir.SORTBY_DESC
    first = node.sortby_nulls == SortByNulls.SORTBY_NULLS_FIRST
    if node.sortby_nulls == SortByNulls.SORTBY_NULLS_DEFAULT:
        first = descending
    return SortItem(expr, descending, first)


def _over(analysis: Analysis, level: Level, node: Node) -> WindowClause:
    if node.name is not None:
        return WindowClause(node.name)
    return window(analysis, level, node)


def window(analysis: Analysis, level: Level, node: Node) -> WindowClause:
    """A WindowDef."""
    partition = [
        settled(analysis.expression(level, part), analysis.zone)
        for part in node.partitionClause or ()
    ]
    order = tuple([sort_item(analysis, level, item) for item in node.orderClause or ()])
    frame = node.frameOptions or 0
    keys = order or _inherited(analysis, level, node)
    start, end = (
        None if bound is None else _offset(analysis, level, bound, frame, keys)
        for bound in (node.startOffset, node.endOffset)
    )
    return WindowClause(node.name, node.refname, tuple(partition), order, frame, start, end)


def _inherited(analysis: Analysis, level: Level, node: Node) -> tuple[SortItem, ...]:
    known = level.windows.get(node.refname) if node.refname else None
    return () if known is None else window(analysis, level, known).order


def _offset(
    analysis: Analysis, level: Level, node: Node, frame: int, keys: Sequence[SortItem]
) -> TypedExpr:
    expr = analysis.expression(level, node)
    if frame & (_FRAME_ROWS | _FRAME_GROUPS):
        return add_coercion(expr, INT8_TYPE, analysis.zone)
    if expr.type.name == "unknown" and keys:
        sorted_by = keys[0].expr.type.name
        wanted = "interval" if sorted_by in _MOMENTS else sorted_by
        return add_coercion(expr, Type(wanted), analysis.zone)
    return expr
